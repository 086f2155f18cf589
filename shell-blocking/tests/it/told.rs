//! That figures and notices go out, from the log's own thread. Each of them is tested with the code
//! that exports it.

use crate::{A, open_at};

#[cfg(feature = "metrics")]
#[test]
fn figures_are_out_when_stop_is_answered() {
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();
    let wal = open_at("told/figures");
    wal.append(A, "1").unwrap();
    wal.stop().unwrap();
    let found = snapshotter.snapshot().into_vec().into_iter().find_map(|(key, _, _, value)| {
        let mut labels = key.key().labels();
        let of_log = labels.any(|label| (label.key(), label.value()) == ("prefix", "told/figures"));
        (of_log && key.key().name() == "sealog_appends_total").then_some(value)
    });
    assert_eq!(found, Some(DebugValue::Counter(1)));
}

#[cfg(feature = "tracing")]
#[test]
fn an_opening_is_told_to_a_subscriber_of_the_process() {
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    /// Keeps the fields of the log's events, as text.
    #[derive(Clone, Default)]
    struct Events(Arc<Mutex<Vec<String>>>);

    struct Text(String);

    impl Visit for Text {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0 += &format!("{}={value:?} ", field.name());
        }
    }

    impl Subscriber for Events {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == "sealog"
        }

        fn event(&self, event: &Event<'_>) {
            let mut text = Text(String::new());
            event.record(&mut text);
            self.0.lock().unwrap().push(text.0);
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            unreachable!("a notice is no span")
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    let events = Events::default();
    tracing::subscriber::set_global_default(events.clone()).unwrap();
    let _wal = open_at("told/opened");
    let told = events.0.lock().unwrap();
    let of_log = |text: &&String| text.contains("prefix=\"told/opened\"");
    let opened = told.iter().find(of_log).unwrap();
    assert!(opened.contains("the log is open"), "{opened}");
}
