use alloc::format;
use alloc::string::String;
use core::time::Duration;

use bytes::Bytes;

use super::*;
use crate::error::{Part, StoreError, StoreErrorKind};
use crate::event::RequestId;
use crate::format::{Header, ObjectEncoder};
use crate::options::OnCorruptedSegment;
use crate::types::{EntryId, Epoch, Link, ObjectSeq, RegionId};

/// An object at sequence 7 with five entries of region 1, and the plan to read the middle three.
fn planned() -> (PlannedSegment, Bytes) {
    let object = Link { sequence: ObjectSeq(7), epoch: Epoch(1) };
    let mut encoder = ObjectEncoder::new();
    for position in 1..=5 {
        let payload = Bytes::from(format!("entry {position}"));
        encoder.push(RegionId(1), id(position), &payload);
    }
    let header = Header {
        sequence: object.sequence,
        epoch: object.epoch,
        predecessor: None,
        boundary: ObjectSeq::ZERO,
    };
    let (payload, table) = encoder.finish(&header);
    let meta = table[0];
    let segment = SegmentRef { object, region: RegionId(1) };
    let (from, through) = (id(2), id(4));
    let planned = PlannedSegment { segment, key: "log/7".into(), meta, from, through };
    let bytes = payload.to_bytes().slice(meta.offset as usize..meta.range().end as usize);
    (planned, bytes)
}

fn id(position: u32) -> EntryId {
    EntryId::new(ObjectSeq(7), position).unwrap()
}

fn damaged(bytes: &Bytes) -> Bytes {
    let mut damaged = bytes.to_vec();
    damaged[30] ^= 1;
    damaged.into()
}

struct Reading(SegmentRead);

impl Reading {
    /// The first failure is the last.
    fn new(on_corrupted_segment: OnCorruptedSegment) -> (Reading, Bytes) {
        let (planned, bytes) = planned();
        let read_retry_for = Duration::ZERO;
        let options = Options { on_corrupted_segment, read_retry_for, ..Options::default() };
        let range = planned.meta.range();
        let mut read = Reading(SegmentRead::new(planned, &options));
        assert_eq!(read.said(), format!("fetch {range:?}"));
        (read, bytes)
    }

    /// What comes of an event, in short; nothing more may come of it.
    fn handle(&mut self, event: SegmentReadEvent) -> String {
        self.0.handle(Time::ZERO, &mut ReadProgress::default(), event);
        self.said()
    }

    fn said(&mut self) -> String {
        let said = match self.0.poll_effect() {
            None => "nothing".into(),
            Some(SegmentReadEffect::Storage(StorageEffect::FetchRange { range, .. })) => {
                format!("fetch {range:?}")
            }
            Some(SegmentReadEffect::Storage(other)) => panic!("{other:?}"),
            Some(SegmentReadEffect::AskWriter(segment)) => format!("ask {}", segment.object),
            Some(SegmentReadEffect::Done(SegmentOutcome::Entries(entries))) => {
                let ids: Vec<_> = entries.iter().map(|entry| entry.id.position()).collect();
                format!("entries {ids:?}")
            }
            Some(SegmentReadEffect::Done(SegmentOutcome::Hole(hole))) => {
                format!("hole {} to {}", hole.min_id.position(), hole.max_id.position())
            }
            Some(SegmentReadEffect::Done(SegmentOutcome::Skipped)) => "skipped".into(),
            Some(SegmentReadEffect::Done(SegmentOutcome::Failed(error))) => match error {
                Error::Corrupted { part: Part::Segment(region), .. } => format!("damaged {region}"),
                Error::Store { operation, source, .. } => {
                    format!("failed {operation} {:?}", source.kind)
                }
                other => panic!("{other}"),
            },
        };
        assert!(self.0.poll_effect().is_none());
        said
    }

    fn fetched(&mut self, number: u64, bytes: &Bytes) -> String {
        let (id, result) = (RequestId(number), Ok(bytes.clone()));
        self.handle(SegmentReadEvent::Storage(StorageAnswer::Fetched { id, result }))
    }

    fn fails(&mut self, number: u64, kind: StoreErrorKind) -> String {
        let (id, result) = (RequestId(number), Err(StoreError::new(kind)));
        self.handle(SegmentReadEvent::Storage(StorageAnswer::Fetched { id, result }))
    }

    fn verdict(&mut self, verdict: Option<Verdict>) -> String {
        self.handle(SegmentReadEvent::Verdict(verdict))
    }
}

const ASKED: &str = "ask object 7 of epoch 1";

#[test]
fn a_segment_yields_the_entries_that_are_wanted() {
    let (mut read, bytes) = Reading::new(OnCorruptedSegment::Skip);
    assert_eq!(read.fetched(0, &bytes), "entries [2, 3, 4]");
    assert!(!read.0.refetched());
    assert_eq!(read.fetched(0, &bytes), "nothing", "it has ended");
}

#[test]
fn a_damaged_download_is_fetched_once_more() {
    let (mut read, bytes) = Reading::new(OnCorruptedSegment::Fail);
    assert!(read.fetched(0, &damaged(&bytes)).starts_with("fetch"));
    assert!(read.0.refetched());
    assert_eq!(read.fetched(0, &bytes), "nothing", "the first fetch was answered");
    assert_eq!(read.fetched(1, &bytes), "entries [2, 3, 4]");
}

#[test]
fn a_segment_that_does_not_decode_twice_is_a_hole_or_a_failure_as_chosen() {
    use OnCorruptedSegment::{Fail, Skip};
    for (chosen, expected) in [(Skip, "hole 1 to 5"), (Fail, "damaged 1")] {
        for verdict in [Some(Verdict::Indexed), None] {
            let (mut read, bytes) = Reading::new(chosen);
            read.fetched(0, &damaged(&bytes));
            assert_eq!(read.fetched(1, &damaged(&bytes)), ASKED);
            assert_eq!(read.verdict(verdict), expected);
        }
    }
}

#[test]
fn a_failed_fetch_is_no_corruption_and_fails_the_read_in_both_modes() {
    for chosen in [OnCorruptedSegment::Skip, OnCorruptedSegment::Fail] {
        for kind in [StoreErrorKind::NotFound, StoreErrorKind::TimedOut, StoreErrorKind::Refused] {
            let (mut read, _) = Reading::new(chosen);
            assert_eq!(read.fails(0, kind), ASKED);
            assert_eq!(read.verdict(Some(Verdict::Indexed)), format!("failed reading {kind:?}"));
        }
    }
}

#[test]
fn an_object_that_was_collected_meanwhile_is_skipped() {
    for chosen in [OnCorruptedSegment::Skip, OnCorruptedSegment::Fail] {
        let (mut read, _) = Reading::new(chosen);
        assert_eq!(read.fails(0, StoreErrorKind::NotFound), ASKED);
        assert_eq!(read.verdict(Some(Verdict::Gone)), "skipped");
        let (mut read, bytes) = Reading::new(chosen);
        read.fetched(0, &damaged(&bytes));
        read.fetched(1, &damaged(&bytes));
        assert_eq!(read.verdict(Some(Verdict::Gone)), "skipped");
    }
}

#[test]
fn events_that_are_not_waited_for_change_nothing() {
    let (mut read, bytes) = Reading::new(OnCorruptedSegment::Skip);
    assert_eq!(read.verdict(Some(Verdict::Gone)), "nothing");
    assert_eq!(read.fetched(9, &bytes), "nothing");
    let id = RequestId(0);
    let wrong = StorageAnswer::CreateResult { id, result: Ok(()) };
    assert_eq!(read.handle(SegmentReadEvent::Storage(wrong)), "nothing");
    assert_eq!(read.fetched(0, &bytes), "entries [2, 3, 4]");
}

#[test]
fn a_body_of_another_length_is_a_failed_fetch_and_no_hole() {
    let (_, bytes) = planned();
    let longer = Bytes::from([&bytes[..], b"x"].concat());
    for body in [Bytes::new(), bytes.slice(1..), longer] {
        let (mut read, _) = Reading::new(OnCorruptedSegment::Skip);
        assert_eq!(read.fetched(0, &body), ASKED);
        assert!(!read.0.refetched());
        assert_eq!(read.verdict(None), "failed reading Transient");
    }
}

#[test]
fn it_wants_a_tick_when_its_fetch_is_to_be_repeated() {
    let (planned, bytes) = planned();
    let mut read = Reading(SegmentRead::new(planned, &Options::default()));
    let fetch = read.said();
    assert_eq!(read.0.next_tick(), None);
    assert_eq!(read.fails(0, StoreErrorKind::Transient), "nothing");
    let due = Time::from_millis(100);
    assert_eq!(read.0.next_tick(), Some(due));
    read.0.handle(due, &mut ReadProgress::default(), SegmentReadEvent::Tick);
    assert_eq!(read.said(), fetch);
    assert_eq!(read.fetched(1, &bytes), "entries [2, 3, 4]");
}
