//! What the log tells the operator. Each notice is tested with the code that writes it down.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use sealog_tokio::{Options, Wal};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::store::{Asked, Reaction, TestStore, forbidden};
use crate::{A, PREFIX};

type Fields = BTreeMap<&'static str, String>;

/// Keeps the fields of the log's events.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<Fields>>>);

struct Into<'a>(&'a mut Fields);

impl Visit for Into<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sealog"
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Into(&mut fields));
        self.0.lock().unwrap().push(fields);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        unreachable!("a notice is no span")
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn an_opening_and_a_roll_back_are_told_with_the_prefix_and_the_key() {
    let events = Events::default();
    // Otherwise a test in another thread, which has no subscriber, can have an event switched off.
    drop(tracing::subscriber::set_global_default(Events::default()));
    let _guard = tracing::subscriber::set_default(events.clone());
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    store.react(|asked, _| match asked {
        Asked::Put => Reaction::Fail(forbidden()),
        _ => Reaction::Pass,
    });
    wal.append(A, "refused").await.unwrap_err();
    let told = std::mem::take(&mut *events.0.lock().unwrap());
    let [opened, rolled_back] = &told[..] else { panic!("{told:?}") };
    let prefix = format!("{PREFIX:?}");
    assert_eq!(opened["prefix"], prefix);
    assert_eq!(opened["message"], "the log is open");
    assert_eq!(opened["epoch"], wal.epoch().0.to_string());
    assert_eq!(rolled_back["prefix"], prefix);
    assert!(rolled_back["message"].contains("rolled back"), "{rolled_back:?}");
    assert!(rolled_back["key"].contains(&format!("{PREFIX}/objects/")), "{rolled_back:?}");
}
