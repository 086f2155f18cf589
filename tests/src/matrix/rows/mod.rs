//! The rows, by theme.

mod answers;
mod boundaries;
mod carriers;
mod creates;
mod deletes;
mod failing;
mod floors;
mod last_objects;
mod last_records;
mod limits;
mod releases;
mod releases_failing;
mod restarts;
mod stopping;
mod stopping_both;
mod thresholds;

use sealog_core::AckMode;

use super::{Planted, Row, Step};

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Row> {
    let themes = [
        answers::ROWS,
        boundaries::ROWS,
        carriers::ROWS,
        creates::ROWS,
        deletes::ROWS,
        failing::ROWS,
        floors::ROWS,
        last_objects::ROWS,
        last_records::ROWS,
        limits::ROWS,
        releases::ROWS,
        releases_failing::ROWS,
        restarts::ROWS,
        stopping::ROWS,
        stopping_both::ROWS,
        thresholds::ROWS,
    ];
    themes.into_iter().flatten()
}

/// The last sequence there is.
const LAST: u64 = (1 << 44) - 1;

/// The log goes on from one whose newest start object stands so high that its next sequence is the
/// last one. One call, that does nothing, was made.
const NEXT_IS_LAST: Step =
    Step::Times(1, &[Step::Plant(LAST - 3, Planted::Start), Step::Reopen, Step::Obsolete(9, 0, 1)]);

/// The same, where one more is left.
const NEXT_IS_LAST_BUT_ONE: Step =
    Step::Times(1, &[Step::Plant(LAST - 4, Planted::Start), Step::Reopen, Step::Obsolete(9, 0, 1)]);

/// The same row in `enqueued`, where it comes to the same.
const fn enqueued(name: &'static str, row: Row) -> Row {
    Row { name, mode: AckMode::Enqueued, ..row }
}
