//! Views: what a reader sees of a log, beside whoever writes it.

use std::vec;

use super::*;
use crate::error::Part;
use crate::event::Verdict;
use crate::read::{
    ReadProgress, SegmentOutcome, SegmentRead, SegmentReadEffect, SegmentReadEvent, SegmentRef,
};
use crate::types::{EntryId, RegionId};
use crate::writer::Writer;

mod beside;
mod random;
mod refreshing;

fn view(store: Store) -> Run<View> {
    view_with(Options::default(), store)
}

fn view_with(options: Options, store: Store) -> Run<View> {
    let opening = Opening::read_only(BEGAN, prefix(), options).unwrap();
    let run = drive(opening, store, Order::OldestFirst);
    assert!(run.only_read(), "{}", run.transcript);
    run
}

fn refresh(view: &View, store: Store) -> Run<View> {
    let run = drive(Opening::refresh(BEGAN, view), store, Order::OldestFirst);
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

fn corrupted<T: Ending>(run: &Run<T>) -> (Key, Part) {
    match run.failed() {
        Error::Corrupted { key, part, .. } => (key.clone(), *part),
        other => panic!("{other}\n{}", run.transcript),
    }
}

/// The sequences of the objects that a read of a region touches.
fn reads_of(view: &View, region: u64) -> Vec<u64> {
    let plan = view.plan_read(RegionId(region), EntryId::ZERO, None, usize::MAX).unwrap();
    plan.segments.iter().map(|planned| planned.segment.object.sequence.0).collect()
}

/// Two epochs, what the change of writers left, and the end of a region.
fn two_epochs() -> Store {
    let mut store = Store::of([
        start(),
        entry(1),
        entry(2).entry(2, 20),
        claim(3),
        // The old writer's last: complete, and overtaken.
        entry(4).after(2, 1),
        make(5, 6).after(2, 1).writer("b"),
        make(6, 6).after(5, 6).entry(2, 20),
        // What follows a create of the new writer that never landed.
        make(8, 6).after(7, 6).entry(2, 20),
        make(9, 6).after(6, 6).releases(&[(1, id(2, 1).0)]),
        make(10, 6).after(9, 6).boundary(2),
    ]);
    store.modified = (0..=10).map(|sequence| (key(sequence), 1_000 + sequence)).collect();
    store
}

#[test]
fn an_empty_prefix_has_an_empty_view() {
    let run = view(Store::default());
    expect![[r#"
        listing p/objects/
            0 keys
        listing p/objects/
            0 keys
        opened with a view of nothing, boundary 0
    "#]]
    .assert_eq(&run.transcript);
    let view = run.opened();
    assert_eq!((view.tip(), view.objects().count(), view.regions().count()), (None, 0, 0));
    assert_eq!(reads_of(view, 1), []);
    assert!(run.store.objects.is_empty());
}

#[test]
fn where_a_log_must_exist_nothing_is_missing() {
    let options = Options { must_exist: true, ..Options::default() };
    let run = view_with(options.clone(), Store::default());
    assert!(matches!(run.failed(), Error::Missing { prefix } if &**prefix == "p"));
    view_with(options, Store::of([start()])).opened();
}

#[test]
fn invalid_options_are_refused_before_anything_is_touched() {
    let options = Options { open_concurrency: 0, ..Options::default() };
    let error = Opening::read_only(BEGAN, prefix(), options).unwrap_err();
    assert!(matches!(error, Error::InvalidOptions { option: "open_concurrency", .. }), "{error}");
}

#[test]
fn a_view_costs_one_listing_and_a_read_per_object() {
    let run = view(Store::of([start(), entry(1), claim(2)]));
    expect![[r#"
        listing p/objects/
            3 keys
        reading 0.wal 0..192
        reading 1.wal 0..172
        reading 2.wal 0..192
            192 bytes
            172 bytes
            192 bytes
        opened with a view of object 1 of epoch 1, boundary 1
    "#]]
    .assert_eq(&run.transcript);
}

#[test]
fn a_view_shows_history_and_what_stands_outside_it() {
    use ObjectKind::{Carrier, Claim, Data, Release, Start};
    use ObjectStatus::{BelowBoundary, Chain, Orphan};
    let run = view(two_epochs());
    let view = run.opened();
    assert_eq!(view.tip(), Some(link(10, 6)));
    assert_eq!(view.incomplete_above_tip(), 0, "what follows the missing one is not above the tip");
    let seen: Vec<_> = view
        .objects()
        .map(|object| (object.header.sequence.0, object.kind(), object.status))
        .collect();
    let expected = [
        (0, Start, BelowBoundary),
        (1, Data, BelowBoundary),
        (2, Data, Chain),
        (3, Claim, Orphan),
        (4, Data, Orphan),
        (5, Start, Chain),
        (6, Data, Chain),
        (8, Data, Orphan),
        (9, Release, Chain),
        (10, Carrier, Chain),
    ];
    assert_eq!(seen, expected);
    for object in view.objects() {
        let sequence = object.header.sequence.0;
        assert_eq!(object.size, run.store.objects[&key(sequence)].len() as u64);
        assert_eq!(object.modified_millis, 1_000 + sequence);
        let name = match sequence {
            0 => Some("a"),
            3 => Some("c"),
            5 => Some("b"),
            _ => None,
        };
        assert_eq!(object.writer.map(|writer| &*writer.name), name);
    }
    let object = view.objects().find(|object| object.header.sequence == ObjectSeq(2)).unwrap();
    let regions: Vec<_> = object.segments.iter().map(|meta| meta.region.0).collect();
    assert_eq!(regions, [1, 2]);
}

#[test]
fn what_was_released_is_hidden_before_the_boundary_is_computed() {
    let view = view(two_epochs());
    let view = view.opened();
    assert_eq!(reads_of(view, 1), [], "released through object 2");
    assert_eq!(reads_of(view, 2), [2, 6]);
    let regions: Vec<_> = view.regions().map(|region| region.region.0).collect();
    assert_eq!(regions, [2]);
    assert_eq!(view.durable(RegionId(2)), id(6, 1));
    assert_eq!(view.catalog().boundary(), ObjectSeq(2));

    // What the tip carries, since watermarks that are not in the log had raised it: the larger
    // one; and the computed one, where the release is later than what the tip carries.
    let tip = |boundary| entry(3).boundary(boundary);
    let larger = self::view(Store::of([start(), entry(1), entry(2), tip(3)]));
    assert_eq!(larger.opened().catalog().boundary(), ObjectSeq(3));
    let release = make(3, 1).after(2, 1).releases(&[(1, id(1, 1).0)]);
    let computed = self::view(Store::of([start(), entry(1), entry(2), release]));
    assert_eq!(computed.opened().catalog().boundary(), ObjectSeq(2));
}

#[test]
fn a_collected_past_is_no_loss() {
    let run = view(Store::of([entry(3), entry(4).boundary(4), entry(5).boundary(4)]));
    let view = run.opened();
    assert_eq!(reads_of(view, 1), [4, 5]);
    let statuses: Vec<_> = view.objects().map(|object| object.status).collect();
    assert_eq!(statuses[0], ObjectStatus::BelowBoundary);
    assert_eq!(statuses[1..], [ObjectStatus::Chain; 2]);
}

#[test]
fn a_view_plans_reads_as_a_writer_does() {
    let writer = open(two_epochs());
    let view = view(writer.store);
    let (view, writer) = (view.opened(), Writer::<u8>::new(BEGAN, writer.result.unwrap()));
    for region in [1, 2, 3] {
        let region = RegionId(region);
        assert_eq!(view.durable(region), writer.durable(region));
        for from in [EntryId::ZERO, id(2, 1), id(2, 2), id(9, 1)] {
            for through in [None, Some(id(2, 1)), Some(id(6, 1))] {
                for at_most in [0, 1, usize::MAX] {
                    let ours = view.plan_read(region, from, through, at_most).unwrap();
                    let theirs = writer.plan_read(region, from, through, at_most).unwrap();
                    assert_eq!(std::format!("{ours:?}"), std::format!("{theirs:?}"));
                }
            }
        }
    }
    assert!(view.regions().eq(writer.regions()));
    let error = view.plan_read(RegionId::WRITER, EntryId::ZERO, None, 1).unwrap_err();
    assert!(matches!(error, Error::InvalidRegion { region: RegionId::WRITER }));
}

#[test]
fn the_lowest_damaged_object_fails_a_view() {
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let mut store = Store::of([start(), entry(1), entry(2), entry(3)]);
        store.damage(1, 30);
        store.damage(2, store.objects[&key(2)].len() - 40);
        store.objects.insert(key(3), Bytes::new());
        let opening = Opening::read_only(BEGAN, prefix(), Options::default()).unwrap();
        let run = drive(opening, store, order);
        assert_eq!(corrupted(&run), (key(1), Part::Header));
        assert_eq!(
            run.reads(1).len(),
            4,
            "the download may have been damaged, and the listing old"
        );
    }
    let mut store = Store::of([start(), entry(1)]);
    store.damage(1, store.objects[&key(1)].len() - 40);
    assert_eq!(corrupted(&view(store)), (key(1), Part::Footer));
    let mut store = Store::of([make(0, 1).writer("a").releases(&[(1, 1)])]);
    let at = store.objects[&key(0)].len() - 32 - 100 - 1;
    store.damage(0, at);
    assert_eq!(corrupted(&view(store)), (key(0), Part::Segment(RegionId::RELEASES)));
    let twice = make(2, 1).after(1, 1).entry_with_id(1, id(1, 1), 10);
    let run = view(Store::of([start(), entry(1), twice]));
    assert_eq!(corrupted(&run), (key(2), Part::Segment(RegionId(1))));
}

#[test]
fn what_is_lost_fails_a_view_once_two_listings_agree() {
    let run = view(Store::of([start(), entry(4).boundary(3)]));
    assert_eq!(corrupted(&run), (key(3), Part::Object));
    assert_eq!(run.times(Operation::List).len(), 2);
}

#[test]
fn a_damaged_segment_is_left_to_its_reader() {
    let mut store = Store::of([start(), entry(1)]);
    store.damage(1, 54 + 30);
    view(store).opened();
}

#[test]
fn what_fails_transiently_is_repeated_until_the_opening_has_taken_too_long() {
    let mut store = Store::of([start(), entry(1)]);
    store.fault(Operation::List, prefix().objects(), Fault::Fails(StoreErrorKind::Transient));
    store.fault(Operation::Read, key(0), Fault::Fails(StoreErrorKind::TimedOut));
    store.fault(Operation::Read, key(1), Fault::Short);
    let run = view(store);
    assert_eq!(reads_of(run.opened(), 1), [1]);
    let millis: Vec<_> = run.times(Operation::Read).iter().map(|d| d.as_millis()).collect();
    assert_eq!(millis, [0, 0, 0, 100], "what is short, at once");

    let mut store = Store::of([start()]);
    for _ in 0..20 {
        store.fault(Operation::Read, key(0), Fault::Fails(StoreErrorKind::Transient));
    }
    let options = Options { open_timeout: Duration::from_secs(3), ..Options::default() };
    let run = view_with(options, store);
    assert!(run.failed().is_retryable());
    let millis: Vec<_> = run.times(Operation::Read).iter().map(|d| d.as_millis()).collect();
    assert_eq!(millis, [0, 100, 300, 700, 1500]);

    let mut store = Store::of([start()]);
    store.fault(Operation::Read, key(0), Fault::Fails(StoreErrorKind::Refused));
    let run = view(store);
    assert!(!run.failed().is_retryable());
    assert_eq!(run.times(Operation::Read).len(), 1);
}

#[test]
fn a_view_never_has_more_requests_under_way_than_allowed() {
    let objects = || Store::of([start()].into_iter().chain((1..20).map(entry)));
    for limit in [1, 3, 64] {
        let options = Options { open_concurrency: limit, ..Options::default() };
        let opening = Opening::read_only(BEGAN, prefix(), options).unwrap();
        let run = drive(opening, objects(), Order::NewestFirst);
        assert_eq!(run.opened().tip(), Some(link(19, 1)));
        assert_eq!(run.most_at_once, limit.min(20) as usize);
    }
}

/// Whatever was asked is void, and nothing in the store tells that it was there.
#[test]
fn a_view_that_is_dropped_at_any_point_leaves_nothing() {
    let objects = two_epochs().objects;
    for steps in 0.. {
        let mut store = Store { objects: objects.clone(), ..Store::default() };
        let mut opening = Opening::read_only(BEGAN, prefix(), Options::default()).unwrap();
        let mut carried_out = 0;
        let ended = loop {
            match opening.poll_effect() {
                Some(OpeningEffect::Storage(effect)) if carried_out < steps => {
                    carried_out += 1;
                    opening.handle(BEGAN, OpeningEvent::Storage(store.answer(&effect)));
                }
                Some(OpeningEffect::Notice(_)) => {}
                Some(OpeningEffect::Opened(_)) => break true,
                _ => break false,
            }
        };
        drop(opening);
        assert_eq!(store.objects, objects, "after {steps} steps");
        if ended {
            assert_eq!(steps, 1 + objects.len());
            break;
        }
    }
}
