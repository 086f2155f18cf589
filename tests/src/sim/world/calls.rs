//! What the world asks of a log, and reads of it.

use bytes::Bytes;
use sealog_core::event::{Append, Event};
use sealog_core::{EntryId, ObjectSeq, RegionId};

use super::{Machine, REGIONS, World};
use crate::sim::history::Observed;
use crate::sim::journal::{Checked, Violation, ensure};
use crate::sim::plan::Target;
use crate::sim::reader::{self, Span};

impl World {
    pub(super) fn read(&mut self, who: usize) -> Checked<Observed> {
        self.instances[who].told = self.now;
        let Machine::Writer(writer) = &mut self.instances[who].machine else {
            return Err(Violation("nobody is there to read".into()));
        };
        reader::read_all(writer, &mut self.store, self.now, REGIONS)
    }

    /// Reads the middle of each region: exactly what was read of it before.
    pub(super) fn read_spans(&mut self, who: usize, observed: &Observed) -> Checked {
        let Machine::Writer(writer) = &mut self.instances[who].machine else { return Ok(()) };
        for (region, entries) in observed {
            let middle = entries.len() / 3..(2 * entries.len()).div_ceil(3);
            let (from, through) = (entries[middle.start].id, entries[middle.end - 1].id);
            let span = Span { from, through: Some(through) };
            let read = reader::read_region(writer, &mut self.store, self.now, *region, span)?;
            ensure!(
                read == entries[middle],
                "region {region} from {from} through {through}: {read:?}"
            );
        }
        Ok(())
    }

    /// An entry as a plan names it: no two payloads of 8 bytes or more are alike.
    pub(super) fn entry(&mut self, region: u8, size: u32) -> (RegionId, Bytes) {
        self.payloads += 1;
        let mut payload = vec![self.payloads as u8; size as usize];
        let name = self.payloads.to_le_bytes();
        let named = name.len().min(payload.len());
        payload[..named].copy_from_slice(&name[..named]);
        // One number in 256 stands for a region that callers may not use.
        let region = match region {
            u8::MAX => RegionId::FIRST_RESERVED,
            region => REGIONS[usize::from(region) % REGIONS.len()],
        };
        (region, payload.into())
    }

    pub(super) fn target(&self, who: usize, region: RegionId, target: Target) -> Option<EntryId> {
        let Machine::Writer(writer) = &self.instances[who].machine else { return None };
        match target {
            Target::Back(back) => self.journal.acknowledged(region, usize::from(back)),
            Target::Latest => Some(writer.latest(region)),
            Target::Beyond(by) => {
                let last = REGIONS.iter().map(|region| writer.latest(*region).sequence()).max();
                let last = last.unwrap_or_default().max(self.journal.last_put(who));
                EntryId::new(ObjectSeq(last.0 + u64::from(by)), 3)
            }
            Target::Max => Some(EntryId::MAX),
        }
    }

    pub(super) fn release(&mut self, who: usize, region: RegionId, in_full: bool) -> Checked {
        let waiter = self.journal.release(who, region, in_full)?;
        self.call(
            who,
            match in_full {
                true => Event::ReleaseAll { region, waiter },
                false => Event::Release { region, waiter },
            },
        )
    }

    /// Plans a read that is carried out some time later, or not at all.
    pub(super) fn plan_read(&mut self, who: usize, region: RegionId) -> Checked {
        let Machine::Writer(writer) = &self.instances[who].machine else { return Ok(()) };
        if !region.is_reserved() {
            let plan = writer.plan_read(region, EntryId::ZERO, None, 5);
            let plan = plan.map_err(|error| Violation(format!("no plan: {error}")))?;
            self.planned.extend(plan.segments);
        }
        Ok(())
    }

    /// Reads what was planned, and fails to: of an object that is gone the writer says so.
    pub(super) fn read_planned(&mut self) -> Checked {
        let Some(who) = self.instances.len().checked_sub(1) else { return Ok(()) };
        for planned in std::mem::take(&mut self.planned) {
            let Machine::Writer(_) = &self.instances[who].machine else { return Ok(()) };
            let (segment, gone) = (planned.segment, self.store.get(&planned.key).is_none());
            let waiter = self.journal.asks_for_verdict(who, segment, gone);
            self.call(who, Event::SegmentReadFailed { segment, waiter })?;
        }
        Ok(())
    }

    pub(super) fn stop(&mut self) -> Checked {
        let who = self.running()?;
        let waiter = self.journal.stop(who)?;
        self.call(who, Event::Stop { waiter })?;
        // Whatever is called from now on fails, but for another stop.
        let (region, payload) = self.entry(0, 10);
        self.append(Append::One(region, payload))?;
        let waiter = self.journal.flush(who)?;
        self.call(who, Event::Flush { waiter })?;
        let waiter = self.journal.stop(who)?;
        self.call(who, Event::Stop { waiter })
    }

    pub(super) fn append(&mut self, append: Append) -> Checked {
        let who = self.instances.len() - 1;
        let accepts = match &self.instances[who].machine {
            Machine::Writer(writer) => writer.accepts_appends(),
            Machine::Opening(_) | Machine::Gone => true,
        };
        let waiter = self.journal.append(who, &append)?;
        self.call(who, Event::Append { append, waiter })?;
        if let Machine::Writer(writer) = &self.instances[who].machine {
            self.journal.handed_out(waiter, |region| writer.latest(region))?;
        }
        let queued = self.journal.is_queueing(who);
        ensure!(!(accepts && queued), "appends were said to be accepted, and one was queued");
        Ok(())
    }
}
