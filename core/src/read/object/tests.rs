use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::error::{Error, StoreErrorKind};
use crate::event::StorageAnswer;
use crate::format::{ENTRY_HEADER_LEN, Header, ObjectEncoder, SEGMENT_HEADER_LEN, SegmentMeta};
use crate::types::{EntryId, Epoch, ObjectSeq};

const MIB: u64 = 1 << 20;
const FRAME: u64 = (SEGMENT_HEADER_LEN + ENTRY_HEADER_LEN) as u64;
const OBJECT: Link = Link { sequence: ObjectSeq(7), epoch: Epoch(1) };
const ASKED: &str = "ask for region";

fn id(position: u32) -> EntryId {
    EntryId::new(OBJECT.sequence, position).unwrap()
}

/// An object of the regions 1, 2 and so on, one entry each, whose segments have these lengths.
fn object(lengths: &[u64]) -> (Bytes, Vec<SegmentMeta>) {
    let mut encoder = ObjectEncoder::new();
    for (region, length) in (1..).zip(lengths) {
        let payload = vec![region as u8; (length - FRAME) as usize];
        encoder.push(RegionId(region), id(1), &payload.into());
    }
    let header = Header {
        sequence: OBJECT.sequence,
        epoch: OBJECT.epoch,
        predecessor: None,
        boundary: ObjectSeq::ZERO,
    };
    let (payload, table) = encoder.finish(&header);
    (payload.to_bytes(), table)
}

fn wanted(meta: SegmentMeta) -> WantedSegment {
    WantedSegment { meta, from: EntryId::ZERO, through: EntryId::MAX }
}

/// A read under way, and the object as it is stored.
struct Reading {
    read: ObjectRead,
    now: Time,
    progress: ReadProgress,
    stored: Bytes,
    table: Vec<SegmentMeta>,
    fetch: Option<(RequestId, Range<u64>)>,
    outcomes: Vec<(RegionId, SegmentOutcome)>,
}

impl Reading {
    /// Of an object as [`object`] makes it; these of its regions are wanted.
    fn new(lengths: &[u64], regions: &[usize]) -> Reading {
        Reading::with(OnCorruptedSegment::Skip, lengths, regions)
    }

    /// The first failure is the last.
    fn with(on_corrupted: OnCorruptedSegment, lengths: &[u64], regions: &[usize]) -> Reading {
        Reading::patient(on_corrupted, Duration::ZERO, lengths, regions)
    }

    fn patient(
        on_corrupted_segment: OnCorruptedSegment,
        read_retry_for: Duration,
        lengths: &[u64],
        regions: &[usize],
    ) -> Reading {
        let options = Options { on_corrupted_segment, read_retry_for, ..Options::default() };
        let (stored, table) = object(lengths);
        let segments = regions.iter().map(|region| wanted(table[region - 1])).collect();
        let planned = PlannedObject { object: OBJECT, key: "log/7".into(), segments };
        let read = ObjectRead::new(planned, &options);
        let (now, progress) = (Time::ZERO, ReadProgress::default());
        Reading { read, now, progress, stored, table, fetch: None, outcomes: Vec::new() }
    }

    /// What it wants next, in short: a fetch as the regions whose segments it covers.
    fn said(&mut self) -> String {
        let said = match self.read.poll_effect() {
            None => match self.read.next_tick() {
                Some(tick) => format!("wait until {} ms", tick.as_nanos() / 1_000_000),
                None => "nothing".into(),
            },
            Some(ObjectReadEffect::Storage(StorageEffect::FetchRange {
                id, range, key, ..
            })) => {
                assert_eq!(&*key, "log/7");
                let place = |end: bool, at: u64| {
                    let edge =
                        |meta: &SegmentMeta| if end { meta.range().end } else { meta.offset };
                    1 + self.table.iter().position(|meta| edge(meta) == at).expect("an edge")
                };
                let said =
                    format!("fetch {} to {}", place(false, range.start), place(true, range.end));
                self.fetch = Some((id, range));
                said
            }
            Some(ObjectReadEffect::Storage(other)) => panic!("{other:?}"),
            Some(ObjectReadEffect::AskWriter(segment)) => {
                assert_eq!(segment.object, OBJECT);
                format!("{ASKED} {}", segment.region)
            }
            Some(ObjectReadEffect::Done(outcomes)) => {
                let said: Vec<_> = outcomes.iter().map(outcome).collect();
                self.outcomes = outcomes;
                said.join(", ")
            }
        };
        assert!(self.read.poll_effect().is_none(), "one thing at a time");
        said
    }

    fn handle(&mut self, event: SegmentReadEvent) -> String {
        self.read.handle(self.now, &mut self.progress, event);
        self.said()
    }

    /// The time that it waits for has come.
    fn tick(&mut self) -> String {
        self.now = self.read.next_tick().expect("it waits");
        self.handle(SegmentReadEvent::Tick)
    }

    fn answer(&mut self, result: Result<Bytes, StoreError>) -> String {
        let (id, _) = self.fetch.take().expect("a fetch is under way");
        self.handle(SegmentReadEvent::Storage(StorageAnswer::Fetched { id, result }))
    }

    /// The fetch that is under way brings what is stored, with damage in these regions.
    fn fetched(&mut self, damaged: &[usize]) -> String {
        let range = self.fetch.as_ref().expect("a fetch is under way").1.clone();
        let mut bytes = self.stored.to_vec();
        for region in damaged {
            bytes[self.table[region - 1].offset as usize + 20] ^= 1;
        }
        self.answer(Ok(Bytes::from(bytes).slice(range.start as usize..range.end as usize)))
    }

    fn fails(&mut self, kind: StoreErrorKind) -> String {
        self.answer(Err(StoreError::new(kind)))
    }

    fn verdict(&mut self, verdict: Option<Verdict>) -> String {
        self.handle(SegmentReadEvent::Verdict(verdict))
    }
}

fn outcome((region, outcome): &(RegionId, SegmentOutcome)) -> String {
    match outcome {
        SegmentOutcome::Entries(entries) => {
            assert!(entries.iter().all(|e| e.payload.iter().all(|b| u64::from(*b) == region.0)));
            region.to_string()
        }
        SegmentOutcome::Hole(hole) => {
            assert_eq!((hole.region, hole.object, &*hole.key), (*region, OBJECT, "log/7"));
            assert_eq!((hole.min_id, hole.max_id), (id(1), id(1)));
            format!("{region} hole")
        }
        SegmentOutcome::Skipped => format!("{region} skipped"),
        SegmentOutcome::Failed(Error::Store { source, .. }) => {
            format!("{region} {:?}", source.kind)
        }
        SegmentOutcome::Failed(Error::Corrupted { .. }) => format!("{region} damaged"),
        SegmentOutcome::Failed(other) => panic!("{other}"),
    }
}

#[test]
fn an_object_that_is_wanted_whole_is_one_fetch_and_its_payloads_share_it() {
    let mut reading = Reading::new(&[100, 5 * MIB, 100], &[1, 2, 3]);
    assert_eq!(reading.said(), "fetch 1 to 3");
    let range = reading.fetch.as_ref().unwrap().1.clone();
    let body = reading.stored.slice(range.start as usize..range.end as usize);
    assert_eq!(reading.answer(Ok(body.clone())), "1, 2, 3");
    for (_, outcome) in &reading.outcomes {
        let SegmentOutcome::Entries(entries) = outcome else { panic!("{outcome:?}") };
        assert!(body.as_ptr_range().contains(&entries[0].payload.as_ptr()));
    }
    assert_eq!(reading.read.refetched(), 0);
}

#[test]
fn only_what_is_wanted_of_an_object_is_fetched() {
    let lengths = [100, 200, 300, 400, 500];
    for (regions, fetched) in [
        (&[1][..], "fetch 1 to 1"),
        (&[5], "fetch 5 to 5"),
        (&[2, 3, 4], "fetch 2 to 4"),
        // Little lies between them.
        (&[1, 5], "fetch 1 to 5"),
    ] {
        let mut reading = Reading::new(&lengths, regions);
        assert_eq!(reading.said(), fetched);
        let all: Vec<_> = regions.iter().map(ToString::to_string).collect();
        assert_eq!(reading.fetched(&[]), all.join(", "));
    }
}

#[test]
fn segments_share_a_fetch_if_at_most_one_mebibyte_lies_between_them() {
    let mut reading = Reading::new(&[100, MIB, 100], &[1, 3]);
    assert_eq!(reading.said(), "fetch 1 to 3");
    assert_eq!(reading.fetched(&[]), "1, 3");

    let mut reading = Reading::new(&[100, MIB + 1, 100, MIB, 100], &[1, 3, 5]);
    assert_eq!(reading.said(), "fetch 1 to 1");
    assert_eq!(reading.fetched(&[]), "fetch 3 to 5", "one fetch at a time");
    assert_eq!(reading.fetched(&[]), "1, 3, 5");
}

#[test]
fn one_fetch_brings_all_of_it_if_at_least_half_is_wanted() {
    let mut reading = Reading::new(&[MIB, 2 * MIB, MIB], &[1, 3]);
    assert_eq!(reading.said(), "fetch 1 to 3");
    let mut reading = Reading::new(&[MIB, 2 * MIB, MIB - 1], &[1, 3]);
    assert_eq!(reading.said(), "fetch 1 to 1");
}

#[test]
fn entries_that_are_not_wanted_are_left_out() {
    let (stored, mut table) = {
        let mut encoder = ObjectEncoder::new();
        for region in [1, 2] {
            (1..=4).for_each(|n| encoder.push(RegionId(region), id(n), &Bytes::from_static(b"x")));
        }
        let (sequence, epoch) = (OBJECT.sequence, OBJECT.epoch);
        let header = Header { sequence, epoch, predecessor: None, boundary: ObjectSeq::ZERO };
        let (payload, table) = encoder.finish(&header);
        (payload.to_bytes(), table.into_iter())
    };
    let mut segment = |from, through| WantedSegment {
        meta: table.next().unwrap(),
        from: id(from),
        through: id(through),
    };
    let segments = vec![segment(2, 9), segment(1, 3)];
    let planned = PlannedObject { object: OBJECT, key: "log/7".into(), segments };
    let mut read = ObjectRead::new(planned, &Options::default());
    let Some(ObjectReadEffect::Storage(StorageEffect::FetchRange {
        id, range, time_limit, ..
    })) = read.poll_effect()
    else {
        panic!("a fetch")
    };
    assert_eq!(time_limit, Duration::from_secs(30));
    let result = Ok(stored.slice(range.start as usize..range.end as usize));
    let answer = SegmentReadEvent::Storage(StorageAnswer::Fetched { id, result });
    read.handle(Time::ZERO, &mut ReadProgress::default(), answer);
    let Some(ObjectReadEffect::Done(outcomes)) = read.poll_effect() else { panic!("the end") };
    let ids = |(_, outcome): &(RegionId, SegmentOutcome)| match outcome {
        SegmentOutcome::Entries(entries) => entries.iter().map(|e| e.id.position()).collect(),
        other => panic!("{other:?}"),
    };
    assert_eq!(outcomes.iter().map(ids).collect::<Vec<Vec<u32>>>(), [[2, 3, 4], [1, 2, 3]]);
}

#[test]
fn a_damaged_segment_among_good_ones_is_fetched_once_more_and_alone() {
    let mut reading = Reading::new(&[100, 200, 300], &[1, 2, 3]);
    reading.said();
    assert_eq!(reading.fetched(&[2]), "fetch 2 to 2");
    assert_eq!(reading.fetched(&[]), "1, 2, 3");
    assert_eq!(reading.read.refetched(), 1);
}

#[test]
fn segments_that_are_damaged_together_are_fetched_again_together() {
    let mut reading = Reading::new(&[100; 5], &[1, 2, 3, 4, 5]);
    reading.said();
    assert_eq!(reading.fetched(&[2, 3, 4]), "fetch 2 to 4");
    // In one of those that are good already, damage does no harm.
    assert_eq!(reading.fetched(&[]), "1, 2, 3, 4, 5");
    assert_eq!(reading.read.refetched(), 3);
    // What is good already is not decoded again.
    let mut reading = Reading::new(&[100; 3], &[1, 2, 3]);
    reading.said();
    assert_eq!(reading.fetched(&[1, 3]), "fetch 1 to 3");
    assert_eq!(reading.fetched(&[2]), "1, 2, 3");
    assert_eq!(reading.read.refetched(), 2);
}

#[test]
fn what_does_not_decode_twice_is_a_hole_or_a_failure_and_the_writer_is_asked_once() {
    use OnCorruptedSegment::{Fail, Skip};
    for (chosen, expected) in [(Skip, "1, 2 hole, 3, 4 hole"), (Fail, "1, 2 damaged, 3, 4 damaged")]
    {
        for verdict in [Some(Verdict::Indexed), None] {
            let mut reading = Reading::with(chosen, &[100; 4], &[1, 2, 3, 4]);
            reading.said();
            assert_eq!(reading.fetched(&[2, 4]), "fetch 2 to 4");
            assert_eq!(reading.fetched(&[2, 4]), format!("{ASKED} 2"));
            assert_eq!(reading.verdict(verdict), expected);
            assert_eq!(reading.read.refetched(), 2);
        }
    }
}

#[test]
fn damage_in_an_object_that_was_collected_meanwhile_is_skipped() {
    let mut reading = Reading::with(OnCorruptedSegment::Fail, &[100; 3], &[1, 2, 3]);
    reading.said();
    reading.fetched(&[2]);
    assert_eq!(reading.fails(StoreErrorKind::NotFound), format!("{ASKED} 2"));
    assert_eq!(reading.verdict(Some(Verdict::Gone)), "1, 2 skipped, 3");
}

#[test]
fn a_fetch_that_fails_is_the_last_one() {
    let lengths = [100, 2 * MIB, 100, 2 * MIB, 100];
    for (verdict, expected) in [
        (Some(Verdict::Gone), "1, 3 skipped, 5 skipped"),
        (Some(Verdict::Indexed), "1, 3 TimedOut, 5 TimedOut"),
        (None, "1, 3 TimedOut, 5 TimedOut"),
    ] {
        let mut reading = Reading::new(&lengths, &[1, 3, 5]);
        assert_eq!(reading.said(), "fetch 1 to 1");
        assert_eq!(reading.fetched(&[]), "fetch 3 to 3");
        assert_eq!(reading.fails(StoreErrorKind::TimedOut), format!("{ASKED} 3"));
        assert_eq!(reading.verdict(verdict), expected);
    }
}

/// Only then is the writer asked, as about any failure, and `on_corrupted_segment` has no say.
#[test]
fn a_fetch_that_may_pass_is_repeated_alone_and_then_fails_the_read_in_both_modes() {
    let lengths = [100, 2 * MIB, 100];
    for chosen in [OnCorruptedSegment::Skip, OnCorruptedSegment::Fail] {
        for (verdict, expected) in [
            (Some(Verdict::Gone), "1, 3 skipped"),
            (Some(Verdict::Indexed), "1, 3 Transient"),
            (None, "1, 3 Transient"),
        ] {
            let patience = Duration::from_millis(250);
            let mut reading = Reading::patient(chosen, patience, &lengths, &[1, 3]);
            assert_eq!(reading.said(), "fetch 1 to 1");
            assert_eq!(reading.fails(StoreErrorKind::TimedOut), "wait until 100 ms");
            assert_eq!(reading.tick(), "fetch 1 to 1");
            assert_eq!(reading.fetched(&[]), "fetch 3 to 3");
            assert_eq!(reading.fails(StoreErrorKind::Transient), "wait until 200 ms");
            assert_eq!(reading.tick(), "fetch 3 to 3", "the delays begin anew");
            assert_eq!(reading.fails(StoreErrorKind::Transient), "wait until 350 ms");
            assert_eq!(reading.verdict(Some(Verdict::Gone)), "wait until 350 ms", "not asked for");
            assert_eq!(reading.tick(), format!("{ASKED} 3"));
            assert_eq!(reading.verdict(verdict), expected);
            assert_eq!(reading.read.refetched(), 0);
        }
    }
}

#[test]
fn what_does_not_pass_by_waiting_is_asked_about_at_once() {
    use StoreErrorKind::{Exists, NotFound, NotSupported, Refused};
    for kind in [NotFound, Refused, NotSupported, Exists] {
        let patience = Duration::from_secs(30);
        let mut reading = Reading::patient(OnCorruptedSegment::Skip, patience, &[100], &[1]);
        reading.said();
        assert_eq!(reading.fails(kind), format!("{ASKED} 1"));
        assert_eq!(reading.verdict(Some(Verdict::Indexed)), format!("1 {kind:?}"));
    }
}

#[test]
fn damage_that_a_repeated_fetch_brings_is_fetched_once_more_as_any() {
    let patience = Duration::from_secs(30);
    let mut reading = Reading::patient(OnCorruptedSegment::Skip, patience, &[100; 2], &[1, 2]);
    reading.said();
    reading.fails(StoreErrorKind::Transient);
    assert_eq!(reading.tick(), "fetch 1 to 2");
    assert_eq!(reading.fetched(&[2]), "fetch 2 to 2");
    assert_eq!(reading.fails(StoreErrorKind::Transient), "wait until 200 ms");
    assert_eq!(reading.tick(), "fetch 2 to 2");
    assert_eq!(reading.fetched(&[2]), format!("{ASKED} 2"));
    assert_eq!(reading.verdict(None), "1, 2 hole");
    assert_eq!(reading.read.refetched(), 1);
}

#[test]
fn an_object_that_is_gone_is_skipped_and_one_that_is_indexed_and_gone_is_an_error() {
    for chosen in [OnCorruptedSegment::Skip, OnCorruptedSegment::Fail] {
        for (verdict, expected) in
            [(Verdict::Gone, "1 skipped, 2 skipped"), (Verdict::Indexed, "1 NotFound, 2 NotFound")]
        {
            let mut reading = Reading::with(chosen, &[100; 2], &[1, 2]);
            reading.said();
            assert_eq!(reading.fails(StoreErrorKind::NotFound), format!("{ASKED} 1"));
            assert_eq!(reading.verdict(Some(verdict)), expected);
        }
    }
}

#[test]
fn a_body_of_another_length_is_a_failed_fetch_and_no_hole() {
    for length in [0, 1, 299, 301, 1000] {
        let mut reading = Reading::new(&[100; 3], &[1, 2, 3]);
        reading.said();
        let said = reading.answer(Ok(Bytes::from(vec![0; length])));
        assert_eq!(said, format!("{ASKED} 1"), "{length} bytes");
        assert_eq!(reading.verdict(None), "1 Transient, 2 Transient, 3 Transient");
        assert_eq!(reading.read.refetched(), 0);
        let (_, SegmentOutcome::Failed(error)) = &reading.outcomes[0] else { panic!("it failed") };
        assert!(error.to_string().contains(&format!("asked for 300 bytes and got {length}")));
    }
}

#[test]
fn events_that_are_not_waited_for_change_nothing() {
    let mut reading = Reading::new(&[100; 2], &[1, 2]);
    reading.said();
    assert_eq!(reading.verdict(Some(Verdict::Gone)), "nothing");
    let wrong = [
        StorageAnswer::CreateResult { id: RequestId(0), result: Ok(()) },
        StorageAnswer::Fetched { id: RequestId(1), result: Ok(Bytes::new()) },
    ];
    for answer in wrong {
        assert_eq!(reading.handle(SegmentReadEvent::Storage(answer)), "nothing");
    }
    reading.fetched(&[1]);
    // The first fetch was answered.
    let again = StorageAnswer::Fetched { id: RequestId(0), result: Ok(Bytes::new()) };
    assert_eq!(reading.handle(SegmentReadEvent::Storage(again.clone())), "nothing");
    assert_eq!(reading.fetched(&[]), "1, 2");
    assert_eq!(reading.handle(SegmentReadEvent::Storage(again)), "nothing", "it has ended");
}

#[test]
fn where_nothing_is_wanted_nothing_is_asked() {
    let mut reading = Reading::new(&[100; 2], &[]);
    assert_eq!(reading.said(), "");
    assert_eq!(reading.said(), "nothing");
}

fn any_offset() -> impl Strategy<Value = u64> {
    prop_oneof![0..5 * MIB, (u64::MAX - 3 * MIB)..]
}

/// In parts too.
fn any_length() -> impl Strategy<Value = u64> {
    prop_oneof![30 => 0..1_000u64, 5 => 0..MIB, 1 => RangeRead::PART..2 * RangeRead::PART]
}

/// A property found it.
#[test]
fn segments_that_a_plan_names_in_no_order_are_covered_all_the_same() {
    let far = u64::MAX - (1 << 20);
    let spans = spans([(0, far..far), (1, 0..1 << 63), (2, far..far)].into_iter());
    assert_eq!(spans.len(), 1);
    assert_eq!((spans[0].range.clone(), spans[0].segments.clone()), (0..far, 0..3));
}

proptest! {
    /// However the segments lie: every fetch is of what is wanted and of gaps, none has more than
    /// was said, and together they cover each segment once.
    #[test]
    fn spans_cover_what_is_wanted_and_little_else(
        lengths in prop::collection::vec((24..3 * MIB, any::<bool>()), 1..12),
    ) {
        let mut at = 54;
        let mut wanted = Vec::new();
        for (index, (length, is_wanted)) in lengths.iter().enumerate() {
            if *is_wanted {
                wanted.push((index, at..at + length));
            }
            at += length;
        }
        let spans = spans(wanted.iter().cloned());
        let total: u64 = wanted.iter().map(|(_, range)| range.end - range.start).sum();
        for (index, range) in &wanted {
            let holders = spans.iter().filter(|span| {
                span.segments.contains(index)
                    && span.range.start <= range.start
                    && range.end <= span.range.end
            });
            prop_assert_eq!(holders.count(), 1);
        }
        let fetched: u64 = spans.iter().map(|span| span.range.end - span.range.start).sum();
        if let (Some((_, first)), Some((_, last))) = (wanted.first(), wanted.last())
            && total * 2 >= last.end - first.start
        {
            prop_assert_eq!(spans.len(), 1);
        }
        if spans.len() > 1 {
            let apart = spans.iter().zip(spans.iter().skip(1));
            prop_assert!(apart.clone().all(|(a, b)| a.range.end + MIB < b.range.start));
        }
        let most = (total * 2).max(total + MIB * wanted.len() as u64);
        prop_assert!(fetched <= most, "{} B fetched for {} B", fetched, total);
    }

    /// Whatever a plan says, and whatever comes for it: no panic, and it ends.
    #[test]
    fn no_plan_makes_it_panic_or_go_on_for_ever(
        segments in prop::collection::vec((any_offset(), any_length(), any::<u32>()), 0..6),
        answers in prop::collection::vec(0u8..4, 0..30),
    ) {
        let meta = |(offset, length, count)| SegmentMeta {
            region: RegionId(1),
            min_id: id(1),
            max_id: id(1),
            count,
            offset,
            length,
            crc: 0,
        };
        let count = segments.len();
        let total: u64 = segments.iter().map(|(_, length, _)| length).sum();
        let segments = segments.into_iter().map(|at| wanted(meta(at))).collect();
        let planned = PlannedObject { object: OBJECT, key: "log/7".into(), segments };
        planned.weight();
        let options = Options { read_retry_for: Duration::from_millis(300), ..Options::default() };
        let mut read = ObjectRead::new(planned, &options);
        let mut answers = answers.into_iter().chain(core::iter::repeat(0));
        let (mut now, mut progress) = (Time::ZERO, ReadProgress::default());
        // Each fetch and each part of it twice, each of them repeated twice, or one that fails.
        let parts = 2 * count + 4 * total.div_ceil(RangeRead::PART) as usize;
        for _ in 0..=6 * parts + 1 {
            let Some(effect) = read.poll_effect() else {
                now = read.next_tick().expect("it waits for what it asked for");
                read.handle(now, &mut progress, SegmentReadEvent::Tick);
                continue;
            };
            let event = match effect {
                ObjectReadEffect::Storage(StorageEffect::FetchRange { id, range, .. }) => {
                    let length = range.end - range.start;
                    prop_assert!(length <= RangeRead::PART);
                    let result = match answers.next() {
                        Some(0) => Ok(vec![0; length as usize].into()),
                        Some(1) => Ok(vec![0; length as usize / 2].into()),
                        Some(2) => Err(StoreError::new(StoreErrorKind::Transient)),
                        _ => Err(StoreError::new(StoreErrorKind::Refused)),
                    };
                    SegmentReadEvent::Storage(StorageAnswer::Fetched { id, result })
                }
                ObjectReadEffect::Storage(other) => panic!("{other:?}"),
                ObjectReadEffect::AskWriter(_) => SegmentReadEvent::Verdict(None),
                ObjectReadEffect::Done(outcomes) => {
                    prop_assert_eq!(outcomes.len(), count);
                    return Ok(());
                }
            };
            read.handle(now, &mut progress, event);
        }
        prop_assert!(false, "it does not end");
    }
}
