//! What decoding may allocate.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Entries take 12 bytes or more of the input and 40 of memory, rows of the footer 48 and, with
/// what they lead to, about 120.
const TIMES_INPUT: u64 = 4;
/// The text of an error, and what sharing a buffer costs.
const BESIDES: u64 = 1 << 10;

/// Runs a decoder over `input` bytes.
///
/// # Panics
///
/// It allocated more than its input allows, in sum: what was freed again counts too.
pub(crate) fn within_limits<T>(input: usize, decode: impl FnOnce() -> T) -> T {
    let mut result = None;
    // The counter must not be left counting when a decoder panics.
    let counted = allocation_counter::measure(|| {
        result = Some(catch_unwind(AssertUnwindSafe(decode)));
    });
    let result = match result {
        Some(Ok(result)) => result,
        Some(Err(panic)) => resume_unwind(panic),
        None => panic!("nothing was run"),
    };
    let limit = TIMES_INPUT * input as u64 + BESIDES;
    let found = counted.bytes_total;
    assert!(found <= limit, "{found} bytes were allocated for {input} bytes, allowed are {limit}");
    result
}

#[test]
fn an_allocation_beyond_the_input_is_seen() {
    // Not left out by the optimizer.
    let allocated = |capacity| black_box(Vec::<u8>::with_capacity(capacity)).capacity();
    let result = catch_unwind(|| within_limits(100, || allocated(1 << 20)));
    assert!(result.is_err());
    assert_eq!(within_limits(100, || allocated(400)), 400);
}
