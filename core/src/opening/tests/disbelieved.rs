//! What a listing is believed (DESIGN.md section 4), and what becomes of an opening whose store lies.

use super::*;

/// A log at work whose object 0 was collected.
fn collected() -> Store {
    Store::of([
        make(5, 1).after(4, 1).entry(7, 10).boundary(5),
        make(6, 1).after(5, 1).entry(7, 10).boundary(5),
    ])
}

/// Scripts so many answers that are no listing of what is there.
fn shows_nothing(store: &mut Store, count: usize) {
    hide(store, 0, count, |_| true);
}

/// Scripts that these objects are not in so many listings, after others.
fn hide(store: &mut Store, before: usize, count: usize, which: fn(&Key) -> bool) {
    store.hides.extend(core::iter::repeat_n((|_| false) as fn(&Key) -> bool, before));
    store.hides.extend(core::iter::repeat_n(which, count));
}

#[test]
fn one_answer_that_shows_nothing_is_not_believed() {
    let mut store = collected();
    shows_nothing(&mut store, 1);
    let run = open(store);
    assert_eq!(run.start_object().0.predecessor, Some(link(6, 1)));
    assert_eq!(run.opened().start, link(8, 9));

    let mut store = collected();
    shows_nothing(&mut store, 1);
    let opening = Opening::read_only(BEGAN, prefix(), Options::default()).unwrap();
    assert_eq!(drive(opening, store, Order::OldestFirst).opened().tip(), Some(link(6, 1)));

    let mut store = collected();
    shows_nothing(&mut store, 1);
    let must_exist = Options { must_exist: true, ..Options::default() };
    open_with(must_exist, store).opened();
}

/// Two cannot be told from an empty prefix. Then the look must show the start object, and shows the log
/// too: nothing is admitted at 0, and the log goes on behind its tip.
#[test]
fn two_answers_that_show_nothing_begin_no_log_beside_the_one_that_is_there() {
    let mut store = collected();
    shows_nothing(&mut store, 2);
    let run = open(store);
    assert_eq!(run.puts()[0].sequence, ObjectSeq(0));
    assert_eq!(run.restarts(), 1, "{}", run.transcript);
    assert_eq!(run.start_object().0.predecessor, Some(link(6, 1)));
    assert_eq!(run.opened().start, link(8, 9));
    assert!(run.opened().catalog.regions().any(|region| region.region.0 == 7));

    // Its writers' epochs are later than that of a first object: another has the prefix.
    let mut store = Store::of([make(6, 7).after(4, 1).writer("b").boundary(6)]);
    shows_nothing(&mut store, 2);
    let run = open(store);
    let error = run.failed();
    assert!(matches!(error, Error::Contended { key: at, .. } if *at == key(6)), "{error}");
    // The next opening is none the worse for the object at 0.
    let run = open(run.store);
    assert_eq!(run.start_object().0.predecessor, Some(link(6, 7)));

    // Where the object at 0 is there, the put meets it.
    let mut store = Store::of([make(0, 1).writer("a"), make(1, 1).after(0, 1).entry(7, 10)]);
    shows_nothing(&mut store, 2);
    let run = open(store);
    assert!(matches!(run.failed(), Error::Contended { key: at, .. } if *at == key(0)));
}

/// A look that shows nothing lacks the start object.
#[test]
fn a_store_that_never_shows_anything_opens_nothing() {
    for answers in 3..8 {
        let mut store = collected();
        shows_nothing(&mut store, answers);
        let run = open(store);
        assert_eq!(run.start_object().0.predecessor, Some(link(6, 1)), "{}", run.transcript);
    }
    let mut store = collected();
    shows_nothing(&mut store, 100);
    let run = open_with(Options { open_attempts: 3, ..Options::default() }, store);
    let error = run.failed();
    assert!(matches!(error, Error::Store { operation: Operation::List, .. }), "{error}");
    assert!(error.is_retryable());
    assert!(error.to_string().contains("does not show"), "{error}");
    // The first, and four looks, each twice.
    assert_eq!(run.times(Operation::List).len(), 2 + 2 * 4);
    assert_eq!(run.puts().len(), 2, "the start object, and the check");
}

/// An opening that starts again from its look knows that its start object stands.
#[test]
fn a_listing_that_lacks_an_earlier_start_object_is_not_believed() {
    let mut store = Store::of([make(0, 1).writer("a"), claim(1)]);
    store.before(1, Operation::List, prefix().objects(), |objects| {
        objects.insert(key(3), make(3, 1).after(0, 1).entry(7, 10).bytes());
    });
    hide(&mut store, 2, 1, |at| *at == key(2));
    let run = open(store);
    assert_eq!(run.restarts(), 1);
    assert_eq!(run.start_object().0.predecessor, Some(link(2, 3)));
    assert_eq!(run.claims(), [4]);
}

/// The fault: the object that is the newest tip is created while the keys of a listing are read, and
/// one that was there before it began is not in it, since it came to its place late.
#[test]
fn one_listing_in_no_order_that_lacks_an_object_is_not_believed() {
    let history = (0..6).map(|at| match at {
        0 => make(0, 1).writer("a"),
        at => make(at, 1).after(at - 1, 1).entry(7, 10),
    });
    let all = || Store { unordered: true, ..Store::of(history.clone()) };
    for hidden in [|at: &Key| *at == key(5), |at: &Key| *at == key(2), |at: &Key| *at >= key(3)] {
        for first in 0..3 {
            let mut store = all();
            hide(&mut store, first, 1, hidden);
            let run = open(store);
            assert_eq!(run.start_object().0.predecessor, Some(link(5, 1)), "{}", run.transcript);
        }
    }
    // Each of the three listings twice.
    assert_eq!(open(all()).times(Operation::List).len(), 6);
}

/// A truncated page without a token reads like the end.
#[test]
fn what_a_page_of_1000_keys_cuts_off_is_asked_for() {
    let history = (1..2_500).map(|at| make(at, 1).after(at - 1, 1).boundary(at - 1).entry(7, 1));
    let mut store = Store::of(history.chain([make(0, 1).writer("a")]));
    store.page = Some(1_000);
    let run = open(store);
    assert_eq!(run.start_object().0.predecessor, Some(link(2_499, 1)));
    // Three pages, three with the claim, and the look.
    assert_eq!(run.times(Operation::List).len(), 3 + 3 + 1);
    let store = Store { page: Some(1_000), ..run.store };
    let opening = Opening::read_only(BEGAN, prefix(), Options::default()).unwrap();
    assert_eq!(drive(opening, store, Order::OldestFirst).opened().tip(), Some(link(2_501, 2_502)));
}

/// Listings that change for ever: a collector and a writer are at work in each.
#[test]
fn no_listing_goes_on_without_bound() {
    for unordered in [false, true] {
        for open_attempts in [1, 3, 16] {
            let mut store = Store::of([make(0, 1).writer("a")]);
            store.unordered = unordered;
            // What comes is linked to nothing that is there, and is of a later epoch each time.
            for at in 1..400 {
                store.before(0, Operation::List, prefix().objects(), move |objects| {
                    let at = at * 3;
                    objects.remove(&key(at - 3));
                    objects.insert(key(at), make(at, at).after(at - 1, at).entry(7, 10).bytes());
                });
            }
            let run = open_with(Options { open_attempts, ..Options::default() }, store);
            assert!(run.failed().is_retryable(), "{}", run.failed());
            let listings = run.times(Operation::List).len();
            // Claims ahead of an unsettled listing do not count, seventeen at most.
            assert!(listings <= 2 * (open_attempts as usize + 20), "{listings} listings");
        }
    }
}
