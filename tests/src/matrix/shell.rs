//! A row against the tokio shell, over a store that answers as it is told, in paused time.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt, TryStreamExt};
use sealog_core::Stats;
use sealog_core::event::Append;
use sealog_tokio::{EntryId, Error, ReadItem, RegionId, Wal, WriteError};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, yield_now};

use super::machine::{self, PREFIX, PROBE, append, id, key, plant, sequence_of};
use super::script::{Asked, Script};
use super::{Came, Contents, How, Row, Step, labelled, options, say};
use crate::model::ModelStore;

/// So many turns of every task are as far as they get.
const TURNS: usize = 64;

type Answers = Arc<Mutex<Vec<(u32, String)>>>;
type Call = Pin<Box<dyn Future<Output = String> + Send>>;

struct Shell {
    row: &'static Row,
    /// None while the log is opened again.
    wal: Option<Wal>,
    opened: Stats,
    store: Arc<Script>,
    calls: u32,
    tasks: BTreeMap<u32, JoinHandle<()>>,
    answers: Answers,
}

/// Runs a row.
///
/// # Panics
///
/// As [`machine::run`].
pub fn run(row: &'static Row) -> Came {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime: Runtime = runtime.unwrap_or_else(|error| panic!("{error}"));
    runtime.block_on(async {
        let store = Script::new(row.keys_per_delete);
        // The first instance ends as by a crash.
        drop(open(&store, row).await);
        let wal = open(&store, row).await;
        let opened = wal.stats().await.unwrap_or_else(|error| panic!("{error}"));
        store.hold(true);
        let wal = Some(wal);
        let (calls, tasks, answers) = (0, BTreeMap::new(), Answers::default());
        let mut shell = Shell { row, wal, opened, store, calls, tasks, answers };
        shell.steps(row.steps).await;
        let stats = shell.wal().stats().await.unwrap_or_else(|error| panic!("{error}"));
        let stats = (shell.opened.clone(), stats);
        shell.store.hold(false);
        let reads = shell.read().await;
        let recovers = machine::recovered(shell.snapshot().await, row);
        shell.store.hold(true);
        let answers = answers_of(&shell.answers).clone();
        let then = shell.probe().await;
        Came { answers, then, stats, reads, recovers }
    })
}

async fn open(store: &Arc<Script>, row: &Row) -> Wal {
    let opened = Wal::open(store.clone(), PREFIX, options(row)).await;
    opened.unwrap_or_else(|error| panic!("{}: {error}", row.name))
}

fn answers_of(answers: &Answers) -> MutexGuard<'_, Vec<(u32, String)>> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets every task go as far as it can, while no time passes.
async fn settle() {
    for _ in 0..TURNS {
        yield_now().await;
    }
}

impl Shell {
    fn steps<'a>(&'a mut self, steps: &'static [Step]) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(async move {
            for step in steps {
                self.step(*step).await;
                settle().await;
            }
        })
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Append(..)
            | Step::Batch(_)
            | Step::Bulk(..)
            | Step::Spread(..)
            | Step::Flush
            | Step::Wait(..)
            | Step::Obsolete(..)
            | Step::Release(_)
            | Step::ReleaseAll(_)
            | Step::Stop => self.call(step),
            Step::ReleaseEach(first, count) => {
                let regions = first..first + u64::from(count);
                regions.for_each(|region| self.call(Step::Release(region)));
            }
            Step::Together(calls) => {
                let before = answers_of(&self.answers).len();
                calls.iter().for_each(|call| self.call(*call));
                settle().await;
                answers_of(&self.answers)[before..].sort();
            }
            Step::Drop(call) => {
                if let Some(task) = self.tasks.remove(&call) {
                    task.abort();
                }
            }
            Step::Put(sequence, how) => self.answer(Asked::Put, &key(sequence), how),
            Step::Back(sequence, how) | Step::Fetch(sequence, how) => {
                self.answer(Asked::Get, &key(sequence), how);
            }
            Step::List(how) => self.answer(Asked::List, &format!("{PREFIX}/objects"), how),
            Step::Delete(sequences, how) => {
                let keys: Vec<String> = sequences.iter().map(|sequence| key(*sequence)).collect();
                self.answer(Asked::Delete, &keys.join(" "), how);
            }
            Step::Land(sequence) => {
                let landed = self.store.land(&key(sequence)).await;
                assert!(landed, "{}: {sequence} is not adrift", self.row.name);
            }
            Step::Plant(sequence, planted) => {
                self.store.plant(&key(sequence), planted.bytes(sequence)).await;
            }
            Step::RangesFail => self.store.let_ranges_fail(),
            Step::Pass(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
            Step::Answered(calls) => {
                let mut answered: Vec<u32> =
                    answers_of(&self.answers).iter().map(|(call, _)| *call).collect();
                answered.sort_unstable();
                let expected: Vec<u32> = labelled(calls).map(|(call, _)| call).collect();
                assert_eq!(answered, expected, "{}: answered at {step:?}", self.row.name);
            }
            Step::UnderWay(count) => {
                let requests = self.store.under_way();
                assert_eq!(requests.len(), count, "{}: {requests:?}", self.row.name);
            }
            Step::Stored(sequences) => {
                let stored = self.store.objects().await;
                let stored: Vec<u64> = stored.iter().map(|(key, _)| sequence_of(key)).collect();
                assert_eq!(stored, sequences, "{}: stored", self.row.name);
            }
            Step::Reopen => self.reopen().await,
            Step::Times(count, steps) => {
                for _ in 0..count {
                    self.steps(steps).await;
                }
            }
        }
    }

    fn wal(&self) -> &Wal {
        self.wal.as_ref().unwrap_or_else(|| panic!("{}: no log is open", self.row.name))
    }

    /// The log goes away with its last handle; calls that are not answered hold one.
    async fn reopen(&mut self) {
        std::mem::take(&mut self.tasks).values().for_each(JoinHandle::abort);
        self.wal = None;
        settle().await;
        self.store.hold(false);
        let wal = open(&self.store, self.row).await;
        self.opened = wal.stats().await.unwrap_or_else(|error| panic!("{error}"));
        self.wal = Some(wal);
        self.store.hold(true);
    }

    fn answer(&self, asked: Asked, key: &str, how: How) {
        let answered = self.store.answer(asked, key, how);
        let asked = self.store.under_way();
        assert!(answered, "{}: {how:?} to nothing at {key}; {asked:?}", self.row.name);
    }

    fn call(&mut self, step: Step) {
        self.calls += 1;
        let call = self.calls;
        let mut answer = self.begin(step);
        // A call is made when its future is polled first.
        if let Some(said) = answer.as_mut().now_or_never() {
            return answers_of(&self.answers).push((call, said));
        }
        let answers = self.answers.clone();
        let task = tokio::spawn(async move {
            let said = answer.await;
            answers_of(&answers).push((call, said));
        });
        self.tasks.insert(call, task);
    }

    fn begin(&self, step: Step) -> Call {
        let wal = self.wal().clone();
        match (append(step), step) {
            (Some(Append::One(region, payload)), _) => {
                let submitted = wal.submit(region, payload);
                Box::pin(async move { appended(submitted.await.map(|id| vec![id])) })
            }
            (Some(Append::Many(entries)), _) => {
                let submitted = wal.submit_batch(entries);
                Box::pin(async move { appended(submitted.await) })
            }
            (None, Step::Flush) => Box::pin(async move { done(wal.flush().await) }),
            (None, Step::Wait(region, sequence, position)) => {
                let (region, id) = (RegionId(region), id(sequence, position));
                Box::pin(async move { done(wal.wait_durable(region, id).await) })
            }
            (None, Step::Obsolete(region, sequence, position)) => {
                let (region, id) = (RegionId(region), id(sequence, position));
                Box::pin(async move { done(wal.obsolete(region, id).await) })
            }
            (None, Step::Release(region)) => {
                Box::pin(async move { released(wal.release(RegionId(region)).await) })
            }
            (None, Step::ReleaseAll(region)) => {
                Box::pin(async move { released(wal.release_all(RegionId(region)).await) })
            }
            (None, Step::Stop) => Box::pin(async move { done(wal.stop().await) }),
            (None, step) => panic!("{}: {step:?} is no call", self.row.name),
        }
    }

    async fn read(&self) -> Contents {
        let regions = self.wal().regions().await.unwrap_or_else(|error| panic!("{error}"));
        let mut contents = Contents::new();
        for region in regions.into_iter().map(|info| info.region) {
            let items = self.wal().read(region, EntryId::ZERO).try_collect::<Vec<ReadItem>>().await;
            let items = items.unwrap_or_else(|error| panic!("{}: {error}", self.row.name));
            let payloads = items.into_iter().map(|item| match item {
                ReadItem::Entry(entry) => entry.payload,
                ReadItem::Hole(hole) => panic!("{}: {hole:?}", self.row.name),
            });
            contents.insert(region.0, say::payloads(&payloads.collect::<Vec<_>>()));
        }
        contents
    }

    async fn snapshot(&self) -> ModelStore {
        let mut store = ModelStore::new();
        for (key, bytes) in self.store.objects().await {
            plant(&mut store, &key, bytes);
        }
        store
    }

    /// Appends once more, and says what comes of it.
    async fn probe(&mut self) -> String {
        let asked = self.store.under_way().len();
        let mut probe = self.wal().submit(PROBE, "probe");
        let flush = self.wal().clone();
        let flush = tokio::spawn(async move { flush.flush().await });
        settle().await;
        flush.abort();
        let failed = match (&mut probe).now_or_never() {
            Some(Err(error)) => Some(say::append_failed(error.error(), error.outcome())),
            Some(Ok(_)) | None => None,
        };
        match (failed, self.store.under_way().get(asked)) {
            (Some(failed), _) => failed,
            (None, Some(key)) => format!("goes to {}", sequence_of(key)),
            (None, None) => "waits".into(),
        }
    }
}

fn appended(answer: Result<Vec<EntryId>, WriteError>) -> String {
    match answer {
        Ok(ids) => say::ids(&ids),
        Err(error) => say::append_failed(error.error(), error.outcome()),
    }
}

fn released(answer: Result<(), WriteError>) -> String {
    match answer {
        Ok(()) => "ok".into(),
        Err(error) => say::append_failed(error.error(), error.outcome()),
    }
}

fn done(answer: Result<(), Error>) -> String {
    match answer {
        Ok(()) => "ok".into(),
        Err(error) => say::failed(&error),
    }
}
