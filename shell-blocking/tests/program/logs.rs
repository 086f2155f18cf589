//! Logs that have lived, as the tests of reading commands need them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sealog_blocking::{EntryId, Epoch, Link, ObjectSeq, Options, RegionId, Wal};
use sealog_core::format::{Header, ObjectEncoder};

/// A log of two writers in a new directory, with all that a life leaves behind:
///
/// | objects | what they are |
/// | --- | --- |
/// | 0 | the first writer's start |
/// | 1, 2 | entries of region 1: collected |
/// | 3, 4, 5 | entries of regions 2, 3 and 2 |
/// | 6, 7 | the second writer's claim, and its start |
/// | 8 | entries of regions 3 and 4 in one append |
/// | 9 | the record that region 1 is released |
/// | 10, 11 | entries of region 2, and 3 |
/// | 12 | what the first writer had under way, and landed late: an orphan |
///
/// And files that are none of the log's.
pub(crate) fn lived_in(directory: &Path) {
    let wal = open(directory, "first");
    for (region, text) in [(1, "one"), (1, "two"), (2, "three"), (3, "four"), (2, "five")] {
        append(&wal, region, text);
    }
    wal.stop().unwrap();

    let wal = open(directory, "second");
    wal.append_batch(vec![(RegionId(3), "six".into()), (RegionId(4), "seven".into())]).unwrap();
    wal.release(RegionId(1)).unwrap();
    // Carries the boundary that the release raised.
    append(&wal, 2, "eight");
    let began = Instant::now();
    while [1, 2].iter().any(|sequence| object(directory, *sequence).exists()) {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is collected");
        std::thread::sleep(Duration::from_millis(5));
    }
    append(&wal, 3, "nine");
    wal.stop().unwrap();

    let first = Epoch(1);
    let mut late = ObjectEncoder::new();
    let (sequence, payload) = (ObjectSeq(12), Bytes::from_static(b"late"));
    late.push(RegionId(2), EntryId::new(sequence, 1).unwrap(), &payload);
    let header = Header {
        sequence,
        epoch: first,
        predecessor: Some(Link { sequence: ObjectSeq(5), epoch: first }),
        boundary: ObjectSeq::ZERO,
    };
    let (payload, _) = late.finish(&header);
    std::fs::write(object(directory, 12), payload.to_bytes()).unwrap();

    // As the table says.
    let there = [0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map(|sequence| object(directory, sequence));
    let there: Vec<_> = there.iter().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(files(directory).keys().collect::<Vec<_>>(), there);
    foreign(directory);
}

/// Files beside the objects that no log made.
pub(crate) fn foreign(directory: &Path) {
    std::fs::create_dir_all(directory.join("objects")).unwrap();
    std::fs::write(directory.join("README"), "what this is").unwrap();
    std::fs::write(directory.join("objects/notes.txt"), "mine").unwrap();
    std::fs::write(directory.join("objects/1.wal"), "not a name of the log's").unwrap();
}

/// An object per append.
fn open(directory: &Path, name: &str) -> Wal {
    let options = Options {
        flush_interval: Duration::ZERO,
        linger: Duration::ZERO,
        writer_name: Some(name.into()),
        ..Options::default()
    };
    Wal::open_local(directory, options).unwrap()
}

fn append(wal: &Wal, region: u64, text: &'static str) {
    wal.append(RegionId(region), text).unwrap();
}

pub(crate) fn object(directory: &Path, sequence: u64) -> PathBuf {
    directory.join(format!("objects/{sequence:020}.wal"))
}

/// Damages the payload of an entry.
pub(crate) fn damage(directory: &Path, sequence: u64, payload: &str) {
    let path = object(directory, sequence);
    let mut bytes = std::fs::read(&path).unwrap();
    let places = bytes.windows(payload.len());
    let place = places.into_iter().position(|window| window == payload.as_bytes()).unwrap();
    bytes[place] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// Damages a byte, counted from the end if it is negative.
pub(crate) fn damage_at(directory: &Path, sequence: u64, place: i64) {
    let path = object(directory, sequence);
    let mut bytes = std::fs::read(&path).unwrap();
    let place = if place < 0 { bytes.len() as i64 + place } else { place };
    bytes[place as usize] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// Every file below a directory, with its content.
pub(crate) fn files(directory: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let content = std::fs::read(&path).unwrap();
                found.insert(path.to_str().unwrap().to_owned(), content);
            }
        }
    }
    found
}
