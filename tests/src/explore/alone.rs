//! Openings that run to their end on a copy of the store, while all else stands still.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use sealog_core::format::Header;
use sealog_core::{
    Error, Opening, OpeningEffect, OpeningEvent, Recovered, StorageAnswer, StorageEffect,
    StoreError, StoreErrorKind, Time, Writer,
};

use super::instance::{Setup, history_of};
use super::objects::{
    Objects, SetId, StoredEntry, StoredObject, Written, listed_answer, read_answer, sequence_of,
};

/// No opening that is left alone makes more steps than this.
const ENDLESS: u32 = 500;

/// How often two openings at once may both fail before it counts as for ever.
const ROUNDS: u32 = 4;

/// What a lone opening came to.
#[derive(Debug)]
pub(crate) struct Alone {
    pub(crate) history: Arc<[StoredEntry]>,
    /// What its start object links to.
    pub(crate) tip: Option<u64>,
    pub(crate) listings: u32,
    pub(crate) puts: u32,
}

/// A copy of the store.
#[derive(Clone, Debug)]
struct Shelf(BTreeMap<u64, (Bytes, Written)>);

impl Shelf {
    fn of(objects: &Objects, store: SetId) -> Shelf {
        let members = objects.members(store);
        let members = members.iter().map(|id| objects.get(*id));
        let stands = |object: &StoredObject| (object.bytes.clone(), object.written);
        Shelf(members.map(|object| (object.sequence(), stands(object))).collect())
    }

    fn carry_out(&mut self, effect: &StorageEffect, in_order: bool) -> StorageAnswer {
        match effect {
            StorageEffect::List { id, after, .. } => {
                let from = after.as_ref().map_or(0, |key| sequence_of(key) + 1);
                let from = self.0.range(from..);
                listed_answer(
                    *id,
                    in_order,
                    from.map(|(at, (bytes, written))| (*at, bytes, *written)),
                )
            }
            StorageEffect::PutObject { id, key, payload, .. } => {
                let sequence = sequence_of(key);
                let result = match self.0.contains_key(&sequence) {
                    true => Err(StoreError::new(StoreErrorKind::Exists)),
                    false => Ok(()),
                };
                if result.is_ok() {
                    let newest = self.0.values().map(|(_, written)| *written).max();
                    self.0.insert(sequence, (payload.to_bytes(), newest.unwrap_or_default()));
                }
                StorageAnswer::CreateResult { id: *id, result }
            }
            read => {
                let found = self.0.get(&sequence_of(read.key()));
                read_answer(read, found.map(|(bytes, _)| bytes))
            }
        }
    }
}

/// An opening on its way.
#[derive(Debug)]
struct Run {
    opening: Opening,
    now: Time,
    asked: VecDeque<StorageEffect>,
    end: Option<Result<Box<Recovered>, Error>>,
    steps: u32,
    listings: u32,
    puts: u32,
    in_order: bool,
}

impl Run {
    fn new(setup: &Setup, name: char) -> Run {
        let (opening, in_order) = (setup.opening(name), setup.lists_in_order);
        let asked = VecDeque::new();
        let mut run = Run {
            opening,
            now: Time::ZERO,
            asked,
            end: None,
            steps: 0,
            listings: 0,
            puts: 0,
            in_order,
        };
        run.drain();
        run
    }

    fn drain(&mut self) {
        while let Some(effect) = self.opening.poll_effect() {
            match effect {
                OpeningEffect::Storage(effect) => {
                    self.listings += u32::from(matches!(effect, StorageEffect::List { .. }));
                    self.puts += u32::from(matches!(effect, StorageEffect::PutObject { .. }));
                    self.asked.push_back(effect);
                }
                OpeningEffect::Notice(_) => {}
                OpeningEffect::Opened(recovered) => self.end = Some(Ok(recovered)),
                OpeningEffect::Failed(error) => self.end = Some(Err(error)),
            }
        }
    }

    /// Carries out what changes the store or can be changed by others, with the reads behind it.
    fn step(&mut self, shelf: &mut Shelf) {
        while self.end.is_none() && self.steps < ENDLESS {
            let event = match self.asked.pop_front() {
                Some(effect) => OpeningEvent::Storage(shelf.carry_out(&effect, self.in_order)),
                None => match self.opening.next_tick() {
                    Some(due) => {
                        self.now = due;
                        OpeningEvent::Tick
                    }
                    None => break,
                },
            };
            self.steps += 1;
            self.opening.handle(self.now, event);
            self.drain();
            if !matches!(self.asked.front(), Some(StorageEffect::FetchRange { .. })) {
                break;
            }
        }
    }

    fn finish(mut self, shelf: &mut Shelf) -> Result<Run, String> {
        while self.end.is_none() {
            let before = self.steps;
            self.step(shelf);
            if self.steps == before {
                return Err(format!("it has not ended after {before} requests"));
            }
        }
        Ok(self)
    }

    fn is_open(&self) -> bool {
        matches!(self.end, Some(Ok(_)))
    }
}

/// What an opening recovers that starts now, with nobody and nothing in its way.
pub(crate) fn lone_opening(
    setup: &Setup,
    objects: &Objects,
    store: SetId,
) -> Result<Alone, String> {
    let mut shelf = Shelf::of(objects, store);
    let run = Run::new(setup, 'X').finish(&mut shelf)?;
    let Run { end, listings, puts, .. } = run;
    match end {
        Some(Ok(recovered)) => {
            let writer = Writer::new(Time::ZERO, *recovered);
            let start =
                shelf.0.last_key_value().and_then(|(_, (bytes, _))| Header::decode(bytes).ok());
            let tip = start.and_then(|start| start.predecessor).map(|tip| tip.sequence.0);
            Ok(Alone { history: history_of(objects, &writer), tip, listings, puts })
        }
        Some(Err(error)) => Err(error.to_string()),
        None => Err("it does not end".into()),
    }
}

/// Two openings that start now and take turns, for many ways of taking turns. One of them opens in
/// the end, and then the other, if it tries again. Says how often they had to try.
pub(crate) fn two_openings(setup: &Setup, objects: &Objects, store: SetId) -> Result<u32, String> {
    let mut most = 0;
    for ahead in 0..6 {
        for turns in [(1, 1), (1, 2), (2, 1)] {
            let rounds = take_turns(setup, Shelf::of(objects, store), ahead, turns)
                .map_err(|what| format!("{ahead} steps ahead, then turns of {turns:?}: {what}"))?;
            most = most.max(rounds);
        }
    }
    Ok(most)
}

fn take_turns(
    setup: &Setup,
    mut shelf: Shelf,
    ahead: u32,
    turns: (u32, u32),
) -> Result<u32, String> {
    let mut rounds = 1;
    let [mut one, mut other] = ['X', 'Y'].map(|name| Run::new(setup, name));
    let mut attempts = ('a'..='z').chain('0'..='9');
    (0..ahead).for_each(|_| one.step(&mut shelf));
    for _ in 0..ENDLESS {
        (0..turns.0).for_each(|_| one.step(&mut shelf));
        (0..turns.1).for_each(|_| other.step(&mut shelf));
        for run in [&one, &other] {
            if let Some(Err(error)) = &run.end
                && !matches!(error, Error::Contended { .. })
            {
                return Err(error.to_string());
            }
        }
        if one.is_open() || other.is_open() {
            break;
        }
        // Whoever failed tries again.
        for run in [&mut one, &mut other] {
            if run.end.is_some() {
                rounds += 1;
                let name = attempts.next().ok_or("both fail for ever")?;
                *run = Run::new(setup, name);
            }
        }
    }
    if !one.is_open() && !other.is_open() || rounds > 2 * ROUNDS {
        return Err(format!("neither is open after {rounds} attempts"));
    }
    // One has the log, and is left alone with the other.
    let left = if one.is_open() { other } else { one };
    let left = left.finish(&mut shelf)?;
    if !left.is_open() {
        let again = Run::new(setup, 'Z').finish(&mut shelf)?;
        if let Some(Err(error)) = again.end {
            return Err(format!("the other fails again: {error}"));
        }
    }
    Ok(rounds)
}
