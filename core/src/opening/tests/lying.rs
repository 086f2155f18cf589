//! Sizes that lie: nothing is held by a number that was read (DESIGN.md section 4, step 2).

use core::ops::Range;
use std::format;

use super::*;
use crate::error::Part;
use crate::format::{Object, PART, SegmentMeta, TRAILER_LEN, Trailer};
use crate::types::{EntryId, RegionId};

const HUGE: u64 = 8 << 30;

fn start() -> Make {
    make(0, 1).writer("a")
}

/// An object of this size that is zeros but for its ends, which are these.
fn sparse(size: u64, head: Bytes, tail: Bytes) -> Sparse {
    let zeros = Bytes::from(alloc::vec![0; PART as usize]);
    let make_up = move |range: Range<u64>| {
        let length = range.end - range.start;
        assert!(length <= PART, "{length} bytes are asked for at once");
        let tail_at = size - tail.len() as u64;
        if range.start >= head.len() as u64 && range.end <= tail_at {
            return zeros.slice(..length as usize);
        }
        let mut bytes = alloc::vec![0; length as usize];
        for (at, part) in [(0, &head), (tail_at, &tail)] {
            for (at, byte) in (at..).zip(part) {
                if range.contains(&at) {
                    bytes[(at - range.start) as usize] = *byte;
                }
            }
        }
        bytes.into()
    };
    (size, Box::new(make_up))
}

/// The first bytes of an object at 1.
fn head() -> Bytes {
    make(1, 1).after(0, 1).bytes().slice(..54)
}

/// Trailer of a footer at this offset.
fn trailer(footer_offset: u64, footer_length: u64, footer_crc: u32) -> Bytes {
    let trailer = Trailer { footer_offset, footer_length, footer_crc, object_crc: 0 };
    let mut bytes = Vec::new();
    trailer.encode(&mut bytes);
    bytes.into()
}

/// An object of this size with one segment of this region that fills it.
fn one_segment(region: RegionId, size: u64) -> Sparse {
    let footer_length = 4 + 48;
    let length = size - 54 - footer_length - TRAILER_LEN as u64;
    let id = EntryId::new(ObjectSeq(1), 1).unwrap();
    let (min_id, max_id) = (id, id);
    let meta = SegmentMeta { region, min_id, max_id, count: 1, offset: 54, length, crc: 7 };
    let mut footer = Vec::from(1u32.to_be_bytes());
    meta.encode(&mut footer);
    let crc = crc32fast::hash(&footer);
    let tail = [&footer[..], &trailer(54 + length, footer_length, crc)].concat();
    sparse(size, head(), tail.into())
}

/// The opening of a log whose object 1 is made up. What it holds at any time is told by what it would
/// print: a buffer prints every byte.
fn open_made_up<T: Ending>(mut opening: Opening<T>, object: Sparse) -> (Result<T, Error>, u64) {
    let mut store = Store::of([start()]);
    store.sparse.insert(key(1), object);
    let (mut now, mut read) = (BEGAN, 0);
    loop {
        let Some(effect) = opening.poll_effect() else {
            now = opening.next_tick().expect("it goes on");
            opening.handle(now, OpeningEvent::Tick);
            continue;
        };
        match effect {
            OpeningEffect::Storage(effect) => {
                if let StorageEffect::FetchRange { key: at, range, .. } = &effect
                    && *at == key(1)
                {
                    read += range.end - range.start;
                }
                let answer = store.answer(&effect);
                opening.handle(now, OpeningEvent::Storage(answer));
                let held = format!("{:?}", opening.phase).len();
                assert!(held < 2_000_000, "{held} characters of what is held");
            }
            OpeningEffect::Notice(_) => {}
            OpeningEffect::Opened(ending) => return (Ok(*ending), read),
            OpeningEffect::Failed(error) => return (Err(error), read),
        }
    }
}

fn new() -> Opening {
    Opening::new(BEGAN, prefix(), Options::default(), identity()).unwrap()
}

fn view() -> Opening<View> {
    Opening::read_only(BEGAN, prefix(), Options::default()).unwrap()
}

fn survey() -> Opening<Survey> {
    Opening::survey(BEGAN, prefix(), Options::default()).unwrap()
}

fn corrupted<T>(result: &Result<T, Error>) -> (Key, Part, &str) {
    match result {
        Err(Error::Corrupted { key, part, reason, .. }) => (key.clone(), *part, reason),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opened"),
    }
}

fn problems(result: &Result<Survey, Error>) -> Vec<(Key, Part)> {
    let survey = result.as_ref().unwrap_or_else(|error| panic!("{error}"));
    survey.problems().map(|problem| (problem.key, problem.error.part)).collect()
}

#[test]
fn a_footer_that_a_trailer_makes_up_is_left_at_the_first_row_that_does_not_hold() {
    let rows = (HUGE - 54 - TRAILER_LEN as u64 - 4) / 48;
    let length = 4 + 48 * rows;
    let size = 54 + length + TRAILER_LEN as u64;
    // A count of zero; and one that fits.
    for count in [0, rows as u32] {
        let head = [&head()[..], &count.to_be_bytes()].concat();
        let object = || sparse(size, head.clone().into(), trailer(54, length, 0));
        let (result, read) = open_made_up(new(), object());
        let (at, part, reason) = corrupted(&result);
        assert_eq!((at, part), (key(1), Part::Footer), "{reason}");
        // Twice, and twice again for the second listing: the ends and one part.
        assert!(read < 4 * (PART + 70_000), "{read} bytes were read");
        corrupted(&open_made_up(view(), object()).0);
        assert_eq!(problems(&open_made_up(survey(), object()).0), [(key(1), Part::Footer)]);
    }
}

#[test]
fn a_writer_record_that_is_huge_is_not_read() {
    let object = || one_segment(RegionId::WRITER, HUGE);
    let (result, read) = open_made_up(new(), object());
    // It is for people: no reason not to open.
    assert_eq!(result.unwrap().start, link(3, 4));
    assert!(read < 200_000, "{read} bytes were read");
    assert!(open_made_up(view(), object()).0.is_ok());
    assert_eq!(problems(&open_made_up(survey(), object()).0), [(key(1), Part::WriterRecord)]);
}

#[test]
fn release_records_that_are_huge_are_checksummed_before_they_are_held() {
    let size = 3 * PART + 1_000;
    let object = || one_segment(RegionId::RELEASES, size);
    let (result, read) = open_made_up(new(), object());
    let (at, part, reason) = corrupted(&result);
    assert_eq!((at, part), (key(1), Part::Segment(RegionId::RELEASES)));
    assert!(reason.contains("checksum"), "{reason}");
    assert!(read < 4 * (size + 70_000), "{read} bytes were read");
    corrupted(&open_made_up(view(), object()).0);
    let problem = (key(1), Part::Segment(RegionId::RELEASES));
    assert_eq!(problems(&open_made_up(survey(), object()).0), [problem]);
}

#[test]
fn an_object_that_is_not_as_long_as_listed_is_damage_once_a_second_listing_agrees() {
    let object = make(1, 1).after(0, 1).entry(1, 200).bytes();
    // Cut, with a header that survives; and read longer than it is listed.
    for length in [54, 60, 89, 90, object.len() - 1] {
        let cut = object.slice(..length);
        for listed in [length as u64, object.len() as u64] {
            let mut store = Store::of([start()]);
            let cut = cut.clone();
            let body = move |range: Range<u64>| {
                cut.slice(range.start as usize..cut.len().min(range.end as usize))
            };
            store.sparse.insert(key(1), (listed, Box::new(body)));
            let run = open(store);
            let Error::Corrupted { key: at, .. } = run.failed() else { panic!("{}", run.failed()) };
            assert_eq!(*at, key(1));
            assert_eq!(run.times(Operation::List), [Duration::ZERO; 2], "without delay");
            assert!(run.puts().is_empty());
            assert!(run.failed().to_string().contains("Nothing was changed"), "{}", run.failed());
        }
    }
    // Once is the download.
    let mut store = Store::of([start(), make(1, 1).after(0, 1).entry(1, 200)]);
    store.fault(Operation::Read, key(1), Fault::Short);
    assert_eq!(open(store).opened().start, link(3, 4));
    assert!(Object::decode(&object).is_ok());
}

/// Another object came to the key between the listing and the reads: the second listing shows that.
#[test]
fn a_smaller_object_in_the_place_of_a_listed_one_is_no_damage() {
    let mut store = Store::of([start(), make(1, 1).after(0, 1).entry(1, 2_000)]);
    store.before(0, Operation::Read, key(1), |objects| {
        objects.insert(key(1), make(1, 1).after(0, 1).entry(1, 20).bytes());
    });
    let run = open(store);
    assert_eq!(run.opened().start, link(3, 4));
    assert_eq!(run.times(Operation::List), [Duration::ZERO; 4]);
}
