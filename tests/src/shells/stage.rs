use std::collections::HashMap;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::StreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, Result};
use tokio::sync::Semaphore;

use super::PREFIX;
use crate::hooked::{Asked, Hooked, Moment, Request};

/// A store in memory that does as a case says. A clone is the same store.
#[derive(Clone, Default)]
pub struct Stage(Arc<Scene>);

struct Scene {
    inner: Arc<InMemory>,
    rule: Mutex<Rule>,
    gate: Semaphore,
    asked: [AtomicUsize; 3],
}

type Rule = Arc<dyn Fn(&Request) -> Reaction + Send + Sync>;

/// What the store does with a request, before it does it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reaction {
    Pass,
    /// With an error that may pass.
    Break,
    Refuse,
    /// Until [`Stage::let_pass`] allows it.
    Wait,
    Hang,
    Panic,
}

impl Default for Scene {
    fn default() -> Scene {
        Scene {
            inner: Arc::default(),
            rule: Mutex::new(Arc::new(|_: &Request| Reaction::Pass)),
            gate: Semaphore::new(0),
            asked: Default::default(),
        }
    }
}

impl Stage {
    /// The store, for a log.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        let scene = self.0.clone();
        Hooked::new(self.0.inner.clone(), move |request| react(scene.clone(), request))
    }

    /// From now on the store reacts like this.
    pub(super) fn react(&self, rule: impl Fn(Asked) -> Reaction + Send + Sync + 'static) {
        self.react_to(move |request| rule(request.asked));
    }

    /// The same for rules that look at the key.
    pub(super) fn react_to(&self, rule: impl Fn(&Request) -> Reaction + Send + Sync + 'static) {
        *self.0.rule.lock().unwrap() = Arc::new(rule);
    }

    /// Of the requests of each kind and key, two fail for each that passes.
    pub(super) fn throttle(&self) {
        let seen = Mutex::new(HashMap::new());
        self.react_to(move |request| {
            let mut seen = seen.lock().unwrap();
            let count = seen.entry((request.asked as usize, request.key.clone())).or_insert(0);
            *count += 1;
            if *count % 3 == 0 { Reaction::Pass } else { Reaction::Break }
        });
    }

    /// Puts get this, everything else passes.
    pub(super) fn puts(&self, reaction: Reaction) {
        self.react(move |asked| if asked == Asked::Put { reaction } else { Reaction::Pass });
    }

    /// The first of the puts that come now get this, everything else passes.
    pub(super) fn first_puts(&self, count: usize, reaction: Reaction) {
        let seen = AtomicUsize::new(0);
        self.react(move |asked| match asked {
            Asked::Put if seen.fetch_add(1, Ordering::Relaxed) < count => reaction,
            _ => Reaction::Pass,
        });
    }

    pub(super) fn behave(&self) {
        self.react(|_| Reaction::Pass);
    }

    pub(super) fn let_pass(&self, requests: usize) {
        self.0.gate.add_permits(requests);
    }

    /// How often this was asked so far.
    pub(super) fn count(&self, asked: Asked) -> usize {
        self.0.asked[asked as usize].load(Ordering::SeqCst)
    }

    /// Waits until this was asked so often.
    pub(super) fn wait_for(&self, asked: Asked, count: usize) {
        while self.count(asked) < count {
            sleep(Duration::from_millis(1));
        }
    }

    pub(super) fn keys(&self) -> Vec<String> {
        let listing = self.0.inner.list(None).map(|meta| meta.unwrap().location.to_string());
        let mut keys: Vec<_> = listing.collect().now_or_never().unwrap();
        keys.sort();
        keys
    }

    /// Waits until no more than so many objects are there.
    pub(super) fn wait_until_collected(&self, left: usize) {
        while self.keys().len() > left {
            sleep(Duration::from_millis(1));
        }
    }

    /// Loses an object, as an accident would.
    pub(super) fn lose(&self, sequence: u64) {
        let key = Path::from(format!("{PREFIX}/objects/{sequence:020}.wal"));
        self.0.inner.delete(&key).now_or_never().unwrap().unwrap();
    }

    /// Damages the payload of the first entry of an object, which holds one region.
    pub(super) fn damage(&self, sequence: u64) {
        let key = Path::from(format!("{PREFIX}/objects/{sequence:020}.wal"));
        let damaged = async {
            let mut bytes = self.0.inner.get(&key).await?.bytes().await?.to_vec();
            // After the header, the segment's 12 bytes and the entry's.
            bytes[54 + 12 + 12] ^= 1;
            self.0.inner.put(&key, bytes.into()).await
        };
        damaged.now_or_never().unwrap().unwrap();
    }
}

fn react(scene: Arc<Scene>, request: Request) -> BoxFuture<'static, Result<()>> {
    if request.moment == Moment::After {
        return async { Ok(()) }.boxed();
    }
    let rule = scene.rule.lock().unwrap().clone();
    let reaction = rule(&request);
    // Last, so that whoever waits for it may change the rule.
    scene.asked[request.asked as usize].fetch_add(1, Ordering::SeqCst);
    async move {
        let there = || request.key.clone();
        match reaction {
            Reaction::Pass => Ok(()),
            Reaction::Break => {
                Err(Error::Generic { store: "stage", source: "connection reset".into() })
            }
            Reaction::Refuse => {
                Err(Error::PermissionDenied { path: there(), source: "403".into() })
            }
            Reaction::Wait => {
                scene.gate.acquire().await.unwrap().forget();
                Ok(())
            }
            Reaction::Hang => pending().await,
            Reaction::Panic => panic!("the client fell over"),
        }
    }
    .boxed()
}
