//! Whatever comes in, an opening does not panic, and it ends.

use std::vec;

use proptest::prelude::*;

use super::*;
use crate::event::ReadBack;

/// What the store of this test makes of a request.
#[derive(Clone, Debug)]
enum Whim {
    /// The honest answer of a store that holds a small log.
    Honest,
    /// A sound answer with these bytes in it.
    Bytes(Vec<u8>),
    /// An object that decodes, with this header's numbers.
    Object {
        sequence: u64,
        epoch: u64,
        predecessor: Option<(u64, u64)>,
        boundary: u64,
    },
    Fails(u8),
    /// An answer of the wrong kind, or for another id, before the honest one.
    Noise {
        kind: u8,
        id: u64,
    },
    /// Time passes, backwards even, before the honest answer.
    Tick(u64),
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..6u64,
        Just((1 << 44) - 1),
        Just(1 << 44),
        Just(u64::MAX - 1),
        Just(u64::MAX),
        any::<u64>()
    ]
}

fn whim() -> impl Strategy<Value = Whim> {
    prop_oneof![
        4 => Just(Whim::Honest),
        1 => prop::collection::vec(any::<u8>(), 0..300).prop_map(Whim::Bytes),
        3 => (number(), number(), prop::option::of((number(), number())), number()).prop_map(
            |(sequence, epoch, predecessor, boundary)| {
                Whim::Object { sequence, epoch, predecessor, boundary }
            }
        ),
        2 => (0..6u8).prop_map(Whim::Fails),
        1 => (0..5u8, number()).prop_map(|(kind, id)| Whim::Noise { kind, id }),
        1 => number().prop_map(Whim::Tick),
    ]
}

fn kind(kind: u8) -> StoreErrorKind {
    match kind {
        0 => StoreErrorKind::Exists,
        1 => StoreErrorKind::NotFound,
        2 => StoreErrorKind::Refused,
        3 => StoreErrorKind::NotSupported,
        4 => StoreErrorKind::TimedOut,
        _ => StoreErrorKind::Transient,
    }
}

fn listing() -> impl Strategy<Value = Vec<Listed>> {
    let key = prop_oneof![
        5 => (0..6u64).prop_map(key),
        1 => number().prop_map(key),
        1 => Just(Key::from("elsewhere")),
    ];
    let size = prop_oneof![Just(0), Just(90), 80..400u64, 65_000..66_000u64, number()];
    prop::collection::vec((key, size).prop_map(|(key, size)| Listed { key, size }), 0..8)
}

fn object(whim: &Whim, at: u64) -> Bytes {
    match whim {
        Whim::Bytes(bytes) => bytes.clone().into(),
        Whim::Object { sequence, epoch, predecessor, boundary } => {
            // Mostly at its own key, so that something is selected.
            let sequence = if sequence % 3 == 0 { sequence % (1 << 44) } else { at };
            let object = make(sequence, *epoch).boundary(*boundary).entry(1, 5).writer("x");
            let object = predecessor.iter().fold(object, |o, (s, e)| o.after(*s, *e));
            object.releases(&[(1, *boundary)]).bytes()
        }
        _ => make(at, 1).after(at.saturating_sub(1), 1).entry(1, 5).bytes(),
    }
}

fn sequence_of(at: &Key) -> u64 {
    match prefix().classify(at) {
        KeyKind::Object(sequence) => sequence.0,
        _ => 0,
    }
}

fn answer(effect: &StorageEffect, whim: &Whim, listing: &[Listed]) -> StorageAnswer {
    if let Whim::Fails(of) = whim {
        return effect.failed(StoreError::new(kind(*of)));
    }
    match effect {
        StorageEffect::List { id, .. } => {
            StorageAnswer::Listed { id: *id, result: Ok(listing.to_vec()) }
        }
        StorageEffect::FetchRange { id, key, range, .. } => {
            let object = object(whim, sequence_of(key));
            // Of a listed size that is not the object's there is still a body of that length, if it
            // is not beyond all reason.
            let length = (range.end - range.start).min(1 << 20) as usize;
            let mut body = object.slice(..object.len().min(length)).to_vec();
            if !matches!(whim, Whim::Bytes(bytes) if bytes.len() % 2 == 0) {
                body.resize(length, 0);
            }
            StorageAnswer::Fetched { id: *id, result: Ok(body.into()) }
        }
        StorageEffect::PutObject { id, .. } => {
            let exists = StoreError::new(StoreErrorKind::Exists);
            let result = if matches!(whim, Whim::Honest) { Ok(()) } else { Err(exists) };
            StorageAnswer::CreateResult { id: *id, result }
        }
        StorageEffect::ReadBack { id, key, .. } => {
            let object = object(whim, sequence_of(key));
            let header = object.slice(..object.len().min(54));
            let found = ReadBack { size: object.len() as u64, header };
            StorageAnswer::ReadBackResult { id: *id, result: Ok(found) }
        }
    }
}

fn noise(kind: u8, id: u64) -> StorageAnswer {
    let id = RequestId(id);
    match kind {
        0 => StorageAnswer::Listed { id, result: Ok(vec![]) },
        1 => StorageAnswer::Fetched { id, result: Ok(Bytes::from_static(b"noise")) },
        2 => StorageAnswer::CreateResult { id, result: Ok(()) },
        3 => StorageAnswer::ReadBackResult {
            id,
            result: Ok(ReadBack { size: 9, header: Bytes::new() }),
        },
        _ => StorageAnswer::Fetched { id, result: Err(StoreError::new(StoreErrorKind::Refused)) },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn an_opening_ends_whatever_comes_in(
        whims in prop::collection::vec(whim(), 1..40),
        listings in prop::collection::vec(listing(), 1..4),
        open_attempts in 1..4u32,
        open_concurrency in 1..4u32,
    ) {
        let options = Options { open_attempts, open_concurrency, ..Options::default() };
        let mut now = Time::ZERO;
        let mut opening = Opening::new(now, prefix(), options, identity()).unwrap();
        let mut under_way = Vec::new();
        let mut whims = whims.iter().cycle();
        let mut listings = listings.iter().cycle();
        let mut ended = false;
        for step in 0.. {
            prop_assert!(step < 5_000, "it does not end: {:?}", opening);
            while let Some(effect) = opening.poll_effect() {
                prop_assert!(!ended, "after the end: {:?}", effect);
                match effect {
                    OpeningEffect::Storage(effect) => under_way.push(effect),
                    OpeningEffect::Notice(_) => {}
                    OpeningEffect::Opened(recovered) => {
                        recovered.catalog.check();
                        prop_assert!(recovered.start.sequence < recovered.next_sequence);
                        prop_assert!(recovered.catalog.boundary() <= recovered.next_sequence);
                        ended = true;
                    }
                    OpeningEffect::Failed(error) => {
                        prop_assert!(!error.to_string().is_empty());
                        ended = true;
                    }
                }
            }
            prop_assert!(under_way.len() <= open_concurrency as usize);
            let whim = whims.next().unwrap();
            if let Whim::Noise { kind, id } = whim {
                let id = under_way.first().map_or(*id, |e: &StorageEffect| e.id().0 ^ (id & 1));
                let noise = noise(*kind, id);
                // An answer of the right kind under an id that is waited for would be one.
                if under_way.iter().all(|effect| {
                    effect.id() != noise.id()
                        || core::mem::discriminant(&effect.failed(StoreError::new(StoreErrorKind::Exists)))
                            != core::mem::discriminant(&noise)
                }) {
                    opening.handle(now, OpeningEvent::Storage(noise));
                }
            }
            if let Whim::Tick(at) = whim {
                opening.handle(Time::from_millis(at % 1_000), OpeningEvent::Tick);
            }
            if let Some(effect) = under_way.pop() {
                let listing = match &effect {
                    StorageEffect::List { .. } => listings.next().unwrap().as_slice(),
                    _ => &[],
                };
                let answer = answer(&effect, whim, listing);
                opening.handle(now, OpeningEvent::Storage(answer));
            } else if let Some(due) = opening.next_tick() {
                now = now.max(due);
                opening.handle(now, OpeningEvent::Tick);
            } else if ended {
                break;
            }
        }
        opening.handle(Time::from_nanos(u64::MAX), OpeningEvent::Tick);
        prop_assert!(opening.poll_effect().is_none());
    }
}
