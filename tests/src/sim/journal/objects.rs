//! The checks of what is put: each object holds exactly the appends that come next, links to what
//! it must, and is repeated when it may be (DESIGN.md sections 3 and 5).

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use sealog_core::event::Payload;
use sealog_core::format::{Header, Object, ReservedContent, SegmentMeta};
use sealog_core::{EntryId, Key, Link, RegionId, Time};

use super::{AppendFate, Checked, Journal, Place, SentObject, Violation, ensure, of};

impl Journal {
    /// A put is sent.
    pub(in crate::sim) fn put(
        &mut self,
        instance: usize,
        now: Time,
        key: &Key,
        payload: &Payload,
    ) -> Checked {
        let first = payload.chunks().first().map_or(&[][..], |chunk| chunk);
        let header = Header::decode(first)
            .map_err(|error| Violation(format!("{key} was put without a header: {error}")))?;
        let link = header.link();
        ensure!(key.ends_with(&format!("{:020}.wal", link.sequence.0)), "{link} was put at {key}");
        if let Some(before) = self.sent.get_mut(&link) {
            ensure!(before.instance == instance, "{link} was put by two instances");
            ensure!(before.payload == *payload, "{link} was put again with other bytes");
            let (earliest, latest) = before.next_attempt(of(&self.instances, instance)?.retry_for);
            ensure!(
                earliest <= now && now <= latest,
                "{link} was put again at {now:?}, not between {earliest:?} and {latest:?}"
            );
            (before.last_attempt, before.attempts) = (now, before.attempts + 1);
            return Ok(());
        }
        let live = self.first_live();
        let state = self.instance(instance)?;
        let stopping = state.stopping;
        ensure!(!stopping || !state.last_object, "{link} was put for the first time after stop");
        state.last_object = stopping;
        ensure!(link.epoch == state.start.epoch, "{link} is not of {}", state.start);
        ensure!(link.sequence > state.last_put, "{link} does not come after {}", state.last_put);
        ensure!(
            header.predecessor == Some(state.tail),
            "{link} links to {:?}, not to {}",
            header.predecessor,
            state.tail
        );
        ensure!(header.boundary >= state.boundary, "{link}: the boundary moved down");
        ensure!(
            live.is_none_or(|live| header.boundary <= live),
            "{link} carries the boundary {}, and {live:?} is needed",
            header.boundary
        );
        (state.last_put, state.tail, state.boundary) = (link.sequence, link, header.boundary);
        state.sealed.push_back(link);
        let object = Object::decode(&payload.to_bytes())
            .map_err(|error| Violation(format!("{link} was put damaged: {error}")))?;
        let records = match object.reserved(RegionId::RELEASES) {
            Ok(Some(ReservedContent::Releases(records))) => {
                records.into_iter().map(|record| (record.region, record.through)).collect()
            }
            _ => BTreeMap::new(),
        };
        let entries = self.expect_content(instance, link, object)?;
        ensure!(!stopping || entries.is_empty() && !records.is_empty(), "{link} came after stop");
        if entries.is_empty() && records.is_empty() {
            self.instance(instance)?.sealed.pop_back();
            self.check_carrier(instance, now, &header)?;
            self.instance(instance)?.sealed.push_back(link);
        }
        let predecessor = header.predecessor;
        let sent = SentObject {
            instance,
            predecessor,
            payload: payload.clone(),
            first_attempt: now,
            last_attempt: now,
            attempts: 1,
            boundary: header.boundary,
            records: records.clone(),
            entries,
        };
        self.sent.insert(link, sent);
        self.check_not_released(instance, link)?;
        self.check_records(instance, link, &records)
    }

    /// A new object holds exactly the appends that come next, whole, each region's entries in
    /// their order at the positions from 1.
    fn expect_content(
        &mut self,
        instance: usize,
        link: Link,
        object: Object,
    ) -> Checked<BTreeMap<(RegionId, EntryId), Place>> {
        let user = |meta: &SegmentMeta| !meta.region.is_reserved();
        let segments = object.segments.iter().filter(|(meta, _)| user(meta));
        let count: usize = segments.map(|(_, entries)| entries.len()).sum();
        let mut expected: BTreeMap<RegionId, Vec<(EntryId, Bytes)>> = BTreeMap::new();
        let mut places = BTreeMap::new();
        while places.len() < count {
            let Some(next) = self.instance(instance)?.unsent.pop_front() else { break };
            let record = &mut self.appends[next];
            record.sent = Some(link);
            for (place, (region, payload)) in record.append.entries().enumerate() {
                let entries = expected.entry(region).or_default();
                let id = EntryId::new(link.sequence, entries.len() as u32 + 1)
                    .ok_or_else(|| Violation(format!("{link} has no position left")))?;
                entries.push((id, payload.clone()));
                places.insert((region, id), (next, place));
                record.ids.push(id);
                let floor = record.floors[place];
                ensure!(id > floor, "id {id} of region {region} was obsolete before: {floor}");
            }
            record.check_latest()?;
        }
        let holds: BTreeMap<RegionId, Vec<(EntryId, Bytes)>> = object
            .segments
            .into_iter()
            .filter(|(meta, _)| user(meta))
            .map(|(meta, entries)| {
                (meta.region, entries.into_iter().map(|entry| (entry.id, entry.payload)).collect())
            })
            .collect();
        ensure!(holds == expected, "{link} does not hold the appends that come next, whole");
        Ok(places)
    }

    /// Whether an instance waits for the object that it put at a key. (It may look at others.)
    pub(in crate::sim) fn is_creating(&self, instance: usize, key: &Key) -> bool {
        let mut sent = self.sent.iter().rev();
        let sent = sent.find(|(link, sent)| sent.instance == instance && is_key_of(key, **link));
        let waits = |(append, _): &Place| self.appends[*append].fate == AppendFate::Pending;
        sent.is_some_and(|(_, sent)| sent.entries.values().any(waits))
    }

    /// A create that failed in a way that may pass is not repeated any more; without a key it is
    /// the oldest one, whose guard failed.
    pub(super) fn may_give_up(&self, instance: usize, now: Time, key: Option<&Key>) -> Checked {
        let state = of(&self.instances, instance)?;
        let oldest = state.sealed.front().copied();
        let mut sent = self.sent.iter().rev().filter(|(_, sent)| sent.instance == instance);
        let sent = sent.find(|(link, _)| match key {
            Some(key) => is_key_of(key, **link),
            None => Some(**link) == oldest,
        });
        let Some((link, sent)) = sent else {
            return Err(Violation(format!("{key:?} was rolled back and never put")));
        };
        let (earliest, latest) = sent.next_attempt(state.retry_for);
        let next = earliest.max(now.after(delay(sent.attempts)));
        ensure!(next > latest, "{link} was given up at {now:?}, {latest:?} is not over");
        Ok(())
    }
}

impl SentObject {
    /// From when and until when it may be put again.
    fn next_attempt(&self, retry_for: Duration) -> (Time, Time) {
        (self.last_attempt.after(delay(self.attempts)), self.first_attempt.after(retry_for))
    }
}

/// After so many attempts: 100 ms, doubling to 5 s.
fn delay(attempts: u32) -> Duration {
    Duration::from_millis(100 << (attempts - 1).min(6)).min(Duration::from_secs(5))
}

pub(super) fn is_key_of(key: &Key, link: Link) -> bool {
    key.ends_with(&format!("{:020}.wal", link.sequence.0))
}
