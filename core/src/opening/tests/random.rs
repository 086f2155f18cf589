//! Whatever comes in, an opening does not panic, and it ends; and the runs come everywhere.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::event::ReadBack;
use crate::types::EntryId;

/// What the store of this test makes of a request.
#[derive(Clone, Debug)]
enum Whim {
    /// It carries it out.
    Honest,
    /// Another writer's object appears first: at the key of a put,
    Overtaken(Spec),
    /// and before a listing or a read of another kind, at this sequence.
    Appears(u64, Spec),
    /// An object is deleted first.
    Vanishes(u64),
    /// It answers with these bytes, cut or filled to the length that was asked for if it is told
    /// to.
    Bytes(Vec<u8>, bool),
    Listing(Vec<Listed>),
    /// A listing, and every one after it, comes turned by so many keys and the other way round,
    Unordered(usize),
    /// or in order again,
    Ordered,
    /// or says of each size that it is this much more or less,
    Lies(i64),
    /// or lacks every key with this rest by three.
    Lacks(u64),
    /// A body is so much shorter or longer than what was asked for.
    Length(i64),
    Fails(StoreErrorKind),
    /// First an answer of this kind comes under an id that may be waited for.
    Noise(u8, u64),
    /// First a tick comes, of this time.
    Tick(u64),
}

/// An object.
#[derive(Clone, Debug)]
struct Spec {
    epoch: u64,
    predecessor: Option<(u64, u64)>,
    boundary: u64,
    entries: Option<(u64, u64)>,
    releases: Option<(u64, u64)>,
    writer: bool,
    large: bool,
    claim: bool,
}

impl Spec {
    fn make(&self, sequence: u64) -> Make {
        if self.claim {
            return claim(sequence);
        }
        let object = make(sequence, self.epoch()).boundary(self.boundary);
        let object = self.predecessor.iter().fold(object, |o, (s, e)| o.after(*s, *e));
        let object = self.entries.iter().fold(object, |o, (region, id)| {
            let id = EntryId::new(ObjectSeq(sequence), 1).filter(|_| *id < 30);
            o.entry_with_id(*region, id.unwrap_or(EntryId(u64::MAX)), 5)
        });
        let object = self.releases.iter().fold(object, |o, record| o.releases(&[*record]));
        let object = if self.writer { object.writer("x") } else { object };
        if self.large { object.entry(90, 70_000) } else { object }
    }

    /// No writer makes an object of an epoch above its sequence + 1. One that is there takes a
    /// claim at each sequence up to its epoch, which ends, but not in a test. From `2^44` on
    /// there is no sequence for the next object, and not one claim.
    fn epoch(&self) -> u64 {
        if self.epoch < 1 << 44 { self.epoch % 16 } else { self.epoch }
    }
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

/// Of small numbers most of the time, so that chains come about.
fn small() -> impl Strategy<Value = u64> {
    prop_oneof![60 => 0..4u64, 1 => number()]
}

fn spec() -> impl Strategy<Value = Spec> {
    let predecessor = prop::option::weighted(0.3, (small(), small()));
    let pairs = || prop::option::of((0..4u64, 0..32u64));
    let sizes = (any::<bool>(), prop::bool::weighted(0.3), prop::bool::weighted(0.2));
    (small(), predecessor, small(), pairs(), pairs(), sizes).prop_map(
        |(epoch, predecessor, boundary, entries, releases, (writer, large, claim))| Spec {
            epoch,
            predecessor,
            boundary,
            entries,
            releases,
            writer,
            large,
            claim,
        },
    )
}

fn error_kind() -> impl Strategy<Value = StoreErrorKind> {
    prop::sample::select(std::vec![
        StoreErrorKind::Exists,
        StoreErrorKind::NotFound,
        StoreErrorKind::Refused,
        StoreErrorKind::NotSupported,
        StoreErrorKind::TimedOut,
        StoreErrorKind::Transient,
        StoreErrorKind::Transient,
        StoreErrorKind::Transient,
    ])
}

fn listing() -> impl Strategy<Value = Vec<Listed>> {
    let key = prop_oneof![5 => (0..6u64).prop_map(key), 1 => number().prop_map(key)];
    let size = prop_oneof![80..400u64, 65_000..66_000u64, number()];
    prop::collection::vec(
        (key, size).prop_map(|(key, size)| Listed { key, size, modified_millis: 0 }),
        0..8,
    )
}

/// By how much a length lies.
fn lie() -> impl Strategy<Value = i64> {
    prop_oneof![-200..200i64, Just(70_000), Just(8 << 30), Just(i64::MAX), Just(i64::MIN)]
}

/// Answers that are not so.
fn untrue() -> impl Strategy<Value = Whim> {
    prop_oneof![
        listing().prop_map(Whim::Listing),
        (0..5usize).prop_map(Whim::Unordered),
        Just(Whim::Ordered),
        lie().prop_map(Whim::Lies),
        (0..3u64).prop_map(Whim::Lacks),
        lie().prop_map(Whim::Length),
    ]
}

fn whim() -> impl Strategy<Value = Whim> {
    prop_oneof![
        30 => Just(Whim::Honest),
        2 => spec().prop_map(Whim::Overtaken),
        3 => (0..12u64, spec()).prop_map(|(at, spec)| Whim::Appears(at, spec)),
        1 => (0..12u64).prop_map(Whim::Vanishes),
        1 => (prop::collection::vec(any::<u8>(), 0..300), any::<bool>())
            .prop_map(|(bytes, fill)| Whim::Bytes(bytes, fill)),
        4 => untrue(),
        2 => error_kind().prop_map(Whim::Fails),
        2 => (0..5u8, number()).prop_map(|(kind, id)| Whim::Noise(kind, id)),
        1 => number().prop_map(Whim::Tick),
    ]
}

/// The answer to an effect, given the whim.
fn answer(effect: &StorageEffect, whim: &Whim, store: &mut Store) -> StorageAnswer {
    let id = effect.id();
    match (whim, effect) {
        (Whim::Fails(kind), _) => effect.failed(StoreError::new(*kind)),
        (Whim::Listing(listing), StorageEffect::List { .. }) => {
            StorageAnswer::Listed { id, result: Ok(listing.clone()) }
        }
        (Whim::Unordered(by), StorageEffect::List { .. }) => {
            store.unordered = true;
            change_listing(store.answer(effect), |listing| {
                let by = by % listing.len().max(1);
                listing.rotate_left(by);
            })
        }
        (Whim::Ordered, StorageEffect::List { .. }) => {
            store.unordered = false;
            store.answer(effect)
        }
        (Whim::Lies(by), StorageEffect::List { .. }) => {
            change_listing(store.answer(effect), |listing| {
                listing.iter_mut().for_each(|l| l.size = l.size.saturating_add_signed(*by));
            })
        }
        (Whim::Lacks(rest), StorageEffect::List { .. }) => {
            let lacks = |key: &Key| match prefix().classify(key) {
                KeyKind::Object(sequence) => sequence.0 % 3 == *rest,
                KeyKind::OutOfRange | KeyKind::Foreign => false,
            };
            change_listing(store.answer(effect), |listing| listing.retain(|l| !lacks(&l.key)))
        }
        (Whim::Length(by), StorageEffect::FetchRange { .. }) => match store.answer(effect) {
            StorageAnswer::Fetched { id, result: Ok(body) } => {
                let length = (body.len() as u64).saturating_add_signed(*by).min(1 << 20);
                let mut body = body.to_vec();
                body.resize(length as usize, 0);
                StorageAnswer::Fetched { id, result: Ok(body.into()) }
            }
            answer => answer,
        },
        (Whim::Bytes(bytes, fill), StorageEffect::FetchRange { range, .. }) => {
            let mut body = bytes.clone();
            if *fill {
                body.resize((range.end - range.start).min(1 << 20) as usize, 0);
            }
            StorageAnswer::Fetched { id, result: Ok(body.into()) }
        }
        (Whim::Bytes(bytes, fill), StorageEffect::ReadBack { .. }) => {
            let mut header = bytes.clone();
            header.truncate(if *fill { 54 } else { 300 });
            let trailer = Bytes::copy_from_slice(&bytes[bytes.len().saturating_sub(32)..]);
            let result =
                Ok(ReadBack { size: bytes.len() as u64 * 2, header: header.into(), trailer });
            StorageAnswer::ReadBackResult { id, result }
        }
        (Whim::Overtaken(spec), StorageEffect::PutObject { key: at, .. }) => {
            if let KeyKind::Object(sequence) = prefix().classify(at) {
                let spec = Spec { boundary: spec.boundary.min(sequence.0), ..spec.clone() };
                let bytes = spec.make(sequence.0).bytes();
                store.objects.entry(at.clone()).or_insert(bytes);
            }
            store.answer(effect)
        }
        (Whim::Appears(at, spec), _) => {
            let mut spec = spec.clone();
            spec.boundary = spec.boundary.min(*at);
            store.objects.entry(key(*at)).or_insert_with(|| spec.make(*at).bytes());
            store.answer(effect)
        }
        (Whim::Vanishes(at), _) => {
            store.objects.remove(&key(*at));
            store.answer(effect)
        }
        _ => store.answer(effect),
    }
}

fn change_listing(answer: StorageAnswer, change: impl FnOnce(&mut Vec<Listed>)) -> StorageAnswer {
    match answer {
        StorageAnswer::Listed { id, result: Ok(mut listing) } => {
            change(&mut listing);
            StorageAnswer::Listed { id, result: Ok(listing) }
        }
        answer => answer,
    }
}

fn noise(kind: u8, id: RequestId) -> StorageAnswer {
    match kind {
        0 => StorageAnswer::Listed { id, result: Ok(Vec::new()) },
        1 => StorageAnswer::Fetched { id, result: Ok(Bytes::from_static(b"noise")) },
        2 => StorageAnswer::CreateResult { id, result: Ok(()) },
        3 => StorageAnswer::ReadBackResult {
            id,
            result: Ok(ReadBack::of(&Bytes::from_static(b"ninebytes"))),
        },
        _ => StorageAnswer::Fetched { id, result: Err(StoreError::new(StoreErrorKind::Refused)) },
    }
}

/// Whether a machine that waits for `effect` takes this as its answer.
fn is_answer(effect: &StorageEffect, answer: &StorageAnswer) -> bool {
    let sample = effect.failed(StoreError::new(StoreErrorKind::Exists));
    effect.id() == answer.id()
        && core::mem::discriminant(&sample) == core::mem::discriminant(answer)
}

/// What a run is made of.
type Input = (Vec<Option<Spec>>, Vec<Whim>, Option<(u64, usize)>, (u32, u32));

fn input() -> impl Strategy<Value = Input> {
    (
        prop::collection::vec(prop::option::of(spec()), 0..6),
        prop::collection::vec(whim(), 1..60),
        prop::option::weighted(0.3, (0..6u64, 0..90usize)),
        (1..4u32, 1..4u32),
    )
}

/// A step from one phase to the next: after an answer that was a success or not.
type Step = (&'static str, bool, &'static str);

/// How often each step was taken, over all runs.
type Steps = BTreeMap<Step, u32>;

fn phase<T: Aim>(opening: &Opening<T>) -> &'static str {
    match opening.phase {
        Phase::Listing(_) => "listing",
        Phase::Examining(_) => "examining",
        Phase::Rereading(_) => "rereading",
        Phase::Claiming(_) => "claiming",
        Phase::Recovering(_) => "recovering",
        Phase::Starting(_) => "starting",
        Phase::Checking(_) => "checking",
        Phase::Looking(_) => "looking",
        Phase::Ended => "ended",
    }
}

fn succeeded(answer: &StorageAnswer) -> bool {
    match answer {
        StorageAnswer::Listed { result, .. } => result.is_ok(),
        StorageAnswer::Fetched { result, .. } => result.is_ok(),
        StorageAnswer::CreateResult { result, .. } => result.is_ok(),
        StorageAnswer::ReadBackResult { result, .. } => result.is_ok(),
        StorageAnswer::DeleteResult { .. } => panic!("an opening deletes nothing"),
    }
}

/// The same inputs each time: what must have been met is asserted.
pub(super) fn runner(cases: u32) -> TestRunner {
    let config = ProptestConfig { source_file: Some(file!()), ..ProptestConfig::with_cases(cases) };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn an_opening_ends_whatever_comes_in() {
    let steps = RefCell::new(Steps::new());
    let run = runner(6_000).run(&input(), |input| check(input, &mut steps.borrow_mut()));
    run.unwrap_or_else(|error| panic!("{error}"));
    let steps = steps.into_inner();
    let wanted: [(Step, &str); 12] = [
        (("claiming", true, "listing"), "a claim is created"),
        (("claiming", false, "listing"), "a claim finds something"),
        (("claiming", false, "claiming"), "a claim is repeated"),
        (("starting", true, "listing"), "a start put finds an earlier epoch or a claim"),
        (("starting", true, "checking"), "a start object is created"),
        (("checking", false, "looking"), "the look begins"),
        (("looking", true, "looking"), "the look finds something"),
        (("looking", true, "listing"), "what the look finds makes it start again"),
        (("looking", true, "rereading"), "the look ends"),
        (("looking", true, "ended"), "the look ends the opening"),
        (("rereading", true, "ended"), "the start object is read"),
        (("listing", true, "claiming"), "a claim goes ahead of what does not settle"),
    ];
    for (step, what) in wanted {
        assert!(steps.contains_key(&step), "no run in which {what}: {steps:?}");
    }
}

#[test]
fn a_view_and_a_survey_end_whatever_comes_in() {
    let steps = RefCell::new(Steps::new());
    let run = runner(8_000).run(&input(), |input| {
        let steps = &mut steps.borrow_mut();
        let view = |options| Opening::read_only(Time::ZERO, prefix(), options).unwrap();
        check_of(view, input.clone(), steps)?;
        check_of(|options| Opening::survey(Time::ZERO, prefix(), options).unwrap(), input, steps)
    });
    run.unwrap_or_else(|error| panic!("{error}"));
    let steps = steps.into_inner();
    let wanted: [(Step, &str); 4] = [
        (("examining", false, "listing"), "what is gone makes it list again"),
        (("examining", true, "listing"), "what does not fit together makes it list again"),
        (("recovering", true, "ended"), "release records end it"),
        (("examining", true, "ended"), "an object ends it"),
    ];
    for (step, what) in wanted {
        assert!(steps.contains_key(&step), "no run in which {what}: {steps:?}");
    }
    assert!(!steps.keys().any(|(before, ..)| *before == "starting" || *before == "claiming"));
}

/// One run.
fn check(input: Input, steps: &mut Steps) -> Result<(), TestCaseError> {
    let open = |options| Opening::new(Time::ZERO, prefix(), options, identity()).unwrap();
    check_of(open, input, steps)
}

fn check_of<T: Ending>(
    open: impl FnOnce(Options) -> Opening<T>,
    (specs, whims, damage, (open_attempts, open_concurrency)): Input,
    steps: &mut Steps,
) -> Result<(), TestCaseError> {
    let mut store = Store::default();
    let mut last = None;
    for (sequence, spec) in (0..).zip(specs) {
        let Some(mut spec) = spec else { continue };
        // Mostly a chain of one or a few writers.
        spec.predecessor = spec.predecessor.or(last);
        spec.boundary = spec.boundary.min(sequence);
        if !spec.claim {
            last = Some((sequence, spec.epoch()));
        }
        store.add(spec.make(sequence));
    }
    if let Some((sequence, at)) = damage
        && store.objects.contains_key(&key(sequence))
    {
        store.damage(sequence, at);
    }
    let options = Options { open_attempts, open_concurrency, ..Options::default() };
    let mut now = Time::ZERO;
    let mut opening = open(options);
    let mut under_way: Vec<StorageEffect> = Vec::new();
    let mut whims = whims.iter().cycle();
    let mut ended = false;
    for step in 0.. {
        prop_assert!(step < 5_000, "it does not end, but is {}", phase(&opening));
        while let Some(effect) = opening.poll_effect() {
            prop_assert!(!ended, "after the end: {:?}", effect);
            match effect {
                OpeningEffect::Storage(effect) => under_way.push(effect),
                OpeningEffect::Notice(_) => {}
                OpeningEffect::Opened(ending) => {
                    ending.check();
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
        if let Whim::Noise(kind, id) = whim {
            let awaited = under_way.first().map_or(RequestId(*id), |effect| effect.id());
            let noise = noise(*kind, if id % 2 == 0 { awaited } else { RequestId(*id) });
            if !under_way.iter().any(|effect| is_answer(effect, &noise)) {
                opening.handle(now, OpeningEvent::Storage(noise));
            }
        }
        if let Whim::Tick(at) = whim {
            opening.handle(Time::from_millis(at % 1_000), OpeningEvent::Tick);
        }
        if let Some(effect) = under_way.pop() {
            let answer = answer(&effect, whim, &mut store);
            let (before, succeeded) = (phase(&opening), succeeded(&answer));
            opening.handle(now, OpeningEvent::Storage(answer));
            *steps.entry((before, succeeded, phase(&opening))).or_default() += 1;
        } else if let Some(due) = opening.next_tick() {
            now = now.max(due);
            opening.handle(now, OpeningEvent::Tick);
        } else if ended {
            break;
        }
    }
    opening.handle(Time::from_nanos(u64::MAX), OpeningEvent::Tick);
    prop_assert!(opening.poll_effect().is_none());
    Ok(())
}
