//! The requests under way.

use std::future::pending;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use object_store::ObjectStore;
use sealog_core::{StorageAnswer, StorageEffect};

use super::Runtime;
use crate::carry_out;

/// The requests under way, each in a task of its own. Dropping it abandons them.
pub(crate) struct Requests<R: Runtime> {
    runtime: R,
    store: Arc<dyn ObjectStore>,
    tasks: FuturesUnordered<R::Task<StorageAnswer>>,
}

impl<R: Runtime> Requests<R> {
    pub(crate) fn new(runtime: R, store: Arc<dyn ObjectStore>) -> Requests<R> {
        Requests { runtime, store, tasks: FuturesUnordered::new() }
    }

    pub(crate) fn start(&mut self, effect: StorageEffect) {
        let (runtime, store) = (self.runtime.clone(), self.store.clone());
        self.tasks.push(
            self.runtime.spawn(async move {
                carry_out(&store, effect, |limit| runtime.sleep(limit)).await
            }),
        );
    }

    /// The next answer; never if nothing is under way. Dropping the future loses no answer.
    pub(crate) async fn next(&mut self) -> StorageAnswer {
        loop {
            match self.tasks.next().await {
                Some(Some(answer)) => return answer,
                // Its runtime goes away, and so does whoever waits.
                Some(None) => {}
                None => pending().await,
            }
        }
    }

    /// An answer that is there already. Whoever wants to be woken by the next one asks for
    /// [`next`](Requests::next) afterwards.
    pub(crate) fn try_next(&mut self) -> Option<StorageAnswer> {
        self.tasks.next().now_or_never()??
    }
}
