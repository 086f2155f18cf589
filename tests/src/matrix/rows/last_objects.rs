//! What becomes of release records when the log stops, in `durable` (sections 7 and 14).

use std::time::Duration;

use super::{LAST, NEXT_IS_LAST_BUT_ONE};
use crate::matrix::Failure::{Forbidden, Reset};
use crate::matrix::How::{Fails, Well};
use crate::matrix::Step::{
    Append, Back, Fetch, List, Pass, Plant, Put, Release, Stop, Times, UnderWay,
};
use crate::matrix::{FAILS, NOTHING, Planted, Row, Step};

/// A release was rolled back, and stop puts its record into one more object, at 5.
const ROLLED_BACK: Step = Times(
    1,
    &[
        Append(1, "a"),
        Put(3, Well),
        Release(1),
        Put(4, Fails(Forbidden)),
        UnderWay(0),
        Stop,
        UnderWay(1),
    ],
);

/// The last object comes to what it is answered with.
const fn last(
    name: &'static str,
    covers: &'static [&'static str],
    steps: &'static [Step],
    answers: &'static [&'static str],
) -> Row {
    Row { name, covers, steps, answers, then: "Stopped, final, not written", ..NOTHING }
}

const STALE: &[&str] = &[
    "1: 3/1",
    "2: Store creating refused, final, unknown",
    "3: Lost 1 releases (Conflict), final",
];

/// An entry, and its record in the second object that held it.
const SAVED: &[(&str, i64)] = &[
    ("appends", 1),
    ("appended entries", 1),
    ("appended bytes", 1),
    ("acknowledged appends", 1),
    ("created objects", 2),
    ("sealed to durable", 2),
    ("sized objects", 2),
    ("objects with entries", 2),
    ("object bytes", 346),
    ("object entries", 1),
    ("create failures", 1),
    ("rolled back batches", 1),
    ("release records", 1),
    ("indexed objects", 2),
    ("indexed bytes", 346),
    ("reclaim boundary", 3),
    ("guards", 1),
];

/// An entry, and a record that was rolled back twice.
const LOST: &[(&str, i64)] = &[
    ("appends", 1),
    ("appended entries", 1),
    ("appended bytes", 1),
    ("acknowledged appends", 1),
    ("created objects", 1),
    ("sealed to durable", 1),
    ("sized objects", 1),
    ("objects with entries", 1),
    ("object bytes", 163),
    ("object entries", 1),
    ("create failures", 2),
    ("rolled back batches", 2),
    ("indexed objects", 1),
    ("indexed bytes", 163),
];

/// An entry, and a record that was rolled back, and then lost to what stood at the key.
const LOST_TO_ANOTHER: &[(&str, i64)] = &[
    ("appends", 1),
    ("appended entries", 1),
    ("appended bytes", 1),
    ("acknowledged appends", 1),
    ("created objects", 1),
    ("sealed to durable", 1),
    ("sized objects", 1),
    ("objects with entries", 1),
    ("object bytes", 163),
    ("object entries", 1),
    ("create failures", 2),
    ("create conflicts", 1),
    ("rolled back batches", 1),
    ("poisoned", 1),
    ("indexed objects", 1),
    ("indexed bytes", 163),
];

/// The same, found twice.
const LOST_TO_WHAT_IS_NO_OBJECT: &[(&str, i64)] = &[
    ("appends", 1),
    ("appended entries", 1),
    ("appended bytes", 1),
    ("acknowledged appends", 1),
    ("created objects", 1),
    ("sealed to durable", 1),
    ("sized objects", 1),
    ("objects with entries", 1),
    ("object bytes", 163),
    ("object entries", 1),
    ("create failures", 3),
    ("create conflicts", 1),
    ("rolled back batches", 1),
    ("poisoned", 1),
    ("indexed objects", 1),
    ("indexed bytes", 163),
    ("create retries", 1),
];

pub(super) const ROWS: &[Row] = &[
    Row {
        figures: SAVED,
        ..last(
            "the last object: created",
            &["the last object of stop: created", "release: its batch is rolled back"],
            &[ROLLED_BACK, Put(5, Well), List(Well), UnderWay(0), Stop],
            &["1: 3/1", "2: Store creating refused, final, unknown", "3-4: ok"],
        )
    },
    Row {
        figures: &[
            ("appends", 1),
            ("appended entries", 1),
            ("appended bytes", 1),
            ("acknowledged appends", 1),
            ("created objects", 2),
            ("sealed to durable", 2),
            ("sized objects", 2),
            ("objects with entries", 2),
            ("object bytes", 346),
            ("object entries", 1),
            ("create failures", 2),
            ("create retries", 1),
            ("rolled back batches", 1),
            ("release records", 1),
            ("indexed objects", 2),
            ("indexed bytes", 346),
            ("reclaim boundary", 3),
            ("guards", 1),
        ],
        ..last(
            "the last object: transient, repeated within the time for it",
            &["the last object of stop: transient"],
            &[
                ROLLED_BACK,
                Put(5, Fails(Reset)),
                Back(5, Well),
                UnderWay(0),
                Pass(100),
                Put(5, Well),
                List(Well),
            ],
            &["1: 3/1", "2: Store creating refused, final, unknown", "3: ok"],
        )
    },
    Row {
        options: |options| options.retry_for = Duration::ZERO,
        figures: LOST,
        reads: &[(1, &["a"])],
        recovers: &[(1, &["a"])],
        ..last(
            "the last object: transient for too long",
            &["the last object of stop: transient", "stop: a dropped release record is lost"],
            &[ROLLED_BACK, Put(5, Fails(Reset)), Back(5, Well), UnderWay(0)],
            &[
                "1: 3/1",
                "2: Store creating refused, final, unknown",
                "3: Lost 1 releases (Store creating transient), final",
            ],
        )
    },
    Row {
        figures: LOST,
        reads: &[(1, &["a"])],
        recovers: &[(1, &["a"])],
        ..last(
            "the last object: refused",
            &["the last object of stop: anything else", "stop: a dropped release record is lost"],
            &[ROLLED_BACK, Put(5, Fails(Forbidden)), UnderWay(0), Stop],
            &[
                "1: 3/1",
                "2: Store creating refused, final, unknown",
                "3-4: Lost 1 releases (Store creating refused), final",
            ],
        )
    },
    Row {
        figures: &[
            ("appends", 1),
            ("appended entries", 1),
            ("appended bytes", 1),
            ("acknowledged appends", 1),
            ("created objects", 1),
            ("sealed to durable", 1),
            ("sized objects", 1),
            ("objects with entries", 1),
            ("object bytes", 163),
            ("object entries", 1),
            ("create failures", 2),
            ("create conflicts", 1),
            ("rolled back batches", 2),
            ("indexed objects", 1),
            ("indexed bytes", 163),
        ],
        reads: &[(1, &["a"])],
        recovers: &[(1, &["a"])],
        ..last(
            "the last object: stale",
            &["the last object of stop: anything else"],
            &[ROLLED_BACK, Plant(5, Planted::Epoch(1)), Put(5, Well), Back(5, Well), UnderWay(0)],
            STALE,
        )
    },
    Row {
        then: "Poisoned (Fenced by other of epoch 6), final, not written",
        figures: LOST_TO_ANOTHER,
        reads: &[(1, &["a"])],
        ..last(
            "the last object: fenced",
            &["the last object of stop: anything else"],
            &[
                ROLLED_BACK,
                Plant(5, Planted::Start),
                Put(5, Well),
                Back(5, Well),
                Fetch(5, Well),
                UnderWay(0),
            ],
            &[
                "1: 3/1",
                "2: Store creating refused, final, unknown",
                "3: Lost 1 releases (Fenced by other of epoch 6), final",
            ],
        )
    },
    Row {
        then: "Poisoned (Corrupted header), final, not written",
        figures: LOST_TO_WHAT_IS_NO_OBJECT,
        reads: &[(1, &["a"])],
        recovers: &[(FAILS, &["Corrupted header, final"])],
        ..last(
            "the last object: foreign",
            &["the last object of stop: anything else"],
            &[
                ROLLED_BACK,
                Plant(5, Planted::Bytes(100)),
                Put(5, Well),
                Back(5, Well),
                Pass(100),
                Put(5, Well),
                Back(5, Well),
            ],
            &[
                "1: 3/1",
                "2: Store creating refused, final, unknown",
                "3: Lost 1 releases (Corrupted header), final",
            ],
        )
    },
    Row {
        options: |options| options.max_in_flight = 1,
        figures: &[
            ("appends", 3),
            ("appended entries", 3),
            ("appended bytes", 3),
            ("acknowledged appends", 2),
            ("created objects", 3),
            ("sealed to durable", 3),
            ("sized objects", 3),
            ("objects with entries", 3),
            ("object bytes", 525),
            ("object entries", 2),
            ("release records", 2),
            ("indexed objects", 3),
            ("indexed bytes", 525),
            ("reclaim boundary", 5),
            ("guards", 1),
        ],
        ..last(
            "stop drops what was not sealed or started: its records are in the last object",
            &[
                "release: stop begins while it is pending",
                "stop, durable: records left go into one more object",
            ],
            &[
                Append(1, "a"),
                Put(3, Well),
                Append(2, "b"),
                Release(1),
                Append(2, "c"),
                Release(2),
                Stop,
                UnderWay(1),
                Put(4, Well),
                Put(7, Well),
                // What was dropped left a sequence out, where a claim could stand.
                List(Well),
            ],
            &[
                "1: 3/1",
                "3: Stopped, final, unknown",
                "4: Stopped, final, not written",
                "5: Stopped, final, unknown",
                "2: 4/1",
                "6: ok",
            ],
        )
    },
    Row {
        options: |options| options.max_in_flight = 2,
        then: "Poisoned (Fenced by other of epoch 8), final, not written",
        figures: &[
            ("appends", 3),
            ("appended entries", 3),
            ("appended bytes", 3),
            ("acknowledged appends", 3),
            ("created objects", 3),
            ("sealed to durable", 3),
            ("sized objects", 3),
            ("objects with entries", 3),
            ("object bytes", 489),
            ("object entries", 3),
            ("create failures", 1),
            ("create conflicts", 1),
            ("poisoned", 1),
            ("indexed objects", 3),
            ("indexed bytes", 489),
            ("guards", 1),
        ],
        reads: &[(1, &["a"]), (2, &["b", "c"])],
        ..last(
            "the last object skips what a later epoch took: its records are lost, not acknowledged",
            &["the last object of stop: anything else"],
            &[
                Append(1, "a"),
                Put(3, Well),
                Append(2, "b"),
                Append(2, "c"),
                Release(1),
                Release(1),
                Stop,
                Put(4, Well),
                Put(5, Well),
                Plant(7, Planted::Start),
                Put(8, Well),
                List(Well),
                Back(7, Well),
                Fetch(7, Well),
            ],
            &[
                "1: 3/1",
                "4-5: Stopped, final, unknown",
                "2: 4/1",
                "3: 5/1",
                "6: Lost 1 releases (Fenced by other of epoch 8), final",
            ],
        )
    },
    Row {
        figures: &[
            ("appends", 1),
            ("appended entries", 1),
            ("appended bytes", 1),
            ("acknowledged appends", 1),
            ("created objects", 2),
            ("sealed to durable", 2),
            ("sized objects", 2),
            ("objects with entries", 2),
            ("object bytes", 346),
            ("object entries", 1),
            ("release records", 1),
            ("indexed objects", 2),
            ("indexed bytes", 346),
            ("reclaim boundary", 2),
        ],
        ..last(
            "stop begins while a release is under way: acknowledged if it becomes durable",
            &["release: stop begins while it is pending"],
            &[Append(1, "a"), Put(3, Well), Release(1), Stop, Put(4, Well)],
            &["1: 3/1", "2: ok", "3: ok"],
        )
    },
    Row {
        figures: SAVED,
        ..last(
            "a release under way is rolled back while stopping: its record is in the last object",
            &["stopping, durable: roll back", "release: stop begins while it is pending"],
            &[
                Append(1, "a"),
                Put(3, Well),
                Release(1),
                Stop,
                Put(4, Fails(Forbidden)),
                Put(5, Well),
                List(Well),
            ],
            &["1: 3/1", "2: Store creating refused, final, unknown", "3: ok"],
        )
    },
    Row {
        figures: &[
            ("appends", 1),
            ("appended entries", 1),
            ("appended bytes", 1),
            ("acknowledged appends", 1),
            ("created objects", 1),
            ("sealed to durable", 1),
            ("sized objects", 1),
            ("objects with entries", 1),
            ("object bytes", 163),
            ("object entries", 1),
            ("create failures", 1),
            ("rolled back batches", 1),
            ("indexed objects", 1),
            ("indexed bytes", 163),
        ],
        reads: &[(1, &["a"])],
        recovers: &[(FAILS, &["SequenceExhausted, final"])],
        ..last(
            "records are left, and no sequence is",
            &["stopping or exhausted, records left, no sequence left"],
            &[
                NEXT_IS_LAST_BUT_ONE,
                Append(1, "a"),
                Put(LAST - 1, Well),
                Release(1),
                Put(LAST, Fails(Forbidden)),
                Stop,
            ],
            &[
                "1: ok",
                "2: 17592186044414/1",
                "3: Store creating refused, final, unknown",
                "4: Lost 1 releases (SequenceExhausted), final",
            ],
        )
    },
];
