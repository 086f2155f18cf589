//! A log on disk whose every byte is known: two epochs, orphans, sequences at which nothing stands,
//! a release, a collected past.

use std::path::{Path, PathBuf};

use sealog_core::format::{
    Header, ObjectEncoder, ReleaseRecord, WriterRecord, decode_footer, encode_releases,
};
use sealog_core::format::{TRAILER_LEN, Trailer};
use sealog_core::{EntryId, Epoch, Link, ObjectSeq, RegionId};

/// A log of its own in a directory that goes with it.
pub(crate) struct Log {
    parent: tempfile::TempDir,
}

/// An object under construction.
pub(crate) struct Make {
    header: Header,
    object: ObjectEncoder,
}

pub(crate) fn make(sequence: u64, epoch: u64, after: (u64, u64)) -> Make {
    let predecessor = Link { sequence: ObjectSeq(after.0), epoch: Epoch(after.1) };
    let header = Header {
        sequence: ObjectSeq(sequence),
        epoch: Epoch(epoch),
        predecessor: Some(predecessor),
        boundary: ObjectSeq(0),
    };
    Make { header, object: ObjectEncoder::new() }
}

impl Make {
    pub(crate) fn boundary(mut self, boundary: u64) -> Make {
        self.header.boundary = ObjectSeq(boundary);
        self
    }

    /// Entries of a region, of ten bytes each.
    pub(crate) fn entries(mut self, region: u64, count: u32) -> Make {
        for position in 1..=count {
            let payload = format!("{region:05}/{position:04}").into();
            self.object.push(RegionId(region), self.id(position), &payload);
        }
        self
    }

    pub(crate) fn released(mut self, region: u64, through: EntryId) -> Make {
        let records = [ReleaseRecord { region: RegionId(region), through }];
        self.object.push(RegionId::RELEASES, self.id(1), &encode_releases(&records));
        self
    }

    pub(crate) fn writer(mut self, name: &str) -> Make {
        let record = WriterRecord {
            nonce: [7; 16],
            opened_at_millis: 1_700_000_000_000,
            max_in_flight: 4,
            name: name.into(),
        };
        self.object.push(RegionId::WRITER, self.id(1), &record.encode());
        self
    }

    fn id(&self, position: u32) -> EntryId {
        EntryId::new(self.header.sequence, position).unwrap()
    }
}

pub(crate) fn id(sequence: u64, position: u32) -> EntryId {
    EntryId::new(ObjectSeq(sequence), position).unwrap()
}

impl Log {
    /// One whose objects 0 to 2 were collected.
    pub(crate) fn new() -> Log {
        let log = Log::empty();
        for object in [
            make(3, 1, (2, 1)).entries(7, 3).entries(8, 2),
            make(4, 1, (3, 1)).entries(7, 1),
            // After an object that never landed.
            make(6, 1, (5, 1)).entries(7, 1),
            make(7, 8, (7, 8)).writer("node-b"),
            make(8, 9, (4, 1)).writer("node-b"),
            make(9, 9, (8, 9)).entries(7, 2).entries(8, 1).entries(9, 40),
            make(10, 9, (9, 9)).released(8, id(3, 2)),
            // Rolled back.
            make(11, 9, (10, 9)).entries(9, 1),
            make(12, 9, (10, 9)).entries(9, 1),
        ] {
            log.put(object.boundary(3));
        }
        log
    }

    /// One of which nothing is there but its directory.
    pub(crate) fn empty() -> Log {
        let parent = tempfile::tempdir().unwrap();
        std::fs::create_dir(parent.path().join("log")).unwrap();
        Log { parent }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.parent.path().join("log")
    }

    /// As an argument.
    pub(crate) fn at(&self) -> String {
        self.path().to_str().unwrap().into()
    }

    pub(crate) fn file(&self, sequence: u64) -> PathBuf {
        self.path().join(format!("objects/{sequence:020}.wal"))
    }

    pub(crate) fn bytes(&self, sequence: u64) -> Vec<u8> {
        std::fs::read(self.file(sequence)).unwrap()
    }

    pub(crate) fn put(&self, object: Make) {
        let Make { mut header, object } = object;
        header.boundary = header.boundary.min(header.sequence);
        let file = self.file(header.sequence.0);
        write(&file, &object.finish(&header).0.to_bytes());
    }

    pub(crate) fn damage_header(&self, sequence: u64) {
        self.flip(sequence, |_| 30);
    }

    /// In its last row.
    pub(crate) fn damage_footer(&self, sequence: u64) {
        self.flip(sequence, |bytes| bytes.len() - TRAILER_LEN - 20);
    }

    pub(crate) fn damage_segment(&self, sequence: u64, region: RegionId) {
        self.flip(sequence, |bytes| {
            let trailer = Trailer::decode(bytes, bytes.len() as u64).unwrap();
            let footer = trailer.footer_range();
            let footer = &bytes[footer.start as usize..footer.end as usize];
            let table = decode_footer(footer, &trailer).unwrap();
            let meta = table.iter().find(|meta| meta.region == region).unwrap();
            meta.range().end as usize - 1
        });
    }

    fn flip(&self, sequence: u64, at: impl FnOnce(&[u8]) -> usize) {
        let mut bytes = self.bytes(sequence);
        let at = at(&bytes);
        bytes[at] ^= 1;
        write(&self.file(sequence), &bytes);
    }

    /// Everything under the prefix, by its name there.
    pub(crate) fn all(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        for folder in ["objects", "quarantine"] {
            for entry in std::fs::read_dir(self.path().join(folder)).into_iter().flatten() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                found.push((format!("{folder}/{name}"), std::fs::read(path).unwrap()));
            }
        }
        found.sort();
        found
    }
}

fn write(file: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, bytes).unwrap();
}
