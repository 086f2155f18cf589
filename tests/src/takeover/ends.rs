//! Whoever opens a log beside a writer that troubles it in every round comes to an end, in bounded
//! requests: `open_attempts` bounds every listing that is asked again, every suspicion and every
//! restart (DESIGN.md section 4).

use std::time::Duration;

use sealog_core::event::{StorageAnswer, StorageEffect};
use sealog_core::opening::{Aim, Opening, OpeningEffect, OpeningEvent};
use sealog_core::{EntryId, Error, Options, Time};

use super::old::{Old, opening};
use super::{options, prefix};
use crate::model::ModelStore;

/// Who opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newcomer {
    /// To write.
    Writer,
    /// To read.
    View,
    /// To read, once more.
    Refresh,
    /// To see everything.
    Survey,
}

/// What the writer does in every round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Troubler {
    /// It makes objects, after each listing and before each put.
    Writes,
    /// It makes objects, and deletes all that were listed, after each listing.
    Collects,
    /// The same, and listings come in no order.
    CollectsUnordered,
    /// It makes objects, and listings come in no order: none settles.
    WritesUnordered,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Ending {
    /// How many listings were asked for; at most [`MOST`](Ending::MOST) are answered.
    pub listings: u32,
    /// How many requests there were.
    pub requests: u32,
    /// What it failed with.
    pub failed: Option<Error>,
    /// It did not end.
    pub endless: bool,
    /// What a survey that ended says is wrong with the log.
    pub accused: Option<String>,
}

impl Ending {
    /// So many attempts an opening has here.
    pub const ATTEMPTS: u32 = 8;

    /// Each attempt lists at most twice where the listing is unordered; beside them there are those
    /// that no attempt stands for: the first, those after claims that were created, and the look.
    pub const MOST: u32 = 2 * Ending::ATTEMPTS + 16;

    /// What is wrong with it, if something is.
    ///
    /// # Errors
    ///
    /// With the reason.
    pub fn judge(&self, newcomer: Newcomer, troubler: Troubler) -> Result<(), String> {
        if self.endless {
            return Err(format!("it goes on after {} listings", self.listings));
        }
        if let Some(accused) = &self.accused {
            return Err(format!("nothing is wrong with the log, and it says {accused}"));
        }
        match &self.failed {
            Some(error) if !error.is_retryable() => {
                Err(format!("nothing is wrong with the log, and it fails for good: {error}"))
            }
            // Nothing takes what it needs away from it: it must win.
            Some(error)
                if newcomer == Newcomer::Writer
                    && matches!(troubler, Troubler::Writes | Troubler::WritesUnordered) =>
            {
                Err(format!("the newest opening does not win: {error}"))
            }
            _ => Ok(()),
        }
    }
}

struct World {
    store: ModelStore,
    old: Old,
    now: Time,
    troubler: Troubler,
    ending: Ending,
}

/// Opens a log beside a writer that does its worst.
///
/// # Panics
///
/// The machines do what is not foreseen here.
pub fn ends(newcomer: Newcomer, troubler: Troubler) -> Ending {
    let mut store = ModelStore::new();
    let mut old = Old::open(&mut store, options(), 1);
    for _ in 0..10 {
        old.append(Time::ZERO);
        old.settle(Time::ZERO, &mut store);
    }
    let ending = Ending { listings: 0, requests: 0, failed: None, endless: false, accused: None };
    let mut world = World { store, old, now: Time::ZERO, troubler, ending };
    let options = Options {
        open_attempts: Ending::ATTEMPTS,
        // What is asked for here is a bound in requests.
        open_timeout: Duration::from_secs(3600),
        ..options()
    };
    let read = |options| Opening::read_only(Time::ZERO, prefix(), options);
    let valid = "the options are valid";
    match newcomer {
        Newcomer::Writer => drop(world.drive(opening(Time::ZERO, options, 2))),
        Newcomer::View => drop(world.drive(read(options).expect(valid))),
        Newcomer::Refresh => {
            let view = world.undisturbed(read(options).expect(valid));
            world.ending.listings = 0;
            world.ending.requests = 0;
            // There is something new to be read.
            world.trouble();
            world.drive(Opening::refresh(world.now, &view));
        }
        Newcomer::Survey => {
            let survey = Opening::survey(Time::ZERO, prefix(), options);
            if let Some(survey) = world.drive(survey.expect(valid)) {
                let problem = survey.problems().next();
                world.ending.accused = problem.map(|problem| problem.error.to_string());
            }
        }
    }
    world.ending
}

impl World {
    fn drive<T: Aim>(&mut self, mut opening: Opening<T>) -> Option<Box<T>> {
        loop {
            if self.ending.listings > Ending::MOST {
                self.ending.endless = true;
                return None;
            }
            match opening.poll_effect() {
                Some(OpeningEffect::Storage(effect)) => {
                    let answer = self.answer(&effect);
                    opening.handle(self.now, OpeningEvent::Storage(answer));
                }
                Some(OpeningEffect::Notice(_)) => {}
                Some(OpeningEffect::Opened(opened)) => return Some(opened),
                Some(OpeningEffect::Failed(error)) => {
                    self.ending.failed = Some(error);
                    return None;
                }
                None => {
                    let Some(tick) = opening.next_tick() else { panic!("it waits for nothing") };
                    self.now = self.now.max(tick);
                    opening.handle(self.now, OpeningEvent::Tick);
                }
            }
        }
    }

    /// With nobody at work beside it.
    fn undisturbed<T: Aim>(&mut self, mut opening: Opening<T>) -> Box<T> {
        loop {
            match opening.poll_effect() {
                Some(OpeningEffect::Storage(effect)) => {
                    let answer = self.store.apply(&effect);
                    opening.handle(self.now, OpeningEvent::Storage(answer));
                }
                Some(OpeningEffect::Opened(opened)) => return opened,
                Some(OpeningEffect::Notice(_)) => {}
                Some(OpeningEffect::Failed(error)) => panic!("nothing fails here: {error}"),
                None => panic!("nothing waits here"),
            }
        }
    }

    fn answer(&mut self, effect: &StorageEffect) -> StorageAnswer {
        self.ending.requests += 1;
        self.store.set_now(self.now);
        match effect {
            StorageEffect::List { .. } => {
                self.ending.listings += 1;
                let mut answer = self.store.apply(effect);
                if let StorageAnswer::Listed { result: Ok(listed), .. } = &mut answer
                    && matches!(
                        self.troubler,
                        Troubler::CollectsUnordered | Troubler::WritesUnordered
                    )
                {
                    listed.reverse();
                }
                self.trouble();
                answer
            }
            StorageEffect::PutObject { .. } => {
                self.trouble();
                self.store.apply(effect)
            }
            _ => self.store.apply(effect),
        }
    }

    /// What the writer does meanwhile, if nobody has ended it.
    fn trouble(&mut self) {
        let now = self.now;
        let collects = matches!(self.troubler, Troubler::Collects | Troubler::CollectsUnordered);
        let settle = |old: &mut Old, store: &mut ModelStore| old.settle(now, store);
        for _ in 0..3 {
            self.old.append(now);
            settle(&mut self.old, &mut self.store);
        }
        let last = self.old.acknowledged.last().copied().unwrap_or(EntryId::ZERO);
        if collects && self.old.ended.is_none() {
            self.old.obsolete(now, last);
            settle(&mut self.old, &mut self.store);
            // Two more: one carries the boundary, and the deletes begin once it is indexed.
            for _ in 0..2 {
                self.old.append(now);
                settle(&mut self.old, &mut self.store);
            }
        }
    }
}
