//! One region: who writes it, what it has in memory, and what its manifest says.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sealog_tokio::{EntryId, LogStore, RegionId};

use super::EngineError;
use super::bucket::{Bucket, Manifest};
use super::rows::{Memtable, Row, encode_rows};

pub(crate) struct Region {
    id: RegionId,
    /// Held through a put, so that what is applied is always a beginning of what is in the log.
    writer: tokio::sync::Mutex<Writer>,
    /// Held through a flush, before `writer`.
    flushing: tokio::sync::Mutex<()>,
    tables: Mutex<Tables>,
}

struct Writer {
    next_sequence: u64,
    /// The last entry whose rows are in a table.
    applied: EntryId,
    dropped: bool,
}

struct Tables {
    memtable: Memtable,
    /// What is being flushed, or was by a flush that did not come to its end.
    frozen: Memtable,
    manifest: Manifest,
}

impl Region {
    pub(crate) fn new(id: RegionId, manifest: Manifest) -> Region {
        let writer = Writer {
            next_sequence: manifest.next_sequence,
            applied: manifest.flushed,
            dropped: false,
        };
        let tables =
            Tables { memtable: Memtable::default(), frozen: Memtable::default(), manifest };
        Region {
            id,
            writer: writer.into(),
            flushing: tokio::sync::Mutex::default(),
            tables: tables.into(),
        }
    }

    /// Takes an entry of the log when it is replayed.
    pub(crate) fn replay(&mut self, rows: Vec<Row>, entry: EntryId) {
        let writer = self.writer.get_mut();
        let next = rows.iter().map(|row| row.sequence + 1).max().unwrap_or_default();
        writer.next_sequence = writer.next_sequence.max(next);
        writer.applied = entry;
        self.tables().memtable.apply(rows, entry);
    }

    pub(crate) async fn put(
        &self,
        log: &dyn LogStore,
        rows: Vec<(Bytes, Bytes)>,
    ) -> Result<EntryId, EngineError> {
        let mut writer = self.writer.lock().await;
        if writer.dropped {
            return Err(EngineError::NoRegion(self.id));
        }
        let numbered = rows.into_iter().zip(writer.next_sequence..);
        let rows: Vec<Row> =
            numbered.map(|((key, value), sequence)| Row { key, value, sequence }).collect();
        let entry = log.append(self.id, encode_rows(&rows)).await?;
        // From here to the end nothing waits: a caller that goes away leaves no half of it.
        writer.next_sequence += rows.len() as u64;
        writer.applied = entry;
        self.tables().memtable.apply(rows, entry);
        Ok(entry)
    }

    pub(crate) async fn flush(
        &self,
        log: &dyn LogStore,
        bucket: &Bucket,
    ) -> Result<(), EngineError> {
        let _flushing = self.flushing.lock().await;
        let (rows, mut manifest) = {
            // No put is between the log and the table now.
            let writer = self.writer.lock().await;
            if writer.dropped {
                return Err(EngineError::NoRegion(self.id));
            }
            let mut tables = self.tables();
            let memtable = std::mem::take(&mut tables.memtable);
            tables.frozen.absorb(memtable);
            let manifest = Manifest {
                flushed: writer.applied,
                next_sequence: writer.next_sequence,
                objects: tables.manifest.objects.clone(),
            };
            (tables.frozen.clone(), manifest)
        };
        if rows.is_empty() {
            return Ok(());
        }
        let flushed = manifest.flushed;
        manifest.objects.push(flushed);

        bucket.write_object(self.id, flushed, &rows).await?;
        log.wait_durable(self.id, flushed).await?;
        bucket.write_manifest(self.id, &manifest).await?;
        {
            let mut tables = self.tables();
            tables.frozen = Memtable::default();
            tables.manifest = manifest;
        }
        log.obsolete(self.id, flushed).await?;
        Ok(())
    }

    pub(crate) async fn scan(&self, bucket: &Bucket) -> Result<Vec<Row>, EngineError> {
        let (mut newest, objects) = {
            let tables = self.tables();
            let mut newest = tables.memtable.clone();
            newest.absorb(tables.frozen.clone());
            (newest, tables.manifest.objects.clone())
        };
        for object in objects {
            newest.absorb(bucket.read_object(self.id, object).await?);
        }
        Ok(newest.into_rows())
    }

    /// Waits for the flush and the put that are under way, and lets no other begin.
    pub(crate) async fn retire(&self) {
        let _flushing = self.flushing.lock().await;
        self.writer.lock().await.dropped = true;
    }

    pub(crate) fn id(&self) -> RegionId {
        self.id
    }

    pub(crate) fn flushed(&self) -> EntryId {
        self.tables().manifest.flushed
    }

    pub(crate) fn objects(&self) -> Vec<EntryId> {
        self.tables().manifest.objects.clone()
    }

    pub(crate) fn names(&self, object: EntryId) -> bool {
        self.tables().manifest.objects.contains(&object)
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
