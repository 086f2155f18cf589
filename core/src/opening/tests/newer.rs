//! An object of a later version of the format is not damaged, and nobody touches its log (DESIGN.md
//! section 4, step 2).

use super::*;

/// An object with its version changed, its header's checksum holding.
fn newer(object: Make, version: u16) -> Bytes {
    let mut bytes = object.bytes().to_vec();
    bytes[8..10].copy_from_slice(&version.to_be_bytes());
    let crc = crc32fast::hash(&bytes[..50]);
    bytes[50..54].copy_from_slice(&crc.to_be_bytes());
    bytes.into()
}

fn entry(sequence: u64) -> Make {
    make(sequence, 1).after(sequence - 1, 1).entry(7, 10)
}

fn is_newer(error: &Error, sequence: u64, found: u16) {
    assert!(
        matches!(error, Error::NewerFormat { key: at, version } if *at == key(sequence) && *version == found),
        "{error}"
    );
    assert!(!error.is_retryable());
}

#[test]
fn whoever_opens_it_says_so_and_changes_nothing() {
    for (version, size) in [(2, 10), (9, 100_000)] {
        let store = || {
            let mut store = Store::of([make(0, 1).writer("a"), entry(1)]);
            let object = make(2, 1).after(1, 1).entry(7, size);
            store.objects.insert(key(2), newer(object, version));
            store
        };
        let run = open(store());
        is_newer(run.failed(), 2, version);
        assert!(run.puts().is_empty());
        let view = Opening::read_only(BEGAN, prefix(), Options::default()).unwrap();
        is_newer(drive(view, store(), Order::OldestFirst).failed(), 2, version);
        let survey = Opening::survey(BEGAN, prefix(), Options::default()).unwrap();
        is_newer(drive(survey, store(), Order::NewestFirst).failed(), 2, version);
    }
    // Nor is damage beside it a reason to say anything else, where both are seen.
    let mut store = Store::of([make(0, 1).writer("a"), entry(2)]);
    store.objects.insert(key(1), newer(entry(1), 2));
    store.damage(2, 30);
    is_newer(open(store).failed(), 1, 2);
    // But one whose checksum does not hold is damaged.
    let mut store = Store::of([make(0, 1).writer("a"), entry(1)]);
    store.damage(1, 9);
    assert!(matches!(open(store).failed(), Error::Corrupted { .. }));
}

/// It came after the listing: to the key of the start object or of the claim, or while it looks.
#[test]
fn one_that_comes_in_between_is_met_as_what_it_is() {
    let blocked = || Store::of([make(0, 1).writer("a"), claim(1)]);
    for object in [make(2, 1).after(0, 1), make(2, 3).after(0, 1), make(2, 9).after(0, 1), claim(2)]
    {
        let mut store = blocked();
        store.overtaken(2, newer(object, 2));
        is_newer(open(store).failed(), 2, 2);
    }
    let mut store = Store::of([make(0, 1).writer("a")]);
    store.overtaken(1, newer(entry(1), 2));
    is_newer(open(store).failed(), 1, 2);
    let mut store = blocked();
    store.before(1, Operation::List, prefix().objects(), |objects| {
        objects.insert(key(3), newer(entry(3), 2));
    });
    is_newer(open(store).failed(), 3, 2);
}
