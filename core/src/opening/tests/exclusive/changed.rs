//! What an opening that meets damage has changed by then: nothing, if its first listing shows it, and
//! what it says otherwise is so (DESIGN.md section 4, after step 7).

use super::*;

/// What it says that it had put.
fn created(run: &Run) -> Vec<Key> {
    match run.failed() {
        Error::Corrupted { created: Some(created), .. } => {
            let says_nothing = run.failed().to_string().contains("Nothing was changed");
            assert_eq!(says_nothing, created.is_empty(), "{}", run.failed());
            created.to_vec()
        }
        other => panic!("{other}\n{}", run.transcript),
    }
}

fn entry(sequence: u64) -> Make {
    make(sequence, 1).after(sequence - 1, 1).entry(7, 10)
}

#[test]
fn what_the_first_listing_shows_is_met_before_any_claim() {
    let log = || Store::of([make(0, 1).writer("a"), entry(1), entry(2)]);
    let records: Vec<_> = (100..5_000).map(|region| (region, 5)).collect();
    let mut damaged = log();
    damaged.damage(1, 30);
    let mut released = log();
    released.add(make(3, 1).after(2, 1).releases(&records));
    released.damage(3, 90);
    let mut lost = log();
    lost.add(make(5, 1).after(4, 1).boundary(4));
    let mut repeated = log();
    let id = crate::types::EntryId::new(ObjectSeq(1), 1).unwrap();
    repeated.add(make(3, 1).after(2, 1).entry_with_id(7, id, 10));
    let mut far = log();
    far.add(entry((1 << 24) + 9));
    let mut exhausted = log();
    exhausted.add(make(3, 1).after(2, 1).entry_with_id(8, crate::types::EntryId::MAX, 1));
    for store in [damaged, released, lost, repeated, far, exhausted] {
        let before = store.objects.clone();
        let run = open(store);
        assert!(created(&run).is_empty());
        assert!(run.puts().is_empty(), "it would end a healthy writer");
        assert_eq!(run.store.objects, before);
    }
}

#[test]
fn what_comes_later_is_told_with_what_was_put_by_then() {
    let came = |listing: usize, at: u64, bytes: &'static [u8]| {
        move |store: &mut Store| appear(store, listing, [(at, Bytes::from_static(bytes))])
    };
    // Before the listing after the claim, and before the look.
    let mut store = free();
    came(1, 2, &[7; 500])(&mut store);
    let run = open(store);
    assert_eq!((corrupted(&run), created(&run)), (key(2), alloc::vec![key(1)]));
    let text = run.failed().to_string();
    assert!(text.contains("had put") && text.contains(&*key(1)), "{text}");

    let mut store = free();
    came(2, 5, &[7; 500])(&mut store);
    let run = open(store);
    assert_eq!((corrupted(&run), created(&run)), (key(5), alloc::vec![key(1), key(2)]));
}

/// What was answered "exists" was not put; what was not answered at all may have been.
#[test]
fn only_what_may_have_come_of_a_put_is_told() {
    let foreign = || Bytes::from_static(&[7; 500]);
    let mut store = free();
    store.overtaken(1, foreign());
    assert!(created(&open(store)).is_empty(), "a claim");
    let mut store = blocked();
    store.overtaken(2, foreign());
    assert!(created(&open(store)).is_empty(), "a start object");

    for (sequence, with) in [(1, free as fn() -> Store), (2, blocked)] {
        let mut store = with();
        store.fault(Operation::Create, key(sequence), Fault::Fails(StoreErrorKind::TimedOut));
        store.overtaken(sequence, foreign());
        let run = open(store);
        assert_eq!(corrupted(&run), key(sequence));
        assert_eq!(created(&run), [key(sequence)], "it may have been there for a moment");
    }
}

/// Of those ahead of a listing that does not settle, damage may be met behind them.
#[test]
fn claims_ahead_of_a_listing_that_does_not_settle_are_told() {
    let mut store = Store { unordered: true, ..Store::of([make(0, 1).writer("a"), entry(1)]) };
    store.damage(1, 30);
    for at in 0..6 {
        appear(&mut store, usize::from(at == 0), [(at + 2, entry(at + 2).bytes())]);
    }
    let run = open(store);
    assert_eq!(corrupted(&run), key(1));
    let claims: Vec<_> = run.claims().into_iter().map(key).collect();
    assert!(!claims.is_empty());
    assert_eq!(created(&run), claims);
}
