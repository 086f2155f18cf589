//! Releases and collections across restarts (sections 4, 6, 9 and 12).

use super::enqueued;
use crate::matrix::Failure::{Forbidden, Reset};
use crate::matrix::How::{DoneBut, Fails, Well};
use crate::matrix::Step::{
    Append, Back, Batch, Delete, List, Obsolete, Pass, Plant, Put, Release, ReleaseAll, Reopen,
    Stop, Stored, Times, UnderWay,
};
use crate::matrix::{FAILS, NOTHING, Planted, Records, Row, Step};

/// 3 and 4 hold entries of regions 1 and 2.
const SHARED: Step = Times(
    1,
    &[Batch(&[(1, "a"), (2, "b")]), Put(3, Well), Batch(&[(1, "c"), (2, "d")]), Put(4, Well)],
);

const RELEASED: Row = Row {
    name: "a release survives a crash, and shared objects go once the other region allows",
    covers: &["restart: a release holds"],
    steps: &[
        SHARED,
        Release(1),
        Put(5, Well),
        Reopen,
        UnderWay(0),
        Obsolete(2, 4, 1),
        Append(2, "e"),
        Put(8, Well),
        UnderWay(3),
        Delete(&[3], Well),
        Delete(&[4], Well),
        Delete(&[5], Well),
        Stored(&[0, 1, 2, 6, 7, 8]),
    ],
    answers: &["1: 3/1 3/1", "2: 4/1 4/1", "3: ok", "4: ok", "5: 8/1"],
    then: "goes to 9",
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
        ("deleted objects", 3),
        ("indexed objects", -2),
        ("indexed bytes", -492),
        ("reclaim boundary", 5),
    ],
    reads: &[(2, &["e"])],
    recovers: &[(2, &["e"])],
    ..NOTHING
};

const AGAIN: Row = Row {
    name: "a region that is used again keeps its new entries, over two restarts and a collection",
    covers: &["restart: a region that is used again", "restart: a collection was under way"],
    steps: &[
        Append(1, "old"),
        Put(3, Well),
        Release(1),
        Put(4, Well),
        Append(1, "new"),
        Put(5, Well),
        // The crash comes before the collection was done.
        UnderWay(2),
        Delete(&[3], DoneBut(Reset)),
        Reopen,
        UnderWay(1),
        Delete(&[4], Well),
        Append(1, "newer"),
        Put(8, Well),
        Reopen,
        UnderWay(0),
        Stored(&[0, 1, 2, 5, 6, 7, 8, 9, 10]),
        Append(1, "newest"),
        Put(11, Well),
    ],
    answers: &["1: 3/1", "2: ok", "3: 5/1", "4: 8/1", "5: 11/1"],
    then: "goes to 12",
    figures: &[
        ("appends", 1),
        ("appended entries", 1),
        ("appended bytes", 6),
        ("acknowledged appends", 1),
        ("created objects", 1),
        ("sealed to durable", 1),
        ("sized objects", 1),
        ("objects with entries", 1),
        ("object bytes", 168),
        ("object entries", 1),
        ("indexed objects", 1),
        ("indexed bytes", 168),
    ],
    reads: &[(1, &["new", "newer", "newest"])],
    recovers: &[(1, &["new", "newer", "newest"])],
    ..NOTHING
};

const LAST_OBJECT: Row = Row {
    name: "the last object holds releases alone: everything goes, and an opening goes on above it",
    covers: &["restart: the last object is release-only"],
    steps: &[
        Append(1, "a"),
        Put(3, Well),
        Release(1),
        Put(4, Well),
        Reopen,
        UnderWay(2),
        Delete(&[3], Well),
        Delete(&[4], Well),
        Stored(&[0, 1, 2, 5, 6]),
        Reopen,
        UnderWay(0),
    ],
    answers: &["1: 3/1", "2: ok"],
    then: "goes to 9",
    ..NOTHING
};

const LAST_CARRIED: Row = Row {
    name: "the last object holds releases alone: a carrier lets everything go",
    covers: &["restart: the last object is release-only"],
    steps: &[
        Append(1, "a"),
        Put(3, Well),
        Release(1),
        Put(4, Well),
        Pass(60_000),
        Put(5, Well),
        Delete(&[3], Well),
        Delete(&[4], Well),
        Pass(600_000),
        UnderWay(0),
        Stored(&[0, 1, 2, 5]),
        Reopen,
        UnderWay(1),
        Delete(&[5], Well),
        Stored(&[0, 1, 2, 6, 7]),
    ],
    answers: &["1: 3/1", "2: ok"],
    then: "goes to 8",
    figures: &[("deleted objects", 1), ("indexed objects", -1), ("indexed bytes", -90)],
    ..NOTHING
};

const ALL: Row = Row {
    name: "a release in full holds after a crash, until its record is collected",
    covers: &[
        "restart: a release holds",
        "release_all: nothing is appended until the record was collected",
    ],
    steps: &[
        Batch(&[(1, "a"), (2, "b")]),
        Put(3, Well),
        ReleaseAll(1),
        Put(4, Well),
        Reopen,
        Append(1, "refused"),
        Obsolete(2, 3, 1),
        Append(2, "c"),
        Put(7, Well),
        Append(1, "refused"),
        Delete(&[3], Well),
        Delete(&[4], Well),
        Append(1, "d"),
        Put(8, Well),
    ],
    answers: &[
        "1: 3/1 3/1",
        "2: ok",
        "3: Released, final, not written",
        "4: ok",
        "5: 7/1",
        "6: Released, final, not written",
        "7: 8/1",
    ],
    then: "goes to 9",
    figures: &[
        ("appends", 2),
        ("appended entries", 2),
        ("appended bytes", 2),
        ("rejected appends", 2),
        ("acknowledged appends", 2),
        ("created objects", 2),
        ("sealed to durable", 2),
        ("sized objects", 2),
        ("objects with entries", 2),
        ("object bytes", 326),
        ("object entries", 2),
        ("deleted objects", 2),
        ("indexed bytes", -93),
        ("reclaim boundary", 4),
    ],
    reads: &[(1, &["d"]), (2, &["c"])],
    recovers: &[(1, &["d"]), (2, &["c"])],
    ..NOTHING
};

/// A later instance left release records in the last object of its log.
const fn records(
    name: &'static str,
    records: &'static [Step],
    recovers: &'static [(u64, &'static [&'static str])],
) -> Row {
    Row {
        name,
        covers: &["restart: damaged records"],
        steps: records,
        then: "goes to 3",
        recovers,
        ..NOTHING
    }
}

const DAMAGED: &[(u64, &[&str])] = &[(FAILS, &["Corrupted release records, final"])];
/// It does not come as far as the records.
const DAMAGED_SEGMENT: &[(u64, &[&str])] =
    &[(FAILS, &["Corrupted segment of region 18446744073709551615, final"])];

pub(super) const ROWS: &[Row] = &[
    RELEASED,
    enqueued("enqueued: a release survives a crash", RELEASED),
    Row {
        name: "without a release everything comes back, and shared objects stay",
        covers: &["restart: a release holds"],
        steps: &[
            SHARED,
            Reopen,
            Obsolete(2, 4, 1),
            Append(2, "e"),
            Put(7, Well),
            Pass(600_000),
            UnderWay(0),
            Stored(&[0, 1, 2, 3, 4, 5, 6, 7]),
        ],
        answers: &["1: 3/1 3/1", "2: 4/1 4/1", "3: ok", "4: 7/1"],
        then: "goes to 8",
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
            ("indexed objects", 1),
            ("indexed bytes", 163),
        ],
        reads: &[(1, &["a", "c"]), (2, &["e"])],
        // What became obsolete is said again after an opening.
        recovers: &[(1, &["a", "c"]), (2, &["b", "d", "e"])],
        ..NOTHING
    },
    Row {
        name: "a release that was rolled back and never written again is gone with a crash",
        covers: &["restart: a release holds"],
        steps: &[
            Append(1, "a"),
            Put(3, Well),
            Release(1),
            Put(4, Fails(Forbidden)),
            Pass(100),
            UnderWay(1),
            Reopen,
        ],
        answers: &["1: 3/1", "2: Store creating refused, final, unknown"],
        then: "goes to 6",
        reads: &[(1, &["a"])],
        recovers: &[(1, &["a"])],
        ..NOTHING
    },
    Row {
        name: "a release that stop put into the last object holds after two openings",
        covers: &["restart: a release holds", "the last object of stop: created"],
        steps: &[
            Batch(&[(1, "a"), (2, "b")]),
            Put(3, Well),
            Release(1),
            Put(4, Fails(Forbidden)),
            Stop,
            Put(5, Well),
            List(Well),
            Reopen,
            Append(1, "c"),
            Put(8, Well),
            Reopen,
        ],
        answers: &["1: 3/1 3/1", "2: Store creating refused, final, unknown", "3: ok", "4: 8/1"],
        then: "goes to 11",
        reads: &[(1, &["c"]), (2, &["b"])],
        recovers: &[(1, &["c"]), (2, &["b"])],
        ..NOTHING
    },
    Row {
        name: "a release whose answers were lost holds after a crash",
        covers: &["restart: a release holds"],
        steps: &[
            Append(1, "a"),
            Put(3, Well),
            Release(1),
            Put(4, DoneBut(Reset)),
            Back(4, Fails(Reset)),
            Reopen,
            UnderWay(2),
        ],
        answers: &["1: 3/1"],
        then: "goes to 7",
        ..NOTHING
    },
    Row {
        name: "a crash in a collection: what no link leads to any more is kept like an orphan",
        covers: &["restart: a collection was under way"],
        steps: &[
            Append(1, "a"),
            Put(3, Well),
            Append(1, "b"),
            Put(4, Well),
            Obsolete(1, 4, 1),
            Append(1, "c"),
            Put(5, Well),
            Delete(&[4], Well),
            Reopen,
            UnderWay(0),
            Stored(&[0, 1, 2, 3, 5, 6, 7]),
        ],
        answers: &["1: 3/1", "2: 4/1", "3: ok", "4: 5/1"],
        then: "goes to 8",
        reads: &[(1, &["c"])],
        recovers: &[(1, &["c"])],
        ..NOTHING
    },
    AGAIN,
    enqueued("enqueued: a region that is used again keeps its new entries", AGAIN),
    LAST_OBJECT,
    enqueued("enqueued: the last object holds releases alone", LAST_OBJECT),
    LAST_CARRIED,
    ALL,
    enqueued("enqueued: a release in full holds after a crash", ALL),
    records(
        "sound records: the opening applies them",
        &[Plant(3, Planted::Records(Records::Sound))],
        &[],
    ),
    records(
        "a record with a bit flipped",
        &[Plant(3, Planted::Records(Records::Flipped))],
        DAMAGED_SEGMENT,
    ),
    records(
        "records of a version to come",
        &[Plant(3, Planted::Records(Records::Version))],
        DAMAGED,
    ),
    records("fewer records than counted", &[Plant(3, Planted::Records(Records::Missing))], DAMAGED),
    records("more records than counted", &[Plant(3, Planted::Records(Records::LeftOver))], DAMAGED),
    records("records out of order", &[Plant(3, Planted::Records(Records::Order))], DAMAGED),
    records("records without a version", &[Plant(3, Planted::Records(Records::Empty))], DAMAGED),
    records("records in two entries", &[Plant(3, Planted::Records(Records::Twice))], DAMAGED),
];
