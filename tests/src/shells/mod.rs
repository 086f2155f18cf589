//! What both shells do alike: one list of cases, run over each.
//!
//! A case is written against [`Log`], whose every call blocks, and over a [`Stage`], a store that
//! does as the case says. [`shell_cases!`](crate::shell_cases) makes a test of each for a shell.

mod blocking;
mod stage;
mod tokio;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;
use sealog_core::{
    EntryId, Epoch, Error, HeldBy, Hole, Link, Options, RegionId, RegionInfo, ReplayFilter, Stats,
    WriteError,
};
use sealog_shell::{ReadItem, ReplayItem};

pub use blocking::{Blocking, BlockingReader};
pub use stage::Stage;
pub use tokio::{Tokio, TokioReader};

/// A handle of a log, over one of the shells.
pub trait Log: Clone + Send + Sync + Sized + 'static {
    /// What reads a log of this shell.
    type Reader: Reader;
    /// `Wal::open`.
    fn open(store: Arc<dyn ObjectStore>, prefix: &str, options: Options) -> Result<Self, Error>;
    /// `Wal::open_local`.
    fn open_local(directory: &Path, options: Options) -> Result<Self, Error>;
    /// `Wal::open_url`.
    fn open_url(url: &str, options: Options) -> Result<Self, Error>;
    /// `Wal::submit`.
    fn submit(&self, region: RegionId, payload: impl Into<Bytes>) -> Pending<EntryId>;
    /// `Wal::submit_batch`.
    fn submit_batch(&self, entries: Vec<(RegionId, Bytes)>) -> Pending<Vec<EntryId>>;
    /// `Wal::try_submit`.
    fn try_submit(
        &self,
        region: RegionId,
        payload: impl Into<Bytes>,
    ) -> Result<Pending<EntryId>, WriteError>;
    /// `Wal::try_submit_batch`.
    fn try_submit_batch(
        &self,
        entries: Vec<(RegionId, Bytes)>,
    ) -> Result<Pending<Vec<EntryId>>, WriteError>;
    /// `Wal::append`.
    fn append(&self, region: RegionId, payload: impl Into<Bytes>) -> Result<EntryId, WriteError>;
    /// `Wal::append_batch`.
    fn append_batch(&self, entries: Vec<(RegionId, Bytes)>) -> Result<Vec<EntryId>, WriteError>;
    /// All that `Wal::read` yields.
    fn read(&self, region: RegionId, from: EntryId) -> Vec<Result<ReadItem, Error>>;
    /// All that `Wal::replay` yields.
    fn replay(&self, filter: ReplayFilter) -> Vec<Result<ReplayItem, Error>>;
    /// `Wal::wait_durable`.
    fn wait_durable(&self, region: RegionId, id: EntryId) -> Result<(), Error>;
    /// `Wal::obsolete`.
    fn obsolete(&self, region: RegionId, id: EntryId) -> Result<(), Error>;
    /// `Wal::release`.
    fn release(&self, region: RegionId) -> Result<(), WriteError>;
    /// `Wal::release_all`.
    fn release_all(&self, region: RegionId) -> Result<(), WriteError>;
    /// `Wal::latest`.
    fn latest(&self, region: RegionId) -> Result<EntryId, Error>;
    /// `Wal::durable`.
    fn durable(&self, region: RegionId) -> Result<EntryId, Error>;
    /// `Wal::regions`.
    fn regions(&self) -> Result<Vec<RegionInfo>, Error>;
    /// `Wal::held_by`.
    fn held_by(&self) -> Result<HeldBy, Error>;
    /// `Wal::holes`.
    fn holes(&self, region: RegionId) -> Result<Vec<Hole>, Error>;
    /// `Wal::stats`.
    fn stats(&self) -> Result<Stats, Error>;
    /// `Wal::flush`.
    fn flush(&self) -> Result<(), Error>;
    /// `Wal::stop`.
    fn stop(&self) -> Result<(), Error>;
    /// `Wal::prefix`.
    fn prefix(&self) -> &str;
    /// `Wal::epoch`.
    fn epoch(&self) -> Epoch;
    /// `Wal::options`.
    fn options(&self) -> &Options;
}

/// A handle that reads, over one of the shells.
pub trait Reader: Clone + Send + Sync + Sized + 'static {
    /// `Reader::open`.
    fn open(store: Arc<dyn ObjectStore>, prefix: &str, options: Options) -> Result<Self, Error>;
    /// `Reader::open_local`.
    fn open_local(directory: &Path, options: Options) -> Result<Self, Error>;
    /// `Reader::open_url`.
    fn open_url(url: &str, options: Options) -> Result<Self, Error>;
    /// `Reader::refresh`.
    fn refresh(&self) -> Result<(), Error>;
    /// `Reader::read`.
    fn read(&self, region: RegionId, from: EntryId) -> Items<ReadItem>;
    /// `Reader::replay`.
    fn replay(&self, filter: ReplayFilter) -> Items<ReplayItem>;
    /// `Reader::regions`.
    fn regions(&self) -> Vec<RegionInfo>;
    /// `Reader::held_by`.
    fn held_by(&self) -> HeldBy;
    /// `Reader::durable`.
    fn durable(&self, region: RegionId) -> EntryId;
    /// `Reader::tip`.
    fn tip(&self) -> Option<Link>;
}

/// What a read yields, one by one.
pub type Items<T> = Box<dyn Iterator<Item = Result<T, Error>> + Send>;

/// Waits for what was submitted. Holds no handle of the log.
pub type Pending<T> = Box<dyn FnOnce() -> Result<T, WriteError> + Send>;

const A: RegionId = RegionId(1);
const B: RegionId = RegionId(2);
const PREFIX: &str = "logs/a";

/// `$` stands first, for the macro that this makes.
macro_rules! list {
    (($dollar:tt) $($room:ident { $($case:ident)+ })+) => {
        $(mod $room;)+

        /// Runs a case over a shell.
        ///
        /// # Panics
        ///
        /// It fails, or there is none of this name.
        pub fn run<L: Log>(case: &str) {
            match case {
                $($(stringify!($case) => $room::$case::<L>(),)+)+
                _ => panic!("there is no case {case}"),
            }
        }

        /// Makes a test of each case for a shell, which is named by an absolute path.
        #[macro_export]
        macro_rules! shell_cases {
            ($dollar shell:ty) => {
                $(mod $room {
                    $(
                        #[test]
                        fn $case() {
                            ::sealog_tests::shells::run::<$dollar shell>(stringify!($case));
                        }
                    )+
                })+
            };
        }
    };
}

list! { ($)
    bad_input {
        a_prefix_that_is_none_is_named_and_the_store_is_not_asked
        an_option_out_of_range_is_named_and_nothing_is_touched
        a_reserved_region_is_refused_and_nothing_is_written
        an_append_that_is_too_large_is_refused_and_the_next_one_passes
        with_must_exist_a_prefix_without_a_log_is_missing_and_stays_empty
        a_url_that_names_no_log_is_refused
    }
    beside {
        a_reader_sees_what_was_acknowledged_before_it_looked_and_writes_nothing
        a_refresh_costs_one_listing_and_reads_of_what_is_new
        a_reader_of_nothing_is_empty_or_missing_and_makes_no_directory
        reads_of_a_reader_end_where_it_saw_the_end
        reads_go_on_over_a_collection_at_the_cost_of_one_listing
        replays_go_on_over_a_collection_at_the_cost_of_one_listing
        an_object_that_is_lost_fails_the_read
        a_refresh_that_fails_leaves_what_was_seen
        a_damaged_segment_is_a_hole_for_a_reader_too
        a_reader_has_options_like_a_log
        a_read_outlives_the_handle_that_it_came_from
    }
    crowded {
        what_waits_is_bounded_and_whoever_waits_comes_in_by_turns
        an_append_larger_than_all_that_may_wait_gets_in
        a_store_that_hangs_fills_the_log_and_no_more
        whoever_waits_in_line_is_answered_when_the_log_is_stopped
        whoever_waits_in_line_is_answered_when_the_log_becomes_failing
        whoever_waits_in_line_is_answered_when_another_writer_takes_over
    }
    ending {
        stop_answers_every_caller_alike_and_reads_go_on
        stop_fails_what_is_not_under_way_and_is_not_held_up_by_it
        stop_says_what_an_enqueued_log_could_not_save
        dropping_the_last_handle_is_a_crash_that_answers_whoever_waits
        a_crash_loses_what_was_not_durable_and_nothing_else
        the_second_writer_takes_over_and_the_first_is_poisoned
    }
    enqueued {
        an_append_returns_before_the_store_answers_and_wait_durable_after_it
        appends_stall_in_their_order_and_everything_else_is_answered
        a_flush_covers_the_appends_that_wait_for_their_place
        a_store_that_refuses_makes_the_log_failing_until_a_create_succeeds
    }
    reading {
        a_read_begins_where_it_is_told_and_costs_one_request_per_object
        a_long_read_is_planned_page_by_page
        obsolete_entries_are_not_read_and_their_region_goes
        a_damaged_segment_is_a_hole_in_its_place
        a_damaged_segment_fails_the_read_if_that_is_wanted
        a_failed_fetch_is_the_last_item_and_the_next_read_begins_anew
        a_fetch_that_fails_and_may_pass_is_repeated
    }
    releasing {
        what_is_released_stays_hidden_and_what_comes_later_is_seen
        a_region_that_is_released_in_full_takes_nothing_more
        a_release_covers_the_appends_that_were_submitted_before_it
        a_release_of_nothing_costs_nothing
        a_release_that_fails_is_stored_with_the_next_object
        a_release_that_was_not_taken_says_so
        what_holds_the_log_is_named_and_lets_go
    }
    replaying {
        a_replay_gives_each_region_from_where_it_is_wanted_with_one_request_per_object
        a_long_replay_is_planned_page_by_page
        a_replay_leaves_out_what_is_obsolete_or_released
        a_damaged_segment_is_a_hole_in_its_replay
        a_replay_of_a_reserved_region_is_refused
        a_failure_now_and_then_ends_no_replay
        a_restart_over_a_throttled_store_ends_with_all_of_it
        what_is_large_is_read_in_parts_of_sixteen_mebibytes
    }
    round_trip {
        what_was_acknowledged_is_read_back_after_a_crash_and_after_a_stop
        appends_are_stored_in_the_order_of_their_submission
        a_batch_is_in_one_object_and_a_region_reads_its_own_entries_only
        an_append_of_nothing_is_acknowledged_at_once
        a_directory_and_its_url_are_the_same_log
        many_threads_append_at_once
        the_handle_tells_what_was_opened
        positions_and_figures_follow_the_appends
        a_flush_does_not_wait_for_the_interval
    }
    trouble {
        a_create_that_fails_and_may_pass_is_repeated
        a_create_that_fails_for_good_rolls_back_and_the_log_goes_on
        a_panic_of_the_client_is_a_failed_request
        a_request_without_an_answer_ends_with_its_time_limit
        what_waits_for_a_rolled_back_id_is_told
    }
}

/// Every entry in an object of its own, one create at a time: the machine holds at most two such
/// batches and queues what comes after.
fn one_by_one() -> Options {
    Options { max_batch_bytes: 1, max_in_flight: 1, ..at_once() }
}

/// No append waits for company or an interval.
fn at_once() -> Options {
    use std::time::Duration;
    Options { linger: Duration::ZERO, flush_interval: Duration::ZERO, ..Options::default() }
}

/// Opens the log of a stage.
fn open<L: Log>(stage: &Stage, options: Options) -> L {
    L::open(stage.store(), PREFIX, options).unwrap()
}

/// All entries of a region in order; a hole among them fails the case.
fn entries<L: Log>(log: &L, region: RegionId) -> Vec<(EntryId, Bytes)> {
    let items = log.read(region, EntryId::ZERO);
    let entry = |item| match item {
        Ok(ReadItem::Entry(entry)) => (entry.id, entry.payload),
        other => panic!("{other:?}"),
    };
    items.into_iter().map(entry).collect()
}

fn payloads<L: Log>(log: &L, region: RegionId) -> Vec<Bytes> {
    entries(log, region).into_iter().map(|(_, payload)| payload).collect()
}

/// What a read yielded, without what is read.
fn texts(items: impl IntoIterator<Item = Result<ReadItem, Error>>) -> Vec<Bytes> {
    let text = |item| match item {
        Ok(ReadItem::Entry(entry)) => entry.payload,
        other => panic!("{other:?}"),
    };
    items.into_iter().map(text).collect()
}

/// Submits the numbers below `count` to region A, one entry each.
fn submit_numbers<L: Log>(log: &L, count: usize) -> Vec<Pending<EntryId>> {
    (0..count).map(|n| log.submit(A, n.to_string())).collect()
}
