//! Reads everything that a writer has, as a shell does: by plans, each segment by its machine.

use sealog_core::event::Event;
use sealog_core::read::{
    PlannedSegment, ReadProgress, SegmentOutcome, SegmentRead, SegmentReadEffect, SegmentReadEvent,
};
use sealog_core::{EntryId, RegionId, Time, Writer};

use super::history::{Observed, Seen};
use super::journal::{Checked, Violation, Waiter, ensure};
use crate::model::{Fate, ModelStore, Request};

/// Plans are cut after so many segments, so that going on from a plan is ordinary too.
const SEGMENTS_PER_PLAN: usize = 3;

/// The part of a region to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) from: EntryId,
    /// `None`: what is durable now.
    pub(super) through: Option<EntryId>,
}

/// Reads these regions whole.
pub(crate) fn read_all(
    writer: &mut Writer<Waiter>,
    store: &mut ModelStore,
    now: Time,
    regions: impl IntoIterator<Item = RegionId>,
) -> Checked<Observed> {
    let mut observed = Observed::new();
    for region in regions {
        let whole = Span { from: EntryId::ZERO, through: None };
        let entries = read_region(writer, store, now, region, whole)?;
        if !entries.is_empty() {
            observed.insert(region, entries);
        }
    }
    let listed: Vec<_> = writer.regions().map(|info| info.region).collect();
    ensure!(
        listed.iter().eq(observed.keys()),
        "regions {listed:?} are listed, and {:?} hold something",
        observed.keys()
    );
    Ok(observed)
}

/// Reads a part of a region. Every so many fetches one arrives damaged, which must make no
/// difference: a segment is fetched once more.
pub(super) fn read_region(
    writer: &mut Writer<Waiter>,
    store: &mut ModelStore,
    now: Time,
    region: RegionId,
    Span { mut from, mut through }: Span,
) -> Checked<Vec<Seen>> {
    let mut entries = Vec::new();
    let mut segments = 0;
    loop {
        let plan = writer
            .plan_read(region, from, through, SEGMENTS_PER_PLAN)
            .map_err(|error| Violation(format!("no plan for region {region}: {error}")))?;
        ensure!(plan.segments.len() <= SEGMENTS_PER_PLAN, "the plan was not cut");
        for planned in plan.segments {
            let meta = planned.meta;
            ensure!(
                from <= meta.max_id && meta.min_id <= plan.through,
                "{meta:?} holds nothing of region {region} from {from} through {}",
                plan.through
            );
            segments += 1;
            let damage = segments % 4 == 0;
            entries.extend(read_segment(writer, store, now, planned, damage)?);
        }
        through = Some(plan.through);
        match plan.next {
            Some(next) => from = next,
            None => return Ok(entries),
        }
    }
}

fn read_segment(
    writer: &mut Writer<Waiter>,
    store: &mut ModelStore,
    now: Time,
    planned: PlannedSegment,
    mut damage: bool,
) -> Checked<Vec<Seen>> {
    let (object, region) = (planned.segment.object, planned.segment.region);
    let mut read = SegmentRead::new(planned, writer.options());
    let mut progress = ReadProgress::default();
    while let Some(effect) = read.poll_effect() {
        match effect {
            SegmentReadEffect::Storage(effect) => {
                let fate = if damage { Fate::Damaged } else { Fate::Honest };
                damage = false;
                let (answer, _) = Request::new(now, effect).end(store, fate);
                read.handle(now, &mut progress, SegmentReadEvent::Storage(answer));
            }
            // What it would say does not matter: nothing was collected, so it must not fail.
            SegmentReadEffect::AskWriter(segment) => {
                return Err(Violation(format!(
                    "region {region} in {} was read, and does not come",
                    segment.object
                )));
            }
            SegmentReadEffect::Done(SegmentOutcome::Entries(entries)) => {
                let refetched = u64::from(read.refetched());
                writer.handle(now, Event::ReadFinished { took: Default::default(), refetched });
                let seen = |entry: sealog_core::format::Entry| Seen {
                    object,
                    id: entry.id,
                    payload: entry.payload,
                };
                return Ok(entries.into_iter().map(seen).collect());
            }
            SegmentReadEffect::Done(outcome) => {
                return Err(Violation(format!("region {region} in {object}: {outcome:?}")));
            }
        }
    }
    Err(Violation(format!("the read of region {region} in {object} does not end")))
}
