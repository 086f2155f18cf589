//! The read of the start object after the look (DESIGN.md section 12, rule 3): a store that lets two
//! creates of one key through holds another's there.

use super::*;

/// The way behind the tip is blocked, so that a start object comes at once, at 2.
fn blocked() -> Store {
    Store::of([make(0, 1).writer("a"), claim(1)])
}

/// The read of the start object is the first of its key.
fn at_the_end(store: &mut Store, act: impl FnOnce(&mut Objects) + 'static) {
    store.before(0, Operation::Read, key(2), act);
}

#[test]
fn a_start_object_that_is_another_openings_is_an_unsafe_store() {
    let others = [
        // As large as ours, and with another nonce.
        make(2, 3).after(0, 1).boundary(1).writer("xx").bytes(),
        make(2, 3).after(0, 1).boundary(1).writer("a longer name than ours").bytes(),
        make(2, 3).after(0, 1).entry(1, 100_000).bytes(),
        // Nor is what else may have come over it.
        make(2, 9).after(0, 1).entry(1, 10).bytes(),
        claim(2).bytes(),
    ];
    for other in others {
        let mut store = blocked();
        at_the_end(&mut store, move |objects| {
            objects.insert(key(2), other).unwrap();
        });
        let run = open(store);
        let error = run.failed();
        assert!(matches!(error, Error::UnsafeStore { key: at } if *at == key(2)), "{error}");
        assert!(!error.is_retryable());
    }
}

/// The fault as it was seen: three at once have one epoch, in a store that lets the racing creates of
/// one key through and holds the last of them.
#[test]
fn of_three_openings_that_all_created_one_start_object_none_but_the_last_is_open() {
    let mut openings: Vec<(Opening, Option<Result<Recovered, Error>>)> = Vec::new();
    for name in ["a", "b", "c"] {
        let identity = Identity {
            nonce: [name.as_bytes()[0]; 16],
            default_name: name.into(),
            opened_at_millis: 0,
        };
        let opening = Opening::new(Time::ZERO, prefix(), Options::default(), identity).unwrap();
        openings.push((opening, None));
    }
    let mut store = Store::default();
    let mut created = BTreeMap::new();
    // One effect of each in turn.
    while openings.iter().any(|(_, end)| end.is_none()) {
        for (at, (opening, end)) in openings.iter_mut().enumerate() {
            match opening.poll_effect() {
                Some(OpeningEffect::Storage(effect)) => {
                    // The first put of each is let through, the check of each meets what is there.
                    let is_put = operation_of(&effect) == Operation::Create;
                    store.overwrites = is_put && created.insert(at, ()).is_none();
                    let answer = store.carry_out(&effect);
                    opening.handle(Time::ZERO, OpeningEvent::Storage(answer));
                }
                Some(OpeningEffect::Notice(_)) => {}
                Some(OpeningEffect::Opened(recovered)) => *end = Some(Ok(*recovered)),
                Some(OpeningEffect::Failed(error)) => *end = Some(Err(error)),
                None => {}
            }
        }
    }
    let ends: Vec<_> = openings.into_iter().filter_map(|(_, end)| end).collect();
    assert!(matches!(ends[0], Err(Error::UnsafeStore { .. })), "{:?}", ends[0]);
    assert!(matches!(ends[1], Err(Error::UnsafeStore { .. })), "{:?}", ends[1]);
    assert_eq!(ends[2].as_ref().unwrap().start, link(0, 1));
}

#[test]
fn a_start_object_that_is_gone_belongs_to_who_removed_it() {
    for before in [0, 1] {
        let mut store = blocked();
        // Also where it is gone once its ends are looked at.
        if before == 1 {
            for _ in 0..2 {
                store.fault(Operation::Read, key(2), Fault::Damaged);
            }
            store.before(0, Operation::ReadBack, key(2), |objects| {
                objects.remove(&key(2)).unwrap();
            });
        } else {
            at_the_end(&mut store, |objects| {
                objects.remove(&key(2)).unwrap();
            });
        }
        let run = open(store);
        let error = run.failed();
        assert!(matches!(error, Error::Contended { key: at, .. } if *at == key(2)), "{error}");
        assert_eq!(run.puts().len(), 2, "it is not put again");
    }
}

#[test]
fn what_may_pass_is_repeated_and_a_damaged_download_is_read_again() {
    let mut store = blocked();
    for fault in [Fault::Fails(StoreErrorKind::TimedOut), Fault::Damaged] {
        store.fault(Operation::Read, key(2), fault);
    }
    let run = open(store);
    assert_eq!((run.opened().start, run.reads(2).len()), (link(2, 3), 3));
    assert_eq!(run.opened().stats.took, Duration::from_millis(100));

    let mut store = blocked();
    for _ in 0..30 {
        store.fault(Operation::Read, key(2), Fault::Fails(StoreErrorKind::Transient));
    }
    let options = Options { open_timeout: Duration::from_secs(1), ..Options::default() };
    let run = open_with(options, store);
    assert!(run.failed().is_retryable(), "{}", run.failed());
    assert_eq!(run.reads(2).len(), 4);

    let mut store = blocked();
    store.fault(Operation::Read, key(2), Fault::Fails(StoreErrorKind::Refused));
    assert!(matches!(open(store).failed(), Error::Store { operation: Operation::Read, .. }));
}

/// Downloads that never come whole say nothing of what stands there; header, size and checksum do.
#[test]
fn a_body_that_is_never_whole_accuses_nobody() {
    for fault in [|| Fault::Short, || Fault::Damaged] {
        let mut store = blocked();
        for _ in 0..2 {
            store.fault(Operation::Read, key(2), fault());
        }
        let run = open(store);
        match &run.result {
            Ok(recovered) => assert_eq!(recovered.start, link(2, 3)),
            Err(error) => panic!("{error}\n{}", run.transcript),
        }
    }
}
