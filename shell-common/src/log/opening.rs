//! Driving an opening to its end.

use std::future::{Future, pending};
use std::sync::Arc;

use object_store::ObjectStore;
use sealog_core::opening::{Opening, OpeningEffect, OpeningEvent};
use sealog_core::{Error, Options, Prefix, Writer};
use tokio::sync::mpsc;

use super::actor::Actor;
use super::requests::Requests;
use super::{Log, Runtime, Shared};
use crate::{identity, keys_per_delete, tell_operator};

/// Opens the log under `prefix` of a store: gives its first handle, and its actor, a future that
/// the shell runs from then on. It ends once the last handle is gone; to drop it earlier is to
/// crash the log.
///
/// Costs what DESIGN.md sections 4 and 12 say. Dropping the future abandons the opening.
///
/// # Errors
///
/// Those of an opening.
pub async fn open<R: Runtime>(
    runtime: R,
    store: Arc<dyn ObjectStore>,
    prefix: Prefix,
    options: Options,
) -> Result<(Log<R>, impl Future<Output = ()> + Send + 'static), Error> {
    let mut opening = Opening::new(runtime.now(), prefix.clone(), options, identity()?)?;
    let mut requests = Requests::new(runtime.clone(), store.clone());
    let recovered = 'opening: loop {
        while let Some(effect) = opening.poll_effect() {
            match effect {
                OpeningEffect::Storage(effect) => requests.start(effect),
                OpeningEffect::Notice(told) => tell_operator(&prefix, &told),
                OpeningEffect::Opened(recovered) => break 'opening recovered,
                OpeningEffect::Failed(error) => return Err(error),
            }
        }
        let tick = opening.next_tick();
        let tick = async {
            match tick {
                Some(time) => runtime.sleep_until(time).await,
                None => pending().await,
            }
        };
        let event = tokio::select! {
            answer = requests.next() => OpeningEvent::Storage(answer),
            () = tick => OpeningEvent::Tick,
        };
        opening.handle(runtime.now(), event);
    };
    let mut writer = Writer::new(runtime.now(), *recovered);
    writer.set_keys_per_delete(keys_per_delete(store.as_ref()));
    let (queue, queued) = mpsc::unbounded_channel();
    let (control, controls) = mpsc::unbounded_channel();
    let log = Log::new(Shared {
        queue,
        control,
        options: writer.options().clone(),
        prefix: writer.prefix().clone(),
        epoch: writer.epoch(),
        store,
        runtime,
    });
    let actor = Actor::new(writer, &log, queued, controls);
    Ok((log, actor.run()))
}
