//! Deletes that fail, hang, or find nothing (sections 9 and 14).

use super::enqueued;
use crate::matrix::Failure::{Forbidden, Gone, Reset};
use crate::matrix::How::{AllBut, DoneBut, Fails, Well};
use crate::matrix::Step::{
    Answered, Append, Back, Delete, Obsolete, Pass, Plant, Put, Stop, Stored, Times, UnderWay,
};
use crate::matrix::{FAILS, NOTHING, Planted, Row, Step};

/// 3 and 4 hold an entry each, and nothing needs 3. An append is under way at 5, which carries
/// that.
pub(super) const CARRIED_BY_5: Step = Times(
    1,
    &[
        Append(1, "a"),
        Put(3, Well),
        Append(1, "b"),
        Put(4, Well),
        Obsolete(1, 3, 1),
        UnderWay(0),
        Append(1, "c"),
        UnderWay(1),
    ],
);

/// As in [`CARRIED_BY_5`], and 5 is indexed.
pub(super) const DELETING_3: Step = Times(1, &[CARRIED_BY_5, Put(5, Well), UnderWay(1)]);

/// Nothing needs 3 and 4, and of both, 3 is being deleted.
const DELETING_3_OF_2: Step = Times(
    1,
    &[
        Append(1, "a"),
        Put(3, Well),
        Append(1, "b"),
        Put(4, Well),
        Obsolete(1, 4, 1),
        Append(1, "c"),
        Put(5, Well),
        UnderWay(1),
    ],
);

/// What all of them have in common: the entry that is left, and how it came there.
pub(super) const DELETES: Row = Row {
    answers: &["1: 3/1", "2: 4/1", "3: ok", "4: 5/1"],
    then: "goes to 6",
    reads: &[(1, &["b", "c"])],
    recovers: &[(1, &["b", "c"])],
    ..NOTHING
};

const REFUSED: Row = Row {
    name: "a refused delete is tried again after the interval",
    covers: &["delete: refused"],
    steps: &[
        DELETING_3,
        Delete(&[3], Fails(Forbidden)),
        Pass(59_999),
        UnderWay(0),
        Pass(1),
        Stored(&[0, 1, 2, 3, 4, 5]),
        Delete(&[3], Well),
        Stored(&[0, 1, 2, 4, 5]),
        Pass(600_000),
        UnderWay(0),
    ],
    figures: RETRIED,
    ..DELETES
};

const HANGS: Row = Row {
    name: "a delete that hangs until its time limit is tried again after the interval",
    covers: &["delete: timed out"],
    steps: &[
        DELETING_3,
        Pass(29_999),
        UnderWay(1),
        Pass(1),
        UnderWay(0),
        Pass(59_999),
        UnderWay(0),
        Pass(1),
        Delete(&[3], Well),
        Stored(&[0, 1, 2, 4, 5]),
    ],
    figures: RETRIED,
    ..DELETES
};

const NOT_FOUND: Row = Row {
    name: "a delete that finds nothing succeeded",
    covers: &["delete: not found"],
    steps: &[DELETING_3, Delete(&[3], DoneBut(Gone)), Pass(600_000), UnderWay(0)],
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
        ("deleted objects", 1),
        ("indexed objects", 2),
        ("indexed bytes", 326),
        ("reclaim boundary", 1),
    ],
    ..DELETES
};

const LOST_ANSWER: Row = Row {
    name: "a delete that succeeds with its answer lost is tried again, and finds nothing",
    covers: &["delete: refused", "delete: not found"],
    steps: &[
        DELETING_3,
        Delete(&[3], DoneBut(Reset)),
        Stored(&[0, 1, 2, 4, 5]),
        Pass(60_000),
        Delete(&[3], Fails(Gone)),
        Pass(600_000),
        UnderWay(0),
    ],
    figures: RETRIED,
    ..DELETES
};

const RISES: Row = Row {
    name: "a failed delete is not tried again when the durable boundary rises, but after the interval",
    covers: &["delete: refused"],
    steps: &[
        DELETING_3,
        Delete(&[3], Fails(Reset)),
        Obsolete(1, 4, 1),
        Append(1, "d"),
        UnderWay(1),
        Put(6, Well),
        UnderWay(1),
        Delete(&[4], Well),
        UnderWay(0),
        Pass(59_999),
        UnderWay(0),
        Pass(1),
        Delete(&[3], Well),
        Pass(600_000),
        UnderWay(0),
    ],
    answers: &["1: 3/1", "2: 4/1", "3: ok", "4: 5/1", "5: ok", "6: 6/1"],
    then: "goes to 7",
    reads: &[(1, &["c", "d"])],
    recovers: &[(1, &["c", "d"])],
    figures: &[
        ("appends", 4),
        ("appended entries", 4),
        ("appended bytes", 4),
        ("acknowledged appends", 4),
        ("created objects", 4),
        ("sealed to durable", 4),
        ("sized objects", 4),
        ("objects with entries", 4),
        ("object bytes", 652),
        ("object entries", 4),
        ("deleted objects", 2),
        ("failed deletes", 1),
        ("indexed objects", 2),
        ("indexed bytes", 326),
        ("reclaim boundary", 2),
    ],
    ..DELETES
};

const PROBES: Row = Row {
    name: "while deletes are refused one at a time probes, and the delays double",
    covers: &["delete: refused"],
    steps: &[
        Append(1, "a"),
        Put(3, Well),
        Append(1, "b"),
        Put(4, Well),
        Obsolete(1, 4, 1),
        Append(1, "c"),
        Put(5, Well),
        UnderWay(2),
        Delete(&[3], Fails(Forbidden)),
        Delete(&[4], Fails(Forbidden)),
        Pass(60_000),
        UnderWay(1),
        Delete(&[3], Fails(Forbidden)),
        UnderWay(1),
        Delete(&[4], Fails(Forbidden)),
        Pass(119_999),
        UnderWay(0),
        Pass(1),
        UnderWay(1),
        Delete(&[3], Well),
        UnderWay(1),
        Delete(&[4], Well),
        Pass(600_000),
        UnderWay(0),
        Stored(&[0, 1, 2, 5]),
    ],
    answers: &["1: 3/1", "2: 4/1", "3: ok", "4: 5/1"],
    then: "goes to 6",
    reads: &[(1, &["c"])],
    recovers: &[(1, &["c"])],
    figures: &[
        ("acknowledged appends", 3),
        ("appended bytes", 3),
        ("appended entries", 3),
        ("appends", 3),
        ("created objects", 3),
        ("deleted objects", 2),
        ("failed deletes", 4),
        ("indexed bytes", 163),
        ("indexed objects", 1),
        ("object bytes", 489),
        ("object entries", 3),
        ("objects with entries", 3),
        ("reclaim boundary", 2),
        ("sealed to durable", 3),
        ("sized objects", 3),
    ],
    ..NOTHING
};

const SEVERAL: Row = Row {
    name: "of several keys in one request some fail: those are tried again",
    covers: &["delete: refused", "delete: several keys per request"],
    keys_per_delete: 1000,
    steps: &[
        Append(1, "a"),
        Put(3, Well),
        Append(1, "b"),
        Put(4, Well),
        Append(1, "c"),
        Put(5, Well),
        Obsolete(1, 5, 1),
        Append(1, "d"),
        Put(6, Well),
        UnderWay(1),
        Delete(&[3, 4, 5], AllBut(&[4], Forbidden)),
        Stored(&[0, 1, 2, 4, 6]),
        Pass(60_000),
        UnderWay(1),
        Delete(&[4], Well),
        Stored(&[0, 1, 2, 6]),
    ],
    answers: &["1: 3/1", "2: 4/1", "3: 5/1", "4: ok", "5: 6/1"],
    then: "goes to 7",
    reads: &[(1, &["d"])],
    recovers: &[(1, &["d"])],
    figures: &[
        ("appends", 4),
        ("appended entries", 4),
        ("appended bytes", 4),
        ("acknowledged appends", 4),
        ("created objects", 4),
        ("sealed to durable", 4),
        ("sized objects", 4),
        ("objects with entries", 4),
        ("object bytes", 652),
        ("object entries", 4),
        ("deleted objects", 3),
        ("failed deletes", 1),
        ("indexed objects", 1),
        ("indexed bytes", 163),
        ("reclaim boundary", 3),
    ],
    ..NOTHING
};

const AT_ONCE: Row = Row {
    name: "so many requests at once, and then the next",
    covers: &["delete: several requests at once"],
    options: |options| options.max_deletes_in_flight = 2,
    steps: &[
        Append(1, "a"),
        Put(3, Well),
        Append(1, "b"),
        Put(4, Well),
        Append(1, "c"),
        Put(5, Well),
        Obsolete(1, 5, 1),
        Append(1, "d"),
        Put(6, Well),
        UnderWay(2),
        Delete(&[4], Well),
        UnderWay(2),
        Delete(&[5], Well),
        UnderWay(1),
        Delete(&[3], Well),
        UnderWay(0),
    ],
    answers: &["1: 3/1", "2: 4/1", "3: 5/1", "4: ok", "5: 6/1"],
    then: "goes to 7",
    reads: &[(1, &["d"])],
    recovers: &[(1, &["d"])],
    figures: &[
        ("appends", 4),
        ("appended entries", 4),
        ("appended bytes", 4),
        ("acknowledged appends", 4),
        ("created objects", 4),
        ("sealed to durable", 4),
        ("sized objects", 4),
        ("objects with entries", 4),
        ("object bytes", 652),
        ("object entries", 4),
        ("deleted objects", 3),
        ("indexed objects", 1),
        ("indexed bytes", 163),
        ("reclaim boundary", 3),
    ],
    ..NOTHING
};

const STOP: Row = Row {
    name: "a delete runs out when stop begins, and none starts",
    covers: &["delete: answered after stop"],
    options: |options| options.max_deletes_in_flight = 1,
    steps: &[
        DELETING_3_OF_2,
        Stop,
        Answered(&["1-4"]),
        UnderWay(1),
        Delete(&[3], Well),
        UnderWay(0),
        Pass(600_000),
        UnderWay(0),
        Stored(&[0, 1, 2, 4, 5]),
    ],
    answers: &["1: 3/1", "2: 4/1", "3: ok", "4: 5/1", "5: ok"],
    then: "Stopped, final, not written",
    reads: &[(1, &["c"])],
    // What became obsolete is said again after an opening.
    recovers: &[(1, &["c"])],
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
        ("deleted objects", 1),
        ("indexed objects", 2),
        ("indexed bytes", 326),
        ("reclaim boundary", 2),
    ],
    ..NOTHING
};

const STOP_FAILS: Row = Row {
    name: "a delete fails after stop began: it is not tried again, and stop does not mind",
    covers: &["delete: answered after stop"],
    steps: &[
        DELETING_3_OF_2,
        Stop,
        Delete(&[3], Fails(Forbidden)),
        UnderWay(0),
        Pass(600_000),
        UnderWay(0),
        Stored(&[0, 1, 2, 3, 4, 5]),
    ],
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
        ("failed deletes", 1),
        ("indexed objects", 3),
        ("indexed bytes", 489),
        ("reclaim boundary", 2),
    ],
    ..STOP
};

const POISON: Row = Row {
    name: "a delete runs out after poison, and none starts",
    covers: &["poisoned: delete result", "delete: answered after poison"],
    options: |options| options.max_deletes_in_flight = 1,
    steps: &[
        DELETING_3_OF_2,
        Append(2, "d"),
        Plant(6, Planted::Bytes(1)),
        Put(6, Well),
        Back(6, Well),
        Pass(100),
        Put(6, Well),
        Back(6, Well),
        UnderWay(1),
        Stop,
        Answered(&["1-5"]),
        Delete(&[3], Well),
        UnderWay(0),
        Pass(600_000),
        UnderWay(0),
        Stored(&[0, 1, 2, 4, 5, 6]),
    ],
    answers: &[
        "1: 3/1",
        "2: 4/1",
        "3: ok",
        "4: 5/1",
        "5: Corrupted object, final, unknown",
        "6: Poisoned (Corrupted object), final",
    ],
    then: "Poisoned (Corrupted object), final, not written",
    reads: &[(1, &["c"])],
    recovers: &[(FAILS, &["Corrupted object, final"])],
    figures: &[
        ("appends", 4),
        ("appended entries", 4),
        ("appended bytes", 4),
        ("acknowledged appends", 3),
        ("created objects", 3),
        ("sealed to durable", 3),
        ("sized objects", 3),
        ("objects with entries", 3),
        ("object bytes", 489),
        ("object entries", 3),
        ("create failures", 2),
        ("create conflicts", 1),
        ("poisoned", 1),
        ("deleted objects", 1),
        ("indexed objects", 2),
        ("indexed bytes", 326),
        ("reclaim boundary", 2),
        ("create retries", 1),
    ],
    ..NOTHING
};

/// Three entries, of which the first was deleted at the second attempt.
const RETRIED: &[(&str, i64)] = &[
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
    ("deleted objects", 1),
    ("failed deletes", 1),
    ("indexed objects", 2),
    ("indexed bytes", 326),
    ("reclaim boundary", 1),
];

pub(super) const ROWS: &[Row] = &[
    REFUSED,
    enqueued("enqueued: a refused delete is tried again", REFUSED),
    HANGS,
    enqueued("enqueued: a delete hangs until its time limit", HANGS),
    NOT_FOUND,
    enqueued("enqueued: a delete finds nothing", NOT_FOUND),
    LOST_ANSWER,
    RISES,
    PROBES,
    SEVERAL,
    AT_ONCE,
    STOP,
    enqueued("enqueued: a delete runs out when stop begins", STOP),
    STOP_FAILS,
    POISON,
    Row {
        name: "enqueued: a delete runs out after poison, and none starts",
        mode: sealog_core::AckMode::Enqueued,
        answers: &[
            "1: 3/1",
            "2: 4/1",
            "3: ok",
            "4: 5/1",
            "5: 6/1",
            "6: Lost 1 entries (Corrupted object), final",
        ],
        figures: &[
            ("appends", 4),
            ("appended entries", 4),
            ("appended bytes", 4),
            ("acknowledged appends", 4),
            ("created objects", 3),
            ("sealed to durable", 3),
            ("sized objects", 3),
            ("objects with entries", 3),
            ("object bytes", 489),
            ("object entries", 3),
            ("create failures", 2),
            ("create conflicts", 1),
            ("poisoned", 1),
            ("deleted objects", 1),
            ("indexed objects", 2),
            ("indexed bytes", 326),
            ("reclaim boundary", 2),
            ("create retries", 1),
        ],
        ..POISON
    },
];
