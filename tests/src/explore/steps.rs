//! The steps that can be taken from a state.

use super::instance::{Begun, Instance, Phase, What};
use super::objects::ObjectId;
use super::world::{State, World};

/// The allowance for faults in one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// Puts without an answer in time, whether they took effect, take effect later, or never do;
    /// and listings of guards that fail. Reads and the listings of openings do not fail.
    pub(crate) failures: u8,
    /// Listings that are no snapshot.
    pub(crate) lists: u8,
    /// How these are read.
    pub(crate) listing: Listing,
    /// Floors that are raised, and how far above what is there.
    pub(crate) floors: u8,
    pub(crate) floor_by: u64,
}

/// What a listing that is no snapshot shows of what came while it was read. What was there when it
/// began, it shows.
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
/// - A put that meets an object takes effect and is answered at once: it would meet it at any later
///   time as well.
/// - An opening does one thing at a time, and all that others notice of it are its requests, which
///   wait as long as they like. So its requests are carried out and answered at once.
/// - The same holds for the listings of a writer: while one is on its way, the writer starts no
///   create, and what it is told meanwhile it could have been told before.
/// - An instance that crashes is one that no step is taken for any more. What it had asked for
///   stays, and can happen or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// To this instance.
    Of(usize, Move),
    /// One of the late puts takes effect.
    Late(ObjectId),
}

/// What happens to one instance. Numbers are places among the requests that it asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Start,
    Append,
    RaiseFloor,
    Tick,
    /// A put takes effect, and its answer is on the way.
    Apply(u8),
    /// That answer arrives.
    Created(u8),
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
    /// A listing that began before ends. Of what came since, it shows what this mask says.
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
                    if instance.wants_tick() {
                        add(Move::Tick);
                    }
                    self.writer_steps(state, instance, add);
                }
                Phase::Ended(_) => {}
            }
            before = Some(instance);
        }
        steps.extend(self.objects.members(state.late).iter().map(|object| Step::Late(*object)));
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
            Some(begun) => {
                let since = self.since(state, begun, after);
                match begun.through {
                    None => {
                        (0..1 << since.len()).for_each(|mask| add(Move::EndList(place, mask)));
                    }
                    Some(last) => {
                        let second = |id: &ObjectId| self.objects.get(*id).sequence() > last;
                        let shown = since.iter().map(second).enumerate();
                        let mask = shown.map(|(at, shown)| u16::from(shown) << at).sum();
                        add(Move::EndList(place, mask));
                    }
                }
            }
        }
    }

    /// What a listing may show besides what was there when it began.
    pub(crate) fn since(&self, state: &State, begun: Begun, after: Option<u64>) -> Vec<ObjectId> {
        let before = self.objects.members(begun.there);
        self.behind(state, after).filter(|id| !before.contains(id)).collect()
    }
}
