//! The way to a view of a log: it puts nothing, so it works beside a running writer and stands in
//! nobody's way.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use super::aim::Steps;
use super::examine::{Examination, Examined};
use super::objects::{ObjectKind, ObjectStatus};
use super::recover::{self, Recovery};
use super::requests::Request;
use super::{Opening, OpeningEffect, Shown};
use crate::catalog::{Catalog, HeldBy, RegionInfo};
use crate::error::Error;
use crate::event::{Notice, StorageAnswer, Verdict};
use crate::format::{Header, SegmentMeta, WriterRecord};
use crate::key::{Key, Prefix};
use crate::options::Options;
use crate::read::{ReadPlan, ReplayFilter, ReplayPlan, SegmentRef};
use crate::types::{EntryId, Link, ObjectSeq, RegionId, Time};

/// A log as a listing showed it: its history, recovered as a writer would recover it, and what else
/// is there. It is never changed; [`Opening::refresh`] makes the next one.
///
/// What it shows is at least what was acknowledged (`durable`) before its listing began, except what
/// was released or made obsolete. The last objects of it may not be acknowledged yet, and in rare
/// cases never will be: the next opening to write decides that, so a later view may lack them.
///
/// A writer may collect objects meanwhile. Its reads therefore end as those of a writer do: when
/// [`SegmentRead`](crate::SegmentRead) asks the writer, refresh, and answer with the
/// [`verdict`](View::verdict) of the newer view, or with none if that fails.
#[derive(Clone, Debug)]
pub struct View {
    prefix: Prefix,
    options: Options,
    catalog: Catalog,
    tip: Option<Link>,
    incomplete_above_tip: u64,
    /// What the listing showed and was there.
    known: BTreeMap<ObjectSeq, Examined>,
    shown: BTreeMap<ObjectSeq, Shown>,
    ignored: BTreeSet<Key>,
}

/// What an opening to read keeps.
#[derive(Clone, Debug, Default)]
pub struct Viewing {
    /// How many incomplete objects the operator was told of.
    told: u64,
    /// What the last listing that came in no order proves to be missing.
    missing: Option<BTreeSet<ObjectSeq>>,
}

/// An object that a view shows, history or not.
#[derive(Clone, Copy, Debug)]
pub struct ViewedObject<'a> {
    /// Its size in bytes.
    pub size: u64,
    /// When the store says it was written, in milliseconds since 1970.
    pub modified_millis: u64,
    /// What it says of itself.
    pub header: &'a Header,
    /// Its table of segments, those of reserved regions included.
    pub segments: &'a [SegmentMeta],
    /// Its writer record, if it has one that came with the table and decodes.
    pub writer: Option<&'a WriterRecord>,
    /// Where it stands.
    pub status: ObjectStatus,
}

impl ViewedObject<'_> {
    /// What it is for.
    pub fn kind(&self) -> ObjectKind {
        ObjectKind::of(self.header, self.segments)
    }
}

impl Opening<View> {
    /// Begins to open the log at `prefix` to read it: it puts nothing, and fences nobody. An empty
    /// prefix has an empty view, unless `must_exist` is set.
    ///
    /// It costs one listing and one to three reads per object, and one per object with many release
    /// records (DESIGN.md section 4, steps 1 to 4).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`]: nothing is touched.
    pub fn read_only(now: Time, prefix: Prefix, options: Options) -> Result<Opening<View>, Error> {
        options.validate()?;
        Ok(Opening::begin(now, prefix, options, Viewing::default()))
    }

    /// Begins to open the log of a view again. Objects never change, so it costs one listing, and
    /// reads of what that view does not show.
    pub fn refresh(now: Time, view: &View) -> Opening<View> {
        let own = Viewing { told: view.incomplete_above_tip, missing: None };
        let mut opening = Opening::begin(now, view.prefix.clone(), view.options.clone(), own);
        opening.known = view.known.clone();
        opening.shown = view.shown.clone();
        opening.ignored = view.ignored.clone();
        opening
    }
}

impl Steps for View {
    type Own = Viewing;

    const TAKES_ANY_ORDER: bool = true;

    fn examined(opening: &mut Opening<View>, examination: Examination) {
        let Some(found) = opening.sound(examination) else { return };
        if !opening.unordered {
            return opening.select(found, false);
        }
        // A listing in no order may lack what came while it was read, and show what came behind that.
        // The next one does not lack that any more, whatever else it lacks: so what only one of them
        // misses is no sign of a loss.
        let missing = recover::missing(&found.objects);
        let before = opening.own.missing.replace(missing.clone());
        let is_sign = before.is_none_or(|before| !before.is_disjoint(&missing));
        opening.select(found, missing.is_empty() || !is_sign);
    }

    fn recovered(opening: &mut Opening<View>, recovery: Recovery) {
        let count = recovery.incomplete_above_tip;
        if count > 0 && count != opening.own.told {
            opening.notice(Notice::IncompleteObjects { count });
        }
        let view = View {
            prefix: opening.prefix.clone(),
            options: opening.options.clone(),
            catalog: recovery.catalog,
            tip: recovery.tip,
            incomplete_above_tip: count,
            known: core::mem::take(&mut opening.known),
            shown: core::mem::take(&mut opening.shown),
            ignored: core::mem::take(&mut opening.ignored),
        };
        opening.end(OpeningEffect::Opened(Box::new(view)));
    }

    /// It asks for nothing else.
    fn answered(_: &mut Opening<View>, _: Request, _: StorageAnswer) {}
}

impl View {
    /// The log's prefix.
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// The options it was opened with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// History, with its watermarks as far as they are in the log, and its boundary: the larger of
    /// the tip's and the computed one.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The last object of history; `None` if nothing is stored at the prefix.
    pub fn tip(&self) -> Option<Link> {
        self.tip
    }

    /// How many objects above the tip are incomplete: with a writer at work, what it has under way,
    /// else successors of creates that never landed. Claims are not counted.
    pub fn incomplete_above_tip(&self) -> u64 {
        self.incomplete_above_tip
    }

    /// Everything that is there, in the order of the sequences.
    pub fn objects(&self) -> impl Iterator<Item = ViewedObject<'_>> {
        let tip = self.tip.and_then(|tip| self.known.get(&tip.sequence));
        let boundary = tip.map_or(ObjectSeq::ZERO, |tip| tip.header.boundary);
        self.known.iter().map(move |(sequence, object)| ViewedObject {
            size: object.size,
            modified_millis: self.shown.get(sequence).map_or(0, |shown| shown.modified_millis),
            header: &object.header,
            segments: &object.segments,
            writer: object.writer.as_deref(),
            status: if self.catalog.is_indexed(object.header.link()) {
                ObjectStatus::Chain
            } else if *sequence < boundary {
                ObjectStatus::BelowBoundary
            } else {
                ObjectStatus::Orphan
            },
        })
    }

    /// The regions that hold something above their watermark, in order.
    pub fn regions(&self) -> impl Iterator<Item = RegionInfo> {
        self.catalog.regions()
    }

    /// The largest id of a region that is indexed; zero if there is none.
    pub fn durable(&self, region: RegionId) -> EntryId {
        self.catalog.durable(region)
    }

    /// Plans a read of a region, as [`Writer::plan_read`](crate::Writer::plan_read) does. A read
    /// that goes on may do so on a newer view.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRegion`] for a reserved region.
    pub fn plan_read(
        &self,
        region: RegionId,
        from: EntryId,
        through: Option<EntryId>,
        at_most: usize,
    ) -> Result<ReadPlan, Error> {
        self.catalog.plan_read(&self.prefix, region, from, through, at_most)
    }

    /// Plans a replay of many regions, as [`Writer::plan_replay`](crate::Writer::plan_replay) does.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRegion`] for a filter that names a reserved region.
    pub fn plan_replay(
        &self,
        filter: &ReplayFilter,
        from: ObjectSeq,
        through: Option<ObjectSeq>,
        at_most: usize,
    ) -> Result<ReplayPlan, Error> {
        self.catalog.plan_replay(&self.prefix, filter, from, through, at_most)
    }

    /// What keeps objects from being deleted, as far as a reader can know: what a running writer
    /// made obsolete and no object carries yet, is needed here.
    pub fn held_by(&self) -> HeldBy {
        self.catalog.held_by()
    }

    /// Whether the object of a read that failed is still history. Ask a view that was opened after
    /// the read failed: the one that planned it knows nothing newer.
    pub fn verdict(&self, segment: SegmentRef) -> Verdict {
        if self.catalog.is_indexed(segment.object) { Verdict::Indexed } else { Verdict::Gone }
    }
}
