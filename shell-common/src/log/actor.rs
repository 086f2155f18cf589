//! The actor: the one task that owns the machine.

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;

use sealog_core::gate::SettledBefore;
use sealog_core::{
    Answer, Append, Appended, Effect, EntryId, Error, Event, Notice, Outcome, RegionId, Time,
    Verdict, WriteError, Writer,
};
use tokio::sync::{mpsc, oneshot, watch};

use super::door::Door;
use super::requests::Requests;
use super::watch::{DurableWatch, Position};
use super::{Log, Runtime};
use crate::{Figures, tell_operator};

/// What waits in the order of its arrival, and is held back while the machine takes no appends.
pub(crate) enum Queued {
    Append {
        append: Append,
        waiter: oneshot::Sender<Result<Appended, WriteError>>,
    },
    /// Behind the appends that it is to release.
    Release {
        region: RegionId,
        in_full: bool,
        waiter: oneshot::Sender<Result<(), WriteError>>,
    },
    /// Behind the appends that it is to cover.
    Flush {
        waiter: oneshot::Sender<Result<(), Error>>,
    },
}

/// What is taken at any time.
pub(crate) enum Control {
    Event(Event<Waiter>),
    Ask(Question),
    Watch {
        region: RegionId,
        control: mpsc::WeakUnboundedSender<Control>,
        reply: oneshot::Sender<DurableWatch>,
    },
    Unwatch {
        region: RegionId,
    },
}

/// Asks the machine and answers whoever asked.
type Question = Box<dyn FnOnce(&Writer<Waiter>) + Send>;

impl Control {
    pub(crate) fn asking<T: Send + 'static>(
        question: impl FnOnce(&Writer<Waiter>) -> T + Send + 'static,
        reply: oneshot::Sender<T>,
    ) -> Control {
        Control::Ask(Box::new(move |writer| answer(reply, question(writer))))
    }
}

/// Whom the machine answers.
#[derive(Debug)]
pub(crate) enum Waiter {
    Append(oneshot::Sender<Result<Appended, WriteError>>),
    Release(oneshot::Sender<Result<(), WriteError>>),
    Done(oneshot::Sender<Result<(), Error>>),
    Verdict(oneshot::Sender<Option<Verdict>>),
}

impl Waiter {
    fn answer(self, given: Answer) {
        match (self, given) {
            (Waiter::Append(waiter), Answer::Appended(ids)) => answer(waiter, Ok(ids)),
            (Waiter::Release(waiter), Answer::Done) => answer(waiter, Ok(())),
            (Waiter::Done(waiter), Answer::Done) => answer(waiter, Ok(())),
            (Waiter::Verdict(waiter), Answer::Verdict(verdict)) => answer(waiter, Some(verdict)),
            // Not an answer to what was asked: the sender is dropped, and the caller is told that
            // the log is gone.
            (waiter, given) => debug_assert!(false, "{waiter:?} was answered {given:?}"),
        }
    }

    fn fail(self, error: &Error, outcome: Outcome) {
        match self {
            Waiter::Append(waiter) => answer(waiter, Err(WriteError::new(error.clone(), outcome))),
            Waiter::Release(waiter) => answer(waiter, Err(WriteError::new(error.clone(), outcome))),
            Waiter::Done(waiter) => answer(waiter, Err(error.clone())),
            Waiter::Verdict(waiter) => answer(waiter, None),
        }
    }
}

/// Whoever no longer listens needs no answer.
fn answer<T>(waiter: oneshot::Sender<T>, answer: T) {
    drop(waiter.send(answer));
}

/// Hands events to the machine and carries its effects out, until the last handle is gone.
pub(crate) struct Actor<R: Runtime> {
    writer: Writer<Waiter>,
    requests: Requests<R>,
    figures: Figures,
    runtime: R,
    door: Arc<Door>,
    settled: SettledBefore,
    /// For those who come in from the line; it keeps no log alive.
    to_queue: mpsc::WeakUnboundedSender<Queued>,
    queue: mpsc::UnboundedReceiver<Queued>,
    /// What was received and has to wait: a flush comes first, and appends before it wait for
    /// their place in the machine.
    held: VecDeque<Queued>,
    control: mpsc::UnboundedReceiver<Control>,
    watches: BTreeMap<RegionId, watch::Sender<Position>>,
    /// Why no durable position will change any more.
    ended: Option<Error>,
}

/// How many appends are handed over before their effects are carried out.
const APPENDS_AT_ONCE: usize = 256;
const CONTROLS_AT_ONCE: usize = 64;

impl<R: Runtime> Actor<R> {
    /// It keeps no handle of the log, whose last one it outlives.
    pub(crate) fn new(
        writer: Writer<Waiter>,
        log: &Log<R>,
        queue: mpsc::UnboundedReceiver<Queued>,
        control: mpsc::UnboundedReceiver<Control>,
    ) -> Actor<R> {
        let runtime = log.runtime().clone();
        let requests = Requests::new(runtime.clone(), log.store().clone());
        let mut figures = Figures::new(writer.prefix());
        figures.changed(runtime.now());
        Actor {
            writer,
            requests,
            figures,
            runtime,
            door: log.door().clone(),
            settled: SettledBefore::default(),
            to_queue: log.queue(),
            queue,
            held: VecDeque::new(),
            control,
            watches: BTreeMap::new(),
            ended: None,
        }
    }

    pub(crate) async fn run(mut self) {
        let mut queued = Vec::with_capacity(APPENDS_AT_ONCE);
        let mut controls = Vec::with_capacity(CONTROLS_AT_ONCE);
        let (mut set_for, mut has_ended) = (self.runtime.now(), false);
        let mut timer = pin!(self.runtime.sleep_until(set_for));
        loop {
            self.carry_out_effects();
            self.door.let_in(&self.writer, &mut self.settled, &self.to_queue);
            let wanted = [self.writer.next_tick(), self.figures.due()].into_iter().flatten().min();
            // One that is set too early is left: setting it anew for every object costs more than
            // waking up for nothing now and then, and a tick too many is harmless.
            if let Some(wanted) = wanted
                && (has_ended || set_for > wanted)
            {
                timer.set(self.runtime.sleep_until(wanted));
                (set_for, has_ended) = (wanted, false);
            }
            let takes_appends = self.held.is_empty() && self.writer.accepts_appends();
            let mut answered = None;
            tokio::select! {
                biased;
                received = self.control.recv_many(&mut controls, CONTROLS_AT_ONCE) => {
                    // Every handle has a sender.
                    if received == 0 {
                        return self.abandon();
                    }
                }
                answer = self.requests.next() => answered = Some(answer),
                _ = self.queue.recv_many(&mut queued, APPENDS_AT_ONCE), if takes_appends => {}
                () = &mut timer, if wanted.is_some() => has_ended = true,
            }
            // All of what is there, whichever it was that came first: none may starve the others.
            let now = self.runtime.now();
            while let Some(answer) = answered.take().or_else(|| self.requests.try_next()) {
                self.handle(now, Event::Storage(answer));
            }
            self.held.extend(queued.drain(..));
            self.admit_held(now);
            // What a caller submitted before it asked counts in the answer, and what is there before
            // a tick goes into the object that the tick seals.
            self.admit_waiting(now);
            for control in controls.drain(..) {
                self.obey(now, control);
            }
            if self.writer.next_tick().is_some_and(|tick| tick <= now) {
                self.handle(now, Event::Tick);
            }
            if self.figures.due().is_some_and(|due| due <= now) {
                self.export_figures();
            }
            self.admit_held(now);
        }
    }

    fn handle(&mut self, now: Time, event: Event<Waiter>) {
        self.figures.changed(now);
        self.writer.handle(now, event);
    }

    fn export_figures(&mut self) {
        self.figures.export(&self.door.figures(self.writer.stats()));
    }

    fn admit(&mut self, now: Time, queued: Queued) {
        let event = match queued {
            Queued::Append { append, waiter } => {
                Event::Append { append, waiter: Waiter::Append(waiter) }
            }
            Queued::Release { region, in_full, waiter } => {
                let waiter = Waiter::Release(waiter);
                match in_full {
                    true => Event::ReleaseAll { region, waiter },
                    false => Event::Release { region, waiter },
                }
            }
            Queued::Flush { waiter } => Event::Flush { waiter: Waiter::Done(waiter) },
        };
        self.handle(now, event);
    }

    /// Hands over what is held. To the machine a flush covers what is admitted; to its caller, what
    /// was submitted: so it waits until the appends before it have their place.
    fn admit_held(&mut self, now: Time) {
        while let Some(queued) = self.held.pop_front() {
            if matches!(queued, Queued::Flush { .. }) && !self.writer.accepts_appends() {
                return self.held.push_front(queued);
            }
            self.admit(now, queued);
        }
    }

    /// Hands over what is queued by now, as far as the machine takes it.
    fn admit_waiting(&mut self, now: Time) {
        for _ in 0..self.queue.len() {
            if !self.held.is_empty() || !self.writer.accepts_appends() {
                return;
            }
            let Ok(queued) = self.queue.try_recv() else { return };
            self.admit(now, queued);
        }
    }

    fn obey(&mut self, now: Time, control: Control) {
        match control {
            Control::Event(event) => self.handle(now, event),
            Control::Ask(question) => question(&self.writer),
            Control::Watch { region, control, reply } => {
                let positions = self.watches.entry(region).or_insert_with(|| {
                    let id = self.writer.durable(region);
                    self.writer.handle(now, Event::Watch { region });
                    watch::Sender::new(Position { id, ended: self.ended.clone() })
                });
                answer(reply, DurableWatch::new(region, positions.subscribe(), control));
            }
            Control::Unwatch { region } => {
                let positions = self.watches.get(&region);
                if positions.is_some_and(|positions| positions.receiver_count() == 0) {
                    self.watches.remove(&region);
                    self.writer.handle(now, Event::Unwatch { region });
                }
            }
        }
    }

    fn carry_out_effects(&mut self) {
        // Before whoever waits for the end is answered: the process may end right after.
        if self.ended.is_none() && self.writer.is_stopped() {
            self.export_figures();
        }
        while let Some(effect) = self.writer.poll_effect() {
            match effect {
                Effect::Storage(effect) => self.requests.start(effect),
                effect => self.tell(effect),
            }
        }
        if self.ended.is_none() && self.writer.is_stopped() {
            self.end_watches(Error::Stopped);
        }
    }

    fn tell(&mut self, effect: Effect<Waiter>) {
        match effect {
            Effect::Storage(_) => {}
            Effect::Ack { waiter, answer } => waiter.answer(answer),
            Effect::FailWaiters { waiters, error, outcome } => {
                waiters.into_iter().for_each(|waiter| waiter.fail(&error, outcome));
            }
            Effect::Durable { region, id } => self.moved(region, id),
            Effect::Notice(told) => {
                tell_operator(self.writer.prefix(), &told);
                if let Notice::Poisoned { error } = told {
                    // It comes before the waiters' answers.
                    self.export_figures();
                    self.end_watches(Error::Poisoned { cause: error.into() });
                }
            }
        }
    }

    fn moved(&mut self, region: RegionId, id: EntryId) {
        if let Some(positions) = self.watches.get(&region) {
            positions.send_if_modified(|position| std::mem::replace(&mut position.id, id) != id);
        }
    }

    fn end_watches(&mut self, error: Error) {
        for positions in self.watches.values() {
            positions.send_modify(|position| position.ended = Some(error.clone()));
        }
        self.ended = Some(error);
    }

    /// The last handle is gone: answer whoever waits, and leave the rest as a crash would.
    fn abandon(mut self) {
        self.writer.abandon();
        while let Some(effect) = self.writer.poll_effect() {
            self.tell(effect);
        }
        let held = std::mem::take(&mut self.held);
        let queued = std::iter::from_fn(|| self.queue.try_recv().ok());
        for queued in held.into_iter().chain(queued) {
            match queued {
                Queued::Append { waiter, .. } => {
                    Waiter::Append(waiter).fail(&Error::Stopped, Outcome::NotWritten);
                }
                Queued::Release { waiter, .. } => {
                    Waiter::Release(waiter).fail(&Error::Stopped, Outcome::NotWritten);
                }
                Queued::Flush { waiter } => answer(waiter, Err(Error::Stopped)),
            }
        }
    }
}

/// However the log goes away, with its last handle or with its runtime: nobody waits in the line
/// for it, and its last figures go out.
impl<R: Runtime> Drop for Actor<R> {
    fn drop(&mut self) {
        self.door.close();
        self.export_figures();
    }
}
