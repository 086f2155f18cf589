//! What becomes of release records when the log stops, in `enqueued` (sections 7 and 14).

use std::time::Duration;

use sealog_core::AckMode::Enqueued;

use super::{LAST, NEXT_IS_LAST_BUT_ONE};
use crate::matrix::Failure::{Forbidden, Reset};
use crate::matrix::How::{Fails, Well};
use crate::matrix::Step::{Append, Back, Fetch, Pass, Plant, Put, Release, Stop, Times, UnderWay};
use crate::matrix::{FAILS, NOTHING, Planted, Row, Step};

/// A record came while the log was failing, and stop seals it, at 5; what the log failed for, at 4,
/// succeeds.
const REFUSED: Step = Times(
    1,
    &[
        Append(1, "a"),
        Put(3, Well),
        Append(2, "b"),
        Put(4, Fails(Forbidden)),
        Release(1),
        Stop,
        Pass(100),
        Put(4, Well),
        UnderWay(1),
    ],
);

/// A row that ends stopped.
const fn last(steps: &'static [Step], answers: &'static [&'static str]) -> Row {
    let then = "Stopped, final, not written";
    Row { mode: Enqueued, steps, answers, then, ..NOTHING }
}

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "enqueued: carried records when the log stops: created",
        covers: &["the last object of stop: created"],
        figures: &[
            ("appends", 2),
            ("appended entries", 2),
            ("appended bytes", 2),
            ("rejected appends", 1),
            ("acknowledged appends", 2),
            ("created objects", 3),
            ("sealed to durable", 3),
            ("sized objects", 3),
            ("objects with entries", 3),
            ("object bytes", 509),
            ("object entries", 2),
            ("create failures", 1),
            ("create retries", 1),
            ("release records", 1),
            ("indexed objects", 3),
            ("indexed bytes", 509),
            ("reclaim boundary", 1),
        ],
        reads: &[(2, &["b"])],
        recovers: &[(2, &["b"])],
        ..last(
            &[REFUSED, Put(5, Well), UnderWay(0), Stop],
            &[
                "1: 3/1",
                "2: 4/1",
                "3: Failing (Store creating refused), retryable, unknown",
                "4-5: ok",
            ],
        )
    },
    Row {
        name: "enqueued: carried records when the log stops: transient, repeated",
        covers: &["the last object of stop: transient"],
        options: |options| options.retry_for = Duration::ZERO,
        figures: &[
            ("appends", 2),
            ("appended entries", 2),
            ("appended bytes", 2),
            ("rejected appends", 1),
            ("acknowledged appends", 2),
            ("created objects", 3),
            ("sealed to durable", 3),
            ("sized objects", 3),
            ("objects with entries", 3),
            ("object bytes", 509),
            ("object entries", 2),
            ("create failures", 2),
            ("create retries", 2),
            ("release records", 1),
            ("indexed objects", 3),
            ("indexed bytes", 509),
            ("reclaim boundary", 1),
        ],
        reads: &[(2, &["b"])],
        recovers: &[(2, &["b"])],
        ..last(
            &[REFUSED, Put(5, Fails(Reset)), Back(5, Well), Pass(100), Put(5, Well)],
            &[
                "1: 3/1",
                "2: 4/1",
                "3: Failing (Store creating refused), retryable, unknown",
                "4: ok",
            ],
        )
    },
    Row {
        name: "enqueued: carried records when the log stops: refused until the deadline",
        covers: &[
            "the last object of stop: anything else",
            "stop: a dropped release record is lost",
        ],
        options: |options| options.stop_deadline = Duration::from_millis(250),
        figures: &[
            ("appends", 2),
            ("appended entries", 2),
            ("appended bytes", 2),
            ("rejected appends", 1),
            ("acknowledged appends", 2),
            ("created objects", 2),
            ("sealed to durable", 2),
            ("sized objects", 2),
            ("objects with entries", 2),
            ("object bytes", 326),
            ("object entries", 2),
            ("create failures", 3),
            ("create retries", 2),
            ("indexed objects", 2),
            ("indexed bytes", 326),
        ],
        reads: &[(1, &["a"]), (2, &["b"])],
        recovers: &[(1, &["a"]), (2, &["b"])],
        ..last(
            &[REFUSED, Put(5, Fails(Forbidden)), Pass(100), Put(5, Fails(Forbidden)), Pass(50)],
            &[
                "1: 3/1",
                "2: 4/1",
                "3: Failing (Store creating refused), retryable, unknown",
                "4: Lost 1 releases (Store creating refused), final",
            ],
        )
    },
    Row {
        name: "enqueued: carried records when the log stops: fenced",
        covers: &["the last object of stop: anything else", "release: poison"],
        then: "Poisoned (Fenced by other of epoch 6), final, not written",
        figures: &[
            ("appends", 2),
            ("appended entries", 2),
            ("appended bytes", 2),
            ("rejected appends", 1),
            ("acknowledged appends", 2),
            ("created objects", 2),
            ("sealed to durable", 2),
            ("sized objects", 2),
            ("objects with entries", 2),
            ("object bytes", 326),
            ("object entries", 2),
            ("create failures", 2),
            ("create conflicts", 1),
            ("create retries", 1),
            ("poisoned", 1),
            ("indexed objects", 2),
            ("indexed bytes", 326),
        ],
        reads: &[(1, &["a"]), (2, &["b"])],
        ..last(
            &[REFUSED, Plant(5, Planted::Start), Put(5, Well), Back(5, Well), Fetch(5, Well)],
            &[
                "1: 3/1",
                "2: 4/1",
                "3: Failing (Store creating refused), retryable, unknown",
                "4: Lost 1 releases (Fenced by other of epoch 6), final",
            ],
        )
    },
    Row {
        name: "enqueued: a release is under way when stop begins: acknowledged once durable",
        covers: &["release: stop begins while it is pending"],
        options: |options| options.max_in_flight = 1,
        figures: &[
            ("appends", 3),
            ("appended entries", 3),
            ("appended bytes", 3),
            ("acknowledged appends", 3),
            ("created objects", 4),
            ("sealed to durable", 4),
            ("sized objects", 4),
            ("objects with entries", 4),
            ("object bytes", 765),
            ("object entries", 3),
            ("release records", 2),
            ("indexed objects", 4),
            ("indexed bytes", 765),
            ("reclaim boundary", 4),
        ],
        ..last(
            &[
                Append(1, "a"),
                Put(3, Well),
                Append(2, "b"),
                Release(1),
                Append(2, "c"),
                Release(2),
                Stop,
                Put(4, Well),
                Put(5, Well),
                Put(6, Well),
            ],
            &["1: 3/1", "2: 4/1", "4: 6/1", "3: ok", "5: ok", "6: ok"],
        )
    },
    Row {
        name: "enqueued: the deadline passes with a release in the backlog",
        covers: &["stop: a dropped release record is lost"],
        options: |options| {
            (options.max_in_flight, options.stop_deadline) = (1, Duration::from_secs(1));
        },
        figures: &[
            ("appends", 3),
            ("appended entries", 3),
            ("appended bytes", 3),
            ("acknowledged appends", 3),
            ("created objects", 2),
            ("sealed to durable", 2),
            ("sized objects", 2),
            ("objects with entries", 2),
            ("object bytes", 326),
            ("object entries", 2),
            ("indexed objects", 2),
            ("indexed bytes", 326),
        ],
        reads: &[(1, &["a"]), (2, &["b"])],
        recovers: &[(1, &["a"]), (2, &["b"])],
        ..last(
            &[
                Append(1, "a"),
                Put(3, Well),
                Append(2, "b"),
                Release(1),
                Append(3, "c"),
                Stop,
                Pass(1500),
                Put(4, Well),
            ],
            &[
                "1: 3/1",
                "2: 4/1",
                "4: 6/1",
                "3: Stopped, final, unknown",
                "5: Lost 1 entries and 1 releases (Stopped), final",
            ],
        )
    },
    Row {
        name: "enqueued: records are left, and no sequence is",
        covers: &["stopping or exhausted, records left, no sequence left"],
        figures: &[
            ("appends", 2),
            ("appended entries", 2),
            ("appended bytes", 2),
            ("rejected appends", 1),
            ("acknowledged appends", 2),
            ("created objects", 2),
            ("sealed to durable", 2),
            ("sized objects", 2),
            ("objects with entries", 2),
            ("object bytes", 326),
            ("object entries", 2),
            ("create failures", 1),
            ("create retries", 1),
            ("indexed objects", 2),
            ("indexed bytes", 326),
        ],
        reads: &[(1, &["a"]), (2, &["b"])],
        recovers: &[(FAILS, &["SequenceExhausted, final"])],
        ..last(
            &[
                NEXT_IS_LAST_BUT_ONE,
                Append(1, "a"),
                Put(LAST - 1, Well),
                Append(2, "b"),
                Put(LAST, Fails(Forbidden)),
                Release(1),
                Stop,
                Pass(100),
                Put(LAST, Well),
            ],
            &[
                "1: ok",
                "2: 17592186044414/1",
                "3: 17592186044415/1",
                "4: Failing (Store creating refused), retryable, unknown",
                "5: Lost 1 releases (SequenceExhausted), final",
            ],
        )
    },
];
