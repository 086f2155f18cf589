//! Random lives of a log, with views between its steps and in the middle of them, against a model
//! that knows what was written.

use proptest::prelude::*;

use super::super::random::runner;
use super::*;

/// What happens to the log.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The writer stores an entry of this region.
    Append(u64),
    /// It releases this region.
    Release(u64),
    /// It carries its boundary.
    Carry,
    /// A create never lands, and the one behind it does: both are rolled back.
    RollBack(u64),
    /// Another writer takes over.
    TakeOver,
    /// What an earlier writer had under way lands.
    Late(u64),
    /// The writer deletes some of what lies below the boundary.
    Collect(u64),
    /// The reader looks, with this many of the next steps between its requests: the first time by a
    /// view, from then on by a refresh.
    Look(usize),
}

/// What was written, independent of how it is read.
#[derive(Default)]
struct Model {
    objects: Objects,
    next: u64,
    epoch: u64,
    tip: Option<(u64, u64)>,
    /// The sequences of history.
    history: Vec<u64>,
    /// The region of what is in history, by its sequence.
    entries: BTreeMap<u64, u64>,
    released: BTreeMap<u64, EntryId>,
    boundary: u64,
    /// What the tip carries.
    durable: u64,
}

impl Model {
    fn new() -> Model {
        let mut model = Model::default();
        model.take_over();
        model
    }

    fn take_over(&mut self) {
        if self.tip.is_some() {
            self.put(claim(self.next));
        }
        self.epoch = self.next + 1;
        let start = self.history_object().writer("w");
        self.extend(start);
    }

    /// The next object of history.
    fn history_object(&self) -> Make {
        let object = make(self.next, self.epoch).boundary(self.boundary);
        self.tip.iter().fold(object, |object, (sequence, epoch)| object.after(*sequence, *epoch))
    }

    fn extend(&mut self, object: Make) {
        self.tip = Some((self.next, self.epoch));
        self.durable = self.boundary;
        self.history.push(self.next);
        self.put(object);
        let live = |sequence: &&u64| self.is_live(**sequence);
        let first = self.history.iter().find(live).copied();
        self.boundary = self.boundary.max(first.unwrap_or(self.next));
    }

    fn put(&mut self, object: Make) {
        self.objects.insert(key(self.next), object.bytes());
        self.next += 1;
    }

    fn is_live(&self, sequence: u64) -> bool {
        self.entries.get(&sequence).is_some_and(|region| {
            self.released.get(region).is_none_or(|through| id(sequence, 1) > *through)
        })
    }

    /// The sequences at which something of a region is to be read.
    fn live(&self, region: u64) -> Vec<u64> {
        let of_region = self.entries.iter().filter(|(_, of)| **of == region);
        of_region.map(|(sequence, _)| *sequence).filter(|at| self.is_live(*at)).collect()
    }

    fn carry_out(&mut self, step: Step) {
        match step {
            Step::Append(region) => {
                self.entries.insert(self.next, region);
                let object = self.history_object().entry(region, 10);
                self.extend(object);
            }
            Step::Release(region) => {
                let Some(last) = self.entries.iter().rfind(|(_, of)| **of == region) else {
                    return;
                };
                let through = id(*last.0, 1);
                let object = self.history_object().releases(&[(region, through.0)]);
                self.released.insert(region, through);
                self.extend(object);
            }
            Step::Carry => {
                let object = self.history_object();
                self.extend(object);
            }
            Step::RollBack(region) => {
                let missing = self.next;
                self.next += 1;
                let orphan = make(self.next, self.epoch).after(missing, self.epoch);
                self.put(orphan.boundary(self.boundary).entry(region, 10));
            }
            Step::TakeOver => self.take_over(),
            Step::Late(region) => {
                if let Some((sequence, epoch)) = self.tip {
                    let late = make(self.next, epoch - 1).after(sequence, epoch);
                    self.put(late.entry(region, 10));
                }
            }
            Step::Collect(which) => {
                for sequence in (0..self.durable).filter(|at| (which >> (at % 64)) & 1 == 1) {
                    self.objects.remove(&key(sequence));
                }
            }
            Step::Look(_) => {}
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let region = || 0..4u64;
    prop_oneof![
        8 => region().prop_map(Step::Append),
        3 => region().prop_map(Step::Release),
        1 => Just(Step::Carry),
        1 => region().prop_map(Step::RollBack),
        1 => Just(Step::TakeOver),
        1 => region().prop_map(Step::Late),
        2 => any::<u64>().prop_map(Step::Collect),
        4 => (0..6usize).prop_map(Step::Look),
    ]
}

/// How often something was met, over all runs.
#[derive(Debug, Default)]
struct Met {
    listed_again: u32,
    collected_meanwhile: u32,
}

#[test]
fn a_view_shows_what_was_written_whatever_the_writer_does_meanwhile() {
    let met = std::cell::RefCell::new(Met::default());
    let steps = prop::collection::vec(step(), 1..60);
    runner(1_500)
        .run(&steps, |steps| live(&steps, &mut met.borrow_mut()))
        .unwrap_or_else(|error| panic!("{error}"));
    let met = met.into_inner();
    assert!(met.listed_again > 5 && met.collected_meanwhile > 10, "{met:?}");
}

fn live(steps: &[Step], met: &mut Met) -> Result<(), TestCaseError> {
    let mut model = Model::new();
    let mut steps = steps.iter().copied();
    let mut view: Option<View> = None;
    while let Some(step) = steps.next() {
        let Step::Look(between) = step else {
            model.carry_out(step);
            continue;
        };
        let before: Vec<_> = (0..4).map(|region| model.live(region)).collect();
        let known: BTreeSet<Key> = view
            .iter()
            .flat_map(|view| view.objects())
            .map(|object| key(object.header.sequence.0))
            .collect();
        let there = model.objects.keys().cloned().collect::<BTreeSet<_>>();
        let opening = match &view {
            Some(view) => Opening::refresh(BEGAN, view),
            None => Opening::read_only(BEGAN, prefix(), Options::default()).unwrap(),
        };
        let meanwhile: Vec<_> = steps.by_ref().take(between).collect();
        let quiet = meanwhile.is_empty();
        let mut meanwhile = meanwhile.into_iter();
        let (found, asked) = look(opening, &mut model, &mut meanwhile)?;
        meanwhile.for_each(|step| model.carry_out(step));
        found.check();
        for (region, before) in (0..4).zip(before) {
            let seen = reads_of(&found, region);
            let now = model.live(region);
            // All that was there before and is wanted still, and nothing that never was.
            let still = before.iter().filter(|at| now.contains(at));
            prop_assert!(still.clone().all(|at| seen.contains(at)), "{seen:?}, {before:?}");
            prop_assert!(seen.iter().all(|at| model.entries.get(at) == Some(&region)));
            if quiet {
                prop_assert_eq!(&seen, &now);
            }
        }
        if quiet {
            let (sequence, epoch) = model.tip.unwrap();
            prop_assert_eq!(found.tip(), Some(link(sequence, epoch)));
            prop_assert_eq!(found.catalog().boundary(), ObjectSeq(model.boundary));
            let new = there.difference(&known).count();
            prop_assert_eq!(asked.len(), 1 + new, "a listing, and a read of what is new");
        }
        met.listed_again += u32::from(asked.iter().filter(|is_list| **is_list).count() > 1);
        let gone = there.iter().any(|key| !model.objects.contains_key(key));
        met.collected_meanwhile += u32::from(!quiet && gone);
        let survey = Opening::survey(BEGAN, prefix(), Options::default()).unwrap();
        let survey = drive(
            survey,
            Store { objects: model.objects.clone(), ..Store::default() },
            Order::OldestFirst,
        );
        prop_assert_eq!(survey.opened().problems().count(), 0);
        view = Some(found);
    }
    Ok(())
}

/// The view that an opening ends with, and of each of its requests whether it was a listing. One
/// step of the log comes before each answer.
fn look(
    mut opening: Opening<View>,
    model: &mut Model,
    meanwhile: &mut impl Iterator<Item = Step>,
) -> Result<(View, Vec<bool>), TestCaseError> {
    let mut now = BEGAN;
    let mut asked = Vec::new();
    let mut under_way = VecDeque::new();
    loop {
        while let Some(effect) = opening.poll_effect() {
            match effect {
                OpeningEffect::Storage(effect) => under_way.push_back(effect),
                OpeningEffect::Notice(_) => {}
                OpeningEffect::Opened(view) => return Ok((*view, asked)),
                OpeningEffect::Failed(error) => return Err(TestCaseError::fail(error.to_string())),
            }
        }
        if let Some(effect) = under_way.pop_front() {
            asked.push(operation_of(&effect) == Operation::List);
            if asked.len() > 1 {
                meanwhile.next().into_iter().for_each(|step| model.carry_out(step));
            }
            let objects = core::mem::take(&mut model.objects);
            let mut store = Store { objects, ..Store::default() };
            let answer = store.answer(&effect);
            model.objects = store.objects;
            opening.handle(now, OpeningEvent::Storage(answer));
        } else {
            let Some(due) = opening.next_tick() else {
                return Err(TestCaseError::fail("it waits for nothing"));
            };
            now = due;
            opening.handle(now, OpeningEvent::Tick);
        }
    }
}
