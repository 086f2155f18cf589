//! What the benchmarks measure against.
//!
//! [`Floor`] is the least that a log of this shape can do: an actor that takes the same appends
//! over the same channels, copies and checksums each payload once, puts what it has whenever one
//! of its create slots is free, and answers when the put is done. It orders nothing, numbers
//! nothing and survives nothing; the distance to it is what those things cost.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use crc32fast::Hasher;
use futures_util::stream::{FuturesUnordered, StreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, PutMode, PutPayload};
use tokio::sync::{mpsc, oneshot};

/// As many as the log's default `max_in_flight`.
const SLOTS: usize = 4;
/// As large as the log's own chunks, so that both checksum runs of the same length.
const CHUNK: usize = 64 << 10;
/// As many as the log's actor takes at once.
const APPENDS_AT_ONCE: usize = 256;
/// What the log shares instead of copying.
const COPY_LIMIT: usize = 16 << 10;

type Waiter = oneshot::Sender<u64>;

/// A handle on the floor's actor.
#[derive(Clone, Debug)]
pub struct Floor(mpsc::UnboundedSender<(Bytes, Waiter)>);

impl Floor {
    /// Starts an actor on the current tokio runtime; it ends with its last handle.
    pub fn start(store: Arc<dyn ObjectStore>) -> Floor {
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(run(store, receiver));
        Floor(sender)
    }

    /// Appends a payload; the answer is the number of its object. `None` when the actor is gone.
    pub async fn append(&self, payload: Bytes) -> Option<u64> {
        let (waiter, answer) = oneshot::channel();
        self.0.send((payload, waiter)).ok()?;
        answer.await.ok()
    }
}

#[derive(Default)]
struct Batch {
    chunks: Vec<Bytes>,
    tail: BytesMut,
    crc: Hasher,
    waiters: Vec<Waiter>,
}

impl Batch {
    fn add(&mut self, payload: Bytes, waiter: Waiter) {
        self.waiters.push(waiter);
        if payload.len() >= COPY_LIMIT {
            self.crc.update(&payload);
            self.chunks.push(payload);
            return;
        }
        if self.tail.capacity() - self.tail.len() < payload.len() {
            self.cut();
            self.tail = BytesMut::with_capacity(CHUNK);
        }
        self.tail.extend_from_slice(&payload);
    }

    fn cut(&mut self) {
        if !self.tail.is_empty() {
            self.crc.update(&self.tail);
            self.chunks.push(self.tail.split().freeze());
        }
    }

    fn close(mut self) -> (PutPayload, Vec<Waiter>) {
        self.cut();
        let crc = self.crc.finalize();
        self.chunks.push(Bytes::copy_from_slice(&crc.to_be_bytes()));
        (self.chunks.into_iter().collect(), self.waiters)
    }
}

async fn run(store: Arc<dyn ObjectStore>, mut receiver: mpsc::UnboundedReceiver<(Bytes, Waiter)>) {
    let mut batch = Batch::default();
    let mut received = Vec::with_capacity(APPENDS_AT_ONCE);
    let mut puts = FuturesUnordered::new();
    let mut number = 0;
    loop {
        tokio::select! {
            Some((answer, waiters)) = puts.next() => {
                for waiter in waiters {
                    let waiter: Waiter = waiter;
                    // A caller that no longer listens needs no answer.
                    waiter.send(answer).ok();
                }
            }
            count = receiver.recv_many(&mut received, APPENDS_AT_ONCE) => {
                if count == 0 {
                    return;
                }
                received.drain(..).for_each(|(payload, waiter)| batch.add(payload, waiter));
            }
        }
        if !batch.waiters.is_empty() && puts.len() < SLOTS {
            number += 1;
            let (payload, waiters) = std::mem::take(&mut batch).close();
            let (store, key) = (store.clone(), Path::from(format!("floor/{number:020}")));
            let answer = number;
            // On a task of its own, as the log's puts are.
            let put = tokio::spawn(async move {
                store.put_opts(&key, payload, PutMode::Create.into()).await.map(|_| answer)
            });
            puts.push(async move {
                let put = put.await.ok().and_then(Result::ok).unwrap_or_default();
                (put, waiters)
            });
        }
    }
}
