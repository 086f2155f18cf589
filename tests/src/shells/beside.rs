//! A reader beside the log that it reads.

use sealog_core::{EntryId, Error, Operation, Options, RegionId, ReplayFilter};
use sealog_shell::{ReadItem, ReplayItem};

use super::replaying::replayed;
use super::stage::Reaction;
use super::{A, B, Log, PREFIX, Reader, Stage, one_by_one, open, submit_numbers, texts};
use crate::hooked::Asked;

const EVERYTHING: EntryId = EntryId::ZERO;

/// Opens a reader of the log of a stage.
fn reader<L: Log>(stage: &Stage, options: Options) -> L::Reader {
    Reader::open(stage.store(), PREFIX, options).unwrap()
}

/// A log with the numbers below `count` in objects of their own, and the last id.
fn filled<L: Log>(stage: &Stage, count: usize) -> (L, EntryId) {
    let log: L = open(stage, one_by_one());
    let ids = submit_numbers(&log, count).into_iter().map(|wait| wait().unwrap());
    let last = ids.last().unwrap();
    (log, last)
}

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

pub(super) fn a_reader_sees_what_was_acknowledged_before_it_looked_and_writes_nothing<L: Log>() {
    let stage = Stage::default();
    let (log, last) = filled::<L>(&stage, 20);
    log.append(B, "of another").unwrap();
    let (puts, keys) = (stage.count(Asked::Put), stage.keys());
    let reader = reader::<L>(&stage, Options::default());
    assert_eq!(texts(reader.read(A, EVERYTHING)), numbers(20));
    assert_eq!(texts(reader.read(A, last)), ["19"]);
    assert_eq!(replayed(reader.replay(ReplayFilter::all())).len(), 21);
    assert_eq!((reader.durable(A), reader.durable(RegionId(3))), (last, EntryId::ZERO));
    let regions: Vec<_> = reader.regions().iter().map(|info| info.region).collect();
    assert_eq!(regions, [A, B]);
    assert_eq!(reader.held_by(), log.held_by().unwrap());
    assert_eq!(reader.tip().unwrap().epoch, log.epoch());
    assert_eq!((stage.count(Asked::Put), stage.keys()), (puts, keys));

    log.append(B, "the writer is not fenced").unwrap();
    assert_eq!(texts(reader.read(B, EVERYTHING)), ["of another"]);
    reader.refresh().unwrap();
    assert_eq!(texts(reader.read(B, EVERYTHING)), ["of another", "the writer is not fenced"]);
    log.release(A).unwrap();
    reader.refresh().unwrap();
    assert_eq!(texts(reader.read(A, EVERYTHING)), [""; 0]);
}

pub(super) fn a_refresh_costs_one_listing_and_reads_of_what_is_new<L: Log>() {
    let stage = Stage::default();
    let (log, _) = filled::<L>(&stage, 20);
    let asked = || [Asked::List, Asked::Get, Asked::Put].map(|asked| stage.count(asked));
    let [lists, gets, puts] = asked();
    let reader = reader::<L>(&stage, Options::default());
    assert_eq!(asked(), [lists + 1, gets + 21, puts], "with the start object");
    reader.refresh().unwrap();
    assert_eq!(asked(), [lists + 2, gets + 21, puts]);
    log.append(A, "new").unwrap();
    log.append(A, "newer").unwrap();
    reader.refresh().unwrap();
    assert_eq!(asked(), [lists + 3, gets + 23, puts + 2]);
}

pub(super) fn a_reader_of_nothing_is_empty_or_missing_and_makes_no_directory<L: Log>() {
    let stage = Stage::default();
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("logs/a");
    let url = format!("file://{}", directory.display());
    let all = |options: Options| {
        [
            L::Reader::open(stage.store(), PREFIX, options.clone()),
            L::Reader::open_local(&directory, options.clone()),
            L::Reader::open_url(&url, options),
        ]
    };
    for opened in all(Options { must_exist: true, ..Options::default() }) {
        let Err(error) = opened else { panic!("it is there") };
        assert!(matches!(error, Error::Missing { .. }), "{error}");
    }
    let readers = all(Options::default()).map(Result::unwrap);
    for reader in &readers {
        assert_eq!((reader.tip(), reader.durable(A)), (None, EntryId::ZERO));
        assert_eq!(texts(reader.read(A, EVERYTHING)), [""; 0]);
        assert_eq!(reader.regions(), []);
    }
    assert!(!parent.path().join("logs").exists());
    assert_eq!(stage.keys(), [""; 0]);

    let logs = [open::<L>(&stage, Options::default()), L::open_url(&url, Options::default()).unwrap()];
    for log in &logs {
        log.append(A, "1").unwrap();
    }
    for reader in readers.into_iter().chain(all(Options::default()).map(Result::unwrap)) {
        reader.refresh().unwrap();
        assert_eq!(texts(reader.read(A, EVERYTHING)), ["1"]);
    }
}

pub(super) fn reads_of_a_reader_end_where_it_saw_the_end<L: Log>() {
    let stage = Stage::default();
    let (log, _) = filled::<L>(&stage, 600);
    let reader = reader::<L>(&stage, Options::default());
    let (mut read, mut replay) =
        (reader.read(A, EVERYTHING), reader.replay(ReplayFilter::all()));
    let (first, begin) = (read.next().unwrap(), replay.next().unwrap());
    log.append(A, "later").unwrap();
    reader.refresh().unwrap();
    // More than is planned at once, so that the rest is planned on what the refresh brought.
    assert_eq!(texts([first].into_iter().chain(read)), numbers(600));
    assert_eq!(replayed([begin].into_iter().chain(replay)).len(), 600);
    assert_eq!(reader.read(A, EVERYTHING).count(), 601);
}

/// What a reader began before all of the log's 300 objects were collected, which are more than are
/// planned at once, and than it reads ahead; and how to count the listings since.
fn collected<L: Log, T>(begin: impl FnOnce(&L::Reader) -> T) -> (impl Fn() -> usize, T) {
    let stage = Stage::default();
    let (log, last) = filled::<L>(&stage, 300);
    let reader = reader::<L>(&stage, Options { read_concurrency: 2, ..Options::default() });
    let lists = stage.count(Asked::List);
    let begun = begin(&reader);
    log.obsolete(A, last).unwrap();
    log.append(B, "carries the boundary").unwrap();
    // The start object stands in the way of older writers.
    stage.wait_until_collected(2);
    (move || stage.count(Asked::List) - lists, begun)
}

pub(super) fn reads_go_on_over_a_collection_at_the_cost_of_one_listing<L: Log>() {
    let (listings, (first, read)) = collected::<L, _>(|reader| {
        let mut read = reader.read(A, EVERYTHING);
        (read.next().unwrap(), read)
    });
    let found = texts([first].into_iter().chain(read));
    assert_eq!(found, numbers(300)[..found.len()], "what was read before, in order");
    assert!(found.len() < 10, "{found:?}");
    assert_eq!(listings(), 1);
}

pub(super) fn replays_go_on_over_a_collection_at_the_cost_of_one_listing<L: Log>() {
    let (listings, (first, replay)) = collected::<L, _>(|reader| {
        let mut replay = reader.replay(ReplayFilter::all());
        (replay.next().unwrap(), replay)
    });
    let found = replayed([first].into_iter().chain(replay));
    let of_a: Vec<_> = numbers(300).into_iter().map(|text| (A, text)).collect();
    assert_eq!(found, of_a[..found.len()], "what was read before, in order");
    assert!(found.len() < 10, "{found:?}");
    assert_eq!(listings(), 1);
}

pub(super) fn an_object_that_is_lost_fails_the_read<L: Log>() {
    let stage = Stage::default();
    let (_log, last) = filled::<L>(&stage, 10);
    let reader = reader::<L>(&stage, Options::default());
    stage.lose(last.sequence().0 - 5);
    let items: Vec<_> = reader.read(A, EVERYTHING).collect();
    let (error, before) = items.split_last().unwrap();
    assert!(before.iter().all(Result::is_ok) && before.len() == 4, "{items:?}");
    assert!(matches!(error, Err(Error::Store { operation: Operation::Read, .. })), "{error:?}");
}

pub(super) fn a_refresh_that_fails_leaves_what_was_seen<L: Log>() {
    let stage = Stage::default();
    let (log, last) = filled::<L>(&stage, 3);
    let reader = reader::<L>(&stage, Options::default());
    log.append(A, "later").unwrap();
    stage.react(|asked| match asked {
        Asked::List => Reaction::Refuse,
        _ => Reaction::Pass,
    });
    let error = reader.refresh().unwrap_err();
    assert!(matches!(error, Error::Store { operation: Operation::List, .. }), "{error}");
    assert_eq!(reader.durable(A), last);
    assert_eq!(texts(reader.read(A, EVERYTHING)), numbers(3));
    stage.behave();
    reader.refresh().unwrap();
    assert_eq!(reader.read(A, EVERYTHING).count(), 4);
}

pub(super) fn a_damaged_segment_is_a_hole_for_a_reader_too<L: Log>() {
    let stage = Stage::default();
    let (_log, last) = filled::<L>(&stage, 3);
    let reader = reader::<L>(&stage, Options::default());
    stage.damage(last.sequence().0);
    let items: Vec<_> = reader.read(A, EVERYTHING).collect();
    assert!(matches!(&items[2], Ok(ReadItem::Hole(hole)) if hole.max_id == last), "{items:?}");
    let items: Vec<_> = reader.replay(ReplayFilter::all()).collect();
    assert!(matches!(&items[2], Ok(ReplayItem::Hole(hole)) if hole.max_id == last), "{items:?}");
    assert_eq!((reader.durable(A), items.len()), (last, 3));
}

pub(super) fn a_reader_has_options_like_a_log<L: Log>() {
    let stage = Stage::default();
    let options = Options { read_concurrency: 0, ..Options::default() };
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("log");
    for opened in [
        L::Reader::open(stage.store(), PREFIX, options.clone()),
        L::Reader::open_local(&directory, options.clone()),
        L::Reader::open_url("nonsense", options),
    ] {
        let Err(error) = opened else { panic!("it is taken") };
        let named = matches!(error, Error::InvalidOptions { option: "read_concurrency", .. });
        assert!(named, "{error}");
    }
    let Err(error) = L::Reader::open(stage.store(), "a//b", Options::default()) else {
        panic!("it is taken")
    };
    assert!(matches!(error, Error::InvalidOptions { option: "prefix", .. }), "{error}");
    let Err(error) = L::Reader::open_url("ftp://host/prefix", Options::default()) else {
        panic!("it is taken")
    };
    assert!(matches!(error, Error::InvalidOptions { option: "url", .. }), "{error}");
    assert_eq!(stage.count(Asked::List), 0);
}

pub(super) fn a_read_outlives_the_handle_that_it_came_from<L: Log>() {
    let stage = Stage::default();
    let (log, _) = filled::<L>(&stage, 300);
    let reader = reader::<L>(&stage, Options::default());
    let mut read = reader.read(A, EVERYTHING);
    let reserved: Vec<_> = reader.read(RegionId(u64::MAX), EVERYTHING).collect();
    assert!(matches!(reserved[..], [Err(Error::InvalidRegion { .. })]), "{reserved:?}");
    let first = read.next().unwrap();
    drop((reader, log));
    assert_eq!(texts([first].into_iter().chain(read)), numbers(300));
}
