//! `sealog replay`: the entries of many regions, in one pass.

use std::collections::BTreeMap;

use clap::Args;
use sealog_blocking::{EntryId, RegionId, ReplayFilter, ReplayItem};

use crate::cli::entries::Shape;
use crate::cli::exit::Outcome;
use crate::cli::location::At;
use crate::cli::output::Output;

/// Print the entries of all regions, or of some, in the order in which the log wrote them
///
/// By object; those of one object by region. It never writes, and works beside a running writer.
/// A damaged segment is a hole, which is reported in its place; then the exit code is 1.
#[derive(Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    at: At,
    /// Only this region; may be given several times
    #[arg(long = "region", value_name = "REGION")]
    regions: Vec<u64>,
    /// Only entries with this id or above, of whichever region
    #[arg(long, value_name = "ID", default_value_t = 0)]
    from: u64,
    #[command(flatten)]
    shape: Shape,
}

impl Replay {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        let begin = EntryId(self.from);
        let reader = self.at.reader()?;
        let is_wanted =
            |region: RegionId| self.regions.is_empty() || self.regions.contains(&region.0);
        let infos = reader.regions();
        let wanted = infos.iter().filter(|info| is_wanted(info.region));
        let bytes = wanted.clone().map(|info| info.bytes).sum();
        // From where each region goes on. One that is not here yet is wanted whole: what it will
        // have comes later than what is there.
        let mut from: BTreeMap<RegionId, EntryId> =
            wanted.map(|info| (info.region, begin)).collect();
        from.extend(self.regions.iter().map(|region| (RegionId(*region), begin)));
        self.shape.print(&reader, output, bytes, |printer| {
            let all = match self.regions.is_empty() {
                true => ReplayFilter::all(),
                false => ReplayFilter::none(),
            };
            let filter =
                from.iter().fold(all, |filter, (region, id)| filter.region_from(*region, *id));
            for item in reader.replay(filter) {
                match item? {
                    ReplayItem::Entry(region, entry) => {
                        if entry.id >= begin {
                            printer.entry(region, &entry)?;
                        }
                        from.insert(region, entry.id.next());
                    }
                    ReplayItem::Hole(hole) => {
                        if hole.max_id >= begin {
                            printer.hole(&hole)?;
                        }
                        from.insert(hole.region, hole.max_id.next());
                    }
                }
            }
            Ok(())
        })
    }
}
