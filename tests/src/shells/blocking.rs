use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;
use sealog_blocking::{Reader, Wal};
use sealog_core::{
    EntryId, Epoch, Error, HeldBy, Hole, Link, Options, RegionId, RegionInfo, ReplayFilter, Stats,
    WriteError,
};
use sealog_shell::{ReadItem, ReplayItem};

use super::{Items, Log, Pending};

/// A log of the blocking shell.
#[derive(Clone, Debug)]
pub struct Blocking(Wal);

impl Log for Blocking {
    type Reader = BlockingReader;

    fn open(store: Arc<dyn ObjectStore>, prefix: &str, options: Options) -> Result<Self, Error> {
        Wal::open(store, prefix, options).map(Blocking)
    }

    fn open_local(directory: &Path, options: Options) -> Result<Self, Error> {
        Wal::open_local(directory, options).map(Blocking)
    }

    fn open_url(url: &str, options: Options) -> Result<Self, Error> {
        Wal::open_url(url, options).map(Blocking)
    }

    fn submit(&self, region: RegionId, payload: impl Into<Bytes>) -> Pending<EntryId> {
        let submitted = self.0.submit(region, payload);
        Box::new(|| submitted.wait())
    }

    fn submit_batch(&self, entries: Vec<(RegionId, Bytes)>) -> Pending<Vec<EntryId>> {
        let submitted = self.0.submit_batch(entries);
        Box::new(|| submitted.wait())
    }

    fn try_submit(
        &self,
        region: RegionId,
        payload: impl Into<Bytes>,
    ) -> Result<Pending<EntryId>, WriteError> {
        let submitted = self.0.try_submit(region, payload)?;
        Ok(Box::new(|| submitted.wait()))
    }

    fn try_submit_batch(
        &self,
        entries: Vec<(RegionId, Bytes)>,
    ) -> Result<Pending<Vec<EntryId>>, WriteError> {
        let submitted = self.0.try_submit_batch(entries)?;
        Ok(Box::new(|| submitted.wait()))
    }

    fn append(&self, region: RegionId, payload: impl Into<Bytes>) -> Result<EntryId, WriteError> {
        self.0.append(region, payload)
    }

    fn append_batch(&self, entries: Vec<(RegionId, Bytes)>) -> Result<Vec<EntryId>, WriteError> {
        self.0.append_batch(entries)
    }

    fn read(&self, region: RegionId, from: EntryId) -> Vec<Result<ReadItem, Error>> {
        self.0.read(region, from).collect()
    }

    fn replay(&self, filter: ReplayFilter) -> Vec<Result<ReplayItem, Error>> {
        self.0.replay(filter).collect()
    }

    fn wait_durable(&self, region: RegionId, id: EntryId) -> Result<(), Error> {
        self.0.wait_durable(region, id)
    }

    fn obsolete(&self, region: RegionId, id: EntryId) -> Result<(), Error> {
        self.0.obsolete(region, id)
    }

    fn release(&self, region: RegionId) -> Result<(), WriteError> {
        self.0.release(region)
    }

    fn release_all(&self, region: RegionId) -> Result<(), WriteError> {
        self.0.release_all(region)
    }

    fn latest(&self, region: RegionId) -> Result<EntryId, Error> {
        self.0.latest(region)
    }

    fn durable(&self, region: RegionId) -> Result<EntryId, Error> {
        self.0.durable(region)
    }

    fn regions(&self) -> Result<Vec<RegionInfo>, Error> {
        self.0.regions()
    }

    fn held_by(&self) -> Result<HeldBy, Error> {
        self.0.held_by()
    }

    fn holes(&self, region: RegionId) -> Result<Vec<Hole>, Error> {
        self.0.holes(region)
    }

    fn stats(&self) -> Result<Stats, Error> {
        self.0.stats()
    }

    fn flush(&self) -> Result<(), Error> {
        self.0.flush()
    }

    fn stop(&self) -> Result<(), Error> {
        self.0.stop()
    }

    fn prefix(&self) -> &str {
        self.0.prefix().as_str()
    }

    fn epoch(&self) -> Epoch {
        self.0.epoch()
    }

    fn options(&self) -> &Options {
        self.0.options()
    }
}

/// A reader of the blocking shell.
#[derive(Clone, Debug)]
pub struct BlockingReader(Reader);

impl super::Reader for BlockingReader {
    fn open(store: Arc<dyn ObjectStore>, prefix: &str, options: Options) -> Result<Self, Error> {
        Reader::open(store, prefix, options).map(BlockingReader)
    }

    fn open_local(directory: &Path, options: Options) -> Result<Self, Error> {
        Reader::open_local(directory, options).map(BlockingReader)
    }

    fn open_url(url: &str, options: Options) -> Result<Self, Error> {
        Reader::open_url(url, options).map(BlockingReader)
    }

    fn refresh(&self) -> Result<(), Error> {
        self.0.refresh()
    }

    fn read(&self, region: RegionId, from: EntryId) -> Items<ReadItem> {
        Box::new(self.0.read(region, from))
    }

    fn replay(&self, filter: ReplayFilter) -> Items<ReplayItem> {
        Box::new(self.0.replay(filter))
    }

    fn regions(&self) -> Vec<RegionInfo> {
        self.0.regions()
    }

    fn held_by(&self) -> HeldBy {
        self.0.held_by()
    }

    fn durable(&self, region: RegionId) -> EntryId {
        self.0.durable(region)
    }

    fn tip(&self) -> Option<Link> {
        self.0.tip()
    }
}
