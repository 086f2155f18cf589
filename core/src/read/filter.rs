//! Which regions a replay wants, each from where (DESIGN.md section 8).

use alloc::collections::BTreeMap;

use crate::error::Error;
use crate::types::{EntryId, RegionId};

/// Which regions a replay yields, each from which id. What is at or below a region's watermark is
/// hidden in any case, and reserved regions are never replayed: a filter that names one is refused
/// with [`Error::InvalidRegion`] when it is used.
///
/// ```
/// use sealog_core::{EntryId, RegionId, ReplayFilter};
///
/// // Everything, except that region 7 is known up to some id, and region 8 is not wanted.
/// let known = EntryId(5 << 20 | 3);
/// let filter = ReplayFilter::all().region_after(RegionId(7), known).without(RegionId(8));
/// assert_eq!(filter.from(RegionId(1)), Some(EntryId::ZERO));
/// assert_eq!(filter.from(RegionId(7)), Some(EntryId(5 << 20 | 4)));
/// assert_eq!(filter.from(RegionId(8)), None);
///
/// // Two chosen regions, whole.
/// let filter = ReplayFilter::none().region(RegionId(1)).region(RegionId(2));
/// assert_eq!(filter.from(RegionId(3)), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplayFilter {
    /// Whether regions that are not named are wanted.
    others: bool,
    /// From where, or that they are not wanted.
    named: BTreeMap<RegionId, Option<EntryId>>,
}

impl ReplayFilter {
    /// Every region, whole.
    pub fn all() -> ReplayFilter {
        ReplayFilter { others: true, named: BTreeMap::new() }
    }

    /// No region: a start for chosen ones.
    pub fn none() -> ReplayFilter {
        ReplayFilter { others: false, named: BTreeMap::new() }
    }

    /// This region, whole. What was said of it before does not count.
    pub fn region(self, region: RegionId) -> ReplayFilter {
        self.region_from(region, EntryId::ZERO)
    }

    /// This region, its entries with `id` and above. What was said of it before does not count.
    pub fn region_from(mut self, region: RegionId, id: EntryId) -> ReplayFilter {
        self.named.insert(region, Some(id));
        self
    }

    /// This region, its entries above `id`: what an engine wants that has all through `id`
    /// elsewhere. What was said of it before does not count.
    pub fn region_after(self, region: RegionId, id: EntryId) -> ReplayFilter {
        self.region_from(region, id.next())
    }

    /// Not this region. What was said of it before does not count.
    pub fn without(mut self, region: RegionId) -> ReplayFilter {
        self.named.insert(region, None);
        self
    }

    /// From where the region is wanted, if it is.
    pub fn from(&self, region: RegionId) -> Option<EntryId> {
        let others = (self.others && !region.is_reserved()).then_some(EntryId::ZERO);
        self.named.get(&region).copied().unwrap_or(others)
    }

    /// Refuses one that names a reserved region.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        match self.named.last_key_value() {
            Some((region, _)) if region.is_reserved() => {
                Err(Error::InvalidRegion { region: *region })
            }
            _ => Ok(()),
        }
    }

    /// All that is wanted, in order; `None` if that cannot be said, because regions are wanted
    /// that are not named.
    pub(crate) fn chosen(&self) -> Option<&BTreeMap<RegionId, Option<EntryId>>> {
        (!self.others).then_some(&self.named)
    }
}
