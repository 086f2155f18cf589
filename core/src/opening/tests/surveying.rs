//! Surveys: everything that is there, and every problem of it.

use std::string::String;
use std::vec;

use super::*;
use crate::chain::Proof;
use crate::error::Part;
use crate::format::{TAIL_WINDOW, TRAILER_LEN};
use crate::types::{EntryId, RegionId};

fn survey(store: Store) -> Run<Survey> {
    survey_with(Options::default(), store)
}

fn survey_with(options: Options, store: Store) -> Run<Survey> {
    let opening = Opening::survey(BEGAN, prefix(), options).unwrap();
    let run = drive(opening, store, Order::NewestFirst);
    assert!(run.only_read(), "{}", run.transcript);
    run
}

fn id(sequence: u64, position: u32) -> EntryId {
    EntryId::new(ObjectSeq(sequence), position).unwrap()
}

fn start() -> Make {
    make(0, 1).writer("a")
}

fn entry(sequence: u64) -> Make {
    make(sequence, 1).after(sequence - 1, 1).entry(1, 10)
}

/// An object whose reserved segments do not come with its tail. Its footer does not either.
fn large(sequence: u64) -> Make {
    let regions = 5_000..6_500;
    let object = make(sequence, 1).after(sequence - 1, 1).releases(&[(1, 1)]).writer("x");
    regions.fold(object, |object, region| object.entry(region, 1))
}

/// Each problem as sequence of the key, and part.
fn problems(run: &Run<Survey>) -> Vec<(u64, Part)> {
    let at = |problem: Problem| match prefix().classify(&problem.key) {
        KeyKind::Object(sequence) => (sequence.0, problem.error.part),
        other => panic!("{other:?}"),
    };
    run.opened().problems().map(at).collect()
}

fn object(run: &Run<Survey>, sequence: u64) -> &SurveyedObject {
    let is_it = |object: &&SurveyedObject| object.sequence == ObjectSeq(sequence);
    run.opened().objects.iter().find(is_it).unwrap()
}

fn statuses(run: &Run<Survey>) -> Vec<(u64, ObjectStatus)> {
    run.opened().objects.iter().map(|object| (object.sequence.0, object.status)).collect()
}

#[test]
fn a_sound_log_has_no_problems() {
    use ObjectStatus::{BelowBoundary, Chain, Orphan};
    let mut store = Store::of([
        start(),
        entry(1),
        entry(2).releases(&[(1, id(1, 1).0), (7, 5)]).boundary(1),
        claim(3),
        make(4, 5).after(2, 1).writer("b").boundary(1),
        make(6, 5).after(5, 5).entry(2, 10),
    ]);
    store.modified = (0..10).map(|sequence| (key(sequence), 100 + sequence)).collect();
    let beyond = "p/objects/00000017592186044416.wal";
    let foreign = "p/objects/readme";
    for key in [beyond, foreign] {
        store.ghosts.push(Listed { key: key.into(), size: 0, modified_millis: 0 });
    }
    let run = survey(store);
    assert_eq!(problems(&run), []);
    assert_eq!(run.times(Operation::List).len(), 1);
    assert_eq!(run.times(Operation::Read).len(), 6, "one of each");
    let survey = run.opened();
    let expected =
        [(0, BelowBoundary), (1, Chain), (2, Chain), (3, Orphan), (4, Chain), (6, Orphan)];
    assert_eq!(statuses(&run), expected);
    assert_eq!(survey.tip(), Some(link(4, 5)));
    assert_eq!(survey.selection.as_ref().unwrap().incomplete_above_tip, 1);
    assert_eq!(survey.ignored, [beyond.into()]);
    let kinds: Vec<_> = survey.objects.iter().map(|object| object.kind().unwrap()).collect();
    use ObjectKind::{Claim, Data, Start};
    assert_eq!(kinds, [Start, Data, Data, Claim, Start, Data]);
    let second = object(&run, 2);
    let released: Vec<_> = second.releases.iter().map(|record| record.region.0).collect();
    assert_eq!((second.modified_millis, released), (102, vec![1, 7]));
    assert_eq!(second.key, key(2));
    assert_eq!(second.size, run.store.objects[&key(2)].len() as u64);
    assert_eq!(&*object(&run, 4).writer.as_ref().unwrap().name, "b");
    assert_eq!(survey.catalog.watermark(RegionId(1)), id(1, 1));
    assert_eq!(survey.catalog.boundary(), ObjectSeq(2), "the larger of the tip's and the computed");
}

#[test]
fn nothing_at_all_is_no_problem_unless_a_log_must_exist() {
    let run = survey(Store::default());
    assert_eq!((problems(&run), run.opened().objects.len()), (vec![], 0));
    assert_eq!(run.opened().tip(), None);
    assert_eq!(run.asked.len(), 2, "a listing that shows nothing is asked for again");
    let options = Options { must_exist: true, ..Options::default() };
    assert!(matches!(survey_with(options, Store::default()).failed(), Error::Missing { .. }));
    let options = Options { open_concurrency: 0, ..Options::default() };
    let error = Opening::survey(BEGAN, prefix(), options).unwrap_err();
    assert!(matches!(error, Error::InvalidOptions { option: "open_concurrency", .. }), "{error}");
}

#[test]
fn every_damaged_object_is_reported_with_what_of_it_verifies() {
    use ObjectStatus::{Chain, Damaged};
    let mut store =
        Store::of([start(), entry(1), entry(2), entry(3), entry(4), entry(5), entry(6)]);
    let size = |store: &Store, at: u64| store.objects[&key(at)].len();
    store.damage(1, 30);
    store.damage(2, size(&store, 2) - TRAILER_LEN - 1);
    store.damage(3, size(&store, 3) - 1);
    store.objects.insert(key(4), Bytes::from_static(b"short"));
    for at in [30, size(&store, 5) - 1] {
        store.damage(5, at);
    }
    let run = survey(store);
    let survey = run.opened();
    let expected = [
        (1, Part::Header),
        (2, Part::Footer),
        (3, Part::Trailer),
        (4, Part::Object),
        (5, Part::Header),
        (5, Part::Trailer),
    ];
    assert_eq!(problems(&run), expected);
    assert_eq!(
        statuses(&run),
        [(0, Chain), (1, Damaged), (2, Damaged), (3, Damaged), (4, Damaged), (5, Damaged)]
            .into_iter()
            .chain([(6, ObjectStatus::Orphan)])
            .collect::<Vec<_>>()
    );
    let verifies = |at| {
        let object = object(&run, at);
        (object.header.is_some(), object.segments.is_some(), object.kind().is_some())
    };
    assert_eq!(verifies(1), (false, true, false));
    assert_eq!(verifies(2), (true, false, false));
    assert_eq!((verifies(4), verifies(5)), ((false, false, false), (false, false, false)));
    assert_eq!(survey.tip(), Some(link(0, 1)));
    // Each twice, since the download may be damaged, and so once more for the second listing; what
    // is too short not at all.
    let reads: Vec<_> = (0..7).map(|at| run.reads(at).len()).collect();
    assert_eq!(reads, [1, 4, 4, 4, 0, 4, 1]);
}

/// A header that verifies says where its object stands, whatever its table says.
#[test]
fn an_object_with_a_damaged_table_keeps_its_chain_together() {
    let mut store = Store::of([start(), entry(1), entry(2), entry(3)]);
    store.damage(2, store.objects[&key(2)].len() - TRAILER_LEN - 1);
    let run = survey(store);
    assert_eq!(problems(&run), [(2, Part::Footer)]);
    let selection = run.opened().selection.as_ref().unwrap();
    assert_eq!(selection.chain, [0, 1, 2, 3].map(ObjectSeq));
    assert_eq!(object(&run, 2).status, ObjectStatus::Damaged);
    assert_eq!(object(&run, 3).status, ObjectStatus::Chain);
    assert_eq!(run.opened().catalog.object_count(), 3);
}

#[test]
fn a_damaged_download_is_no_problem() {
    for nth in 0..5 {
        let mut store = Store::of([start(), large(1)]);
        store.fault_later(nth, Operation::Read, key(1), Fault::Damaged);
        let run = survey(store);
        assert_eq!(problems(&run), [], "read {nth}");
    }
}

#[test]
fn reserved_content_is_read_also_where_it_does_not_come_along() {
    let big = make(2, 1).after(1, 1).entry(1, TAIL_WINDOW as usize).releases(&[(1, 1)]);
    let run = survey(Store::of([start(), large(1), big]));
    assert_eq!(problems(&run), []);
    assert_eq!(run.reads(1).len(), 5, "header, tail, footer, and both");
    assert_eq!(run.reads(2).len(), 2);
    let one = object(&run, 1);
    assert_eq!((&*one.writer.as_ref().unwrap().name, one.releases.len()), ("x", 1));
    assert_eq!(object(&run, 2).releases.len(), 1);
}

#[test]
fn reserved_content_that_does_not_decode_is_a_problem_of_its_object_only() {
    let later = Bytes::from_static(b"\x02....");
    let store = Store::of([
        make(0, 1).reserved(RegionId::WRITER, later.clone()),
        entry(1).reserved(RegionId::RELEASES, later.clone()),
        // Of an orphan, which no opening reads.
        make(2, 1).after(9, 1).reserved(RegionId::RELEASES, later),
        make(3, 1).after(1, 1).releases(&[(1, id(1, 1).0)]),
    ]);
    let run = survey(store);
    let expected = [(0, Part::WriterRecord), (1, Part::ReleaseRecords), (2, Part::ReleaseRecords)];
    assert_eq!(problems(&run), expected);
    let catalog = &run.opened().catalog;
    assert_eq!((catalog.object_count(), catalog.watermark(RegionId(1))), (3, id(1, 1)));
    assert_eq!(object(&run, 1).status, ObjectStatus::Chain);

    let mut store = Store::of([start(), large(1)]);
    let meta = object(&survey(Store::of([start(), large(1)])), 1)
        .segments
        .as_ref()
        .and_then(|segments| segments.iter().find(|meta| meta.region == RegionId::RELEASES))
        .copied();
    store.damage(1, meta.unwrap().offset as usize + 20);
    let run = survey(store);
    assert_eq!(problems(&run), [(1, Part::Segment(RegionId::RELEASES))]);
    assert!(object(&run, 1).writer.is_some() && object(&run, 1).releases.is_empty());
}

#[test]
fn every_segment_whose_ids_do_not_ascend_is_reported() {
    let twice = |sequence| {
        let object = make(sequence, 1).after(sequence - 1, 1);
        let object = object.entry_with_id(1, id(1, 1), 10).entry_with_id(2, id(1, 1), 10);
        object.entry(3, 10)
    };
    let run = survey(Store::of([start(), entry(1).entry(2, 10), twice(2), twice(3)]));
    let of = |sequence, region| (sequence, Part::Segment(RegionId(region)));
    assert_eq!(problems(&run), [of(2, 1), of(2, 2), of(3, 1), of(3, 2)]);
    let held: Vec<_> = run.opened().catalog.regions().map(|r| (r.region.0, r.segments)).collect();
    assert_eq!(held, [(1, 1), (2, 1), (3, 2)], "the others are indexed");
}

#[test]
fn every_proof_that_history_is_lost_is_reported_once_two_listings_agree() {
    let run = survey(Store::of([start(), entry(4).boundary(3), make(9, 8).after(8, 8)]));
    let proofs: Vec<_> = run.opened().lost.iter().map(|lost| lost.proof).collect();
    assert_eq!(proofs, [Proof::BoundaryBeyondTip, Proof::EpochBeyondTip]);
    assert_eq!(problems(&run), [(3, Part::Object), (8, Part::Object)]);
    assert_eq!(run.opened().tip(), Some(link(0, 1)));
    assert_eq!(run.times(Operation::List).len(), 2);
    assert_eq!(run.times(Operation::Read).len(), 3, "what verified is not read again");

    let run = survey(Store::of([entry(4)]));
    assert_eq!((problems(&run), run.opened().tip()), (vec![(3, Part::Object)], None));
    assert_eq!(statuses(&run), [(4, ObjectStatus::Orphan)]);
}

#[test]
fn what_a_collection_removes_meanwhile_is_no_problem() {
    // Below the boundary,
    let mut store = Store::of([start(), entry(1), entry(2).boundary(2)]);
    store.before(0, Operation::Read, key(2), |objects| {
        objects.remove(&key(1));
    });
    let run = survey(store);
    assert_eq!((problems(&run), run.times(Operation::List).len()), (vec![], 1));
    assert_eq!(run.opened().objects.len(), 2);
    // and above it, where a newer tip allows it.
    let mut store = Store::of([start(), entry(1), entry(2), entry(3)]);
    store.before(0, Operation::Read, key(3), |objects| {
        (0..3).for_each(|at| drop(objects.remove(&key(at))));
        objects.insert(key(4), entry(4).boundary(3).bytes());
    });
    let run = survey(store);
    assert_eq!((problems(&run), run.times(Operation::List).len()), (vec![], 2));
    assert_eq!(run.opened().objects.len(), 2);
}

#[test]
fn what_two_listings_show_and_no_read_finds_is_a_problem() {
    let mut store = Store::of([start(), entry(1)]);
    for at in [2, 3] {
        store.ghosts.push(Listed { key: key(at), size: 100, modified_millis: 0 });
    }
    let run = survey(store);
    assert_eq!(problems(&run), [(2, Part::Object), (3, Part::Object)]);
    assert_eq!(object(&run, 2).status, ObjectStatus::Damaged);
    assert_eq!(run.times(Operation::List).len(), 2);
}

/// Even then there is a survey: of the last listing.
#[test]
fn listings_that_never_agree_fail_a_survey_after_open_attempts() {
    let mut store = Store::of([start()]);
    for sequence in 1..9 {
        let bytes = entry(sequence).after(0, 1).bytes();
        store.before(0, Operation::List, prefix().objects(), move |objects| {
            objects.insert(key(sequence), bytes);
        });
        store.before(0, Operation::Read, key(sequence), move |objects| {
            objects.remove(&key(sequence));
        });
    }
    let run = survey_with(Options { open_attempts: 3, ..Options::default() }, store);
    let error = run.failed();
    assert!(error.is_retryable(), "{error}");
    assert!(matches!(error, Error::Store { key: at, .. } if *at == key(4)), "{error}");
    assert_eq!(run.times(Operation::List).len(), 4);
}

#[test]
fn only_a_store_that_cannot_be_read_fails_a_survey() {
    let mut store = Store::of([start(), entry(1)]);
    store.fault(Operation::List, prefix().objects(), Fault::Fails(StoreErrorKind::Transient));
    store.fault(Operation::Read, key(1), Fault::Fails(StoreErrorKind::TimedOut));
    survey(store).opened();

    let mut store = Store::of([start(), entry(1)]);
    store.damage(0, 30);
    store.fault(Operation::Read, key(1), Fault::Fails(StoreErrorKind::Refused));
    let run = survey(store);
    assert!(matches!(run.failed(), Error::Store { operation: Operation::Read, .. }));

    let mut store = Store::of([start()]);
    (0..20).for_each(|_| {
        store.fault(Operation::Read, key(0), Fault::Fails(StoreErrorKind::Transient));
    });
    let options = Options { open_timeout: Duration::from_secs(1), ..Options::default() };
    assert!(survey_with(options, store).failed().is_retryable());
}

#[test]
fn problems_say_what_was_expected_and_found() {
    let mut store = Store::of([start(), entry(4).boundary(3)]);
    store.objects.insert(key(1), entry(2).bytes());
    let said: String = survey(store).opened().problems().fold(String::new(), |all, problem| {
        all + &std::format!("{}: {}\n", problem.key, problem.error)
    });
    expect![[r#"
        p/objects/00000000000000000001.wal: header: expected sequence 1, as the key says, found 2
        p/objects/00000000000000000003.wal: object: expected a predecessor of object 4 of epoch 1, found none: its reclaim boundary lies beyond all history that is there, so its writer had indexed objects that the log lost
    "#]].assert_eq(&said);
}

/// What verifies, and no writer makes: nothing but a survey would say why a log soon has no sequence left.
#[test]
fn what_leaves_no_room_for_others_is_a_problem_of_its_object() {
    let far = (1 << 44) - 1;
    let unlikely = [
        (entry(2), None),
        (make(2, 3).after(1, 1).writer("b"), None),
        (claim(2), None),
        (make(2, 4).after(1, 1).writer("b"), Some(Part::Header)),
        (make(2, 1 << 44).after(1, 1), Some(Part::Header)),
        (make(2, u64::MAX).after(1, 1), Some(Part::Header)),
        (
            make(2, 1).after(1, 1).entry_with_id(5, EntryId::MAX, 1),
            Some(Part::Segment(RegionId(5))),
        ),
        (make(2, 1).after(1, 1).entry_with_id(5, id(far, 1), 1), Some(Part::Segment(RegionId(5)))),
        // Of an older log.
        (make(2, 1).after(1, 1).entry_with_id(5, id(far - 1, 1), 1), None),
        // Which nobody counts.
        (make(2, 1).after(1, 1).entry_with_id(u64::MAX - 9, EntryId::MAX, 1), None),
    ];
    for (object, part) in unlikely {
        let run = survey(Store::of([start(), entry(1), object.clone()]));
        assert_eq!(problems(&run), part.map(|part| (2, part)).into_iter().collect::<Vec<_>>());
        assert_eq!(run.times(Operation::List).len(), 1, "no listing can change that");

        // An opening that ends by it says which object it is, and ends no writer.
        let opening = open(Store::of([start(), entry(1), object]));
        match &opening.result {
            Ok(_) => {}
            Err(Error::Corrupted { key: at, part: found, .. }) => {
                assert_eq!((at, Some(*found)), (&key(2), part));
                assert!(opening.puts().is_empty());
            }
            Err(other) => panic!("{other}"),
        }
    }
    // A log that came to its end by itself is no problem.
    let run = survey(Store::of([make(far, far + 1).writer("a")]));
    assert_eq!(problems(&run), []);
    assert!(matches!(open(run.store).failed(), Error::SequenceExhausted));
}

/// Each listing shows more than the one before, in no order, and the first lacks what came before that.
#[test]
fn a_survey_beside_a_writer_that_never_rests_in_a_store_without_order_ends() {
    let mut store = Store { unordered: true, ..Store::of([start(), entry(1), entry(2), entry(3)]) };
    for at in 0..40 {
        store.before(0, Operation::List, prefix().objects(), move |objects| {
            let at = 4 + 10 * at;
            objects.extend((at..at + 10).map(|at| (key(at), entry(at).boundary(at - 2).bytes())));
        });
    }
    store.hides.push_back(|at| (key(10)..=key(12)).contains(at));
    let run = survey(store);
    assert_eq!(problems(&run), []);
    assert_eq!(run.times(Operation::List).len(), 2, "the second does not lack it");
    assert_eq!(run.opened().tip(), Some(link(23, 1)));

    // What is lost is lost in whatever order it is not shown.
    let mut store =
        Store { unordered: true, ..Store::of([start(), entry(1), entry(4).boundary(3)]) };
    store.modified.insert(key(4), 9);
    let run = survey(store);
    assert_eq!(problems(&run), [(3, Part::Object)]);
    assert_eq!(run.times(Operation::List).len(), 2);
}
