//! `enqueued`, simulated: what a crash loses is at most the backlog that was reported, and of what
//! was acknowledged it is a suffix, so that history has no hole (DESIGN.md section 13, 1). And what
//! was released stays released, as soon as that was acknowledged, or failed and something later
//! became durable (section 13, 5).
//!
//! The [`World`](super::World) and its journal follow what is acknowledged because it is durable;
//! here acknowledging comes first, and the checks are others: this is a smaller world of its own, over the
//! same store.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use sealog_core::event::{Append, Event, StorageEffect};
use sealog_core::format::ENTRY_HEADER_LEN;
use sealog_core::opening::{Identity, Opening, OpeningEffect, OpeningEvent};
use sealog_core::{
    AckMode, Answer, Effect, EntryId, Error, Options, Outcome, Prefix, RegionId, Time, Writer,
};

use super::door::{Came, Door, Way};
use super::journal::{Checked, Violation, ensure};
use super::plan::Rng;
use super::reader;
use crate::model::{Failure, Fate, ModelStore, Request};

const REGIONS: u64 = 4;

/// How often what was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Entries that were acknowledged.
    pub acknowledged: u64,
    /// Entries that a crash lost.
    pub lost: u64,
    /// Entries that were not durable at a crash, and came back.
    pub came_back: u64,
    /// Stops that lost nothing.
    pub stopped: u64,
    /// Stops that said what they lost.
    pub stopped_with_losses: u64,
    /// Times that the log became failing.
    pub failing: u64,
    /// Instances that were poisoned.
    pub poisoned: u64,
    /// Appends that had to wait for their place.
    pub stalled: u64,
    /// Releases that were acknowledged.
    pub released: u64,
    /// Releases that failed, and whose record was not given up.
    pub carried: u64,
    /// Of those, the ones that hold, since something later is durable.
    pub carried_hold: u64,
    /// Entries that an opening hid, since they were released.
    pub hidden: u64,
    /// Appends that were refused since their region was released in full.
    pub refused: u64,
    /// Appends that were refused because too much waited.
    pub overloaded: u64,
    /// Appends that came in from the line.
    pub let_in: u64,
}

/// An acknowledged entry.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    region: RegionId,
    id: EntryId,
    payload: Bytes,
    /// The call that appended it.
    call: usize,
    durable: bool,
}

/// A release that was called: what was appended to the region before that call is released.
#[derive(Clone, Copy, Debug)]
struct Release {
    region: RegionId,
    call: usize,
    state: ReleaseState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReleaseState {
    Open,
    /// After so many calls; its record is carried.
    Failed(usize),
    Holds,
    /// It never happened.
    Void,
}

struct Backlog {
    rng: Rng,
    now: Time,
    store: ModelStore,
    /// Puts that nobody waits for any more.
    adrift: Vec<StorageEffect>,
    requests: Vec<Request>,
    door: Door,
    /// Everything acknowledged that may be in the log, in the order of its acknowledgement.
    known: Vec<Known>,
    /// The appends that are not answered.
    open: BTreeMap<usize, Append>,
    releases: Vec<Release>,
    /// Releases of which nothing was written when the log was poisoned.
    failed_by_poison: u64,
    calls: usize,
    /// What stop was answered.
    stop: Option<(usize, Option<Result<(), Error>>)>,
    reached: Reached,
}

/// How a checker can be wrong. What it then says of a log that is right shows that it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// It knows of no release.
    ForgetsReleases,
    /// It takes every release for one that holds and covers all that came until the end.
    StretchesReleases,
}

/// Carries a seed out with a checker that is wrong.
///
/// # Errors
///
/// It should say so, if that comes to anything.
pub fn run_mistaken(seed: u64, mistake: Mistake) -> Checked<Reached> {
    run_with(seed, Some(mistake))
}

/// Carries out what a seed says: some lives of a log, each ended by a crash or a stop.
///
/// # Errors
///
/// Something acknowledged is lost that was not in the backlog, or history has a hole.
pub fn run(seed: u64) -> Checked<Reached> {
    run_with(seed, None)
}

fn run_with(seed: u64, mistake: Option<Mistake>) -> Checked<Reached> {
    let mut backlog = Backlog {
        rng: Rng::new(seed),
        now: Time::from_millis(1),
        store: ModelStore::new(),
        adrift: Vec::new(),
        requests: Vec::new(),
        door: Door::new(&Options::default()),
        known: Vec::new(),
        open: BTreeMap::new(),
        releases: Vec::new(),
        failed_by_poison: 0,
        calls: 0,
        stop: None,
        reached: Reached::default(),
    };
    for life in 0..2 + backlog.rng.below(5) as u8 {
        let mut writer = backlog.open(life)?;
        backlog.compare(&mut writer)?;
        backlog.live(&mut writer)?;
        match mistake {
            Some(Mistake::ForgetsReleases) => backlog.releases.clear(),
            Some(Mistake::StretchesReleases) => {
                let state = ReleaseState::Holds;
                let stretched = |r: &Release| Release { call: usize::MAX, state, ..*r };
                backlog.releases = backlog.releases.iter().map(stretched).collect();
            }
            None => {}
        }
    }
    let mut writer = backlog.open(u8::MAX)?;
    backlog.compare(&mut writer)?;
    Ok(backlog.reached)
}

impl Backlog {
    fn options(&mut self) -> Options {
        let ms = Duration::from_millis;
        let rng = &mut self.rng;
        let mut pick = |of: &[u64]| of[rng.below(of.len() as u64) as usize];
        Options {
            ack_mode: AckMode::Enqueued,
            linger: ms(pick(&[0, 1])),
            flush_interval: ms(pick(&[0, 50])),
            max_batch_bytes: pick(&[1, 300, 8 << 20]),
            max_in_flight: pick(&[1, 2, 4, 16]) as u32,
            max_unpersisted_bytes: pick(&[1, 500, 3000, 64 << 20]),
            max_unpersisted_age: ms(pick(&[100, 8000])),
            stop_deadline: ms(pick(&[0, 300, 10_000])),
            request_timeout: ms(pick(&[50, 1000])),
            reclaim_interval: ms(pick(&[0, 1000])),
            fence_retention: ms(pick(&[60_000, 7 * 86_400_000])),
            max_queued_bytes: pick(&[1, 500, 2000, 256 << 20]),
            ..Options::default()
        }
    }

    /// Opens the log of a store that does as it is told, while late puts land.
    fn open(&mut self, life: u8) -> Checked<Writer<usize>> {
        let options = self.options();
        self.door = Door::new(&options);
        let identity =
            Identity { nonce: [life; 16], opened_at_millis: 0, default_name: "one".into() };
        let failed = |error: Error| Violation(format!("the log does not open: {error}"));
        let prefix = Prefix::new("backlog").map_err(failed)?;
        let mut opening = Opening::new(self.now, prefix, options, identity).map_err(failed)?;
        loop {
            match opening.poll_effect() {
                Some(OpeningEffect::Storage(effect)) => {
                    self.land(20);
                    let answer = self.store.apply(&effect);
                    opening.handle(self.now, OpeningEvent::Storage(answer));
                }
                Some(OpeningEffect::Notice(_)) => {}
                Some(OpeningEffect::Opened(recovered)) => {
                    let mut writer = Writer::new(self.now, *recovered);
                    writer.set_keys_per_delete(1 + usize::from(life % 3));
                    return Ok(writer);
                }
                Some(OpeningEffect::Failed(error)) => return Err(failed(error)),
                None => {
                    let tick = opening.next_tick();
                    self.now = tick.ok_or_else(|| Violation("the opening hangs".into()))?;
                    opening.handle(self.now, OpeningEvent::Tick);
                }
            }
        }
    }

    /// One in so many times a put that nobody waits for lands.
    fn land(&mut self, one_in: u64) {
        if !self.adrift.is_empty() && self.rng.below(one_in) == 0 {
            let at = self.rng.below(self.adrift.len() as u64) as usize;
            let put = self.adrift.remove(at);
            self.store.apply(&put);
        }
    }

    /// What was recovered is all that was acknowledged, but for a suffix of what was not durable, and
    /// for what was released.
    fn compare(&mut self, writer: &mut Writer<usize>) -> Checked {
        let regions = (0..REGIONS).map(RegionId);
        let observed = reader::read_all(writer, &mut self.store, self.now, regions)?;
        let durable = self.known.iter().filter(|known| known.durable).count();
        let explains = |recovered: &usize| {
            (0..REGIONS).map(RegionId).all(|region| {
                let found = observed.get(&region).map_or(&[][..], Vec::as_slice);
                self.releases_of(region).any(|released| {
                    let visible = self.known[..*recovered].iter();
                    let visible = visible.filter(|k| k.region == region && k.call > released);
                    visible.map(|k| (k.id, &k.payload)).eq(found.iter().map(|s| (s.id, &s.payload)))
                })
            })
        };
        let Some(recovered) = (durable..=self.known.len()).rev().find(explains) else {
            return Err(Violation(format!(
                "{observed:?} was recovered of {:?}, and {:?}",
                self.known, self.releases
            )));
        };
        self.reached.lost += (self.known.len() - recovered) as u64;
        self.reached.came_back += (recovered - durable) as u64;
        self.known.truncate(recovered);
        let is_visible = |known: &Known| {
            let found = observed.get(&known.region).map_or(&[][..], Vec::as_slice);
            found.iter().any(|seen| seen.id == known.id)
        };
        self.known.retain(is_visible);
        self.reached.hidden += (recovered - self.known.len()) as u64;
        self.known.iter_mut().for_each(|known| known.durable = true);
        self.releases.clear();
        Ok(())
    }

    /// The calls before which a region may be released: the last release that holds, or a later one
    /// of which that is not known.
    fn releases_of(&self, region: RegionId) -> impl Iterator<Item = usize> {
        let of = self.releases.iter().filter(move |release| release.region == region);
        let holds = of.clone().filter(|release| release.state == ReleaseState::Holds);
        let holds = holds.map(|release| release.call).max().unwrap_or_default();
        let open = of.filter(|release| release.state != ReleaseState::Void);
        let open = open.map(|release| release.call).filter(move |call| *call > holds);
        std::iter::once(holds).chain(open)
    }

    /// A life until its end.
    fn live(&mut self, writer: &mut Writer<usize>) -> Checked {
        (self.open, self.stop, self.failed_by_poison) = (BTreeMap::new(), None, 0);
        let foul = self.rng.below(3);
        for _ in 0..20 + self.rng.below(150) {
            self.step(writer, foul)?;
        }
        if self.rng.below(2) == 0 {
            self.stop(writer)?;
        }
        self.durable(writer)?;
        let stats = writer.stats();
        self.reached.stalled += stats.stalled_appends_total;
        let adrift = self.requests.drain(..).filter_map(Request::abandon);
        self.adrift.extend(adrift);
        Ok(())
    }

    fn step(&mut self, writer: &mut Writer<usize>, foul: u64) -> Checked {
        match self.rng.below(13) {
            0..=3 => {
                let entries = (0..1 + self.rng.below(3)).map(|at| {
                    let mut payload = vec![0; 16 + self.rng.below(300) as usize];
                    payload[..8].copy_from_slice(&(self.calls as u64).to_le_bytes());
                    payload[8..16].copy_from_slice(&at.to_le_bytes());
                    (RegionId(self.rng.below(REGIONS)), Bytes::from(payload))
                });
                let append = Append::Many(entries.collect());
                self.calls += 1;
                let ways = [Way::Submit, Way::Try, Way::Wait, Way::Wait];
                match self.door.come(append, ways[self.rng.below(4) as usize]) {
                    Came::In(append) => self.submit(append),
                    Came::Waits => {}
                    Came::Overloaded => self.reached.overloaded += 1,
                }
                self.pump(writer)
            }
            4..=8 if !self.requests.is_empty() => {
                let at = self.rng.below(self.requests.len() as u64) as usize;
                let request = self.requests.remove(at);
                let fate = self.fate(foul);
                let (answer, late) = request.end(&mut self.store, fate);
                self.adrift.extend(late);
                self.handle(writer, Event::Storage(answer))
            }
            10 => {
                self.calls += 1;
                let (region, waiter) = (RegionId(self.rng.below(REGIONS)), self.calls);
                self.releases.push(Release { region, call: waiter, state: ReleaseState::Open });
                let event = match self.rng.below(5) {
                    0 => Event::ReleaseAll { region, waiter },
                    _ => Event::Release { region, waiter },
                };
                self.door.push(event);
                self.pump(writer)
            }
            9 => {
                self.land(2);
                Ok(())
            }
            _ => {
                let millis = 1 + self.rng.below(200);
                self.pass(writer, millis)
            }
        }
    }

    /// An append was let in, which fixes its place.
    fn submit(&mut self, append: Append) {
        self.calls += 1;
        self.open.insert(self.calls, append.clone());
        self.door.push(Event::Append { append, waiter: self.calls });
    }

    /// Hands over what the writer takes, and lets in who may come in for it.
    fn pump(&mut self, writer: &mut Writer<usize>) -> Checked {
        while let Some(event) = self.door.pop(writer) {
            self.carry(writer, event)?;
            let came = self.door.let_in(writer);
            self.reached.let_in += came.len() as u64;
            came.into_iter().for_each(|append| self.submit(append));
        }
        self.door.check(writer, writer.options().max_queued_bytes)
    }

    fn fate(&mut self, foul: u64) -> Fate {
        if self.rng.below(3) >= foul {
            return Fate::Honest;
        }
        let failure = match self.rng.below(6) {
            0 => Failure::Refused,
            1..=3 => Failure::Transient,
            _ => Failure::TimedOut,
        };
        match self.rng.below(4) {
            0 => Fate::AnswerLost(failure),
            1 => Fate::NoEffect(failure),
            2 => Fate::SaysExists,
            _ => Fate::Late(failure),
        }
    }

    /// Time passes: ticks come and requests time out at their moments.
    fn pass(&mut self, writer: &mut Writer<usize>, millis: u64) -> Checked {
        let until = self.now.after(Duration::from_millis(millis));
        loop {
            let timeout = self.requests.iter().map(|request| request.deadline).min();
            let next = [timeout, writer.next_tick()].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            match self.requests.iter().position(|request| request.deadline <= at) {
                Some(over) => {
                    let request = self.requests.remove(over);
                    let fate = Fate::Late(Failure::TimedOut);
                    let (answer, late) = request.end(&mut self.store, fate);
                    self.adrift.extend(late);
                    self.handle(writer, Event::Storage(answer))?;
                }
                None => self.handle(writer, Event::Tick)?,
            }
        }
        self.now = until;
        Ok(())
    }

    /// Stop ends, whatever the store does, and says what is lost.
    fn stop(&mut self, writer: &mut Writer<usize>) -> Checked {
        self.calls += 1;
        self.stop = Some((self.calls, None));
        self.handle(writer, Event::Stop { waiter: self.calls })?;
        let foul = self.rng.below(4);
        for _ in 0..1000 {
            if let Some((_, Some(answer))) = self.stop.take_if(|(_, answer)| answer.is_some()) {
                return self.stopped(writer, answer);
            }
            if self.rng.below(2) == 0 && !self.requests.is_empty() {
                let request = self.requests.remove(0);
                let fate = self.fate(foul);
                let (answer, late) = request.end(&mut self.store, fate);
                self.adrift.extend(late);
                self.handle(writer, Event::Storage(answer))?;
            } else {
                self.pass(writer, 100)?;
            }
        }
        Err(Violation("stop does not end".into()))
    }

    fn stopped(&mut self, writer: &Writer<usize>, answer: Result<(), Error>) -> Checked {
        ensure!(self.requests.is_empty(), "stopped, with requests under way");
        ensure!(self.open.is_empty(), "stopped, and appends wait: {:?}", self.open.keys());
        ensure!(self.door.is_empty(), "stopped, and somebody is held back");
        let lost = (self.known.len() - self.durable(writer)?) as u64;
        let said = match answer {
            Ok(()) => {
                self.carried_hold(usize::MAX);
                0
            }
            Err(Error::Lost { entries, releases, .. }) => {
                if releases == 0 {
                    self.carried_hold(usize::MAX);
                }
                let failed = |r: &&Release| matches!(r.state, ReleaseState::Failed(_));
                let most = self.releases.iter().filter(failed).count() as u64;
                // Those that a poison failed before they were written count too.
                let most = most + self.failed_by_poison;
                ensure!(releases <= most, "{releases} records are lost, of {most}");
                entries
            }
            Err(Error::Poisoned { .. }) => 0,
            Err(error) => return Err(Violation(format!("stop failed: {error}"))),
        };
        ensure!(said == lost, "stop says that {said} entries are lost, and {lost} are");
        if said == 0 {
            self.reached.stopped += 1;
        } else {
            self.reached.stopped_with_losses += 1;
        }
        Ok(())
    }

    /// How many of the known entries are durable: they come first, and the others are the backlog.
    fn durable(&mut self, writer: &Writer<usize>) -> Checked<usize> {
        let mut last = None;
        for known in self.known.iter_mut().rev().take_while(|known| !known.durable) {
            known.durable = known.id <= writer.durable(known.region);
            last = last.max(Some(known.call).filter(|_| known.durable));
        }
        self.carried_hold(last.unwrap_or_default());
        let durable = self.known.iter().take_while(|known| known.durable).count();
        let backlog = &self.known[durable..];
        let hole = backlog.iter().find(|known| known.durable);
        ensure!(hole.is_none(), "{hole:?} is durable, and one before it is not");
        let size = |known: &Known| (ENTRY_HEADER_LEN + known.payload.len()) as u64;
        let (bytes, stats) = (backlog.iter().map(size).sum::<u64>(), writer.stats());
        ensure!(
            // What stop gave up is in its answer, which waits for deletes.
            bytes <= stats.unpersisted_bytes
                || writer.is_stopped()
                || self.stop.is_some()
                || stats.poisoned_total > 0,
            "{bytes} bytes are not durable, {} are reported",
            stats.unpersisted_bytes
        );
        Ok(durable)
    }

    /// Something that was called as this is durable: releases that had failed before it hold.
    fn carried_hold(&mut self, call: usize) {
        for release in &mut self.releases {
            if let ReleaseState::Failed(at) = release.state
                && at < call
            {
                release.state = ReleaseState::Holds;
                self.reached.carried_hold += 1;
            }
        }
    }

    fn release(&mut self, waiter: usize) -> Option<&mut Release> {
        self.releases.iter_mut().find(|release| release.call == waiter)
    }

    fn handle(&mut self, writer: &mut Writer<usize>, event: Event<usize>) -> Checked {
        self.carry(writer, event)?;
        let came = self.door.let_in(writer);
        self.reached.let_in += came.len() as u64;
        came.into_iter().for_each(|append| self.submit(append));
        self.pump(writer)
    }

    fn carry(&mut self, writer: &mut Writer<usize>, event: Event<usize>) -> Checked {
        let (failing, poisoned) = (writer.stats().failing, writer.stats().poisoned_total);
        writer.handle(self.now, event);
        writer.check();
        while let Some(effect) = writer.poll_effect() {
            match effect {
                Effect::Storage(effect) => self.requests.push(Request::new(self.now, effect)),
                Effect::Ack { waiter, answer: Answer::Appended(ids) } => {
                    let append = self.open.remove(&waiter);
                    let append = append
                        .ok_or_else(|| Violation(format!("{waiter} is acknowledged again")))?;
                    for ((region, payload), id) in append.entries().zip(ids.ids()) {
                        let payload = payload.clone();
                        let call = waiter;
                        self.known.push(Known { region, id: *id, payload, call, durable: false });
                        self.reached.acknowledged += 1;
                    }
                }
                Effect::Ack { waiter, .. } => match self.release(waiter) {
                    Some(release) => {
                        release.state = ReleaseState::Holds;
                        self.reached.released += 1;
                    }
                    None => self.answered_stop(waiter, &Ok(())),
                },
                Effect::FailWaiters { waiters, error, outcome } => {
                    for waiter in waiters {
                        if self.open.remove(&waiter).is_some() {
                            let written = outcome != Outcome::NotWritten;
                            ensure!(!written, "{waiter} failed after it had been admitted");
                            let refused = matches!(error, Error::Released { .. });
                            self.reached.refused += u64::from(refused);
                        } else if self.release(waiter).is_some() {
                            let carried = outcome == Outcome::Unknown;
                            let state = match carried {
                                true => ReleaseState::Failed(self.calls),
                                false => ReleaseState::Void,
                            };
                            self.release(waiter).into_iter().for_each(|r| r.state = state);
                            self.reached.carried += u64::from(carried);
                            let late = matches!(error, Error::Poisoned { .. } | Error::Stopped);
                            let by_poison = writer.stats().poisoned_total > 0 && !late;
                            self.failed_by_poison += u64::from(by_poison && !carried);
                        } else {
                            self.answered_stop(waiter, &Err(error.clone()));
                        }
                    }
                }
                Effect::Durable { .. } | Effect::Notice(_) => {}
            }
        }
        self.durable(writer)?;
        let stats = writer.stats();
        self.reached.failing += u64::from(failing == 0 && stats.failing == 1);
        self.reached.poisoned += stats.poisoned_total - poisoned;
        Ok(())
    }

    fn answered_stop(&mut self, waiter: usize, answer: &Result<(), Error>) {
        if let Some((stop, answered)) = &mut self.stop
            && *stop == waiter
        {
            *answered = Some(answer.clone());
        }
    }
}
