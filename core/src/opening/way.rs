//! Whether the way behind the tip is blocked for every older writer, so that a start object may
//! be created (DESIGN.md section 12, rule 2).

use crate::rules::Rules;
use crate::types::{Epoch, Link, ObjectSeq};

/// What a listing asks for next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Nobody can write behind the tip without meeting a later epoch: the start object may come.
    Blocked,
    /// Create a claim here, and list again.
    Claim(ObjectSeq),
}

/// The rule: `above` are the listed sequences above the tip, ascending, each with its epoch.
pub(super) fn way(
    tip: Link,
    above: impl IntoIterator<Item = (ObjectSeq, Epoch)>,
    rules: Rules,
) -> Way {
    let mut free = tip.sequence.next();
    let (mut blocked, mut hole) = (false, false);
    for (sequence, epoch) in above {
        if sequence > free {
            hole = true;
            break;
        }
        blocked |= epoch > tip.epoch || !rules.blocker_is_of_a_later_epoch;
        free = sequence.next();
    }
    let unblocked = !blocked && rules.claim_before_start;
    if unblocked || hole && rules.claim_every_hole { Way::Claim(free) } else { Way::Blocked }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way_of(above: &[(u64, u64)]) -> Way {
        let tip = Link { sequence: ObjectSeq(5), epoch: Epoch(3) };
        let above = above.iter().map(|(sequence, epoch)| (ObjectSeq(*sequence), Epoch(*epoch)));
        way(tip, above, Rules::ALL)
    }

    #[test]
    fn a_later_epoch_that_stands_behind_the_tip_without_a_hole_blocks_the_way() {
        assert_eq!(way_of(&[(6, 7)]), Way::Blocked);
        assert_eq!(way_of(&[(6, 3), (7, 8)]), Way::Blocked);
        assert_eq!(way_of(&[(6, 7), (7, 3)]), Way::Blocked);
    }

    #[test]
    fn the_lowest_free_sequence_is_claimed() {
        let cases: [(&[(u64, u64)], u64); 5] = [
            (&[], 6),
            (&[(6, 3)], 7),
            (&[(6, 2), (7, 3)], 8),
            // It stands, and a hole remains.
            (&[(6, 7), (8, 3)], 7),
            // What stands behind a hole blocks nothing.
            (&[(7, 8)], 6),
        ];
        for (above, expected) in cases {
            assert_eq!(way_of(above), Way::Claim(ObjectSeq(expected)), "{above:?}");
        }
    }
}
