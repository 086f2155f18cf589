//! The storage engine of `examples/engine`, tried: what its guide says of each call, and a process
//! that is killed at every step.

#[path = "../../examples/engine/engine/mod.rs"]
mod engine;

mod dropping;
mod killed;
mod killed_process;
mod life;
mod order;
mod seam;
mod store;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::{Engine, EngineError};
use object_store::memory::InMemory;
use sealog_tokio::object_store;
use sealog_tokio::{AckMode, Error, Options, RegionId, Wal};
use store::Client;

const A: RegionId = RegionId(1);
const B: RegionId = RegionId(2);
const C: RegionId = RegionId(3);
const ROOT: &str = "engine";
const PREFIX: &str = "engine/log";
const BOTH_MODES: [AckMode; 2] = [AckMode::Durable, AckMode::Enqueued];

/// Without any waiting for company.
fn options(ack_mode: AckMode) -> Options {
    Options {
        ack_mode,
        linger: Duration::ZERO,
        flush_interval: Duration::ZERO,
        // What is no object ends a log when it is found there twice.
        retry_for: Duration::from_millis(200),
        ..Options::default()
    }
}

/// An engine with its log, as a process has them.
struct Process {
    client: Arc<Client>,
    wal: Wal,
    engine: Engine,
}

impl Process {
    async fn open(bucket: &Arc<InMemory>, ack_mode: AckMode) -> Process {
        let client = Client::of(bucket);
        Process::with(client, ack_mode).await.unwrap()
    }

    async fn with(client: Arc<Client>, ack_mode: AckMode) -> Result<Process, EngineError> {
        let wal = Wal::open(client.clone(), PREFIX, options(ack_mode)).await;
        let wal = wal.map_err(sealog_tokio::LogError::from)?;
        let engine = Engine::open(client.clone(), ROOT, Arc::new(wal.clone())).await?;
        Ok(Process { client, wal, engine })
    }

    /// Ends it, as a kill would, and opens another one.
    async fn crash(self, bucket: &Arc<InMemory>) -> Process {
        let ack_mode = self.wal.options().ack_mode;
        self.client.cut();
        drop(self);
        Process::open(bucket, ack_mode).await
    }

    async fn put(&self, region: RegionId, key: &'static str, value: &'static str) {
        self.engine.put(region, vec![(key.into(), value.into())]).await.unwrap();
    }

    /// As keys and values.
    async fn rows(&self, region: RegionId) -> Vec<(Bytes, Bytes)> {
        let rows = self.engine.scan(region).await.unwrap();
        rows.into_iter().map(|row| (row.key, row.value)).collect()
    }

    async fn is_gone(&self, region: RegionId) -> bool {
        matches!(self.engine.scan(region).await, Err(EngineError::NoRegion(gone)) if gone == region)
    }

    /// Whether the log holds anything of a region that is not obsolete.
    async fn logged(&self, region: RegionId) -> bool {
        self.wal.regions().await.unwrap().iter().any(|info| info.region == region)
    }
}

fn row(key: &'static str, value: &'static str) -> (Bytes, Bytes) {
    (key.into(), value.into())
}

/// The log's own error.
fn cause(error: &sealog_tokio::LogError) -> &Error {
    error.cause().downcast_ref().unwrap()
}
