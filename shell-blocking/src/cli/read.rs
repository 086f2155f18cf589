//! `sealog read`: the entries of one region.

use clap::Args;
use sealog_blocking::{EntryId, ReadItem, RegionId};

use crate::cli::entries::Shape;
use crate::cli::exit::Outcome;
use crate::cli::location::At;
use crate::cli::output::Output;

/// Print the entries of a region, in the order of their ids
///
/// It never writes, and works beside a running writer. A damaged segment is a hole, which is
/// reported in its place; then the exit code is 1.
#[derive(Args)]
pub(crate) struct Read {
    #[command(flatten)]
    at: At,
    /// The region
    #[arg(long)]
    region: u64,
    /// Begin with this id, or the first one above it
    #[arg(long, value_name = "ID", default_value_t = 0)]
    from: u64,
    #[command(flatten)]
    shape: Shape,
}

impl Read {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        let region = RegionId(self.region);
        let mut from = EntryId(self.from);
        let reader = self.at.reader()?;
        let regions = reader.regions();
        let bytes = regions.iter().find(|info| info.region == region).map_or(0, |info| info.bytes);
        self.shape.print(&reader, output, bytes, |printer| {
            for item in reader.read(region, from) {
                match item? {
                    ReadItem::Entry(entry) => {
                        printer.entry(region, &entry)?;
                        from = entry.id.next();
                    }
                    ReadItem::Hole(hole) => {
                        printer.hole(&hole)?;
                        from = hole.max_id.next();
                    }
                }
            }
            Ok(())
        })
    }
}
