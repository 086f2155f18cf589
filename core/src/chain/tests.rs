use alloc::string::ToString;
use alloc::vec;

use proptest::prelude::*;

use super::*;

/// A present object: sequence, epoch, predecessor, boundary.
type Row = (u64, u64, Option<(u64, u64)>, u64);

/// Start objects name a depth of 1.
fn objects(rows: impl IntoIterator<Item = Row>) -> BTreeMap<ObjectSeq, Present> {
    let present = |(sequence, epoch, predecessor, boundary): Row| {
        let header = Header {
            sequence: ObjectSeq(sequence),
            epoch: Epoch(epoch),
            predecessor: predecessor.map(|(sequence, epoch)| link(sequence, epoch)),
            boundary: ObjectSeq(boundary),
        };
        let max_in_flight = (epoch == sequence + 1).then_some(1);
        (header.sequence, Present { header, max_in_flight })
    };
    rows.into_iter().map(present).collect()
}

/// A first epoch whose objects follow each other, from its start object on.
fn line(sequences: core::ops::Range<u64>) -> impl Iterator<Item = Row> {
    sequences.map(|s| (s, 1, s.checked_sub(1).map(|before| (before, 1)), 0))
}

fn link(sequence: u64, epoch: u64) -> Link {
    Link { sequence: ObjectSeq(sequence), epoch: Epoch(epoch) }
}

fn seqs(sequences: impl IntoIterator<Item = u64>) -> Vec<ObjectSeq> {
    sequences.into_iter().map(ObjectSeq).collect()
}

fn selected(rows: impl IntoIterator<Item = Row>) -> Selection {
    select(&objects(rows)).unwrap()
}

fn lost(rows: impl IntoIterator<Item = Row>) -> LostHistory {
    select(&objects(rows)).unwrap_err()
}

#[test]
fn a_line_of_objects_is_history() {
    let selection = selected(line(0..4));
    assert_eq!(selection.tip, link(3, 1));
    assert_eq!(selection.chain, seqs(0..4));
    assert_eq!(selection.below_boundary, []);
    assert_eq!(selection.orphans, []);
    assert_eq!(selection.incomplete_above_tip, 0);
}

#[test]
fn the_later_epoch_wins_over_the_larger_sequence() {
    let selection = selected(line(0..4).chain([(4, 5, Some((2, 1)), 0), (5, 1, Some((3, 1)), 0)]));
    assert_eq!(selection.tip, link(4, 5));
    assert_eq!(selection.chain, seqs([0, 1, 2, 4]));
    assert_eq!(selection.orphans, seqs([3, 5]));
}

#[test]
fn the_successor_of_a_create_that_never_landed_is_an_orphan_and_counted() {
    let selection = selected(line(0..2).chain([(3, 1, Some((2, 1)), 0), (5, 1, Some((4, 1)), 0)]));
    assert_eq!(selection.tip, link(1, 1));
    assert_eq!(selection.orphans, seqs([3, 5]));
    assert_eq!(selection.incomplete_above_tip, 2);
}

#[test]
fn a_way_ends_at_a_link_below_the_boundary_of_the_object_that_is_judged() {
    // Object 4 is gone: 6 needs it, 7 does not.
    let selection =
        selected([(5, 1, Some((4, 1)), 0), (6, 1, Some((5, 1)), 4), (7, 1, Some((6, 1)), 5)]);
    assert_eq!(selection.tip, link(7, 1));
    assert_eq!(selection.chain, seqs([5, 6, 7]));
    assert_eq!(lost([(5, 1, Some((4, 1)), 0), (6, 1, Some((5, 1)), 4)]).missing, ObjectSeq(4));
}

#[test]
fn a_boundary_on_the_way_ends_nothing() {
    // Object 6 alone would be complete. Object 7 carries a lower boundary and is not.
    let selection = selected([(6, 1, Some((4, 1)), 6), (7, 1, Some((6, 1)), 4)]);
    assert_eq!(selection.tip, link(6, 1));
    assert_eq!(selection.orphans, seqs([7]));
    assert_eq!(selection.incomplete_above_tip, 1);
}

#[test]
fn what_lies_below_the_boundary_is_told_apart_from_orphans() {
    let below = [(1, 1, Some((0, 1)), 0), (2, 1, None, 0)];
    let selection = selected(below.into_iter().chain([
        (4, 1, Some((2, 1)), 0),
        (5, 1, Some((4, 1)), 0),
        (6, 1, Some((4, 1)), 4),
    ]));
    assert_eq!(selection.below_boundary, seqs([1, 2]));
    assert_eq!(selection.chain, seqs([4, 6]));
    assert_eq!(selection.orphans, seqs([5]));
}

#[test]
fn what_was_history_below_the_boundary_is_found_as_far_as_links_hold() {
    // 3 is an orphan, and what is below the gap at 1 is not known to have been history.
    let rows = [
        (0, 1, None, 0),
        (2, 1, Some((1, 1)), 0),
        (3, 1, Some((2, 1)), 0),
        (4, 1, Some((2, 1)), 0),
        (5, 1, Some((4, 1)), 0),
        (6, 1, Some((5, 1)), 5),
    ];
    let selection = selected(rows);
    assert_eq!(selection.passed, seqs([2, 4]));
    assert_eq!(selection.below_boundary, seqs([0, 2, 3, 4]));
    assert_eq!(selection.chain, seqs([5, 6]));
    // A link to another epoch, and one that leads up, end the way.
    for broken in [(4, 1, Some((2, 9)), 0), (4, 1, Some((6, 1)), 0), (4, 1, Some((4, 1)), 0)] {
        let mut rows = rows;
        rows[3] = broken;
        assert_eq!(selected(rows).passed, seqs([4]), "{broken:?}");
    }
    // To the first object of all.
    let whole = line(0..6).chain([(6, 1, Some((5, 1)), 5)]);
    assert_eq!(selected(whole).passed, seqs(0..5));
}

#[test]
fn an_object_may_carry_its_own_sequence_as_boundary() {
    let selection = selected([(8, 1, Some((7, 1)), 8)]);
    assert_eq!((selection.tip, selection.chain), (link(8, 1), seqs([8])));
}

#[test]
fn a_link_with_another_epoch_does_not_hold() {
    let selection = selected(line(0..3).chain([(3, 4, Some((2, 9)), 0)]));
    assert_eq!(selection.tip, link(2, 1));
    assert_eq!(selection.orphans, seqs([3]));
}

#[test]
fn a_link_at_or_above_its_own_object_makes_it_incomplete() {
    for to in [(3, 1), (3, 4), (4, 1), (9, 9), (u64::MAX, 1)] {
        let odd = [(3, 4, Some(to), 3), (4, 1, Some((2, 1)), 0)];
        let selection = selected(line(0..3).chain(odd));
        assert_eq!(selection.tip, link(4, 1), "{to:?}");
        assert_eq!(selection.orphans, seqs([3]), "{to:?}");
    }
}

#[test]
fn a_ring_of_links_is_incomplete() {
    let ring = [(5, 6, Some((6, 7)), 0), (6, 7, Some((5, 6)), 0)];
    assert_eq!(selected(line(0..3).chain(ring)).incomplete_above_tip, 2);
    assert_eq!(lost(ring).proof, Proof::NoCompleteChain);
}

#[test]
fn a_way_through_an_object_with_such_a_link_ends_only_at_a_boundary_above_it() {
    let odd = (3, 4, Some((7, 4)), 0);
    let (at, above) = ((4, 4, Some((3, 4)), 3), (4, 4, Some((3, 4)), 4));
    assert_eq!(lost([odd, at]).proof, Proof::NoCompleteChain);
    assert_eq!(selected([odd, above]).chain, seqs([4]));
}

#[test]
fn claims_are_neither_history_nor_counted() {
    let claims = [(3, 4, Some((3, 4)), 0), (4, 5, Some((4, 5)), 0)];
    let selection = selected(line(0..3).chain(claims));
    assert_eq!(selection.tip, link(2, 1));
    assert_eq!(selection.orphans, seqs([3, 4]));
    assert_eq!(selection.incomplete_above_tip, 0);
}

#[test]
fn without_a_complete_object_history_is_lost() {
    let found = lost(line(3..6));
    let proof = Proof::NoCompleteChain;
    assert_eq!(found, LostHistory { proof, missing: ObjectSeq(2), because: link(5, 1) });
}

#[test]
fn a_claim_alone_names_what_it_stands_behind() {
    assert_eq!(lost([(9, 10, Some((9, 10)), 4)]).missing, ObjectSeq(8));
    assert_eq!(lost([(0, 1, Some((0, 1)), 0)]).missing, ObjectSeq(0));
}

#[test]
fn nothing_at_all_names_the_first_object_of_any_log() {
    let found = select(&BTreeMap::new()).unwrap_err();
    assert_eq!((found.proof, found.missing), (Proof::NoCompleteChain, ObjectSeq::ZERO));
}

#[test]
fn a_boundary_beyond_what_is_complete_proves_a_loss() {
    // A boundary of 3 may be that of a writer that had indexed 2, and nothing live.
    let with = |boundary| select(&objects(line(0..3).chain([(6, 1, Some((5, 1)), boundary)])));
    assert_eq!(with(3).unwrap().tip, link(2, 1));
    let proof = Proof::BoundaryBeyondTip;
    let lost = LostHistory { proof, missing: ObjectSeq(5), because: link(6, 1) };
    assert_eq!(with(4), Err(lost));
}

#[test]
fn a_boundary_within_a_complete_object_of_an_earlier_epoch_proves_nothing() {
    // Object 5 landed late: complete, but of an earlier epoch than the tip.
    let rows = [(3, 4, Some((2, 1)), 0), (5, 1, Some((2, 1)), 0), (8, 4, Some((7, 4)), 6)];
    assert_eq!(selected(line(0..3).chain(rows)).tip, link(3, 4));
}

#[test]
fn a_claim_carries_a_boundary_that_proves_a_loss_too() {
    let found = lost(line(0..3).chain([(9, 10, Some((9, 10)), 7)]));
    let proof = Proof::BoundaryBeyondTip;
    assert_eq!(found, LostHistory { proof, missing: ObjectSeq(6), because: link(9, 10) });
}

#[test]
fn an_object_behind_a_lost_start_object_proves_a_loss() {
    let found = lost(line(0..3).chain([(4, 4, Some((3, 4)), 0)]));
    let proof = Proof::EpochBeyondTip;
    assert_eq!(found, LostHistory { proof, missing: ObjectSeq(3), because: link(4, 4) });
}

#[test]
fn an_incomplete_start_object_alone_proves_nothing() {
    let selection = selected(line(0..3).chain([(5, 6, Some((4, 1)), 0)]));
    assert_eq!(selection.tip, link(2, 1));
    assert_eq!(selection.incomplete_above_tip, 1);
}

#[test]
fn more_than_a_pipeline_above_a_missing_object_proves_a_loss() {
    // Depth 1: two links that hold before the missing one.
    assert_eq!(selected(line(0..3).chain(line(4..6))).incomplete_above_tip, 2);
    let found = lost(line(0..3).chain(line(4..7)));
    let proof = Proof::MoreThanAPipeline;
    assert_eq!(found, LostHistory { proof, missing: ObjectSeq(3), because: link(6, 1) });
}

#[test]
fn without_its_start_object_a_pipeline_may_be_the_largest() {
    // A second epoch from 100 on whose start object is collected; object 200 is missing.
    let rows = |end: u64| {
        let before = (110..200).map(|s| (s, 101, Some((s - 1, 101)), 110));
        before.chain((201..end).map(|s| (s, 101, Some((s - 1, 101)), 110)))
    };
    assert_eq!(selected(rows(201 + 128)).incomplete_above_tip, 128);
    assert_eq!(lost(rows(201 + 129)).proof, Proof::MoreThanAPipeline);
}

#[test]
fn a_writer_record_without_a_depth_counts_as_unread() {
    let mut objects = objects(line(0..3).chain(line(4..4 + 128)));
    objects.get_mut(&ObjectSeq(0)).unwrap().max_in_flight = Some(0);
    assert_eq!(select(&objects).unwrap().incomplete_above_tip, 128);
    objects.get_mut(&ObjectSeq(0)).unwrap().max_in_flight = Some(u16::MAX);
    assert_eq!(select(&objects).unwrap().incomplete_above_tip, 128);
}

#[test]
fn only_a_start_object_names_its_writers_depth() {
    // Where the start object was, there is something of an earlier epoch, or what a claim left.
    for stranger in [(100, 1, Some((99, 1)), 0), (100, 101, Some((100, 101)), 0)] {
        let epoch = (110..112).chain(113..116);
        let epoch = epoch.map(|s| (s, 101, Some((s - 1, 101)), 110));
        let mut objects = objects(epoch.chain([stranger]));
        assert_eq!(select(&objects).unwrap().incomplete_above_tip, 3, "{stranger:?}");
        objects.get_mut(&ObjectSeq(100)).unwrap().max_in_flight = Some(1);
        assert_eq!(select(&objects).unwrap().incomplete_above_tip, 3, "{stranger:?}");
    }
}

#[test]
fn a_proof_that_names_a_predecessor_comes_before_a_claims() {
    let claim = (9, 10, Some((9, 10)), 7);
    let found = lost(line(0..3).chain([(8, 1, Some((7, 1)), 7), claim]));
    assert_eq!((found.missing, found.because), (ObjectSeq(7), link(8, 1)));
    let found = lost([(8, 1, Some((7, 1)), 7), claim]);
    assert_eq!((found.missing, found.because), (ObjectSeq(7), link(8, 1)));
}

/// Beside the selection that there would be if nothing were lost.
#[test]
fn every_proof_is_given_to_those_who_want_to_see_what_is_there() {
    // A boundary beyond 1, an epoch whose start object is gone, and two links from 6 on that a
    // depth of 1 cannot explain.
    let rows = || {
        let above = [(4, 1, Some((3, 1)), 0), (5, 1, Some((4, 1)), 0), (6, 1, Some((5, 1)), 0)];
        line(0..2).chain(above).chain([(9, 8, Some((8, 8)), 4)])
    };
    let (selection, proofs) = select_and_prove(&objects(rows())).unwrap();
    assert_eq!((selection.tip, selection.chain), (link(1, 1), seqs([0, 1])));
    assert_eq!(selection.orphans, seqs([4, 5, 6, 9]));
    let seen: Vec<_> = proofs.iter().map(|lost| (lost.proof, lost.because)).collect();
    let expected = [
        (Proof::BoundaryBeyondTip, link(9, 8)),
        (Proof::EpochBeyondTip, link(9, 8)),
        (Proof::MoreThanAPipeline, link(6, 1)),
    ];
    assert_eq!(seen, expected);
    assert_eq!(lost(rows()), proofs[0], "an opening fails with the first");
    let nothing = select_and_prove(&objects([(3, 1, Some((2, 1)), 0)])).unwrap_err();
    assert_eq!(nothing.proof, Proof::NoCompleteChain);
}

#[test]
fn each_proof_is_said_for_people() {
    let text = lost(line(0..3).chain([(4, 4, Some((3, 4)), 0)])).to_string();
    assert!(text.contains("object 4 of epoch 4") && text.contains("its epoch is later"), "{text}");
}

/// A quadratic walk would take minutes, a recursive one would overflow the stack.
#[test]
fn a_hundred_thousand_objects_are_judged_in_one_pass() {
    const N: u64 = 100_000;
    assert_eq!(selected(line(0..N)).chain, seqs(0..N));
    assert_eq!(lost(line(1..N)).missing, ObjectSeq(0));
    // Every object's own boundary ends its way at another place.
    let boundaries = line(0..N).map(|(s, epoch, link, _)| (s, epoch, link, s / 2));
    let selection = selected(boundaries);
    assert_eq!(selection.chain, seqs(N / 2 - 1..N));
    assert_eq!(selection.below_boundary, seqs(0..N / 2 - 1));
    // Every object links to the first.
    let star = (1..N).map(|s| (s, 1, Some((0, 1)), 0)).chain([(0, 1, None, 0)]);
    assert_eq!(selected(star).chain, seqs([0, N - 1]));
}

/// DESIGN.md section 3 read word by word, one object at a time.
mod word_by_word {
    use super::*;

    type Objects = BTreeMap<ObjectSeq, Present>;

    fn is_complete(objects: &Objects, judged: &Header) -> bool {
        let mut at = judged;
        loop {
            let Some(link) = at.predecessor else { return true };
            if link.sequence < judged.boundary {
                return true;
            }
            let next = objects.get(&link.sequence).filter(|next| next.header.link() == link);
            match next.filter(|_| link.sequence < at.sequence) {
                Some(next) => at = &next.header,
                None => return false,
            }
        }
    }

    fn links_that_hold(objects: &Objects, from: &Header) -> u64 {
        let (mut at, mut links) = (from, 0);
        while let Some(link) = at.predecessor.filter(|link| link.sequence < at.sequence)
            && let Some(next) = objects.get(&link.sequence)
            && next.header.link() == link
        {
            (at, links) = (&next.header, links + 1);
        }
        links
    }

    fn depth(objects: &Objects, epoch: Epoch) -> u64 {
        let start = objects.values().find(|present| {
            let header = present.header;
            header.epoch == epoch && header.sequence.0 + 1 == epoch.0 && !header.links_to_itself()
        });
        start.and_then(|start| start.max_in_flight).unwrap_or(64).into()
    }

    pub(super) fn select(objects: &Objects) -> Result<Selection, Proof> {
        let headers = || objects.values().map(|present| &present.header);
        let complete = || headers().filter(|header| is_complete(objects, header));
        let age = |header: &Header| (header.epoch, header.sequence);
        let tip = complete().max_by_key(|header| age(header)).ok_or(Proof::NoCompleteChain)?;
        let largest = complete().map(|header| header.sequence.0).max().unwrap();
        if headers().any(|header| header.boundary.0 > largest + 1) {
            return Err(Proof::BoundaryBeyondTip);
        }
        if headers().any(|h| h.epoch.0 != h.sequence.0 + 1 && h.epoch > tip.epoch) {
            return Err(Proof::EpochBeyondTip);
        }
        let above = || headers().filter(|header| age(header) > age(tip));
        if above().any(|h| links_that_hold(objects, h) >= 2 * depth(objects, h.epoch)) {
            return Err(Proof::MoreThanAPipeline);
        }
        let mut chain = vec![tip.sequence];
        let mut at = tip;
        while let Some(link) = at.predecessor.filter(|link| link.sequence >= tip.boundary) {
            chain.insert(0, link.sequence);
            at = &objects[&link.sequence].header;
        }
        let (mut passed, mut at) = (Vec::new(), &objects[&chain[0]].header);
        while let Some(link) = at.predecessor.filter(|link| link.sequence < at.sequence)
            && let Some(next) = objects.get(&link.sequence)
            && next.header.link() == link
        {
            passed.insert(0, link.sequence);
            at = &next.header;
        }
        let sequences = || objects.keys().copied();
        Ok(Selection {
            passed,
            tip: tip.link(),
            below_boundary: sequences().filter(|s| *s < tip.boundary).collect(),
            orphans: sequences().filter(|s| *s >= tip.boundary && !chain.contains(s)).collect(),
            chain,
            incomplete_above_tip: above().filter(|h| !h.links_to_itself()).count() as u64,
        })
    }
}

/// Sequences from 0 on, most of them linked to the one before, some to anything.
fn prefixes() -> impl Strategy<Value = Vec<Row>> {
    let row = (0..3u64, prop_oneof![8 => Just(0), 2 => 1..6u64], 0..14u64, 0..14u64, 0..4u64);
    proptest::collection::vec(row, 1..14).prop_map(|rows| {
        let (mut present, mut sequence, mut epoch): (Vec<Row>, u64, u64) = (Vec::new(), 0, 1);
        for (gap, kind, a, b, boundary) in rows {
            let before = present.last().map(|(sequence, epoch, ..)| (*sequence, *epoch));
            let link = match kind {
                1 => Some((a, b)),
                2 => Some((sequence, sequence + 1)),
                3 => None,
                // The object before never landed.
                4 => Some((sequence.saturating_sub(1), epoch)),
                _ => before,
            };
            epoch = if kind == 2 || kind == 5 { sequence + 1 } else { epoch };
            present.push((sequence, epoch, link, sequence.saturating_sub(boundary * boundary)));
            sequence += 1 + gap / 2;
        }
        present
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn one_pass_finds_what_word_by_word_is_found(rows in prefixes()) {
        let objects = objects(rows);
        let found = select(&objects).map_err(|lost| lost.proof);
        prop_assert_eq!(found, word_by_word::select(&objects));
    }
}

#[test]
fn the_next_sequence_is_above_all_that_was_used() {
    let id = |sequence| EntryId::new(ObjectSeq(sequence), 1).unwrap();
    let next = |listed, epoch, ids: &[EntryId]| {
        next_sequence(Some(ObjectSeq(listed)), Some(Epoch(epoch)), ids.iter().copied())
    };
    assert_eq!(next_sequence(None, None, []), Some(ObjectSeq(0)));
    assert_eq!(next(7, 3, &[]), Some(ObjectSeq(8)));
    assert_eq!(next(7, 30, &[]), Some(ObjectSeq(30)));
    assert_eq!(next(7, 3, &[id(5), id(40), id(6)]), Some(ObjectSeq(41)));
}

#[test]
fn no_sequence_is_left_at_the_limit() {
    let last = ObjectSeq(ObjectSeq::LIMIT.0 - 1);
    let before = ObjectSeq(last.0 - 1);
    assert_eq!(next_sequence(Some(before), None, []), Some(last));
    assert_eq!(next_sequence(Some(last), None, []), None);
    assert_eq!(next_sequence(None, Some(Epoch(last.0)), []), Some(last));
    assert_eq!(next_sequence(None, Some(Epoch(u64::MAX)), []), None);
    assert_eq!(next_sequence(None, None, [EntryId::MAX]), None);
    assert_eq!(next_sequence(None, None, vec![EntryId::new(before, 9).unwrap()]), Some(last));
}
