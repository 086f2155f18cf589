//! Whether the way behind the tip is blocked for every older writer, so that a start object may
//! be created (DESIGN.md section 12, rule 2).

use alloc::vec::Vec;
use core::ops::Range;

use crate::rules::Rules;
use crate::types::{Epoch, Link, ObjectSeq};

/// The rule: `above` are the listed sequences above the tip, ascending, each with its epoch. Says
/// which sequences are to be claimed, ascending, before the next listing. If none is, nobody can
/// write behind the tip without meeting a later epoch, and the start object may come.
pub(super) fn way(
    tip: Link,
    above: impl IntoIterator<Item = (ObjectSeq, Epoch)>,
    rules: Rules,
) -> Vec<Range<u64>> {
    let mut free = tip.sequence.next();
    let mut holes: Vec<Range<u64>> = Vec::new();
    let mut blocked = false;
    for (sequence, epoch) in above {
        if sequence > free {
            holes.push(free.0..sequence.0);
        }
        // What stands behind a hole blocks nothing.
        blocked |= holes.is_empty() && (epoch > tip.epoch || !rules.blocker_is_of_a_later_epoch);
        free = sequence.next();
    }
    let unblocked = !blocked && rules.claim_before_start;
    let lowest = holes.first().map_or(free.0, |hole| hole.start);
    if !holes.is_empty() && rules.claim_every_hole {
        holes
    } else if unblocked {
        core::iter::once(lowest..lowest + 1).collect()
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = &'static [(u64, u64)];

    /// Each range as its first sequence and the one behind its last.
    fn way_of(above: Pairs) -> Vec<(u64, u64)> {
        let tip = Link { sequence: ObjectSeq(5), epoch: Epoch(3) };
        let above = above.iter().map(|(sequence, epoch)| (ObjectSeq(*sequence), Epoch(*epoch)));
        way(tip, above, Rules::ALL).into_iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn a_later_epoch_that_stands_behind_the_tip_without_a_hole_blocks_the_way() {
        assert_eq!(way_of(&[(6, 7)]), []);
        assert_eq!(way_of(&[(6, 3), (7, 8)]), []);
        assert_eq!(way_of(&[(6, 7), (7, 3)]), []);
    }

    #[test]
    fn the_lowest_free_sequence_is_claimed_and_every_hole() {
        let cases: [(Pairs, Pairs); 6] = [
            (&[], &[(6, 7)]),
            (&[(6, 3)], &[(7, 8)]),
            (&[(6, 2), (7, 3)], &[(8, 9)]),
            // It stands, and a hole remains.
            (&[(6, 7), (8, 3)], &[(7, 8)]),
            // What stands behind a hole blocks nothing.
            (&[(7, 8)], &[(6, 7)]),
            (&[(8, 8), (9, 3), (1000, 3)], &[(6, 8), (10, 1000)]),
        ];
        for (above, expected) in cases {
            assert_eq!(way_of(above), expected, "{above:?}");
        }
    }
}
