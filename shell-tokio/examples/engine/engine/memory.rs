//! A log in memory, which a crash takes with it: each region has its own entries, and nothing is
//! shared.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::future::{FutureExt, ready};
use futures_util::stream::{self, StreamExt};
use sealog_tokio::{
    Entry, EntryId, Error, LogError, LogFuture, LogStore, LogStream, ObjectSeq, Outcome, ReadItem,
    RegionId,
};

#[derive(Debug, Default)]
pub(crate) struct MemoryLog(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    appends: u64,
    stopped: bool,
    regions: BTreeMap<RegionId, Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    latest: EntryId,
    payloads: BTreeMap<EntryId, Bytes>,
}

impl MemoryLog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All done before it is polled.
    fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut State) -> T,
    ) -> Result<T, LogError> {
        let mut state = self.state();
        if state.stopped {
            return Err(LogError::from(Error::Stopped).with_outcome(Outcome::NotWritten));
        }
        Ok(change(&mut state))
    }
}

impl State {
    fn append(&mut self, region: RegionId, payload: Bytes) -> Result<EntryId, LogError> {
        // Ids as Sealog's, of one entry per object: they stay above what became obsolete.
        let entries = self.regions.entry(region).or_default();
        let sequence = self.appends.max(entries.latest.sequence().0 + 1);
        let id = EntryId::new(ObjectSeq(sequence), 1).ok_or(Error::SequenceExhausted)?;
        self.appends = sequence + 1;
        entries.latest = id;
        entries.payloads.insert(id, payload);
        Ok(id)
    }
}

impl LogStore for MemoryLog {
    fn append(&self, region: RegionId, payload: Bytes) -> LogFuture<'_, EntryId> {
        let appended =
            self.change(|state| state.append(region, payload)).and_then(|appended| appended);
        ready(appended).boxed()
    }

    fn read(&self, region: RegionId, from: EntryId) -> LogStream<ReadItem> {
        let state = self.state();
        let entries = state.regions.get(&region).into_iter();
        let items: Vec<_> = entries
            .flat_map(|entries| entries.payloads.range(from..))
            .map(|(&id, payload)| Ok(ReadItem::Entry(Entry { id, payload: payload.clone() })))
            .collect();
        stream::iter(items).boxed()
    }

    fn obsolete(&self, region: RegionId, id: EntryId) -> LogFuture<'_, ()> {
        let done = self.change(|state| {
            let entries = state.regions.entry(region).or_default();
            entries.payloads = entries.payloads.split_off(&id.next());
            entries.latest = entries.latest.max(id);
        });
        ready(done).boxed()
    }

    fn obsolete_all(&self, region: RegionId) -> LogFuture<'_, ()> {
        ready(self.change(|state| {
            state.regions.remove(&region);
        }))
        .boxed()
    }

    fn latest(&self, region: RegionId) -> LogFuture<'_, EntryId> {
        let latest = self.state().regions.get(&region).map(|entries| entries.latest);
        ready(Ok(latest.unwrap_or_default())).boxed()
    }

    fn stop(&self) -> LogFuture<'_, ()> {
        self.state().stopped = true;
        ready(Ok(())).boxed()
    }
}
