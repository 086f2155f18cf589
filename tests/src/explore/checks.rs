//! What must hold in every state.

use rustc_hash::FxHashMap;
use sealog_core::EntryId;

use super::alone::{Alone, lone_opening, two_openings};
use super::instance::{End, Fate, Instance, Opened, Phase, tags};
use super::objects::{ObjectId, SetId, StoredEntry, Tag};
use super::world::{State, World};

/// Two openings at once are run from one store in so many; with SEALOG_LONG from every one.
const SAMPLED: u32 = 8;

/// The checks, with what they found out about stores.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    alone: FxHashMap<SetId, Result<Alone, String>>,
    pub(crate) most_listings: u32,
    pub(crate) most_puts: u32,
    pub(crate) most_attempts: u32,
    /// Whether the first instance was open before anything else happened.
    preopened: bool,
    /// Two openings at once are run from one store in so many.
    sampled: u32,
}

impl Checks {
    pub(crate) fn new(preopened: bool) -> Checks {
        let sampled = if std::env::var_os("SEALOG_LONG").is_some() { 1 } else { SAMPLED };
        Checks { preopened, sampled, ..Checks::default() }
    }

    /// The first thing that is wrong with a state.
    pub(crate) fn find(&mut self, world: &World, state: &State) -> Result<(), String> {
        if !self.alone.contains_key(&state.store) {
            let alone = self.look_at(world, state.store);
            self.alone.insert(state.store, alone);
        }
        let history = match &self.alone[&state.store] {
            Ok(alone) => &alone.history[..],
            Err(what) => return Err(what.clone()),
        };
        for instance in world.instances(state) {
            gave_up_for_a_start(world, state, instance)?;
            holds_what_was_acknowledged(world, state, history, instance)?;
            if let Some(opened) = &instance.told.opened {
                holds_what_was_recovered(world, state, history, instance, opened)?;
                for older in world.instances(state) {
                    knows_what_is_acknowledged(world, state, instance, opened, older)?;
                }
            }
        }
        self.somebody_opens(world, state)
    }

    /// All that depends on the store alone.
    fn look_at(&mut self, world: &World, store: SetId) -> Result<Alone, String> {
        let alone = lone_opening(&world.setup, &world.objects, store)
            .map_err(|what| format!("a lone opening fails: {what}"))?;
        if !alone.history.is_sorted_by(|a, b| a.id < b.id) {
            return Err(format!("ids do not ascend: {:?}", alone.history));
        }
        self.most_listings = self.most_listings.max(alone.listings);
        self.most_puts = self.most_puts.max(alone.puts);
        // The first listing and the second look, and a claim with a listing for every sequence
        // between the tip and the end that is free, and one behind it.
        let members = world.objects.members(store);
        let sequence = |id: &ObjectId| world.objects.get(*id).sequence();
        let end = members.last().map_or(0, |id| sequence(id) + 1);
        let above = alone.tip.map_or(0, |tip| tip + 1);
        let taken = members.iter().filter(|id| sequence(id) >= above).count();
        let free = (end - above) as u32 - taken as u32;
        let checks = u32::from(world.setup.options.verify_store);
        // Without order each counts once two in a row are equal.
        let passes = if world.setup.lists_in_order { 1 } else { 2 };
        if alone.listings > passes * (3 + free) || alone.puts > 2 + free + checks {
            let Alone { listings, puts, .. } = alone;
            return Err(format!("a lone opening makes {listings} listings and {puts} puts"));
        }
        if store.is_multiple_of(self.sampled) {
            let attempts = two_openings(&world.setup, &world.objects, store)
                .map_err(|what| format!("two openings at once: {what}"))?;
            self.most_attempts = self.most_attempts.max(attempts);
        }
        Ok(alone)
    }

    /// Openings that all end without one that opens would fail for ever: whoever comes last finds
    /// nobody that is still at it.
    fn somebody_opens(&self, world: &World, state: &State) -> Result<(), String> {
        let later = world.instances(state).skip(usize::from(self.preopened));
        let started = later.filter(|instance| !matches!(instance.phase, Phase::NotStarted));
        let failed =
            |instance: &Instance| matches!(instance.phase, Phase::Ended(End::Contended { .. }));
        if started.clone().next().is_some() && started.clone().all(failed) {
            return Err("every opening failed".into());
        }
        Ok(())
    }
}

/// An opening gives up only for another that got as far as a start object: a claim alone may be of
/// one that died.
fn gave_up_for_a_start(world: &World, state: &State, instance: &Instance) -> Result<(), String> {
    match instance.phase {
        Phase::Ended(End::Contended { met }) if !world.objects.has_start(state.store, met) => {
            let name = instance.name();
            Err(format!("{name} gave up for epoch {met}, which nobody has started"))
        }
        _ => Ok(()),
    }
}

/// When an opening completes, it knows what was acknowledged before it looked last, by whomever.
pub(crate) fn knows_what_was_acknowledged(
    world: &World,
    state: &State,
    who: usize,
    looked: SetId,
) -> Result<(), String> {
    let instance = world.instance(state.instances[who]);
    let Some(opened) = &instance.told.opened else { return Ok(()) };
    for other in world.instances(state) {
        for (place, fate) in other.told.appends.iter().enumerate() {
            let Fate::Acknowledged(id) = fate else { continue };
            let was_there = world.objects.at(looked, id.sequence().0).is_some();
            let tag = Tag::new(other.who, place);
            let known = opened.history.iter().any(|entry| entry.tag == tag);
            if was_there && !known && !is_obsolete(world, state, tag, *id) {
                let (name, recovered) = (instance.name(), tags(&opened.history));
                return Err(format!(
                    "{tag} was acknowledged before {name} opened with {recovered}"
                ));
            }
        }
    }
    Ok(())
}

/// Whether a caller said of an entry that it is obsolete, to an instance that knew it. Such an entry
/// may be in a history or not. To make ids obsolete hides no entry that the instance did not know.
fn is_obsolete(world: &World, state: &State, tag: Tag, id: EntryId) -> bool {
    world.instances(state).any(|instance| instance.made_obsolete(tag, id))
}

/// A lone opening recovers every entry that was acknowledged and is not obsolete, with its id; and
/// no entry that was failed before a later one of the same writer was acknowledged.
fn holds_what_was_acknowledged(
    world: &World,
    state: &State,
    history: &[StoredEntry],
    instance: &Instance,
) -> Result<(), String> {
    let fates = &instance.told.appends;
    let last = fates.iter().rposition(|fate| matches!(fate, Fate::Acknowledged(_)));
    let Some(last) = last else { return Ok(()) };
    let mut before = None;
    for (place, fate) in fates.iter().enumerate().take(last + 1) {
        let tag = Tag::new(instance.who, place);
        let found = history.iter().filter(|entry| entry.tag == tag);
        match fate {
            Fate::Waiting => return Err(format!("{tag} waits while a later append is answered")),
            Fate::Acknowledged(id) => {
                let ids: Vec<_> = found.map(|entry| entry.id).collect();
                let gone = ids.is_empty() && is_obsolete(world, state, tag, *id);
                if ids != [*id] && !gone {
                    let history = tags(history);
                    return Err(format!("{tag} is acknowledged, a lone opening finds: {history}"));
                }
                if before >= Some(*id) {
                    return Err(format!("{tag} got an id below the one before"));
                }
                before = Some(*id);
            }
            Fate::Failed if found.count() > 0 => {
                return Err(format!(
                    "{tag} failed before a later append was acknowledged, and is \
                                    recovered all the same"
                ));
            }
            Fate::Failed => {}
        }
    }
    Ok(())
}

/// What is older than a completed opening is in history exactly if that opening recovered it; but
/// what is obsolete may be gone since. It does not come back.
fn holds_what_was_recovered(
    world: &World,
    state: &State,
    history: &[StoredEntry],
    instance: &Instance,
    opened: &Opened,
) -> Result<(), String> {
    let mut past = history.iter().filter(|entry| entry.epoch < opened.epoch).peekable();
    let held = |entry: &StoredEntry| {
        past.next_if_eq(&entry).is_some() || is_obsolete(world, state, entry.tag, entry.id)
    };
    if opened.history.iter().all(held) && past.next().is_none() {
        return Ok(());
    }
    let (name, history, recovered) = (instance.name(), tags(history), tags(&opened.history));
    Err(format!("{name} opened with {recovered}, a lone opening finds: {history}"))
}

/// What a writer acknowledged is known to every later one.
fn knows_what_is_acknowledged(
    world: &World,
    state: &State,
    instance: &Instance,
    opened: &Opened,
    older: &Instance,
) -> Result<(), String> {
    if older.told.opened.as_ref().is_none_or(|older| older.epoch >= opened.epoch) {
        return Ok(());
    }
    for (place, fate) in older.told.appends.iter().enumerate() {
        let tag = Tag::new(older.who, place);
        let Fate::Acknowledged(id) = fate else { continue };
        let known = opened.history.iter().any(|entry| entry.tag == tag);
        if !known && !is_obsolete(world, state, tag, *id) {
            let (name, recovered) = (instance.name(), tags(&opened.history));
            return Err(format!("{tag} is acknowledged, but {name} opened with {recovered}"));
        }
    }
    Ok(())
}
