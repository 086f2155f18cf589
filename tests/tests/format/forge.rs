//! Changing objects as someone does who knows the format, and can compute a checksum.

use std::ops::Range;

use sealog_core::format::{
    ENTRY_HEADER_LEN, HEADER_LEN, Object, SEGMENT_HEADER_LEN, TRAILER_LEN, Trailer,
};
use sealog_core::types::RegionId;

const COUNT_LEN: usize = 4;
const ROW_LEN: usize = 48;

/// An integer somewhere in an object.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) at: usize,
    pub(crate) width: usize,
}

impl Field {
    pub(crate) fn get(&self, bytes: &[u8]) -> u64 {
        bytes[self.at..self.at + self.width].iter().fold(0, |value, b| value << 8 | u64::from(*b))
    }

    /// Cuts off what does not fit.
    pub(crate) fn set(&self, bytes: &mut [u8], value: u64) {
        let value = value.to_be_bytes();
        bytes[self.at..self.at + self.width].copy_from_slice(&value[8 - self.width..]);
    }

    /// Values that make trouble where one trusts them.
    pub(crate) fn hostile_values(&self, bytes: &[u8]) -> Vec<u64> {
        let (now, size) = (self.get(bytes), bytes.len() as u64);
        let largest = u64::MAX >> (64 - 8 * self.width);
        let near = [now.wrapping_sub(1), now.wrapping_add(1), now << 1, now >> 1, now ^ 1 << 31];
        let ends = [0, 1, largest, largest - 1, largest >> 1, (largest >> 1) + 1, 1 << 44, 1 << 32];
        let sizes = [size, size - 1, size + 1, largest.wrapping_sub(size)];
        let rooms = [largest / 12, largest / 16 + 1, largest / 48 + 1];
        let all =
            near.into_iter().chain(ends).chain(sizes).chain(rooms).map(|value| value & largest);
        let mut values: Vec<_> = all.filter(|value| *value != now).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}

/// Every integer of an object that decodes, but for its checksums, which [`repair`] sets.
pub(crate) fn fields(object: &Object, size: usize) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut run = |name: &str, mut at: usize, widths: &[(&str, usize)]| {
        for (part, width) in widths {
            fields.push(Field { name: format!("{name}: {part}"), at, width: *width });
            at += width;
        }
    };
    run("header", 8, &[("version", 2), ("sequence", 8), ("epoch", 8)]);
    run("header", 26, &[("predecessor", 8), ("predecessor's epoch", 8), ("boundary", 8)]);
    let footer = size - TRAILER_LEN - COUNT_LEN - object.segments.len() * ROW_LEN;
    run("footer", footer, &[("count", 4)]);
    for (place, (meta, entries)) in object.segments.iter().enumerate() {
        let name = format!("segment {}", meta.region);
        let mut at = meta.offset as usize;
        run(&name, at, &[("region", 8), ("count", 4)]);
        at += SEGMENT_HEADER_LEN;
        for (place, entry) in entries.iter().enumerate() {
            let is_inner = place > 0 && place + 1 < entries.len();
            let id = if is_inner { "inner id" } else { "id" };
            run(&name, at, &[(id, 8), ("payload length", 4)]);
            at += ENTRY_HEADER_LEN;
            match meta.region {
                RegionId::RELEASES => {
                    run("releases", at, &[("version", 1), ("count", 4)]);
                    for record in (at + 5..at + entry.payload.len()).step_by(16) {
                        run("releases", record, &[("region", 8), ("through", 8)]);
                    }
                }
                RegionId::WRITER => {
                    run("writer", at, &[("version", 1)]);
                    run("writer", at + 25, &[("depth", 2), ("name length", 2), ("name", 1)]);
                }
                _ => {}
            }
            at += entry.payload.len();
        }
        let row = footer + COUNT_LEN + place * ROW_LEN;
        let ids = [("region", 8), ("smallest id", 8), ("largest id", 8)];
        run(&format!("row {}", meta.region), row, &ids);
        let rest = [("count", 4), ("offset", 8), ("length", 8)];
        run(&format!("row {}", meta.region), row + 24, &rest);
    }
    run("trailer", size - TRAILER_LEN, &[("footer offset", 8), ("footer length", 8)]);
    fields
}

/// Makes every checksum right that can be found by following what the bytes say.
pub(crate) fn repair(bytes: &mut [u8]) {
    let size = bytes.len();
    if size < HEADER_LEN + TRAILER_LEN {
        return;
    }
    let crc = crc32fast::hash(&bytes[..HEADER_LEN - 4]);
    put(bytes, HEADER_LEN - 4, crc);
    let trailer = size - TRAILER_LEN;
    let (offset, length) = (get(bytes, trailer), get(bytes, trailer + 8));
    if let Some(footer) = range(offset, length, trailer) {
        for row in (footer.start + COUNT_LEN..footer.end).step_by(ROW_LEN) {
            if row + ROW_LEN > footer.end {
                break;
            }
            let (offset, length) = (get(bytes, row + 28), get(bytes, row + 36));
            if let Some(segment) = range(offset, length, size) {
                let crc = crc32fast::hash(&bytes[segment]);
                put(bytes, row + 44, crc);
            }
        }
        let crc = crc32fast::hash(&bytes[footer]);
        put(bytes, trailer + 16, crc);
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[..trailer + 20]);
    crc.update(&bytes[trailer + 24..]);
    put(bytes, trailer + 20, crc.finalize());
}

/// Leads the trailer to the footer again after bytes were put in or taken out before it, and has
/// the rows tile what lies between.
pub(crate) fn realign(bytes: &mut [u8]) {
    let size = bytes.len();
    if size < HEADER_LEN + TRAILER_LEN {
        return;
    }
    let trailer = size - TRAILER_LEN;
    let length = get(bytes, trailer + 8);
    let Some(footer) = (trailer as u64).checked_sub(length).filter(|at| *at < size as u64) else {
        return;
    };
    bytes[trailer..trailer + 8].copy_from_slice(&footer.to_be_bytes());
    let mut end = HEADER_LEN as u64;
    for row in (footer as usize + COUNT_LEN..trailer).step_by(ROW_LEN) {
        if row + ROW_LEN > trailer {
            break;
        }
        let is_last = row + 2 * ROW_LEN > trailer;
        let length = if is_last { footer.saturating_sub(end) } else { get(bytes, row + 36) };
        bytes[row + 28..row + 36].copy_from_slice(&end.to_be_bytes());
        bytes[row + 36..row + 44].copy_from_slice(&length.to_be_bytes());
        end = end.saturating_add(length);
    }
}

/// A trailer that says these things, for decoders that take one.
pub(crate) fn trailer(footer_offset: u64, footer: &[u8]) -> Trailer {
    Trailer {
        footer_offset,
        footer_length: footer.len() as u64,
        footer_crc: crc32fast::hash(footer),
        object_crc: 0,
    }
}

fn range(offset: u64, length: u64, size: usize) -> Option<Range<usize>> {
    let end = offset.checked_add(length).filter(|end| *end <= size as u64)?;
    Some(offset as usize..end as usize)
}

fn get(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn put(bytes: &mut [u8], at: usize, crc: u32) {
    bytes[at..at + 4].copy_from_slice(&crc.to_be_bytes());
}

#[test]
fn repairing_what_is_whole_changes_nothing() {
    for name in ["start_first", "two_regions", "entries_and_releases", "thousand", "bare_start"] {
        let bytes = sealog_tests::fixture(&format!("{name}.wal"));
        let mut repaired = bytes.to_vec();
        realign(&mut repaired);
        repair(&mut repaired);
        assert_eq!(repaired, bytes, "{name}");
    }
}
