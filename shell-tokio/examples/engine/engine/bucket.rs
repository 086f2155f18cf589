//! The engine's own objects: manifests, data objects, and records of drops.
//!
//! They stand beside the log, under the same root and not under the log's prefix. All writes
//! overwrite, so that each can be made again whatever became of it before.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use sealog_tokio::object_store;
use sealog_tokio::{EntryId, RegionId};

use super::EngineError;
use super::codec::{Fields, put_u64};
use super::rows::Memtable;

/// What a region consists of, apart from what is only in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Everything at or below it is in the data objects.
    pub(crate) flushed: EntryId,
    /// The first row sequence that is in none of them.
    pub(crate) next_sequence: u64,
    /// The data objects, each named by what was flushed with it.
    pub(crate) objects: Vec<EntryId>,
}

/// What is there when an engine opens.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) manifests: Vec<RegionId>,
    /// Records of drops, named by a region each.
    pub(crate) drops: Vec<RegionId>,
    pub(crate) objects: BTreeMap<RegionId, Vec<EntryId>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    store: Arc<dyn ObjectStore>,
    root: String,
}

impl Bucket {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, root: &str) -> Bucket {
        Bucket { store, root: root.to_owned() }
    }

    pub(crate) async fn list(&self) -> Result<Listing, EngineError> {
        let mut listing = Listing::default();
        for kind in ["manifests", "data", "drops"] {
            let prefix = Path::from(format!("{}/{kind}", self.root));
            let found: Vec<_> = self.store.list(Some(&prefix)).try_collect().await?;
            for meta in found {
                let names = meta.location.prefix_match(&prefix).into_iter().flatten();
                let numbers: Vec<u64> =
                    names.filter_map(|name| name.as_ref().parse().ok()).collect();
                match (kind, &numbers[..]) {
                    ("manifests", &[region]) => listing.manifests.push(RegionId(region)),
                    ("drops", &[region]) => listing.drops.push(RegionId(region)),
                    ("data", &[region, flushed]) => {
                        let objects = listing.objects.entry(RegionId(region)).or_default();
                        objects.push(EntryId(flushed));
                    }
                    _ => {}
                }
            }
        }
        Ok(listing)
    }

    pub(crate) async fn write_manifest(
        &self,
        region: RegionId,
        manifest: &Manifest,
    ) -> Result<(), EngineError> {
        let mut bytes = Vec::new();
        put_u64(&mut bytes, manifest.flushed.0);
        put_u64(&mut bytes, manifest.next_sequence);
        for object in &manifest.objects {
            put_u64(&mut bytes, object.0);
        }
        self.put(&self.manifest(region), bytes.into()).await
    }

    pub(crate) async fn read_manifest(&self, region: RegionId) -> Result<Manifest, EngineError> {
        let mut fields = Fields::new("a manifest", self.get(&self.manifest(region)).await?);
        let mut manifest = Manifest {
            flushed: EntryId(fields.u64()?),
            next_sequence: fields.u64()?,
            objects: Vec::new(),
        };
        while !fields.is_empty() {
            manifest.objects.push(EntryId(fields.u64()?));
        }
        Ok(manifest)
    }

    pub(crate) async fn remove_manifest(&self, region: RegionId) -> Result<(), EngineError> {
        self.remove(&self.manifest(region)).await
    }

    pub(crate) async fn write_object(
        &self,
        region: RegionId,
        flushed: EntryId,
        rows: &Memtable,
    ) -> Result<(), EngineError> {
        self.put(&self.object(region, flushed), rows.encode()).await
    }

    pub(crate) async fn read_object(
        &self,
        region: RegionId,
        flushed: EntryId,
    ) -> Result<Memtable, EngineError> {
        Memtable::decode(self.get(&self.object(region, flushed)).await?)
    }

    pub(crate) async fn remove_object(
        &self,
        region: RegionId,
        flushed: EntryId,
    ) -> Result<(), EngineError> {
        self.remove(&self.object(region, flushed)).await
    }

    /// Writes down that these regions are dropped: all of them or, if this fails, none. Its name
    /// is that of the first.
    pub(crate) async fn write_drop(
        &self,
        name: RegionId,
        regions: &[RegionId],
    ) -> Result<(), EngineError> {
        let mut bytes = Vec::new();
        for region in regions {
            put_u64(&mut bytes, region.0);
        }
        self.put(&self.drop_record(name), bytes.into()).await
    }

    pub(crate) async fn read_drop(&self, name: RegionId) -> Result<Vec<RegionId>, EngineError> {
        let mut fields =
            Fields::new("a record of a drop", self.get(&self.drop_record(name)).await?);
        let mut regions = Vec::new();
        while !fields.is_empty() {
            regions.push(RegionId(fields.u64()?));
        }
        Ok(regions)
    }

    pub(crate) async fn remove_drop(&self, name: RegionId) -> Result<(), EngineError> {
        self.remove(&self.drop_record(name)).await
    }

    fn manifest(&self, region: RegionId) -> Path {
        Path::from(format!("{}/manifests/{region}", self.root))
    }

    fn object(&self, region: RegionId, flushed: EntryId) -> Path {
        Path::from(format!("{}/data/{region}/{flushed}", self.root))
    }

    fn drop_record(&self, name: RegionId) -> Path {
        Path::from(format!("{}/drops/{name}", self.root))
    }

    async fn put(&self, key: &Path, bytes: Bytes) -> Result<(), EngineError> {
        self.store.put(key, bytes.into()).await?;
        Ok(())
    }

    async fn get(&self, key: &Path) -> Result<Bytes, EngineError> {
        Ok(self.store.get(key).await?.bytes().await?)
    }

    /// What is gone already was removed by an attempt before.
    async fn remove(&self, key: &Path) -> Result<(), EngineError> {
        match self.store.delete(key).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
