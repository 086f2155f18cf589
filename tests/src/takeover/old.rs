//! A writer, and what it has told its callers.

use std::collections::BTreeSet;

use sealog_core::event::{Answer, Append, Appended, Effect, Event, StorageAnswer, StorageEffect};
use sealog_core::opening::{Identity, Opening, OpeningEffect, OpeningEvent, Recovered};
use sealog_core::{EntryId, Options, Time, Writer};

use super::{REGION, prefix};
use crate::model::ModelStore;

pub(super) struct Old {
    pub(super) writer: Writer<u64>,
    /// What was acknowledged, by its own record.
    pub(super) acknowledged: BTreeSet<EntryId>,
    /// Appends that wait for their answer.
    pub(super) waiting: u64,
    /// What it ended with, by the name of the error.
    pub(super) ended: Option<String>,
    appends: u64,
}

pub(super) fn identity(number: u64) -> Identity {
    Identity {
        nonce: u128::from(number).to_be_bytes(),
        opened_at_millis: 0,
        default_name: format!("writer {number}").into(),
    }
}

/// An opening that writes.
pub(super) fn opening(now: Time, options: Options, number: u64) -> Opening {
    match Opening::new(now, prefix(), options, identity(number)) {
        Ok(opening) => opening,
        Err(error) => panic!("{error}"),
    }
}

impl Old {
    pub(super) fn new(now: Time, recovered: Recovered) -> Old {
        let mut writer = Writer::new(now, recovered);
        writer.set_keys_per_delete(1_000);
        Old { writer, acknowledged: BTreeSet::new(), waiting: 0, ended: None, appends: 0 }
    }

    /// Opens a log on a store that answers at once.
    pub(super) fn open(store: &mut ModelStore, options: Options, number: u64) -> Old {
        let mut opening = opening(Time::ZERO, options, number);
        loop {
            match opening.poll_effect() {
                Some(OpeningEffect::Storage(effect)) => {
                    let answer = store.apply(&effect);
                    opening.handle(Time::ZERO, OpeningEvent::Storage(answer));
                }
                Some(OpeningEffect::Opened(recovered)) => return Old::new(Time::ZERO, *recovered),
                Some(OpeningEffect::Notice(_)) => {}
                Some(OpeningEffect::Failed(error)) => panic!("nothing fails here: {error}"),
                None => panic!("nothing waits here"),
            }
        }
    }

    pub(super) fn append(&mut self, now: Time) {
        self.appends += 1;
        self.waiting += 1;
        let append = Append::One(REGION, self.appends.to_be_bytes().to_vec().into());
        self.writer.handle(now, Event::Append { append, waiter: self.appends });
    }

    pub(super) fn obsolete(&mut self, now: Time, id: EntryId) {
        self.waiting += 1;
        self.writer.handle(now, Event::Obsolete { region: REGION, id, waiter: 0 });
    }

    pub(super) fn answered(&mut self, now: Time, answer: StorageAnswer) {
        self.writer.handle(now, Event::Storage(answer));
    }

    /// What it wants of the store.
    pub(super) fn wants(&mut self) -> Vec<StorageEffect> {
        let mut wanted = Vec::new();
        while let Some(effect) = self.writer.poll_effect() {
            match effect {
                Effect::Storage(effect) => wanted.push(effect),
                Effect::Ack { answer, .. } => {
                    self.waiting -= 1;
                    if let Answer::Appended(Appended::One(id)) = answer {
                        self.acknowledged.insert(id);
                    }
                }
                Effect::FailWaiters { waiters, error, .. } => {
                    self.waiting -= waiters.len() as u64;
                    let name = format!("{error:?}");
                    let name = name.split(|c: char| !c.is_alphanumeric()).next();
                    if !error.is_retryable() {
                        self.ended.get_or_insert_with(|| name.unwrap_or_default().to_owned());
                    }
                }
                Effect::Durable { .. } | Effect::Notice(_) => {}
            }
        }
        wanted
    }

    /// Carries out all that it wants, at once.
    pub(super) fn settle(&mut self, now: Time, store: &mut ModelStore) {
        loop {
            let wanted = self.wants();
            if wanted.is_empty() {
                match self.writer.next_tick() {
                    Some(tick) if tick <= now => self.writer.handle(now, Event::Tick),
                    _ => return,
                }
            }
            for effect in wanted {
                let answer = store.apply(&effect);
                self.answered(now, answer);
            }
        }
    }
}
