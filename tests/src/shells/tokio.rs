use std::path::Path;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use object_store::ObjectStore;
use sealog_core::{
    EntryId, Epoch, Error, HeldBy, Hole, Link, Options, RegionId, RegionInfo, ReplayFilter, Stats,
    WriteError,
};
use sealog_shell::{ReadItem, ReplayItem};
use sealog_tokio::{Reader, Wal};
use tokio::runtime::Runtime;

use super::{Items, Log, Pending};

/// A log of the tokio shell, in a runtime that all of them share.
#[derive(Clone, Debug)]
pub struct Tokio(Wal);

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

fn wait<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

impl Log for Tokio {
    type Reader = TokioReader;

    fn open(store: Arc<dyn ObjectStore>, prefix: &str, options: Options) -> Result<Self, Error> {
        wait(Wal::open(store, prefix, options)).map(Tokio)
    }

    fn open_local(directory: &Path, options: Options) -> Result<Self, Error> {
        wait(Wal::open_local(directory, options)).map(Tokio)
    }

    fn open_url(url: &str, options: Options) -> Result<Self, Error> {
        wait(Wal::open_url(url, options)).map(Tokio)
    }

    fn submit(&self, region: RegionId, payload: impl Into<Bytes>) -> Pending<EntryId> {
        let submitted = self.0.submit(region, payload);
        Box::new(|| wait(submitted))
    }

    fn submit_batch(&self, entries: Vec<(RegionId, Bytes)>) -> Pending<Vec<EntryId>> {
        let submitted = self.0.submit_batch(entries);
        Box::new(|| wait(submitted))
    }

    fn try_submit(
        &self,
        region: RegionId,
        payload: impl Into<Bytes>,
    ) -> Result<Pending<EntryId>, WriteError> {
        let submitted = self.0.try_submit(region, payload)?;
        Ok(Box::new(|| wait(submitted)))
    }

    fn try_submit_batch(
        &self,
        entries: Vec<(RegionId, Bytes)>,
    ) -> Result<Pending<Vec<EntryId>>, WriteError> {
        let submitted = self.0.try_submit_batch(entries)?;
        Ok(Box::new(|| wait(submitted)))
    }

    fn append(&self, region: RegionId, payload: impl Into<Bytes>) -> Result<EntryId, WriteError> {
        wait(self.0.append(region, payload))
    }

    fn append_batch(&self, entries: Vec<(RegionId, Bytes)>) -> Result<Vec<EntryId>, WriteError> {
        wait(self.0.append_batch(entries))
    }

    fn read(&self, region: RegionId, from: EntryId) -> Vec<Result<ReadItem, Error>> {
        wait(self.0.read(region, from).collect())
    }

    fn replay(&self, filter: ReplayFilter) -> Vec<Result<ReplayItem, Error>> {
        wait(self.0.replay(filter).collect())
    }

    fn wait_durable(&self, region: RegionId, id: EntryId) -> Result<(), Error> {
        wait(self.0.wait_durable(region, id))
    }

    fn obsolete(&self, region: RegionId, id: EntryId) -> Result<(), Error> {
        wait(self.0.obsolete(region, id))
    }

    fn release(&self, region: RegionId) -> Result<(), WriteError> {
        wait(self.0.release(region))
    }

    fn release_all(&self, region: RegionId) -> Result<(), WriteError> {
        wait(self.0.release_all(region))
    }

    fn latest(&self, region: RegionId) -> Result<EntryId, Error> {
        wait(self.0.latest(region))
    }

    fn durable(&self, region: RegionId) -> Result<EntryId, Error> {
        wait(self.0.durable(region))
    }

    fn regions(&self) -> Result<Vec<RegionInfo>, Error> {
        wait(self.0.regions())
    }

    fn held_by(&self) -> Result<HeldBy, Error> {
        wait(self.0.held_by())
    }

    fn holes(&self, region: RegionId) -> Result<Vec<Hole>, Error> {
        wait(self.0.holes(region))
    }

    fn stats(&self) -> Result<Stats, Error> {
        wait(self.0.stats())
    }

    fn flush(&self) -> Result<(), Error> {
        wait(self.0.flush())
    }

    fn stop(&self) -> Result<(), Error> {
        wait(self.0.stop())
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

/// A reader of the tokio shell, in the runtime that the logs are in.
#[derive(Clone, Debug)]
pub struct TokioReader(Reader);

impl super::Reader for TokioReader {
    fn open(store: Arc<dyn ObjectStore>, prefix: &str, options: Options) -> Result<Self, Error> {
        wait(Reader::open(store, prefix, options)).map(TokioReader)
    }

    fn open_local(directory: &Path, options: Options) -> Result<Self, Error> {
        wait(Reader::open_local(directory, options)).map(TokioReader)
    }

    fn open_url(url: &str, options: Options) -> Result<Self, Error> {
        wait(Reader::open_url(url, options)).map(TokioReader)
    }

    fn refresh(&self) -> Result<(), Error> {
        wait(self.0.refresh())
    }

    fn read(&self, region: RegionId, from: EntryId) -> Items<ReadItem> {
        Box::new(Waiting(self.0.read(region, from)))
    }

    fn replay(&self, filter: ReplayFilter) -> Items<ReplayItem> {
        Box::new(Waiting(self.0.replay(filter)))
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

/// A stream whose items are waited for.
struct Waiting<S>(S);

impl<S: Stream + Unpin> Iterator for Waiting<S> {
    type Item = S::Item;

    fn next(&mut self) -> Option<S::Item> {
        wait(self.0.next())
    }
}
