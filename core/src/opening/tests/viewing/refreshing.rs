//! The next view of the same log.

use super::*;

/// Carries out the reading of the first planned segment of region 1 as a shell does: the verdict is
/// that of a newer view.
fn read_first(view: &View, store: Store) -> (SegmentOutcome, Store) {
    let plan = view.plan_read(RegionId(1), EntryId::ZERO, None, 1).unwrap();
    let planned = plan.segments.into_iter().next().unwrap();
    let mut read = SegmentRead::new(planned, view.options());
    let (mut store, mut now, mut progress) = (store, Time::ZERO, ReadProgress::default());
    loop {
        let event = match read.poll_effect() {
            None => {
                now = read.next_tick().unwrap();
                SegmentReadEvent::Tick
            }
            Some(SegmentReadEffect::Storage(effect)) => {
                SegmentReadEvent::Storage(store.answer(&effect))
            }
            Some(SegmentReadEffect::AskWriter(segment)) => {
                let newer = refresh(view, store);
                let verdict = newer.opened().verdict(segment);
                store = newer.store;
                SegmentReadEvent::Verdict(Some(verdict))
            }
            Some(SegmentReadEffect::Done(outcome)) => return (outcome, store),
        };
        read.handle(now, &mut progress, event);
    }
}

#[test]
fn a_refresh_costs_one_listing_and_a_read_of_each_new_object() {
    let first = view(Store::of([start(), entry(1), entry(2)]));
    let mut store = first.store;
    let view = first.result.unwrap();
    let unchanged = refresh(&view, store);
    assert_eq!(unchanged.asked.len(), 1, "{}", unchanged.transcript);
    assert_eq!(reads_of(unchanged.opened(), 1), [1, 2]);

    store = unchanged.store;
    store.add(entry(3));
    store.add(make(4, 1).after(3, 1).entry(2, 10).releases(&[(1, id(1, 1).0)]));
    let later = refresh(&view, store);
    expect![[r#"
        listing p/objects/
            5 keys
        reading 3.wal 0..172
        reading 4.wal 0..265
            172 bytes
            265 bytes
        opened with a view of object 4 of epoch 1, boundary 2
    "#]]
    .assert_eq(&later.transcript);
    assert_eq!(reads_of(later.opened(), 1), [2, 3]);
    assert_eq!(reads_of(&view, 1), [1, 2], "a view never changes");

    // Many release records are read once, too.
    let mut store = later.store;
    let records: Vec<_> = (100..5_000).map(|region| (region, 5)).collect();
    store.add(make(5, 1).after(4, 1).releases(&records));
    let many = refresh(later.result.as_ref().unwrap(), store);
    assert_eq!((many.asked.len(), many.reads(5).len()), (4, 3));
    let again = refresh(many.result.as_ref().unwrap(), many.store);
    assert_eq!(again.asked.len(), 1);
    assert_eq!(again.opened().catalog().watermark(RegionId(100)), EntryId(5));
}

#[test]
fn what_was_collected_between_two_views_is_forgotten() {
    let first = view(Store::of([start(), entry(1), entry(2)]));
    let mut store = first.store;
    store.add(entry(3).boundary(2));
    store.objects.remove(&key(0));
    store.objects.remove(&key(1));
    let run = refresh(first.result.as_ref().unwrap(), store);
    assert_eq!(reads_of(run.opened(), 1), [2, 3]);
    let seen: Vec<_> = run.opened().objects().map(|object| object.header.sequence.0).collect();
    assert_eq!(seen, [2, 3]);
    assert_eq!(run.asked.len(), 2);
}

#[test]
fn a_writer_that_took_over_is_seen() {
    let first = view(Store::of([start(), entry(1), entry(2)]));
    assert_eq!(reads_of(first.opened(), 1), [1, 2]);
    // The last entry of the old writer was never acknowledged.
    let mut store = first.store;
    store.add(claim(3));
    store.add(make(4, 5).after(1, 1).writer("b"));
    store.add(make(5, 5).after(4, 5).entry(1, 10));
    let run = refresh(first.result.as_ref().unwrap(), store);
    assert_eq!(reads_of(run.opened(), 1), [1, 5]);
    let old = SegmentRef { object: link(2, 1), region: RegionId(1) };
    assert_eq!(run.opened().verdict(old), Verdict::Gone);
}

#[test]
fn a_log_that_begins_between_two_views_is_seen() {
    let first = view(Store::default());
    let mut store = first.store;
    store.add(start());
    store.add(entry(1));
    let run = refresh(first.result.as_ref().unwrap(), store);
    assert_eq!(run.opened().tip(), Some(link(1, 1)));
    // And one that is removed.
    let run = refresh(run.result.as_ref().unwrap(), Store::default());
    assert_eq!(run.opened().tip(), None);
}

#[test]
fn a_read_of_what_was_collected_is_skipped_and_another_failure_stands() {
    let first = view(Store::of([start(), entry(1), entry(2)]));
    let view = first.result.unwrap();
    let (outcome, mut store) = read_first(&view, first.store);
    assert!(matches!(outcome, SegmentOutcome::Entries(entries) if entries.len() == 1));

    // What passes is repeated.
    store.fault(Operation::Read, key(1), Fault::Fails(StoreErrorKind::TimedOut));
    let (outcome, mut store) = read_first(&view, store);
    assert!(matches!(outcome, SegmentOutcome::Entries(entries) if entries.len() == 1));

    store.fault(Operation::Read, key(1), Fault::Fails(StoreErrorKind::Refused));
    let (outcome, mut store) = read_first(&view, store);
    assert!(matches!(outcome, SegmentOutcome::Failed(Error::Store { .. })));

    store.damage(1, 54 + 30);
    let (outcome, mut store) = read_first(&view, store);
    assert!(matches!(outcome, SegmentOutcome::Hole(hole) if hole.object == link(1, 1)));

    store.add(entry(3).boundary(2));
    store.objects.remove(&key(0));
    store.objects.remove(&key(1));
    let (outcome, _) = read_first(&view, store);
    assert!(matches!(outcome, SegmentOutcome::Skipped));
}

#[test]
fn the_operator_is_told_once_what_stays_as_it_is() {
    let beyond = "p/objects/00000017592186044416.wal";
    let mut store = Store::of([start(), entry(2), claim(5)]);
    store.ghosts = vec![Listed { key: beyond.into(), size: 0, modified_millis: 0 }];
    let told = |run: &Run<View>| -> Vec<_> {
        run.notices.iter().map(|notice| std::format!("{notice:?}")).collect()
    };
    let first = view(store);
    let both = std::format!("KeyIgnored {{ key: {beyond:?} }}, IncompleteObjects {{ count: 1 }}");
    assert_eq!(told(&first).join(", "), both);
    assert_eq!(first.opened().incomplete_above_tip(), 1);
    let second = refresh(first.result.as_ref().unwrap(), first.store);
    assert_eq!(told(&second), [""; 0]);
    let mut store = second.store;
    store.add(entry(3));
    let third = refresh(second.result.as_ref().unwrap(), store);
    assert_eq!(told(&third), ["IncompleteObjects { count: 2 }"]);
}

/// A key that was deleted and created again, with an object of the same size: the store's time tells.
#[test]
fn what_came_to_the_key_of_an_object_with_its_size_is_read() {
    let mut store = Store::of([start(), entry(1)]);
    store.modified.insert(key(1), 7);
    let first = view(store);
    let mut store = first.store;
    store.add(make(1, 1).after(0, 1).entry(2, 10));
    store.modified.insert(key(1), 8);
    let run = refresh(first.result.as_ref().unwrap(), store);
    assert_eq!((run.reads(0).len(), run.reads(1).len()), (0, 1));
    assert_eq!(reads_of(run.opened(), 2), [1]);
    assert!(run.opened().regions().all(|region| region.region == RegionId(2)));
    // Nothing of it is read again while its time stays.
    let run = refresh(run.result.as_ref().unwrap(), run.store);
    assert_eq!(run.asked.len(), 1);
}
