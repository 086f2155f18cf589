//! Driving an opening to its end: of a log to write, of a view of one, or of a survey.

use std::future::{Future, pending};
use std::sync::Arc;

use object_store::ObjectStore;
use sealog_core::gate::Gate;
use sealog_core::opening::{Aim, Opening, OpeningEffect, OpeningEvent, Survey};
use sealog_core::{Error, Options, Prefix, Writer};
use tokio::sync::mpsc;

use super::actor::Actor;
use super::door::Door;
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
    let opening = Opening::new(runtime.now(), prefix.clone(), options, identity()?)?;
    let recovered = drive(&runtime, &store, &prefix, opening).await?;
    let mut writer = Writer::new(runtime.now(), *recovered);
    writer.set_keys_per_delete(keys_per_delete(store.as_ref()));
    let (queue, queued) = mpsc::unbounded_channel();
    let (control, controls) = mpsc::unbounded_channel();
    let log = Log::new(Shared {
        door: Door::new(Gate::new(writer.options())),
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

/// Looks at everything that is stored under `prefix` of a store and at all that is wrong with it,
/// without writing. Costs what [`Opening::survey`] says. Dropping the future abandons it.
///
/// # Errors
///
/// Those of a survey.
pub async fn survey<R: Runtime>(
    runtime: R,
    store: Arc<dyn ObjectStore>,
    prefix: Prefix,
    options: Options,
) -> Result<Survey, Error> {
    let opening = Opening::survey(runtime.now(), prefix.clone(), options)?;
    drive(&runtime, &store, &prefix, opening).await.map(|survey| *survey)
}

/// Drives an opening, whatever it ends with. Dropping the future abandons it.
pub(crate) async fn drive<R: Runtime, T: Aim>(
    runtime: &R,
    store: &Arc<dyn ObjectStore>,
    prefix: &Prefix,
    mut opening: Opening<T>,
) -> Result<Box<T>, Error> {
    let mut requests = Requests::new(runtime.clone(), store.clone());
    loop {
        while let Some(effect) = opening.poll_effect() {
            match effect {
                OpeningEffect::Storage(effect) => requests.start(effect),
                OpeningEffect::Notice(told) => tell_operator(prefix, &told),
                OpeningEffect::Opened(opened) => return Ok(opened),
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
    }
}
