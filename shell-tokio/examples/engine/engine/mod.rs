//! A small storage engine on one bucket: regions of rows, each with a table in memory, data
//! objects and a manifest, and one log for all of them.
//!
//! The guide to it, and to any engine on Sealog, is the README beside `main.rs`.

mod bucket;
mod codec;
mod memory;
mod region;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::ObjectStore;
use sealog_tokio::object_store;
use sealog_tokio::{EntryId, Hole, LogError, LogStore, RegionId, ReplayItem};

pub(crate) use bucket::{Bucket, Manifest};
pub(crate) use memory::MemoryLog;
use region::Region;
pub(crate) use rows::Row;
use rows::decode_rows;

/// The engine. Its objects are under a root of the bucket: `manifests`, `data` and `drops`; the
/// log may be beside them.
pub(crate) struct Engine {
    log: Arc<dyn LogStore>,
    bucket: Bucket,
    regions: Mutex<BTreeMap<RegionId, Arc<Region>>>,
    /// Dropped, and the next opening has something left to do. Until then they cannot be created
    /// again: that would be undone with it.
    unfinished: Mutex<BTreeSet<RegionId>>,
}

/// A drop that is complete.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    /// What the log could not do for it. The regions are gone all the same, and the next opening
    /// sees to the rest.
    pub(crate) failures: Vec<(RegionId, LogError)>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    #[error("there is no region {0}, or it is being dropped")]
    NoRegion(RegionId),
    #[error("region {0} is there already, or its drop is not finished")]
    Exists(RegionId),
    #[error("{what} does not decode")]
    Damaged { what: &'static str },
    #[error("acknowledged rows are lost: {0:?}")]
    Lost(Hole),
    #[error("the log: {0}")]
    Log(#[from] LogError),
    #[error("the bucket: {0}")]
    Bucket(#[from] object_store::Error),
}

impl Engine {
    /// Opens what is there, on a log that was just opened and that nobody else uses.
    ///
    /// Costs three listings, a read per manifest and per record of a drop, and a pass over the log.
    pub(crate) async fn open(
        store: Arc<dyn ObjectStore>,
        root: &str,
        log: Arc<dyn LogStore>,
    ) -> Result<Engine, EngineError> {
        let bucket = Bucket::new(store, root);
        let engine =
            Engine { log, bucket, regions: Mutex::default(), unfinished: Mutex::default() };
        let mut listing = engine.bucket.list().await?;

        // First: what is dropped must not be replayed.
        for record in listing.drops {
            let dropped = engine.bucket.read_drop(record).await?;
            listing.manifests.retain(|region| !dropped.contains(region));
            engine.finish_drop(record, &dropped).await?;
        }
        let mut regions = BTreeMap::new();
        for id in listing.manifests {
            regions.insert(id, Region::new(id, engine.bucket.read_manifest(id).await?));
        }
        // A flush or a drop that did not come to its end left these behind.
        for (id, objects) in listing.objects {
            for object in objects {
                if !regions.get(&id).is_some_and(|region| region.names(object)) {
                    engine.bucket.remove_object(id, object).await?;
                }
            }
        }

        let from = regions.values().map(|region| (region.id(), region.flushed().next())).collect();
        let mut replay = engine.log.replay(from);
        while let Some(item) = replay.try_next().await? {
            match item {
                ReplayItem::Entry(id, entry) => {
                    let rows = decode_rows(&entry.payload)?;
                    let region = regions.get_mut(&id).ok_or(EngineError::NoRegion(id))?;
                    region.replay(rows, entry.id);
                }
                ReplayItem::Hole(hole) => return Err(EngineError::Lost(hole)),
            }
        }
        for region in regions.values() {
            engine.log.obsolete(region.id(), region.flushed()).await?;
        }
        let regions = regions.into_iter().map(|(id, region)| (id, Arc::new(region))).collect();
        *engine.regions() = regions;
        Ok(engine)
    }

    /// Creates an empty region.
    pub(crate) async fn create(&self, id: RegionId) -> Result<(), EngineError> {
        if self.regions().contains_key(&id) || self.unfinished().contains(&id) {
            return Err(EngineError::Exists(id));
        }
        let manifest = Manifest::default();
        self.bucket.write_manifest(id, &manifest).await?;
        self.regions().entry(id).or_insert_with(|| Arc::new(Region::new(id, manifest)));
        Ok(())
    }

    /// Writes rows to a region, all of them or none. When it returns they are in the log, as
    /// safe as the log's mode says, and visible.
    ///
    /// If it fails, or is dropped, they are not visible, and may become so at the next opening.
    pub(crate) async fn put(
        &self,
        id: RegionId,
        rows: Vec<(Bytes, Bytes)>,
    ) -> Result<EntryId, EngineError> {
        self.region(id)?.put(&*self.log, rows).await
    }

    /// Moves what a region has in memory to a data object, and lets the log forget it.
    ///
    /// If it fails, or is dropped, nothing is lost, and it can be made again.
    pub(crate) async fn flush(&self, id: RegionId) -> Result<(), EngineError> {
        self.region(id)?.flush(&*self.log, &self.bucket).await
    }

    /// The newest row of each key, in the order of the keys.
    pub(crate) async fn scan(&self, id: RegionId) -> Result<Vec<Row>, EngineError> {
        self.region(id)?.scan(&self.bucket).await
    }

    /// Drops regions, all of them together: none is left behind, whatever happens on the way.
    ///
    /// From its first moment on nothing is written to them. If it fails they stay like that, and
    /// it can be made again; it may be complete after the next opening, or not have happened. It
    /// does not fail because the log fails, unless the log remembers nothing of regions that
    /// are gone.
    pub(crate) async fn drop_regions(&self, ids: &[RegionId]) -> Result<Dropped, EngineError> {
        let ids: BTreeSet<RegionId> = ids.iter().copied().collect();
        let regions =
            ids.iter().map(|id| self.region(*id)).collect::<Result<Vec<_>, EngineError>>()?;
        let ids = Vec::from_iter(ids);
        let Some(&record) = ids.first() else { return Ok(Dropped::default()) };
        for region in &regions {
            region.retire().await;
        }
        self.bucket.write_drop(record, &ids).await?;
        for region in &regions {
            for object in region.objects() {
                self.bucket.remove_object(region.id(), object).await?;
            }
        }
        let dropped = self.finish_drop(record, &ids).await?;
        self.regions().retain(|id, _| !ids.contains(id));
        Ok(dropped)
    }

    /// All that follows once a drop is written down. May be done any number of times.
    async fn finish_drop(
        &self,
        record: RegionId,
        ids: &[RegionId],
    ) -> Result<Dropped, EngineError> {
        let mut dropped = Dropped::default();
        for &id in ids {
            self.bucket.remove_manifest(id).await?;
        }
        for &id in ids {
            match self.log.obsolete_all(id).await {
                Err(error) if self.log.is_shared() => dropped.failures.push((id, error)),
                other => other?,
            }
            if let Err(error) = self.log.release_region(id).await {
                dropped.failures.push((id, error));
            }
        }
        // The log may have ended with what it was to remember: then this is what is left of it.
        if !dropped.failures.is_empty() || self.bucket.remove_drop(record).await.is_err() {
            self.unfinished().extend(ids);
        }
        Ok(dropped)
    }

    fn region(&self, id: RegionId) -> Result<Arc<Region>, EngineError> {
        self.regions().get(&id).cloned().ok_or(EngineError::NoRegion(id))
    }

    fn regions(&self) -> MutexGuard<'_, BTreeMap<RegionId, Arc<Region>>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unfinished(&self) -> MutexGuard<'_, BTreeSet<RegionId>> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
