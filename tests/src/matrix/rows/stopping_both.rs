//! What section 14 says of stop and of poison, in the mode that the other themes leave out, and
//! with releases among the calls.

use sealog_core::AckMode::Enqueued;

use super::enqueued;
use crate::matrix::Failure::{Forbidden, Reset};
use crate::matrix::How::{Fails, Well};
use crate::matrix::Step::{
    Answered, Append, Back, Flush, Land, List, Obsolete, Pass, Plant, Put, Release, ReleaseAll,
    Stop, Together, UnderWay, Wait,
};
use crate::matrix::{FAILS, NOTHING, Planted, Row, Step};

const STOPPING: Row = Row {
    name: "while stopping, releases fail as all other calls do",
    covers: &["stopping: release", "stopping: flush, obsolete, new wait"],
    steps: &[
        Append(1, "a"),
        Put(3, Well),
        Append(1, "b"),
        Stop,
        Release(1),
        ReleaseAll(1),
        Flush,
        Obsolete(1, 3, 1),
        Wait(1, 4, 1),
        Wait(1, 3, 1),
        Put(4, Well),
        Release(1),
    ],
    answers: &[
        "1: 3/1",
        "4-5: Stopped, final, not written",
        "6-8: Stopped, final",
        "9: ok",
        "2: 4/1",
        "3: ok",
        "10: Stopped, final, not written",
    ],
    then: "Stopped, final, not written",
    figures: TWO_ENTRIES,
    reads: &[(1, &["a", "b"])],
    recovers: &[(1, &["a", "b"])],
    ..NOTHING
};

const FLOOR: Row = Row {
    name: "stop fails a floor that waits, and the release behind it",
    covers: &["waiting for a floor: stop", "waiting for a floor: release"],
    steps: &[
        Append(1, "a"),
        Put(3, Well),
        Append(2, "b"),
        Obsolete(3, 50, 1),
        Release(1),
        Stop,
        Put(4, Well),
    ],
    // The shell holds a release back while a floor waits.
    answers: &["1: 3/1", "3: Stopped, final", "4: Stopped, final, not written", "2: 4/1", "5: ok"],
    then: "Stopped, final, not written",
    figures: TWO_ENTRIES,
    reads: &[(1, &["a"]), (2, &["b"])],
    recovers: &[(1, &["a"]), (2, &["b"])],
    ..NOTHING
};

const POISONED: Row = Row {
    name: "poison fails a floor that waits, and the release behind it",
    covers: &["waiting for a floor: release", "poisoned, then stopped: any call"],
    steps: &[
        Append(1, "a"),
        Put(3, Well),
        Append(2, "b"),
        Obsolete(3, 50, 1),
        Release(1),
        Plant(4, Planted::Bytes(1)),
        Put(4, Well),
        Back(4, Well),
        Pass(100),
        Put(4, Well),
        Back(4, Well),
        Stop,
        Release(1),
        Flush,
    ],
    answers: &[
        "1: 3/1",
        "2: Corrupted object, final, unknown",
        "3: Corrupted object, final",
        "4: Poisoned (Corrupted object), final, not written",
        "5: Poisoned (Corrupted object), final",
        "6: Poisoned (Corrupted object), final, not written",
        "7: Poisoned (Corrupted object), final",
    ],
    then: "Poisoned (Corrupted object), final, not written",
    figures: &[
        ("appends", 2),
        ("appended entries", 2),
        ("appended bytes", 2),
        ("acknowledged appends", 1),
        ("created objects", 1),
        ("sealed to durable", 1),
        ("sized objects", 1),
        ("objects with entries", 1),
        ("object bytes", 163),
        ("object entries", 1),
        ("create failures", 2),
        ("create conflicts", 1),
        ("poisoned", 1),
        ("indexed objects", 1),
        ("indexed bytes", 163),
        ("create retries", 1),
    ],
    reads: &[(1, &["a"])],
    recovers: &[(FAILS, &["Corrupted object, final"])],
    ..NOTHING
};

const GUARDED: Row = Row {
    name: "a guarded release runs out when stop begins",
    covers: &["guarded batch pending: stop", "release: stop begins while it is pending"],
    steps: &[
        Append(1, "a"),
        Put(3, Well),
        Obsolete(3, 50, 1),
        Release(1),
        Put(51, Well),
        Stop,
        Answered(&["1-2"]),
        List(Well),
    ],
    answers: &["1: 3/1", "2: ok", "3: ok", "4: ok"],
    then: "Stopped, final, not written",
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
        ("reclaim boundary", 49),
        ("guards", 1),
    ],
    ..NOTHING
};

const BETWEEN: Row = Row {
    name: "a release between stop and the log seeing it",
    covers: &["met 9: a release between stop and the log seeing it"],
    steps: &[
        Append(1, "a"),
        Put(3, Well),
        // The log sees the release first, and its create is under way.
        Together(&[Stop, Release(1)]),
        Put(4, Well),
    ],
    answers: &["1: 3/1", "3: ok", "2: ok"],
    then: "Stopped, final, not written",
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
    ..NOTHING
};

/// One append is under way, one sealed behind it, one open, and one queued, the release behind it.
const FIVE: Step =
    Together(&[Append(1, "a"), Append(1, "b"), Append(1, "c"), Append(1, "d"), Release(1)]);

const QUEUED: Row = Row {
    name: "stop fails a release that is queued behind appends",
    covers: &["release: stop begins while it is pending"],
    options: |options| (options.max_in_flight, options.max_batch_bytes) = (1, 1),
    steps: &[FIVE, Stop, Put(3, Well), UnderWay(0)],
    answers: &["2-5: Stopped, final, not written", "1: 3/1", "6: ok"],
    then: "Stopped, final, not written",
    figures: &[
        ("appends", 3),
        ("appended entries", 3),
        ("appended bytes", 3),
        ("rejected appends", 1),
        ("stalled appends", 1),
        ("acknowledged appends", 1),
        ("created objects", 1),
        ("sealed to durable", 1),
        ("sized objects", 1),
        ("objects with entries", 1),
        ("object bytes", 163),
        ("object entries", 1),
        ("indexed objects", 1),
        ("indexed bytes", 163),
    ],
    reads: &[(1, &["a"])],
    recovers: &[(1, &["a"])],
    ..NOTHING
};

const QUEUED_POISON: Row = Row {
    name: "poison fails a release that is queued behind appends",
    covers: &["release: poison"],
    steps: &[
        FIVE,
        Plant(3, Planted::Bytes(1)),
        Put(3, Well),
        Back(3, Well),
        Pass(100),
        Put(3, Well),
        Back(3, Well),
        Stop,
    ],
    answers: &[
        "1: Corrupted object, final, unknown",
        "2-5: Corrupted object, final, not written",
        // The release was never admitted: no record of it is lost.
        "6: Poisoned (Corrupted object), final",
    ],
    then: "Poisoned (Corrupted object), final, not written",
    figures: &[
        ("appends", 3),
        ("appended entries", 3),
        ("appended bytes", 3),
        ("rejected appends", 1),
        ("stalled appends", 1),
        ("create failures", 2),
        ("create conflicts", 1),
        ("poisoned", 1),
        ("create retries", 1),
    ],
    reads: &[],
    recovers: &[(FAILS, &["Corrupted object, final"])],
    ..QUEUED
};

/// Two entries, each in its object.
const TWO_ENTRIES: &[(&str, i64)] = &[
    ("appends", 2),
    ("appended entries", 2),
    ("appended bytes", 2),
    ("acknowledged appends", 2),
    ("created objects", 2),
    ("sealed to durable", 2),
    ("sized objects", 2),
    ("objects with entries", 2),
    ("object bytes", 326),
    ("object entries", 2),
    ("indexed objects", 2),
    ("indexed bytes", 326),
];

pub(super) const ROWS: &[Row] = &[
    STOPPING,
    Row {
        answers: &[
            "1: 3/1",
            "2: 4/1",
            "4-5: Stopped, final, not written",
            "6-8: Stopped, final",
            "9: ok",
            "3: ok",
            "10: Stopped, final, not written",
        ],
        ..enqueued("enqueued: while stopping, releases fail as all other calls do", STOPPING)
    },
    FLOOR,
    Row {
        answers: &[
            "1: 3/1",
            "2: 4/1",
            "3: Stopped, final",
            "4: Stopped, final, not written",
            "5: ok",
        ],
        ..enqueued("enqueued: stop fails a floor that waits, and the release behind it", FLOOR)
    },
    POISONED,
    Row {
        answers: &[
            "1: 3/1",
            "2: 4/1",
            "3: Corrupted object, final",
            "4: Poisoned (Corrupted object), final, not written",
            "5: Lost 1 entries (Corrupted object), final",
            "6: Poisoned (Corrupted object), final, not written",
            "7: Poisoned (Corrupted object), final",
        ],
        figures: &[
            ("appends", 2),
            ("appended entries", 2),
            ("appended bytes", 2),
            ("acknowledged appends", 2),
            ("created objects", 1),
            ("sealed to durable", 1),
            ("sized objects", 1),
            ("objects with entries", 1),
            ("object bytes", 163),
            ("object entries", 1),
            ("create failures", 2),
            ("create conflicts", 1),
            ("poisoned", 1),
            ("indexed objects", 1),
            ("indexed bytes", 163),
            ("create retries", 1),
        ],
        ..enqueued("enqueued: poison fails a floor that waits, and the release behind it", POISONED)
    },
    GUARDED,
    enqueued("enqueued: a guarded release runs out when stop begins", GUARDED),
    QUEUED,
    Row {
        steps: &[FIVE, Stop, Put(3, Well), Put(4, Well), Put(5, Well), UnderWay(0)],
        answers: &["1: 3/1", "2: 4/1", "3: 5/1", "4-5: Stopped, final, not written", "6: ok"],
        figures: &[
            ("appends", 3),
            ("appended entries", 3),
            ("appended bytes", 3),
            ("rejected appends", 1),
            ("stalled appends", 1),
            ("acknowledged appends", 3),
            ("created objects", 3),
            ("sealed to durable", 3),
            ("sized objects", 3),
            ("objects with entries", 3),
            ("object bytes", 489),
            ("object entries", 3),
            ("indexed objects", 3),
            ("indexed bytes", 489),
        ],
        reads: &[(1, &["a", "b", "c"])],
        recovers: &[(1, &["a", "b", "c"])],
        ..enqueued("enqueued: stop fails a release that is queued behind appends", QUEUED)
    },
    QUEUED_POISON,
    Row {
        answers: &[
            "1: 3/1",
            "2: 4/1",
            "3: 5/1",
            "4-5: Corrupted object, final, not written",
            "6: Lost 3 entries (Corrupted object), final",
        ],
        figures: &[
            ("appends", 3),
            ("appended entries", 3),
            ("appended bytes", 3),
            ("rejected appends", 1),
            ("stalled appends", 1),
            ("acknowledged appends", 3),
            ("create failures", 2),
            ("create conflicts", 1),
            ("poisoned", 1),
            ("create retries", 1),
        ],
        ..enqueued("enqueued: poison fails a release that is queued behind appends", QUEUED_POISON)
    },
    Row {
        name: "a release that is queued behind appends when the log becomes failing is carried",
        covers: &["release: it arrives while failing"],
        mode: Enqueued,
        steps: &[
            FIVE,
            Put(3, Fails(Forbidden)),
            Pass(100),
            Put(3, Well),
            Put(4, Well),
            Put(5, Well),
            UnderWay(0),
        ],
        answers: &[
            "1: 3/1",
            "2: 4/1",
            "3: 5/1",
            "4: Failing (Store creating refused), retryable, not written",
            "5: Failing (Store creating refused), retryable, unknown",
        ],
        then: "goes to 6",
        figures: &[
            ("appends", 3),
            ("appended entries", 3),
            ("appended bytes", 3),
            ("rejected appends", 2),
            ("stalled appends", 1),
            ("acknowledged appends", 3),
            ("created objects", 3),
            ("sealed to durable", 3),
            ("sized objects", 3),
            ("objects with entries", 3),
            ("object bytes", 582),
            ("object entries", 3),
            ("create failures", 1),
            ("create retries", 1),
            ("release records", 1),
            ("indexed objects", 3),
            ("indexed bytes", 582),
            ("reclaim boundary", 3),
        ],
        reads: &[],
        recovers: &[],
        ..QUEUED
    },
    BETWEEN,
    enqueued("enqueued: a release between stop and the log seeing it", BETWEEN),
    Row {
        name: "a store that hangs ends stop by its time limit; what lands then is an orphan",
        covers: &["stopped: anything late"],
        steps: &[
            Append(1, "a"),
            Stop,
            Pass(30_000),
            Answered(&[]),
            Back(3, Fails(Reset)),
            UnderWay(0),
            Land(3),
            Pass(600_000),
            UnderWay(0),
        ],
        answers: &["1: Store creating timed out, retryable, unknown", "2: ok"],
        then: "Stopped, final, not written",
        figures: &[
            ("appends", 1),
            ("appended entries", 1),
            ("appended bytes", 1),
            ("create failures", 1),
            ("rolled back batches", 1),
        ],
        // Its caller was told that this may be.
        recovers: &[(1, &["a"])],
        ..NOTHING
    },
    Row {
        name: "enqueued: a release that arrives in a poisoned log is not counted as lost",
        covers: &["poisoned: stop"],
        mode: Enqueued,
        steps: &[
            Append(1, "a"),
            Put(3, Well),
            Release(1),
            Plant(4, Planted::Bytes(1)),
            Put(4, Well),
            Back(4, Well),
            Pass(100),
            Put(4, Well),
            Back(4, Well),
            Release(1),
            Stop,
        ],
        answers: &[
            "1: 3/1",
            "2: Corrupted object, final, unknown",
            "3: Poisoned (Corrupted object), final, not written",
            "4: Lost 1 releases (Corrupted object), final",
        ],
        then: "Poisoned (Corrupted object), final, not written",
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
            ("poisoned", 1),
            ("indexed objects", 1),
            ("indexed bytes", 163),
            ("create retries", 1),
        ],
        reads: &[(1, &["a"])],
        recovers: &[(FAILS, &["Corrupted object, final"])],
        ..NOTHING
    },
];
