//! Inputs that once went wrong, as the simulation found and shrank them.

use super::*;
use StoreErrorKind::{Refused, TimedOut};

/// The listing that had just failed was kept as one that still runs out, and stop waited for it
/// for ever.
#[test]
fn stop_does_not_wait_for_a_guard_whose_listing_failed() {
    let mut log = Log::new(Options { retry_for: Duration::ZERO, ..at_once() });
    log.append(1, "a");
    log.fails(6, Refused);
    log.append(1, "b");
    assert_eq!(log.created(7), ["list after 5.wal"]);
    assert_eq!(log.listing_fails(TimedOut), ["fail [2]: Store listing Transient, Unknown"]);
    assert_eq!(log.stop(), ["ack 3"]);
}
