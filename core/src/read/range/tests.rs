use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use core::cell::Cell;

use proptest::prelude::*;

use super::*;
use crate::error::StoreErrorKind;

const MIB: u64 = 1 << 20;

fn options(read_retry_for: Duration) -> Options {
    Options { read_retry_for, ..Options::default() }
}

fn millis(time: Time) -> u64 {
    time.as_nanos() / 1_000_000
}

/// What an object holds there: every eight bytes say where they are.
fn body(range: Range<u64>) -> Bytes {
    let (first, last) = (range.start / 8, range.end.div_ceil(8));
    let mut bytes = Vec::with_capacity((last - first) as usize * 8);
    (first..last).for_each(|at| bytes.extend_from_slice(&at.to_be_bytes()));
    let start = (range.start % 8) as usize;
    Bytes::from(bytes).slice(start..start + (range.end - range.start) as usize)
}

/// A fetch of a read, whose other fetches it shares its progress with.
struct Fetching<'a> {
    read: RangeRead,
    now: Time,
    progress: &'a Cell<ReadProgress>,
    fetch: Option<(RequestId, Range<u64>)>,
    result: Option<Result<Bytes, StoreError>>,
}

impl<'a> Fetching<'a> {
    fn new(
        range: Range<u64>,
        retry_for: Duration,
        progress: &'a Cell<ReadProgress>,
    ) -> Fetching<'a> {
        let read = RangeRead::new("log/7".into(), range, &options(retry_for));
        Fetching { read, now: Time::ZERO, progress, fetch: None, result: None }
    }

    /// What it wants next, in short.
    fn said(&mut self) -> String {
        let said = match self.read.poll_effect() {
            None => match self.read.next_tick() {
                None => "nothing".into(),
                Some(tick) => format!("wait until {}", millis(tick)),
            },
            Some(RangeReadEffect::Storage(StorageEffect::FetchRange {
                id,
                key,
                range,
                time_limit,
            })) => {
                assert_eq!((&*key, time_limit), ("log/7", Duration::from_secs(30)));
                self.fetch = Some((id, range.clone()));
                format!("fetch {range:?}")
            }
            Some(RangeReadEffect::Storage(other)) => panic!("{other:?}"),
            Some(RangeReadEffect::Done(result)) => {
                let said = match &result {
                    Ok(bytes) => format!("{} bytes", bytes.len()),
                    Err(error) => format!("failed: {:?}", error.kind),
                };
                self.result = Some(result);
                said
            }
        };
        assert!(self.read.poll_effect().is_none(), "one thing at a time");
        said
    }

    fn handle(&mut self, event: SegmentReadEvent) -> String {
        let mut progress = self.progress.get();
        self.read.handle(self.now, &mut progress, event);
        self.progress.set(progress);
        self.said()
    }

    /// So many milliseconds since the beginning, this is answered.
    fn answer(&mut self, at: u64, result: Result<Bytes, StoreError>) -> String {
        self.now = Time::from_millis(at);
        let (id, _) = self.fetch.take().expect("a fetch is under way");
        self.handle(SegmentReadEvent::Storage(StorageAnswer::Fetched { id, result }))
    }

    fn comes(&mut self, at: u64) -> String {
        let (_, range) = self.fetch.clone().expect("a fetch is under way");
        self.answer(at, Ok(body(range)))
    }

    fn fails(&mut self, at: u64, kind: StoreErrorKind) -> String {
        self.answer(at, Err(StoreError::new(kind)))
    }

    fn tick(&mut self, at: u64) -> String {
        self.now = Time::from_millis(at);
        self.handle(SegmentReadEvent::Tick)
    }
}

use StoreErrorKind::{Exists, NotFound, NotSupported, Refused, TimedOut, Transient};

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn what_fails_and_may_pass_is_repeated_after_a_delay_with_a_new_id() {
    for kind in [Transient, TimedOut] {
        let progress = Cell::default();
        let mut read = Fetching::new(10..20, PATIENCE, &progress);
        assert_eq!(read.said(), "fetch 10..20");
        let first = read.fetch.clone().unwrap().0;
        assert_eq!(read.fails(7, kind), "wait until 107");
        // Time goes on by ticks alone, and what comes too early or too late changes nothing.
        assert_eq!(read.tick(106), "wait until 107");
        let late = StorageAnswer::Fetched { id: first, result: Ok(body(10..20)) };
        let late = SegmentReadEvent::Storage(late);
        assert_eq!(read.handle(late.clone()), "wait until 107");
        assert_eq!(read.tick(107), "fetch 10..20");
        assert_eq!(read.handle(late), "nothing", "it is another request's");
        assert_eq!(read.comes(110), "10 bytes");
        assert_eq!(read.result.take().unwrap().unwrap(), body(10..20));
        assert_eq!(read.tick(111), "nothing");
    }
}

#[test]
fn what_fails_for_ever_is_repeated_with_delays_that_double_to_5_s_until_30_s_have_passed() {
    let progress = Cell::default();
    let mut read = Fetching::new(0..1, PATIENCE, &progress);
    read.said();
    let (mut now, mut waits) = (1_000, Vec::new());
    let end = loop {
        let said = read.fails(now, Transient);
        let Some(until) = said.strip_prefix("wait until ") else { break said };
        let until: u64 = until.parse().unwrap();
        waits.push(until - now);
        now = until;
        let said = read.tick(now);
        if said != "fetch 0..1" {
            break said;
        }
    };
    assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000, 5000, 3700]);
    assert_eq!((now, &*end), (31_000, "failed: Transient"));
    assert_eq!(read.tick(40_000), "nothing");
}

#[test]
fn what_does_not_pass_by_waiting_fails_at_once() {
    for kind in [NotFound, Refused, NotSupported, Exists] {
        let progress = Cell::default();
        let mut read = Fetching::new(0..1, PATIENCE, &progress);
        read.said();
        assert_eq!(read.fails(0, Transient), "wait until 100");
        read.tick(100);
        assert_eq!(read.fails(100, kind), format!("failed: {kind:?}"));
    }
}

#[test]
fn without_patience_the_first_failure_is_the_last() {
    let progress = Cell::default();
    let mut read = Fetching::new(0..1, Duration::ZERO, &progress);
    read.said();
    assert_eq!(read.fails(5, TimedOut), "failed: TimedOut");
}

#[test]
fn a_body_of_another_length_is_a_failed_fetch_that_may_pass() {
    for length in [0, 1, 9, 11, 1000] {
        let progress = Cell::default();
        let mut read = Fetching::new(10..20, Duration::from_millis(150), &progress);
        read.said();
        let wrong = || Ok(Bytes::from(vec![0; length]));
        assert_eq!(read.answer(0, wrong()), "wait until 100");
        assert_eq!(read.tick(100), "fetch 10..20");
        assert_eq!(read.answer(100, wrong()), "wait until 150", "it was no success");
        assert_eq!(read.tick(150), "failed: Transient");
        let Some(Err(error)) = read.result else { panic!("it failed") };
        let said = alloc::format!("{:?}", error);
        assert!(said.contains(&format!("asked for 10 bytes and got {length}")), "{said}");
    }
}

/// One read has many fetches under way: while others succeed, the store is there.
#[test]
fn a_success_of_another_fetch_of_the_read_moves_the_limit() {
    let progress = Cell::default();
    let patience = Duration::from_millis(1_000);
    let mut read = Fetching::new(0..1, patience, &progress);
    let mut other = Fetching::new(5..6, patience, &progress);
    read.said();
    other.said();
    assert_eq!(read.fails(0, Transient), "wait until 100");
    assert_eq!(read.tick(100), "fetch 0..1");
    assert_eq!(read.fails(900, Transient), "wait until 1000", "and not until 1100");
    assert_eq!(other.comes(950), "1 bytes");
    assert_eq!(read.tick(1_000), "wait until 1100", "the limit is 1950 now");
    assert_eq!(read.tick(1_100), "fetch 0..1");
    assert_eq!(read.fails(1_700, Transient), "wait until 1950");
    assert_eq!(read.tick(1_950), "failed: Transient");
    // Of another read it is no matter.
    let (progress, elsewhere) = (Cell::default(), Cell::default());
    let mut read = Fetching::new(0..1, patience, &progress);
    let mut other = Fetching::new(5..6, patience, &elsewhere);
    read.said();
    other.said();
    read.fails(0, Transient);
    read.tick(100);
    read.fails(900, Transient);
    assert_eq!(other.comes(950), "1 bytes");
    assert_eq!(read.tick(1_000), "failed: Transient");
}

/// Whoever reads may rest for an hour between two items, and a request that hangs may take as long as
/// the patience is: neither is the store's last word.
#[test]
fn patience_counts_from_the_first_failure_if_nothing_succeeded_since() {
    let progress = Cell::default();
    let mut first = Fetching::new(0..1, PATIENCE, &progress);
    first.said();
    first.comes(0);
    let mut read = Fetching::new(5..6, PATIENCE, &progress);
    read.said();
    assert_eq!(read.fails(3_600_000, TimedOut), "wait until 3600100");
    assert_eq!(read.tick(3_600_100), "fetch 5..6");
    assert_eq!(read.fails(3_630_100, TimedOut), "failed: TimedOut");
}

#[test]
fn a_clock_that_goes_back_is_taken_for_one_that_stands() {
    let progress = Cell::default();
    let mut read = Fetching::new(0..1, PATIENCE, &progress);
    read.said();
    assert_eq!(read.fails(5_000, Transient), "wait until 5100");
    assert_eq!(read.tick(50), "wait until 5100");
    assert_eq!(read.tick(5_100), "fetch 0..1");
    assert_eq!(read.fails(60, Transient), "wait until 5300");
}

#[test]
fn a_large_range_is_fetched_in_parts_each_of_which_may_fail() {
    let progress = Cell::default();
    let range = 7..7 + 32 * MIB + 5;
    let mut read = Fetching::new(range.clone(), PATIENCE, &progress);
    let part = |n: u64| format!("fetch {:?}", 7 + n * 16 * MIB..(7 + (n + 1) * 16 * MIB));
    assert_eq!(read.said(), part(0));
    assert_eq!(read.comes(0), part(1));
    assert_eq!(read.fails(10, Transient), "wait until 110");
    assert_eq!(read.tick(110), part(1));
    assert_eq!(read.fails(110, Transient), "wait until 310");
    assert_eq!(read.tick(310), part(1), "what came is kept");
    let last = format!("fetch {:?}", 7 + 32 * MIB..range.end);
    assert_eq!(read.comes(310), last);
    assert_eq!(read.fails(400, Transient), "wait until 500", "the delays begin anew");
    assert_eq!(read.tick(500), last);
    assert_eq!(read.comes(500), format!("{} bytes", range.end - range.start));
    assert!(read.result.unwrap().unwrap() == body(range));
}

#[test]
fn a_range_of_one_part_is_not_copied_and_an_empty_one_is_not_asked_for() {
    let progress = Cell::default();
    let mut read = Fetching::new(0..16 * MIB, PATIENCE, &progress);
    assert_eq!(read.said(), "fetch 0..16777216");
    let bytes = body(0..16 * MIB);
    read.answer(0, Ok(bytes.clone()));
    assert_eq!(read.result.unwrap().unwrap().as_ptr(), bytes.as_ptr());
    let mut read = Fetching::new(9..9, PATIENCE, &progress);
    assert_eq!(read.said(), "0 bytes");
    assert_eq!(read.said(), "nothing");
}

/// An object may say that it is larger than any memory: what has come is what memory is taken for.
#[test]
fn memory_is_taken_as_parts_arrive() {
    let progress = Cell::default();
    let mut read = Fetching::new(0..1 << 62, PATIENCE, &progress);
    read.said();
    for parts in 1..=5 {
        read.answer(0, Ok(vec![0; RangeRead::PART as usize].into()));
        let (held, room) = (read.read.fetched.len() as u64, read.read.fetched.capacity() as u64);
        assert_eq!(held, parts * RangeRead::PART);
        assert!(room <= 2 * held, "{parts} parts have room for {room} bytes");
    }
}

#[derive(Clone, Debug)]
enum Fault {
    Breaks,
    Hangs,
    Short(usize),
    Long(usize),
}

fn any_fault() -> impl Strategy<Value = Option<Fault>> {
    prop_oneof![
        2 => Just(None),
        2 => Just(Some(Fault::Breaks)),
        1 => Just(Some(Fault::Hangs)),
        1 => (1usize..50).prop_map(|by| Some(Fault::Short(by))),
        1 => (1usize..50).prop_map(|by| Some(Fault::Long(by))),
    ]
}

proptest! {
    /// Faults that pass make no difference but for the time they take: several fetches of one read
    /// side by side, each with faults of its own. However long the store is bad, as long as
    /// something succeeds within the patience, all of them end with what is stored; and if nothing
    /// does any more, all end as failed.
    #[test]
    fn faults_that_pass_change_nothing(
        ranges in prop::collection::vec((0u64..1_000, 1u64..200), 1..5),
        faults in prop::collection::vec(any_fault(), 0..60),
        gone in any::<bool>(),
    ) {
        let progress = Cell::default();
        let ranges: Vec<_> = ranges.into_iter().map(|(at, length)| at..at + length).collect();
        let mut reads: Vec<_> =
            ranges.iter().map(|range| Fetching::new(range.clone(), PATIENCE, &progress)).collect();
        reads.iter_mut().for_each(|read| drop(read.said()));
        // At most six faults in a row: 100 ms to 3.2 s.
        let (mut faults, mut in_a_row) = (faults.into_iter(), vec![0; reads.len()]);
        let mut now = 0;
        for _ in 0..2_000 {
            for (read, in_a_row) in reads.iter_mut().zip(&mut in_a_row) {
                let Some((_, range)) = read.fetch.clone() else { continue };
                let fault = faults.next().flatten().filter(|_| *in_a_row < 6);
                *in_a_row = if fault.is_some() { *in_a_row + 1 } else { 0 };
                let fault = if gone { Some(Fault::Breaks) } else { fault };
                let bytes = body(range);
                let result = match fault {
                    None => Ok(bytes),
                    Some(Fault::Breaks) => Err(StoreError::new(Transient)),
                    Some(Fault::Hangs) => Err(StoreError::new(TimedOut)),
                    Some(Fault::Short(by)) => Ok(bytes.slice(..bytes.len().saturating_sub(by))),
                    Some(Fault::Long(by)) => Ok([&bytes[..], &vec![0; by]].concat().into()),
                };
                read.answer(now, result);
            }
            let Some(tick) = reads.iter().filter_map(|read| read.read.next_tick()).min() else {
                break;
            };
            now = now.max(millis(tick));
            reads.iter_mut().filter(|r| r.result.is_none()).for_each(|read| drop(read.tick(now)));
        }
        for (read, range) in reads.into_iter().zip(ranges) {
            match read.result {
                Some(Ok(bytes)) => prop_assert!(!gone && bytes == body(range)),
                Some(Err(error)) => prop_assert!(gone, "{}", error.to_string()),
                None => prop_assert!(false, "it does not end"),
            }
        }
    }
}
