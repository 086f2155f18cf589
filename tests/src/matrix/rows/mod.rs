//! The rows, by theme.

mod answers;
mod creates;
mod failing;
mod floors;
mod limits;
mod stopping;
mod thresholds;

use super::Row;

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Row> {
    let themes = [
        answers::ROWS,
        creates::ROWS,
        failing::ROWS,
        floors::ROWS,
        limits::ROWS,
        stopping::ROWS,
        thresholds::ROWS,
    ];
    themes.into_iter().flatten()
}

/// The last sequence there is.
const LAST: u64 = (1 << 44) - 1;
