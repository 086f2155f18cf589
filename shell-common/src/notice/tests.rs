use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sealog_core::error::Operation;
use sealog_core::read::Hole;
use sealog_core::{
    DecodeError, EntryId, Epoch, Error, Key, Link, Notice, ObjectSeq, Part, Prefix, RegionId,
    StoreError, StoreErrorKind,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::tell_operator;

/// Keeps every event.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<Told>>>);

#[derive(Debug)]
struct Told {
    level: Level,
    target: String,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Told {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Events {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &Event<'_>) {
        let (level, target) = (*event.metadata().level(), event.metadata().target().to_owned());
        let mut told = Told { level, target, fields: BTreeMap::new() };
        event.record(&mut told);
        self.0.lock().unwrap().push(told);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        unreachable!("a notice is no span")
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The one event of a notice.
fn told(notice: &Notice) -> Told {
    let events = Events::default();
    let prefix = Prefix::new("logs/a").unwrap();
    tracing::subscriber::with_default(events.clone(), || tell_operator(&prefix, notice));
    let mut told = std::mem::take(&mut *events.0.lock().unwrap());
    assert_eq!(told.len(), 1, "{notice:?}: {told:?}");
    told.remove(0)
}

const KEY: &str = "logs/a/objects/00000000000000000007.wal";

fn key() -> Key {
    KEY.into()
}

fn timed_out(operation: Operation) -> Error {
    Error::Store { operation, key: key(), source: StoreError::new(StoreErrorKind::TimedOut) }
}

#[test]
fn each_notice_is_one_event_with_the_prefix_and_the_key_if_it_has_one() {
    let start = Link { sequence: ObjectSeq(3), epoch: Epoch(4) };
    let (age, backlog) = (Duration::from_secs(6), 1234);
    let error = || timed_out(Operation::Create);
    let hole = Hole {
        region: RegionId(5),
        object: start,
        key: key(),
        min_id: EntryId(10),
        max_id: EntryId(12),
        error: DecodeError { part: Part::Object, reason: "cut off".into() },
    };
    let (with, without) = (Some(KEY), None);
    let fields = |fields: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        fields.iter().map(|(name, value)| (*name, String::from(*value))).collect()
    };
    let failed = error().to_string();
    let table = [
        (Notice::KeyIgnored { key: key() }, Level::WARN, with, vec![]),
        (Notice::IncompleteObjects { count: 2 }, Level::INFO, without, fields(&[("count", "2")])),
        (
            Notice::OpeningAgain { key: key(), epoch: Epoch(8) },
            Level::INFO,
            with,
            fields(&[("epoch", "8")]),
        ),
        (
            Notice::OpeningRetries { error: error() },
            Level::WARN,
            with,
            fields(&[("error", &failed)]),
        ),
        (
            Notice::Opened { start, recovered_objects: 9, took: age },
            Level::INFO,
            without,
            fields(&[
                ("sequence", "3"),
                ("epoch", "4"),
                ("recovered_objects", "9"),
                ("took", "6s"),
            ]),
        ),
        (
            Notice::CreateRetries { key: key(), error: error(), delay: age },
            Level::WARN,
            with,
            fields(&[("error", &failed), ("delay", "6s")]),
        ),
        (
            Notice::RolledBack { batches: 3, error: error() },
            Level::WARN,
            with,
            fields(&[("error", &failed), ("batches", "3")]),
        ),
        (Notice::Failing { error: error() }, Level::ERROR, with, fields(&[("error", &failed)])),
        (Notice::Healthy, Level::INFO, without, vec![]),
        (
            Notice::Stalled { appends: 64, age, backlog },
            Level::WARN,
            without,
            fields(&[("appends", "64"), ("age", "6s"), ("backlog", "1234")]),
        ),
        (
            Notice::SlowCreate { key: key(), age, backlog },
            Level::WARN,
            with,
            fields(&[("age", "6s"), ("backlog", "1234")]),
        ),
        (Notice::Poisoned { error: error() }, Level::ERROR, with, fields(&[("error", &failed)])),
        (
            Notice::Hole(hole),
            Level::ERROR,
            with,
            fields(&[("region", "5"), ("min_id", "10"), ("max_id", "12")]),
        ),
    ];
    for (notice, level, key, fields) in table {
        let told = told(&notice);
        assert_eq!(told.target, "sealog");
        assert_eq!(told.level, level, "{told:?}");
        assert_eq!(told.fields["prefix"], "logs/a", "{told:?}");
        assert_eq!(told.fields.get("key").map(String::as_str), key, "{told:?}");
        for (name, value) in fields {
            assert_eq!(told.fields[name], value, "{told:?}");
        }
        assert!(!told.fields["message"].is_empty(), "{told:?}");
        assert!(!told.fields.contains_key("notice"), "{told:?} is not told in words of its own");
    }
}

#[test]
fn the_key_of_an_error_is_found_wherever_it_has_one() {
    let fenced = Error::Fenced { key: key(), epoch: Epoch(1), theirs: Epoch(2), writer: None };
    let with = [
        Error::Contended { key: key(), epoch: Epoch(1), writer: None },
        timed_out(Operation::List),
        Error::Conflict { key: key() },
        Error::Corrupted {
            key: key(),
            part: Part::Object,
            reason: "cut off".into(),
            created: None,
        },
        Error::UnsafeStore { key: key() },
        Error::Failing { cause: fenced.clone().into() },
        Error::Poisoned { cause: fenced.clone().into() },
        Error::Lost { entries: 1, releases: 0, cause: fenced.clone().into() },
        fenced,
    ];
    for error in with {
        let told = told(&Notice::Poisoned { error });
        assert_eq!(told.fields.get("key").map(String::as_str), Some(KEY), "{told:?}");
    }
    for error in [Error::SequenceExhausted, Error::Stopped] {
        let told = told(&Notice::Poisoned { error });
        assert_eq!(told.fields.get("key"), None, "{told:?}");
    }
}
