//! The process ends, or a request fails, at every single step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::memory::InMemory;
use sealog_tokio::{AckMode, RegionId, object_store};

use crate::engine::{EngineError, Row};
use crate::store::{Client, Fate};
use crate::{A, B, BOTH_MODES, C, Process, row};

#[derive(Clone, Copy, Debug)]
enum Step {
    Create(RegionId),
    Put(RegionId, &'static str, &'static str),
    Flush(RegionId),
    Drop(&'static [RegionId]),
}

const SCRIPT: &[Step] = &[
    Step::Create(A),
    Step::Create(B),
    Step::Put(A, "1", "a"),
    Step::Put(B, "1", "b"),
    Step::Put(A, "1", "c"),
    Step::Flush(A),
    Step::Create(C),
    Step::Put(C, "1", "d"),
    Step::Put(A, "2", "e"),
    Step::Put(A, "1", "f"),
    Step::Flush(A),
    Step::Put(B, "1", "g"),
    Step::Flush(B),
    Step::Put(B, "2", "h"),
    Step::Put(A, "3", "i"),
    Step::Drop(&[A, B]),
    Step::Put(C, "1", "j"),
    Step::Create(A),
    Step::Put(A, "4", "k"),
    Step::Flush(C),
    Step::Drop(&[C]),
    Step::Put(A, "4", "l"),
];

/// The rows of a region, if it is there.
type State = Option<BTreeMap<Bytes, Bytes>>;

/// What the regions may hold after a crash: of each, all states since one that is certain.
#[derive(Debug)]
struct Model {
    mode: AckMode,
    states: BTreeMap<RegionId, Vec<State>>,
    /// The step that has begun and not ended.
    pending: Option<Step>,
}

impl Model {
    fn new(mode: AckMode) -> Model {
        let states = [A, B, C].map(|region| (region, vec![None]));
        Model { mode, states: states.into(), pending: None }
    }

    fn begin(&mut self, step: Step) {
        self.pending = Some(step);
        match step {
            Step::Create(region) => self.push(region, Some(BTreeMap::new())),
            Step::Put(region, key, value) => {
                let mut rows = self.states[&region].last().unwrap().clone().unwrap();
                rows.insert(key.into(), value.into());
                self.push(region, Some(rows));
            }
            Step::Flush(_) => {}
            Step::Drop(regions) => regions.iter().for_each(|region| self.push(*region, None)),
        }
    }

    fn end(&mut self, step: Step) {
        self.pending = None;
        match (step, self.mode) {
            (Step::Put(..), AckMode::Enqueued) => {}
            (Step::Create(region) | Step::Put(region, ..) | Step::Flush(region), _) => {
                self.settle(region);
            }
            // The record of the release is durable, and so is all that was appended before it.
            (Step::Drop(_), _) => [A, B, C].into_iter().for_each(|region| self.settle(region)),
        }
    }

    fn push(&mut self, region: RegionId, state: State) {
        self.states.entry(region).or_default().push(state);
    }

    fn settle(&mut self, region: RegionId) {
        let states = self.states.entry(region).or_default();
        states.drain(..states.len() - 1);
    }

    fn last(&self) -> BTreeMap<RegionId, State> {
        self.states.iter().map(|(id, states)| (*id, states.last().unwrap().clone())).collect()
    }

    fn check(&self, found: &BTreeMap<RegionId, State>, what: &str) {
        for (region, state) in found {
            let states = &self.states[region];
            assert!(states.contains(state), "{what}: {region} is {state:?}, not one of {states:?}");
        }
        if let Some(Step::Drop(regions)) = self.pending {
            let left = regions.iter().filter(|region| found[region].is_some()).count();
            assert!(left == 0 || left == regions.len(), "{what}: half of a drop: {found:?}");
        }
    }
}

async fn make(process: &Process, step: Step) -> Result<(), EngineError> {
    let engine = &process.engine;
    match step {
        Step::Create(region) => engine.create(region).await,
        Step::Put(region, key, value) => {
            engine.put(region, vec![row(key, value)]).await.map(|_| ())
        }
        Step::Flush(region) => engine.flush(region).await,
        Step::Drop(regions) => engine.drop_regions(regions).await.map(|_| ()),
    }
}

async fn found(process: &Process) -> BTreeMap<RegionId, State> {
    let mut found = BTreeMap::new();
    for region in [A, B, C] {
        let state = match process.engine.scan(region).await {
            Ok(rows) => {
                let count = rows.len();
                let rows = rows.into_iter().map(|Row { key, value, .. }| (key, value));
                let rows = BTreeMap::from_iter(rows);
                assert_eq!(rows.len(), count, "a key is there twice");
                Some(rows)
            }
            Err(EngineError::NoRegion(_)) => {
                assert!(!process.logged(region).await, "the log holds {region}, which is gone");
                None
            }
            Err(error) => panic!("{region}: {error}"),
        };
        found.insert(region, state);
    }
    found
}

/// Runs the script in a process that is cut off at a request. Whether it came to the end before.
async fn run(bucket: &Arc<InMemory>, number: usize, fate: Fate, model: &mut Model) -> bool {
    let client = Client::of(bucket);
    client.cut_at(number, fate);
    let script = async {
        let process = Process::with(client.clone(), model.mode).await.unwrap();
        for step in SCRIPT {
            model.begin(*step);
            make(&process, *step).await.unwrap();
            model.end(*step);
        }
        process.wal.stop().await.unwrap();
    };
    let finished = tokio::select! {
        biased;
        () = client.ended() => false,
        () = script => true,
    };
    client.cut();
    finished
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_request_the_rows_are_those_acknowledged_and_what_is_dropped_stays_so() {
    for (mode, fate) in
        BOTH_MODES.iter().flat_map(|mode| [(*mode, Fate::CutBefore), (*mode, Fate::CutAfter)])
    {
        for number in 1.. {
            let bucket = Arc::new(InMemory::new());
            let mut model = Model::new(mode);
            if run(&bucket, number, fate, &mut model).await {
                assert!(number > 2 * SCRIPT.len(), "{number} requests are too few");
                break;
            }
            let what = format!("{mode:?}, {fate:?} {number}, {:?}", model.pending);
            let process = Process::open(&bucket, mode).await;
            let first = found(&process).await;
            model.check(&first, &what);
            // What was decided stays so.
            let process = process.crash(&bucket).await;
            assert_eq!(found(&process).await, first, "{what}");

            // And life goes on.
            let mut expected = first;
            for region in [A, B, C] {
                if process.is_gone(region).await {
                    process.engine.create(region).await.unwrap();
                }
                process.put(region, "1", "later").await;
                process.engine.flush(region).await.unwrap();
                process.put(region, "later", "later").await;
                let rows = expected.entry(region).or_default().get_or_insert_default();
                rows.extend([row("1", "later"), row("later", "later")]);
            }
            process.wal.stop().await.unwrap();
            let process = process.crash(&bucket).await;
            assert_eq!(found(&process).await, expected, "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn killed_in_a_drop_and_again_at_any_request_of_the_opening_after_it() {
    for mode in BOTH_MODES {
        // How many requests there are before the drop, and in it.
        let mut drops = Vec::new();
        for number in 1.. {
            let mut model = Model::new(mode);
            let finished =
                run(&Arc::new(InMemory::new()), number, Fate::CutAfter, &mut model).await;
            match model.pending {
                _ if finished => break,
                Some(Step::Drop(regions)) if regions.len() > 1 => drops.push(number),
                _ => {}
            }
        }
        assert!(drops.len() > 6, "{drops:?}");
        for number in drops {
            for again in 1.. {
                let bucket = Arc::new(InMemory::new());
                let mut model = Model::new(mode);
                run(&bucket, number, Fate::CutAfter, &mut model).await;
                let client = Client::of(&bucket);
                client.cut_at(again, Fate::CutAfter);
                let opened = tokio::select! {
                    biased;
                    () = client.ended() => false,
                    opened = Process::with(client.clone(), mode) => opened.is_ok(),
                };
                client.cut();
                let what = format!("{mode:?}, {number}, {again}");
                let process = Process::open(&bucket, mode).await;
                let first = found(&process).await;
                model.check(&first, &what);
                let process = process.crash(&bucket).await;
                assert_eq!(found(&process).await, first, "{what}");
                if opened {
                    break;
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_fails_at_any_step_and_the_call_made_again_does_what_it_says() {
    for (mode, fate) in BOTH_MODES
        .iter()
        .flat_map(|mode| [Fate::Fails, Fate::Refused, Fate::DoneAndFails].map(|fate| (*mode, fate)))
    {
        for number in 1.. {
            let bucket = Arc::new(InMemory::new());
            let what = format!("{mode:?}, {fate:?} {number}");
            let client = Client::of(&bucket);
            client.cut_at(number, fate);
            let mut process = Process::with(client.clone(), mode).await;
            if process.is_err() {
                process = Process::with(client.clone(), mode).await;
            }
            let process = process.unwrap_or_else(|error| panic!("{what}: {error}"));
            let mut model = Model::new(mode);
            for step in SCRIPT {
                model.begin(*step);
                let mut made = make(&process, *step).await;
                for _ in 0..5 {
                    if made.is_ok() {
                        break;
                    }
                    // The store has mended; a failing log knows it at its next create.
                    tokio::time::sleep(Duration::from_secs(10)).await;
                    made = make(&process, *step).await;
                    // The region of an unfinished drop can be created after the next opening.
                }
                match (made, step) {
                    (Err(EngineError::Exists(_)), Step::Create(_)) => {
                        model.states.insert(A, vec![None]);
                        break;
                    }
                    (made, _) => made.unwrap_or_else(|error| panic!("{what}, {step:?}: {error}")),
                }
            }
            assert_eq!(found(&process).await, model.last(), "{what}");
            process.wal.stop().await.unwrap();
            let requests = client.requests();
            let process = process.crash(&bucket).await;
            assert_eq!(found(&process).await, model.last(), "{what}");
            if number > requests {
                assert!(number > 2 * SCRIPT.len(), "{number} requests are too few");
                break;
            }
        }
    }
}
