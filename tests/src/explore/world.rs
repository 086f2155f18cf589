//! The world: one store and some instances, and what can happen next.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::checks::knows_what_was_acknowledged;
use super::instance::{Begun, Happening, Instance, Keys, Reply, Setup, What};
use super::objects::{LANDINGS, NOTHING, ObjectId, Objects, SetId, Written};
use super::steps::{Allowance, Move, Step};
use super::transcript::Transcript;

/// The most instances that a world can have.
pub(crate) const MOST: usize = 4;

/// The number of an instance with all that it knows, among all that were met.
pub(crate) type InstanceId = u32;

/// All that decides what can happen from now on. Its parts are numbers of things that are held
/// once, so that a state is small, and two states are the same exactly if they are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) store: SetId,
    /// Puts that nobody waits for any more, and that can still take effect, at any time.
    pub(crate) late: SetId,
    /// The same of deletes.
    pub(crate) late_deletes: Keys,
    pub(crate) instances: [InstanceId; MOST],
    pub(crate) spent: Spent,
    /// How often more time than `fence_retention` has passed.
    pub(crate) era: u8,
}

/// How much of the allowance for faults is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Spent {
    pub(crate) failures: u8,
    pub(crate) lists: u8,
    pub(crate) floors: u8,
    pub(crate) obsoletes: u8,
}

/// What came of meeting something, once computed.
#[derive(Clone, Copy, Debug)]
struct Met {
    instance: InstanceId,
    late: SetId,
    late_deletes: Keys,
    /// The place of the violation among those that were met, from 1.
    violation: u32,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) allowance: Allowance,
    pub(crate) objects: Objects,
    instances: Vec<Instance>,
    by_fingerprint: FxHashMap<u128, InstanceId>,
    met: FxHashMap<(InstanceId, Happening, u8), Met>,
    violations: Vec<String>,
}

impl World {
    pub(crate) fn new(setup: Setup, allowance: Allowance) -> World {
        World {
            setup,
            allowance,
            objects: Objects::new(),
            instances: Vec::new(),
            by_fingerprint: FxHashMap::default(),
            met: FxHashMap::default(),
            violations: Vec::new(),
        }
    }

    /// The state in which nothing happened yet, to instances with these numbers of appends.
    pub(crate) fn first(&mut self, appends: &[u8]) -> State {
        let mut instances = [InstanceId::MAX; MOST];
        for (who, appends) in appends.iter().enumerate() {
            instances[who] = self.intern(Instance::new(who, *appends));
        }
        let (late_deletes, spent) = (Keys::default(), Spent::default());
        State { store: NOTHING, late: NOTHING, late_deletes, instances, spent, era: 0 }
    }

    /// How many different instances were met, and how many pairs of one and an event.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.instances.len(), self.met.len())
    }

    pub(crate) fn instance(&self, id: InstanceId) -> &Instance {
        &self.instances[id as usize]
    }

    /// The instances of a state.
    pub(crate) fn instances(&self, state: &State) -> impl Iterator<Item = &Instance> + Clone {
        let used = state.instances.into_iter().filter(|id| *id != InstanceId::MAX);
        used.map(|id| self.instance(id))
    }

    fn intern(&mut self, instance: Instance) -> InstanceId {
        *self.by_fingerprint.entry(instance.fingerprint()).or_insert_with(|| {
            self.instances.push(instance);
            (self.instances.len() - 1) as InstanceId
        })
    }

    /// What stands where an object is to be put.
    pub(crate) fn standing_at(&self, state: &State, object: ObjectId) -> Option<ObjectId> {
        self.objects.at(state.store, self.objects.get(object).sequence())
    }

    pub(crate) fn behind(
        &self,
        state: &State,
        after: Option<u64>,
    ) -> impl Iterator<Item = ObjectId> {
        let members = self.objects.members(state.store);
        let behind = |id: &ObjectId| after.is_none_or(|key| self.objects.get(*id).sequence() > key);
        let members: Vec<ObjectId> = members.iter().copied().filter(behind).collect();
        members.into_iter()
    }

    /// The state after a step, and what is wrong with the step, if something is.
    pub(crate) fn take(
        &mut self,
        state: &State,
        step: Step,
        transcript: &mut Transcript,
    ) -> (State, Option<String>) {
        let mut next = *state;
        let mut violation = None;
        match step {
            Step::Late(object) => {
                if transcript.is_written() {
                    let object = self.objects.get(object);
                    transcript.line(format!("store: late, {object} is created"));
                }
                let landing = self.objects.get(object).written.landing + 1;
                let written = Written { era: state.era, landing };
                let landed = self.objects.written(object, written);
                next.store = self.objects.with(state.store, landed);
                if self.setup.deletes {
                    // The next time it takes effect, it is written later.
                    let others = self.objects.members(state.late);
                    let others = others.iter().copied().filter(|late| *late != object);
                    let again = Written { era: 0, landing };
                    let again = (landing < LANDINGS).then(|| self.objects.written(object, again));
                    let late: Vec<ObjectId> = others.chain(again).collect();
                    next.late = self.objects.set_of(late);
                }
            }
            Step::TimePasses => {
                next.era += 1;
                transcript.line("more time passes than what stands in the way is kept".into());
            }
            Step::LateDelete(sequence) => {
                next.store = self.delete(state.store, sequence, "late, ", transcript);
            }
            Step::Of(who, step) => {
                let looked = match step {
                    Move::EndList(place, _) => {
                        self.listing(state, who, place).1.map(|begun| begun.there)
                    }
                    _ => self.instance(state.instances[who]).looked,
                };
                let happening = self.prepare(&mut next, who, step, transcript);
                let number = self.happens(&mut next, who, happening, transcript);
                violation = number.checked_sub(1).map(|at| self.violations[at as usize].clone());
                let was_open = self.instance(state.instances[who]).told.opened.is_some();
                if !was_open && violation.is_none() {
                    let looked = looked.unwrap_or(next.store);
                    violation = knows_what_was_acknowledged(self, &next, who, looked).err();
                }
            }
        }
        if next.store != state.store || next.late != state.late {
            next.late = self.still_late(&next);
        }
        (next, violation)
    }

    /// Does to the store what a step does to it, and says what it is for the instance.
    fn prepare(
        &mut self,
        next: &mut State,
        who: usize,
        step: Move,
        transcript: &mut Transcript,
    ) -> Happening {
        let answer = Happening::Answer;
        match step {
            Move::Start => Happening::Start,
            Move::Append => Happening::Append,
            Move::Tick => Happening::Tick,
            Move::RaiseFloor => {
                next.spent.floors += 1;
                Happening::RaiseFloor(self.highest(next) + self.allowance.floor_by)
            }
            Move::Obsolete => {
                next.spent.obsoletes += 1;
                Happening::Obsolete
            }
            Move::Apply(place) => {
                self.apply(next, who, place, transcript);
                answer(place, Reply::Applied)
            }
            Move::Created(place) => answer(place, Reply::Created),
            Move::Deleted(place) => answer(place, Reply::Deleted),
            Move::Create(place) => {
                self.apply(next, who, place, transcript);
                answer(place, Reply::Created)
            }
            Move::Exists(place, standing) => answer(place, Reply::Exists(standing)),
            Move::TimeOut(place) => {
                next.spent.failures += 1;
                answer(place, Reply::TimedOut)
            }
            Move::LoseAnswer(place) => {
                next.spent.failures += 1;
                self.apply(next, who, place, transcript);
                answer(place, Reply::AnswerLost)
            }
            Move::Read(place) => {
                answer(place, Reply::Read(self.found_by(self.asked(next, who, place), next.store)))
            }
            Move::List(place) => {
                let (after, _) = self.listing(next, who, place);
                let listed: Vec<ObjectId> = self.behind(next, after).collect();
                answer(place, Reply::Listed(self.objects.set_of(listed)))
            }
            Move::BeginList(place) => {
                let (there, _) = self.begin(next, who, place);
                answer(place, Reply::Begun(Begun { there, through: None }))
            }
            Move::FirstPage(place, size) => {
                let (there, keys) = self.begin(next, who, place);
                let through = Some(keys[size as usize - 1]);
                answer(place, Reply::Begun(Begun { there, through }))
            }
            Move::EndList(place, mask) => {
                let (after, begun) = self.listing(next, who, place);
                let begun = begun.expect("it has begun");
                let listed = self.shown(next, begun, after, mask);
                answer(place, Reply::Listed(self.objects.set_of(listed)))
            }
            Move::Fail(place) => {
                next.spent.failures += 1;
                answer(place, Reply::Failed)
            }
        }
    }

    fn apply(&mut self, next: &mut State, who: usize, place: u8, transcript: &mut Transcript) {
        match *self.asked(next, who, place) {
            What::Put { object, .. } => {
                if transcript.is_written() {
                    transcript.line(format!("store: {} is created", self.objects.get(object)));
                }
                let object = self.objects.written(object, Written::in_era(next.era));
                next.store = self.objects.with(next.store, object);
            }
            What::Delete { sequence, .. } => {
                next.store = self.delete(next.store, sequence, "", transcript);
            }
            ref other => panic!("it has no effect: {other:?}"),
        }
    }

    /// What a read finds. An opening fetches small objects whole, as large as they were listed; of one
    /// that is smaller by now, the short body is a failed fetch, which is repeated: it counts as
    /// gone here, where no time passes.
    fn found_by(&self, read: &What, store: SetId) -> Option<ObjectId> {
        let What::Read { sequence, fetch, .. } = read else { panic!("no read: {read:?}") };
        let is_whole = |id: &ObjectId| {
            let size = self.objects.get(*id).bytes.len() as u64;
            fetch.is_none_or(|(_, end)| end <= size)
        };
        self.objects.at(store, *sequence).filter(is_whole)
    }

    fn delete(
        &mut self,
        store: SetId,
        sequence: u64,
        late: &str,
        transcript: &mut Transcript,
    ) -> SetId {
        if transcript.is_written() {
            transcript.line(match self.objects.at(store, sequence) {
                Some(object) => format!("store: {late}{} is deleted", self.objects.get(object)),
                None => format!("store: {late}{sequence} is deleted, and was not there"),
            });
        }
        self.objects.without(store, sequence)
    }

    /// What a listing that begins is sure to show, and its sequences.
    fn begin(&mut self, next: &mut State, who: usize, place: u8) -> (SetId, Vec<u64>) {
        next.spent.lists += 1;
        let (after, _) = self.listing(next, who, place);
        let there: Vec<ObjectId> = self.behind(next, after).collect();
        let keys = there.iter().map(|id| self.objects.get(*id).sequence()).collect();
        (self.objects.set_of(there), keys)
    }

    fn listing(&self, state: &State, who: usize, place: u8) -> (Option<u64>, Option<Begun>) {
        match self.asked(state, who, place) {
            What::List { after, begun } => (*after, *begun),
            other => panic!("no listing: {other:?}"),
        }
    }

    fn asked(&self, state: &State, who: usize, place: u8) -> &What {
        &self.instance(state.instances[who]).asked[place as usize].what
    }

    fn highest(&self, state: &State) -> u64 {
        let members: Arc<[ObjectId]> = self.objects.members(state.store);
        members.last().map_or(0, |id| self.objects.get(*id).sequence())
    }

    /// Hands an instance what happens to it, and then the answers to its reads of what is there for
    /// good. Says which violation came of it, from 1.
    fn happens(
        &mut self,
        next: &mut State,
        who: usize,
        happening: Happening,
        transcript: &mut Transcript,
    ) -> u32 {
        let mut violation = 0;
        let mut happening = Some(happening);
        while let Some(happens) = happening {
            let met = self.meet(next.instances[who], happens, next.era, transcript);
            next.instances[who] = met.instance;
            if met.late != NOTHING {
                let late = self.objects.members(met.late);
                let before = self.objects.members(next.late);
                next.late = self.objects.set_of(before.iter().chain(late.iter()).copied());
            }
            next.late_deletes = next.late_deletes.and(met.late_deletes);
            violation = if violation == 0 { met.violation } else { violation };
            happening = self.settled_read(next, who);
        }
        violation
    }

    /// A read whose answer can never change any more, and that is not a read-back.
    fn settled_read(&self, next: &State, who: usize) -> Option<Happening> {
        if self.setup.deletes {
            return None;
        }
        let asked = &self.instance(next.instances[who]).asked;
        (0..).zip(asked).find_map(|(place, asked)| match asked.what {
            What::Read { sequence, back: false, .. } => {
                let object = self.objects.at(next.store, sequence)?;
                Some(Happening::Answer(place, Reply::Read(Some(object))))
            }
            _ => None,
        })
    }

    fn meet(
        &mut self,
        id: InstanceId,
        happening: Happening,
        era: u8,
        transcript: &mut Transcript,
    ) -> Met {
        if !transcript.is_written()
            && let Some(met) = self.met.get(&(id, happening, era))
        {
            return *met;
        }
        let instance = &self.instances[id as usize];
        let happened = instance.meet(&self.setup, &mut self.objects, happening, era, transcript);
        let violation = happened.violation.map_or(0, |violation| {
            self.violations.push(violation);
            self.violations.len() as u32
        });
        let late = self.objects.set_of(happened.late);
        let late_deletes = happened.late_deletes;
        let met = Met { instance: self.intern(happened.instance), late, late_deletes, violation };
        self.met.insert((id, happening, era), met);
        met
    }

    /// A late put whose key is taken has no effect any more, unless what took it is deleted.
    fn still_late(&mut self, state: &State) -> SetId {
        if self.setup.deletes {
            return state.late;
        }
        let late = self.objects.members(state.late);
        if late.iter().all(|id| self.standing_at(state, *id).is_none()) {
            return state.late;
        }
        let still = |id: &ObjectId| self.standing_at(state, *id).is_none();
        let still: Vec<ObjectId> = late.iter().copied().filter(still).collect();
        self.objects.set_of(still)
    }
}
