//! Random logs, damaged anywhere, and repaired in every way.

use proptest::prelude::*;

use super::*;

/// What happens to a log, one object at a time.
#[derive(Clone, Debug)]
enum Step {
    Data(Vec<u8>),
    Release(u8),
    Boundary,
    Orphan(u8),
    Claim,
    Start,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => prop::collection::vec(0..4_u8, 1..4).prop_map(Step::Data),
        1 => (0..4_u8).prop_map(Step::Release),
        1 => Just(Step::Boundary),
        1 => (0..4_u8).prop_map(Step::Orphan),
        1 => Just(Step::Claim),
        1 => Just(Step::Start),
    ]
}

/// The log that comes of it; what is below its boundary is collected in part.
fn made(steps: &[Step]) -> Objects {
    let mut objects = objects([start()]);
    let (mut tip, mut boundary) = (link(0, 1), 0);
    for (sequence, step) in (1..).zip(steps) {
        let next =
            make(sequence, tip.epoch.0).after(tip.sequence.0, tip.epoch.0).boundary(boundary);
        let last = match step {
            Step::Boundary => EntryId::ZERO.0,
            _ => EntryId::new(tip.sequence, 1).unwrap().0,
        };
        let object = match step {
            Step::Data(regions) => {
                let regions: BTreeSet<_> = regions.iter().collect();
                let entry = |object: Make, region: &u8| object.entry((*region).into(), 10);
                regions.into_iter().fold(next, entry)
            }
            Step::Release(region) => next.releases(&[((*region).into(), last)]),
            Step::Boundary => {
                boundary = tip.sequence.0;
                next.boundary(boundary)
            }
            Step::Orphan(region) => next.entry((*region).into(), 9),
            Step::Claim => claim(sequence),
            Step::Start => make(sequence, sequence + 1)
                .after(tip.sequence.0, tip.epoch.0)
                .boundary(boundary)
                .writer("b"),
        };
        let bytes = object.bytes();
        if !matches!(step, Step::Orphan(_) | Step::Claim) {
            tip = Header::decode(&bytes).unwrap().link();
        }
        objects.insert(key(sequence), bytes);
    }
    (0..boundary)
        .filter(|below| below % 3 != 0)
        .for_each(|below| drop(objects.remove(&key(below))));
    objects
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// Whatever is damaged, and however it is repaired: the log opens, and shows just what was said
    /// to remain. Where the header verifies, or is named as it was, what is neither seen any more
    /// nor hidden was said to be given up, or is of an object of which that is not known.
    #[test]
    fn after_a_repair_an_opening_holds_what_was_said_to_remain(
        steps in prop::collection::vec(step(), 0..14),
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        truncated in prop::bool::weighted(0.2),
        cut in any::<bool>(),
        guessed in any::<bool>(),
    ) {
        let whole = made(&steps);
        opens(&whole).unwrap();
        let (damaged, bytes) = whole.iter().nth(which.index(whole.len())).unwrap();
        let KeyKind::Object(sequence) = prefix().classify(damaged) else { unreachable!() };
        let stood = Header::decode(bytes).unwrap();
        let at = at.index(bytes.len());
        let mut objects = whole.clone();
        if truncated {
            objects.insert(damaged.clone(), bytes.slice(..at));
        } else {
            damage(&mut objects, sequence.0, |_| at);
        }

        let likely = likely_header(&survey(&objects), sequence);
        let header_is_lost = Salvage::of(sequence, &objects[damaged]).header.is_none();
        let place = match (cut, header_is_lost, guessed) {
            (true, ..) => Place::Cut(record()),
            (_, false, _) => Place::Kept,
            (_, _, true) => Place::Named(likely),
            _ => Place::Named(stood),
        };
        let repair = match plan(&objects, sequence.0, &place) {
            Err(refused) => {
                let is_expected = match refused {
                    Refused::NothingRemains(_) => cut,
                    // A claim names itself.
                    Refused::Impossible { .. } => stood.links_to_itself() && !guessed,
                    _ => false,
                };
                prop_assert!(is_expected, "{refused}");
                return Ok(());
            }
            Ok(repair) => repair,
        };
        let after = carried_out(&objects, &repair);
        if repair.still_lost.is_empty() {
            opens(&after).unwrap();
            prop_assert_eq!(&seen(&after), &repair.remains);
        } else {
            prop_assert!(guessed && header_is_lost, "{:?}", repair.still_lost);
            prop_assert!(opens(&after).is_err());
        }

        if !header_is_lost || (likely == stood && !stood.links_to_itself()) {
            let is_unknown = |span: &Span| repair.unknown.contains(&span.object);
            let before = seen(&whole);
            for span in before.iter().filter(|span| !is_unknown(span)) {
                let (remains, goes) =
                    (repair.remains.contains(span), repair.gives_up.contains(span));
                prop_assert!(remains != goes || repair.loses_releases, "{span:?}");
            }
            let released_in_vain = repair.loses_releases || !repair.unknown.is_empty();
            for span in repair.remains.iter().filter(|span| !before.contains(span)) {
                prop_assert!(released_in_vain || repair.brings_back.contains(span), "{span:?}");
            }
            prop_assert!(repair.gives_up.iter().all(|span| before.contains(span)) || released_in_vain);
        }
    }
}
