//! The rows of the tables and the rules of DESIGN.md sections 4 to 9 and 14, and the situations
//! that users of such logs met, by name: each has a case in the matrix, or says where it is.

/// Where the cases of a name are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the matrix.
    Here,
    /// In the matrix, in `durable` and in `enqueued`.
    Both,
    /// Tested elsewhere.
    Elsewhere {
        /// The file, from the root of the repository on.
        file: &'static str,
        /// The test's function.
        test: &'static str,
    },
}

use Place::{Both, Elsewhere, Here};

/// A damaged object is no fault of a create.
const fn call(test: &'static str) -> Place {
    Elsewhere { file: "core/src/writer/tests/calls.rs", test }
}

/// All of them.
pub const NAMES: &[(&str, Place)] = &[
    // Section 5, how the outcome of a create is known.
    ("known: created, the put succeeded", Here),
    ("known: created, the header at the key is ours", Here),
    ("known: transient, the key is absent", Here),
    ("known: transient, the read-back failed", Here),
    ("known: refused, the put", Here),
    ("known: refused, the read-back", Here),
    ("known: stale", Here),
    ("known: fenced, our epoch and not ours", Here),
    ("known: fenced, a later epoch", Here),
    ("known: foreign, no object", Here),
    ("known: foreign, fewer than 90 bytes", Here),
    // Section 5, what comes of it.
    ("durable: created", Here),
    ("durable: transient, repeated", Here),
    ("durable: transient, rolled back", Here),
    ("durable: refused", Here),
    ("durable: stale", Here),
    ("durable: fenced", Here),
    ("durable: foreign", Here),
    ("durable: created at the last sequence", Here),
    ("enqueued: created", Here),
    ("enqueued: transient", Here),
    ("enqueued: refused", Here),
    ("enqueued: stale", Here),
    ("enqueued: fenced", Here),
    ("enqueued: foreign", Here),
    ("enqueued: created at the last sequence", Here),
    (
        "the catalog refuses the batch",
        // The ids of a writer ascend, so none does.
        Elsewhere {
            file: "core/src/writer/tests/create.rs",
            test: "a_batch_that_the_catalog_refuses_poisons",
        },
    ),
    // Section 5, in words.
    ("thresholds: bytes", Here),
    ("thresholds: age", Here),
    ("thresholds: larger than the threshold", Here),
    ("wait_durable: a failed id is never certified", Here),
    ("wait_durable: above everything handed out", Here),
    ("obsolete: the watermark is clamped in enqueued", Here),
    ("obsolete: unsettled", Here),
    ("obsolete: no room above it", Here),
    // Section 6.
    ("release: object durable and indexed", Both),
    ("release: its batch is rolled back", Here),
    ("release: its create fails transiently", Both),
    ("release: it arrives while failing", Here),
    ("release: its batch is pending when the log becomes failing", Here),
    ("release: poison", Both),
    ("release: stop begins while it is pending", Both),
    ("release: nothing present or pending", Both),
    ("release: records are coalesced", Both),
    ("release_all: nothing is appended until the record was collected", Both),
    // Sections 4 and 6: what an opening makes of records.
    ("restart: a release holds", Both),
    ("restart: a region that is used again", Both),
    ("restart: the last object is release-only", Both),
    ("restart: damaged records", Here),
    ("restart: a collection was under way", Both),
    // Section 7.
    ("stop, durable: what was not started is dropped", Here),
    ("stop, durable: creates in flight run out", Here),
    ("stop, enqueued: the backlog is uploaded", Here),
    ("stop, enqueued: repeated until the deadline", Here),
    ("stop, enqueued: in a failing log", Here),
    ("stop, enqueued: running attempts finish after the deadline", Here),
    ("stop: what was acknowledged and dropped is lost", Here),
    ("stop: a poisoned log answers its poison", Here),
    ("stop: durability waiters fail at the end", Here),
    ("stop: every caller gets the same answer", Here),
    ("stop, durable: records left go into one more object", Here),
    ("stop, enqueued: carried records are sealed, also in a failing log", Here),
    ("stop: a dropped release record is lost", Both),
    // Section 9.
    ("boundary: durable once what carries it is indexed", Both),
    ("delete: several keys per request", Here),
    ("delete: several requests at once", Here),
    ("delete: keys of failed batches", Here),
    ("carrier: created", Both),
    ("carrier: none that frees nothing", Here),
    ("carrier: none with an interval of 0", Here),
    ("carrier: none after stop began", Both),
    // Section 14.
    ("failing: obsolete that needs no floor, and one that does", Here),
    ("failing: a create succeeds, whichever batch's", Here),
    ("failing: stale", Here),
    ("failing: fenced", Here),
    ("failing: foreign", Here),
    ("failing: a create succeeds, carried records", Here),
    ("failing: tick", Here),
    ("failing: tick, deletes and carriers", Here),
    ("waiting for a floor: append", Here),
    ("waiting for a floor: release", Both),
    ("waiting for a floor: a second obsolete that needs one", Here),
    ("waiting for a floor: pipeline empty by roll back", Here),
    ("waiting for a floor: failing", Here),
    ("waiting for a floor: stop", Both),
    ("waiting for a floor: poison", Here),
    ("poisoned: create result", Here),
    ("poisoned: delete result", Both),
    ("poisoned: failed segment read", call("a_failed_read_is_judged_after_poison")),
    ("poisoned: stop", Both),
    ("poisoned, then stopped: any call", Both),
    ("stopping: flush, obsolete, new wait", Both),
    ("stopping: release", Both),
    ("stopping: failed segment read", call("a_failed_read_is_judged_by_what_is_indexed")),
    ("stopping, durable: transient", Here),
    ("stopping, durable: roll back", Here),
    ("the last object of stop: created", Both),
    ("the last object of stop: transient", Both),
    ("the last object of stop: anything else", Both),
    ("stopping or exhausted, records left, no sequence left", Both),
    ("exhausted: append", Here),
    ("exhausted: obsolete without floor", Here),
    ("exhausted: release", Both),
    ("exhausted: carrier", Both),
    ("exhausted: the last create is rolled back", Here),
    ("stopped: anything late", Both),
    ("delete: not found", Both),
    ("delete: refused", Both),
    ("delete: timed out", Both),
    ("delete: answered after stop", Both),
    ("delete: answered after poison", Both),
    ("carrier: transient", Both),
    ("carrier: refused", Both),
    // In `enqueued` none is.
    ("carrier: rolled back", Here),
    ("guarded batch pending: roll back", Here),
    ("guarded batch pending: poison", Here),
    ("guarded batch pending: stop", Both),
    ("guarded batch pending: failing", Here),
    ("guarded batch pending: a second skip", Here),
    // No writer is there yet.
    (
        "opening: the claim's key holds a short or foreign object",
        Elsewhere {
            file: "core/src/opening/tests/exclusive/claims.rs",
            test: "a_claim_that_finds_no_object_at_its_key_fails_as_damage",
        },
    ),
    (
        "opening: dropped at any point",
        Elsewhere {
            file: "shell-tokio/tests/it/dropping.rs",
            test: "dropping_an_opening_leaves_a_log_that_opens",
        },
    ),
    // What users of such logs met.
    ("met 1: stored, and the client that retried says AlreadyExists", Here),
    ("met 2: AlreadyExists, and the key is absent", Here),
    ("met 3: twenty failures that may pass, of every kind", Here),
    ("met 4: stored, response and read-back lost, rolled back", Here),
    ("met 5: a batch rolls back while the next is under way", Here),
    ("met 6: a create hangs until its time limit while later ones are created", Here),
    ("met 7: the future of an append is dropped", Here),
    ("met 8: a later epoch during stop", Here),
    ("met 9: an append between stop and the log seeing it", Here),
    ("met 9: a release between stop and the log seeing it", Both),
    ("met 10: the last sequence", Here),
    ("met 11: positions run out", Here),
    (
        "met 12: small slices of large buffers",
        // It counts allocations.
        Elsewhere {
            file: "tests/tests/memory.rs",
            test: "memory_kept_alive_is_within_one_and_a_half_times_what_is_reported",
        },
    ),
    ("met 13: an object of zero, 5 and 89 bytes", Here),
    ("met 14: 64 appends behind a full pipeline", Here),
];
