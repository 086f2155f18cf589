//! The sans-IO core of Sealog, a write-ahead log that lives in an object store.
//!
//! Everything that the log decides is decided here, by pure state machines: they take events and
//! emit effects, and something else, a *shell*, carries the effects out. The core has no clock, no
//! thread, no runtime, no storage client and no randomness, so every transition can be tested by
//! writing events and reading effects, and the same events always give the same effects. Most
//! users want a shell: `sealog-tokio` is one.
//!
//! | machine | what it is for | how it ends |
//! | --- | --- | --- |
//! | [`Opening`] | from what the store holds to a log that can be written, or read only, or to all that is wrong with it | with [`Recovered`], a [`View`], a [`Survey`], or an error |
//! | [`Writer`] | admits appends, makes objects of them, acknowledges what is durable | stopped |
//! | [`SegmentRead`] | reads the entries of one region from one object | with entries, a hole, a skip, or an error |
//! | [`ObjectRead`] | reads those of many regions from one object | with what [`SegmentRead`] ends with, for each |
//!
//! A machine is driven in a loop: hand it one event with the time, drain its effects to dry, and
//! see when it wants a tick. Every [`StorageEffect`] is carried out once and answered once; the
//! answers may come in any order.
//!
//! # A whole life, in memory
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use sealog_core::*;
//!
//! /// A store: an object is created only where there is none.
//! #[derive(Default)]
//! struct Store(BTreeMap<Key, bytes::Bytes>);
//!
//! impl Store {
//!     fn carry_out(&mut self, effect: StorageEffect) -> StorageAnswer {
//!         let missing = || StoreError::new(StoreErrorKind::NotFound);
//!         match effect {
//!             StorageEffect::List { id, prefix, .. } => {
//!                 let found = self.0.iter().filter(|(key, _)| key.starts_with(&*prefix));
//!                 let listed = |(key, object): (&Key, &bytes::Bytes)| Listed {
//!                     key: key.clone(),
//!                     size: object.len() as u64,
//!                     modified_millis: 0,
//!                 };
//!                 StorageAnswer::Listed { id, result: Ok(found.map(listed).collect()) }
//!             }
//!             StorageEffect::FetchRange { id, key, range, .. } => {
//!                 let range = range.start as usize..range.end as usize;
//!                 let result = self.0.get(&key).map(|object| object.slice(range));
//!                 StorageAnswer::Fetched { id, result: result.ok_or_else(missing) }
//!             }
//!             StorageEffect::PutObject { id, key, payload, .. } => {
//!                 let free = !self.0.contains_key(&key);
//!                 if free {
//!                     self.0.insert(key, payload.to_bytes());
//!                 }
//!                 let exists = StoreError::new(StoreErrorKind::Exists);
//!                 StorageAnswer::CreateResult { id, result: free.then_some(()).ok_or(exists) }
//!             }
//!             StorageEffect::ReadBack { id, key, .. } => {
//!                 let result = self.0.get(&key).map(ReadBack::of);
//!                 StorageAnswer::ReadBackResult { id, result: result.ok_or_else(missing) }
//!             }
//!             StorageEffect::DeleteObjects { id, keys, .. } => {
//!                 let deleted = keys.iter().map(|key| {
//!                     self.0.remove(key);
//!                     (key.clone(), Ok(()))
//!                 });
//!                 StorageAnswer::DeleteResult { id, results: deleted.collect() }
//!             }
//!         }
//!     }
//!
//!     /// Opens the log that the store holds.
//!     fn open(&mut self, now: Time, nonce: u8) -> Result<Writer<&'static str>, Error> {
//!         let identity =
//!             Identity { nonce: [nonce; 16], opened_at_millis: 0, default_name: "me".into() };
//!         let mut opening =
//!             Opening::new(now, Prefix::new("demo")?, Options::default(), identity)?;
//!         loop {
//!             match opening.poll_effect().expect("this store answers everything") {
//!                 OpeningEffect::Storage(effect) => {
//!                     let answer = self.carry_out(effect);
//!                     opening.handle(now, OpeningEvent::Storage(answer));
//!                 }
//!                 OpeningEffect::Notice(_) => {}
//!                 OpeningEffect::Opened(recovered) => return Ok(Writer::new(now, *recovered)),
//!                 OpeningEffect::Failed(error) => return Err(error),
//!             }
//!         }
//!     }
//! }
//!
//! let mut store = Store::default();
//! let region = RegionId(7);
//! let mut now = Time::ZERO;
//! let mut log = store.open(now, 1)?;
//!
//! // Two appends go into the open batch, and a tick is wanted when it should leave.
//! for waiter in ["first", "second"] {
//!     let append = Append::One(region, waiter.into());
//!     log.handle(now, Event::Append { append, waiter });
//! }
//! assert!(log.poll_effect().is_none());
//! now = log.next_tick().expect("a batch lingers");
//! log.handle(now, Event::Tick);
//!
//! // It leaves as one object, and its creation acknowledges both.
//! let Some(Effect::Storage(put)) = log.poll_effect() else { panic!("a put") };
//! log.handle(now, Event::Storage(store.carry_out(put)));
//! for expected in ["first", "second"] {
//!     let Some(Effect::Ack { waiter, .. }) = log.poll_effect() else { panic!("an ack") };
//!     assert_eq!(waiter, expected);
//! }
//!
//! // A crash: the machine is gone. What was acknowledged is in the store.
//! drop(log);
//! let log = store.open(now, 2)?;
//! let plan = log.plan_read(region, EntryId::ZERO, None, usize::MAX)?;
//! let mut payloads = Vec::new();
//! for segment in plan.segments {
//!     let options = log.options();
//!     let mut read =
//!         SegmentRead::new(segment, options.on_corrupted_segment, options.request_timeout);
//!     while let Some(effect) = read.poll_effect() {
//!         match effect {
//!             SegmentReadEffect::Storage(effect) => {
//!                 read.handle(SegmentReadEvent::Storage(store.carry_out(effect)));
//!             }
//!             SegmentReadEffect::Done(SegmentOutcome::Entries(entries)) => {
//!                 payloads.extend(entries.into_iter().map(|entry| entry.payload));
//!             }
//!             other => panic!("this store damages nothing: {other:?}"),
//!         }
//!     }
//! }
//! assert_eq!(payloads, ["first", "second"]);
//! # Ok::<(), Error>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod backoff;
mod batch;
pub mod catalog;
pub mod chain;
pub mod error;
pub mod event;
pub mod format;
pub mod key;
mod listing;
pub mod opening;
pub mod options;
pub mod read;
pub mod repair;
#[cfg(feature = "exploration")]
pub mod rules;
#[cfg(not(feature = "exploration"))]
#[allow(unreachable_pub, reason = "it is reached with the feature `exploration`")]
mod rules;
pub mod stats;
pub mod types;
pub mod writer;

pub use catalog::{HeldBy, Holder, RegionHold, RegionInfo};
pub use error::{
    AppendUnit, DecodeError, Error, Operation, Outcome, Part, StoreError, StoreErrorKind,
    WriteError,
};
pub use event::*;
pub use key::{Key, KeyKind, Prefix};
pub use opening::{
    Aim, Identity, ObjectKind, ObjectStatus, Opening, OpeningEffect, OpeningEvent, Problem,
    Recovered, RecoveryStats, Survey, SurveyedObject, View, ViewedObject,
};
pub use options::{AckMode, OnCorruptedSegment, Options};
pub use read::{
    Hole, ObjectRead, ObjectReadEffect, PlannedObject, PlannedSegment, ReadPlan, ReplayFilter,
    ReplayPlan, SegmentOutcome, SegmentRead, SegmentReadEffect, SegmentReadEvent, SegmentRef,
    WantedSegment,
};
pub use stats::{Histogram, Stats};
pub use types::{EntryId, Epoch, Link, ObjectSeq, RegionId, Time};
pub use writer::Writer;
