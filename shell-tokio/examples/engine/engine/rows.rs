//! Rows, the table in memory that holds a region's latest ones, and their bytes in log entries and
//! data objects.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bytes::Bytes;
use sealog_tokio::EntryId;

use super::EngineError;
use super::codec::{Fields, put_bytes, put_u64};

/// A row as an application sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
    /// The writer's number of this row in its region. A put that failed gives its numbers back, so
    /// two rows may carry the same one.
    pub(crate) sequence: u64,
}

/// Which of two rows of one key is newer. The row sequence alone does not say: a put that failed,
/// or whose caller went away, may have left an entry in the log, and the next put used the same
/// number. Its entry is the later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    sequence: u64,
    entry: EntryId,
}

/// The newest row of each key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memtable(BTreeMap<Bytes, (Version, Bytes)>);

impl Memtable {
    /// Takes the rows of a log entry.
    pub(crate) fn apply(&mut self, rows: Vec<Row>, entry: EntryId) {
        for Row { key, value, sequence } in rows {
            self.insert(key, Version { sequence, entry }, value);
        }
    }

    /// Takes what another one holds, of either age.
    pub(crate) fn absorb(&mut self, other: Memtable) {
        for (key, (version, value)) in other.0 {
            self.insert(key, version, value);
        }
    }

    fn insert(&mut self, key: Bytes, version: Version, value: Bytes) {
        match self.0.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert((version, value));
            }
            Entry::Occupied(mut occupied) => {
                if occupied.get().0 <= version {
                    occupied.insert((version, value));
                }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_rows(self) -> Vec<Row> {
        let rows = self.0.into_iter();
        rows.map(|(key, (version, value))| Row { key, value, sequence: version.sequence }).collect()
    }

    /// The bytes of a data object. The ids of entries belong to it: rows of other objects are
    /// merged with these.
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = Vec::new();
        for (key, (version, value)) in &self.0 {
            put_u64(&mut bytes, version.sequence);
            put_u64(&mut bytes, version.entry.0);
            put_bytes(&mut bytes, key);
            put_bytes(&mut bytes, value);
        }
        bytes.into()
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<Memtable, EngineError> {
        let mut fields = Fields::new("a data object", bytes);
        let mut table = Memtable::default();
        while !fields.is_empty() {
            let version = Version { sequence: fields.u64()?, entry: EntryId(fields.u64()?) };
            let (key, value) = (fields.bytes()?, fields.bytes()?);
            table.insert(key, version, value);
        }
        Ok(table)
    }
}

/// The payload of a log entry.
pub(crate) fn encode_rows(rows: &[Row]) -> Bytes {
    let mut bytes = Vec::new();
    for row in rows {
        put_u64(&mut bytes, row.sequence);
        put_bytes(&mut bytes, &row.key);
        put_bytes(&mut bytes, &row.value);
    }
    bytes.into()
}

pub(crate) fn decode_rows(payload: &Bytes) -> Result<Vec<Row>, EngineError> {
    // A copy: rows stay for long, and the payload shares the memory of the object it came with.
    let mut fields = Fields::new("a log entry", Bytes::copy_from_slice(payload));
    let mut rows = Vec::new();
    while !fields.is_empty() {
        let sequence = fields.u64()?;
        let (key, value) = (fields.bytes()?, fields.bytes()?);
        rows.push(Row { key, value, sequence });
    }
    Ok(rows)
}
