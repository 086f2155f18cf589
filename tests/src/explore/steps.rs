//! The steps that can be taken from a state.

use std::collections::BTreeMap;

use super::instance::{Begun, Instance, Phase, What};
use super::objects::ObjectId;
use super::world::{State, World};

/// The allowance for faults in one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// Puts and deletes without an answer in time, whether they took effect, take effect later, or
    /// never do; and listings of guards that fail. Reads and the listings of openings do not fail.
    pub(crate) failures: u8,
    /// Listings that are no snapshot.
    pub(crate) lists: u8,
    /// How these are read.
    pub(crate) listing: Listing,
    /// Floors that are raised, and how far above what is there.
    pub(crate) floors: u8,
    pub(crate) floor_by: u64,
    /// How often a writer is told that all it knows is obsolete.
    pub(crate) obsoletes: u8,
    /// How often more time than `fence_retention` passes, for the store and everybody.
    pub(crate) eras: u8,
}

/// What a listing that is no snapshot shows of what came or went while it was read. What was there
/// from its beginning to its end, it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// There are two pages in the order of keys, each of which is a snapshot.
    TwoPages,
    /// Any part of it, as with a directory.
    AnyOrder,
}

/// One atomic step.
///
/// Where steps are joined, nothing is lost by it:
///
/// - A put that meets an object takes effect and is answered at once: that it met it is all that is
///   told.
/// - An opening does one thing at a time, and all that others notice of it are its requests, which
///   wait as long as they like. So its requests are carried out and answered at once; but where
///   objects are deleted, each of its reads is a step of its own, since what is read may be gone.
/// - A delete request of the world has one key: of several keys, each would be deleted at a time of
///   its own as well.
/// - The same holds for the listings of a writer: while one is on its way, the writer starts no
///   create, and what it is told meanwhile it could have been told before.
/// - An instance that crashes is one that no step is taken for any more. What it had asked for
///   stays, and can happen or not.
/// - Of requests without an answer, puts of the same object count as one, and so do deletes of the
///   same key. To make up for that, each delete may take effect any number of times, and each put
///   up to three times where objects are deleted. (Elsewhere it can at most once.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// To this instance.
    Of(usize, Move),
    /// One of the late puts takes effect.
    Late(ObjectId),
    /// One of the late deletes takes effect, on what is at this sequence now.
    LateDelete(u64),
    /// More time than `fence_retention` passes.
    TimePasses,
}

/// What happens to one instance. Numbers are places among the requests that it asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Start,
    Append,
    RaiseFloor,
    Obsolete,
    Tick,
    /// A put or a delete takes effect, and its answer is on the way.
    Apply(u8),
    /// That answer arrives.
    Created(u8),
    Deleted(u8),
    /// Both at once.
    Create(u8),
    /// A put meets this object.
    Exists(u8, ObjectId),
    TimeOut(u8),
    /// A put takes effect and is answered as timed out.
    LoseAnswer(u8),
    Read(u8),
    List(u8),
    BeginList(u8),
    /// The first page is read, with this many keys.
    FirstPage(u8, u8),
    /// A listing that began before ends. Of what came or went since, it shows what this mask says.
    EndList(u8, u16),
    /// The listing of a guard fails.
    Fail(u8),
}

impl World {
    /// All steps that can be taken, always in the same order.
    pub(crate) fn steps(&self, state: &State, steps: &mut Vec<Step>) {
        steps.clear();
        let mut before: Option<&Instance> = None;
        for (who, instance) in self.instances(state).enumerate() {
            let mut add = |step| steps.push(Step::Of(who, step));
            match &instance.phase {
                Phase::NotStarted => {
                    // Of instances that differ in nothing but their names, the first starts first.
                    let twin = |other: &Instance| {
                        matches!(other.phase, Phase::NotStarted)
                            && other.appends_left == instance.appends_left
                            && self.setup.dies_opening.is_none()
                    };
                    if !before.is_some_and(twin) {
                        add(Move::Start);
                    }
                }
                Phase::Opening(_) => self.opening_steps(state, instance, add),
                Phase::Writing(_) => {
                    if instance.appends_left > 0 {
                        add(Move::Append);
                    }
                    if state.spent.floors < self.allowance.floors {
                        add(Move::RaiseFloor);
                    }
                    if state.spent.obsoletes < self.allowance.obsoletes && instance.can_obsolete() {
                        add(Move::Obsolete);
                    }
                    if instance.wants_tick(state.era) {
                        add(Move::Tick);
                    }
                    self.writer_steps(state, instance, add);
                }
                Phase::Ended(_) => {}
            }
            before = Some(instance);
        }
        let late = self.objects.members(state.late);
        let free = |id: &&ObjectId| self.standing_at(state, **id).is_none();
        steps.extend(late.iter().filter(free).map(|object| Step::Late(*object)));
        let there = |sequence: &u64| self.objects.at(state.store, *sequence).is_some();
        steps.extend(state.late_deletes.iter().filter(there).map(Step::LateDelete));
        if state.era < self.allowance.eras {
            steps.push(Step::TimePasses);
        }
    }

    fn opening_steps(&self, state: &State, instance: &Instance, mut add: impl FnMut(Move)) {
        let may_fail = state.spent.failures < self.allowance.failures;
        for (place, asked) in (0..).zip(&instance.asked) {
            match &asked.what {
                What::Put { object, .. } => match self.standing_at(state, *object) {
                    Some(standing) => add(Move::Exists(place, standing)),
                    None => {
                        add(Move::Create(place));
                        if may_fail {
                            add(Move::TimeOut(place));
                            add(Move::LoseAnswer(place));
                        }
                    }
                },
                What::Read { .. } => add(Move::Read(place)),
                What::List { after, begun } => {
                    self.list_steps(state, place, *after, *begun, &mut add);
                }
                What::Delete { .. } => {}
            }
        }
    }

    fn writer_steps(&self, state: &State, instance: &Instance, mut add: impl FnMut(Move)) {
        let may_fail = state.spent.failures < self.allowance.failures;
        for (place, asked) in (0..).zip(&instance.asked) {
            match &asked.what {
                What::Put { applied: true, .. } => {
                    add(Move::Created(place));
                    if may_fail {
                        add(Move::TimeOut(place));
                    }
                }
                What::Delete { applied, .. } => {
                    add(if *applied { Move::Deleted(place) } else { Move::Apply(place) });
                    if may_fail {
                        add(Move::TimeOut(place));
                    }
                }
                What::Put { object, applied: false } => match self.standing_at(state, *object) {
                    Some(standing) => add(Move::Exists(place, standing)),
                    None => {
                        add(Move::Apply(place));
                        if may_fail {
                            add(Move::TimeOut(place));
                        }
                    }
                },
                What::Read { .. } => add(Move::Read(place)),
                What::List { after, begun } => {
                    self.list_steps(state, place, *after, *begun, &mut add);
                    if may_fail {
                        add(Move::Fail(place));
                    }
                }
            }
        }
    }

    fn list_steps(
        &self,
        state: &State,
        place: u8,
        after: Option<u64>,
        begun: Option<Begun>,
        add: &mut impl FnMut(Move),
    ) {
        match begun {
            None => {
                add(Move::List(place));
                if state.spent.lists >= self.allowance.lists {
                    return;
                }
                match self.allowance.listing {
                    Listing::AnyOrder => add(Move::BeginList(place)),
                    Listing::TwoPages => {
                        let keys = self.behind(state, after).count() as u8;
                        (1..=keys).for_each(|size| add(Move::FirstPage(place, size)));
                    }
                }
            }
            Some(begun) => match begun.through {
                None => {
                    let changed = self.changed(state, begun, after).len();
                    (0..1 << changed).for_each(|mask| add(Move::EndList(place, mask)));
                }
                Some(_) => add(Move::EndList(place, 0)),
            },
        }
    }

    /// What came or went since a listing began.
    pub(crate) fn changed(&self, state: &State, begun: Begun, after: Option<u64>) -> Vec<ObjectId> {
        let before = self.objects.members(begun.there);
        let now: Vec<ObjectId> = self.behind(state, after).collect();
        let gone = before.iter().copied().filter(|id| !now.contains(id));
        gone.chain(now.iter().copied().filter(|id| !before.contains(id))).collect()
    }

    /// What a listing shows that ends now. It shows keys: of two objects that had the same, the later
    /// one is as good.
    pub(crate) fn shown(
        &self,
        state: &State,
        begun: Begun,
        after: Option<u64>,
        mask: u16,
    ) -> Vec<ObjectId> {
        let before = self.objects.members(begun.there);
        let sequence = |id: &ObjectId| self.objects.get(*id).sequence();
        if let Some(last) = begun.through {
            let first = before.iter().copied().filter(|id| sequence(id) <= last);
            let second = self.behind(state, after).filter(|id| sequence(id) > last);
            return first.chain(second).collect();
        }
        let changed = self.changed(state, begun, after);
        let stayed = before.iter().copied().filter(|id| !changed.contains(id));
        let seen = (0..).zip(&changed).filter(|(at, _)| mask >> at & 1 == 1).map(|(_, id)| *id);
        let shown = stayed.chain(seen).map(|id| (sequence(&id), id));
        shown.collect::<BTreeMap<_, _>>().into_values().collect()
    }
}
