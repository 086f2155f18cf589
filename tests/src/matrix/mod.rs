//! The fault matrix: situations, as data, and what must come of each.
//!
//! A [`Row`] says what is called, what the store answers, and how time passes; and what must come
//! of it: the answer of each call, in order, the exact change of every figure, what a read sees,
//! what an append comes to that is made then, and what an opening recovers afterwards.
//!
//! Every row runs twice: against the [`machine`] with events, and against the tokio [`shell`] over
//! an `ObjectStore` that answers as it is told. Both must come to the same, durations included.
//!
//! A row begins with a log that was opened for the second time: the first instance (epoch 1) left
//! its start object at 0, the claim of the second stands at 1 and its start object at 2. So its
//! epoch is 3, its first batch takes sequence 3, and an earlier epoch is epoch 1. What stands in
//! the way of older writers is too young to be deleted; so deletes are of 3 and of what follows.

pub mod figures;
pub mod machine;
pub mod names;
pub mod rows;
mod say;
mod script;
pub mod shell;

use std::collections::BTreeMap;

pub use figures::{Change, change};
pub use names::{NAMES, Place};
use sealog_core::{AckMode, Options, Stats};

/// One situation, and what must come of it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What happens, in words. No two rows have the same.
    pub name: &'static str,
    /// The [`NAMES`] that it is a case of.
    pub covers: &'static [&'static str],
    /// When appends are acknowledged.
    pub mode: AckMode,
    /// What is set beside that. Batches leave at once unless this changes it.
    pub options: fn(&mut Options),
    /// How many keys one delete request of the store takes: 1 or 1,000.
    pub keys_per_delete: usize,
    /// What happens.
    pub steps: &'static [Step],
    /// Each call's answer, in the order of the answers: `number: answer`, or `from-to: answer` for a
    /// run of calls that are answered alike. Calls are numbered from 1.
    pub answers: &'static [&'static str],
    /// What an append comes to that is made then: `goes to` a sequence, or how it fails.
    pub then: &'static str,
    /// The exact change of every figure since the log was opened last; what is not listed did not
    /// change. Histograms are there with how many values they took, those of sizes with the sum
    /// too.
    pub figures: &'static [(&'static str, i64)],
    /// What a read sees of each region.
    pub reads: &'static [(u64, &'static [&'static str])],
    /// What an opening afterwards recovers, of each region. What was under way never landed.
    pub recovers: &'static [(u64, &'static [&'static str])],
}

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Append an entry to a region.
    Append(u64, &'static str),
    /// Append entries in one append.
    Batch(&'static [(u64, &'static str)]),
    /// Append so many empty entries of a region in one append.
    Bulk(u64, u32),
    /// Append an empty entry of each of so many regions, from this one on, in one append.
    Spread(u64, u32),
    /// Flush.
    Flush,
    /// Wait until the id (region, sequence, position) is durable.
    Wait(u64, u64, u32),
    /// Make a region obsolete through an id.
    Obsolete(u64, u64, u32),
    /// Release a region.
    Release(u64),
    /// Release a region in full.
    ReleaseAll(u64),
    /// Release each of so many regions, from this one on: a call for each.
    ReleaseEach(u64, u32),
    /// Stop.
    Stop,
    /// These calls are made before the log sees any of them. It sees appends first. What is
    /// answered at once is in the order of the calls: nobody can see more.
    Together(&'static [Step]),
    /// The future of this call is dropped.
    Drop(u32),
    /// The put under way at a sequence is answered.
    Put(u64, How),
    /// The read-back under way at a sequence is answered.
    Back(u64, How),
    /// The range read under way at a sequence is answered.
    Fetch(u64, How),
    /// The listing under way is answered.
    List(How),
    /// The delete of these sequences that is under way is answered.
    Delete(&'static [u64], How),
    /// What nobody waits for any more, of a put at this sequence, lands.
    Land(u64),
    /// Somebody else puts this at a sequence.
    Plant(u64, Planted),
    /// From now on the store's client has an error for a range beyond the end of an object, in
    /// place of what is there.
    RangesFail,
    /// So many milliseconds pass. What is due comes at its moment, and what exceeds its time limit
    /// times out.
    Pass(u64),
    /// These and no other calls are answered by now.
    Answered(&'static [&'static str]),
    /// So many requests are under way.
    UnderWay(usize),
    /// At these sequences, and at no others, something is stored.
    Stored(&'static [u64]),
    /// The log ends as by a crash, with what is under way, and is opened again: by then every
    /// request is answered well, but deletes wait for their answer. Whoever waited is not answered.
    Reopen,
    /// So many times the same.
    Times(usize, &'static [Step]),
}

/// How the store answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It does it, and says so.
    Well,
    /// It does nothing, and fails like this.
    Fails(Failure),
    /// It does it, and the answer is this.
    DoneBut(Failure),
    /// Of a delete: it does it, but for these sequences, which fail like this.
    AllBut(&'static [u64], Failure),
}

/// What a client can say in place of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The key exists.
    Exists,
    /// A timeout of the client's own.
    Timeout,
    /// The connection was reset.
    Reset,
    /// An HTTP status that may pass.
    Status(u16),
    /// 400, since the token expired.
    ExpiredToken,
    /// 403.
    Forbidden,
    /// 404, of the bucket.
    NoBucket,
    /// 404, of the object.
    Gone,
}

/// What somebody else may have put at a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// An object without entries, of this epoch.
    Epoch(u64),
    /// The start object of the writer "other", of the epoch that the sequence claims.
    Start,
    /// A start object without predecessor, of the epoch that the sequence claims, with release
    /// records: the last object of a log whose first ones were collected.
    Records(Records),
    /// So many bytes that are no object.
    Bytes(usize),
}

/// Release records of regions 1 and 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// As they should be.
    Sound,
    /// A bit is flipped.
    Flipped,
    /// Of a version to come.
    Version,
    /// Fewer than counted.
    Missing,
    /// More than counted.
    LeftOver,
    /// The second region comes first.
    Order,
    /// Nothing, not even a version.
    Empty,
    /// In two entries.
    Twice,
}

/// What came of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came {
    /// As [`Row::answers`], call by call.
    pub answers: Vec<(u32, String)>,
    /// As [`Row::then`].
    pub then: String,
    /// The figures when the log was opened, and at the end.
    pub stats: (Stats, Stats),
    /// As [`Row::reads`]; of more than eight equal payloads in a row, the payload and how many.
    pub reads: Contents,
    /// As [`Row::recovers`].
    pub recovers: Contents,
}

/// In the place of a region: the opening fails like this.
pub const FAILS: u64 = u64::MAX;

/// The payloads of each region.
pub type Contents = BTreeMap<u64, Vec<String>>;

/// A row of nothing, to begin from.
pub const NOTHING: Row = Row {
    name: "",
    covers: &[],
    mode: AckMode::Durable,
    options: |_| {},
    keys_per_delete: 1,
    steps: &[],
    answers: &[],
    then: "",
    figures: &[],
    reads: &[],
    recovers: &[],
};

/// The options of a row.
pub fn options(row: &Row) -> Options {
    let mut options = Options {
        ack_mode: row.mode,
        linger: std::time::Duration::ZERO,
        flush_interval: std::time::Duration::ZERO,
        writer_name: Some("one".into()),
        ..Options::default()
    };
    (row.options)(&mut options);
    options
}

/// The answers that a row expects, call by call.
///
/// # Panics
///
/// A line does not begin with the number of a call.
pub fn expected_answers(row: &Row) -> Vec<(u32, String)> {
    labelled(row.answers)
        .map(|(call, answer)| {
            (call, answer.unwrap_or_else(|| panic!("{}: no answer of {call}", row.name)))
        })
        .collect()
}

/// The calls of lines `number`, `from-to`, and either with `: answer` behind it.
fn labelled(lines: &'static [&'static str]) -> impl Iterator<Item = (u32, Option<String>)> {
    lines.iter().flat_map(|line| {
        let (calls, answer) = match line.split_once(": ") {
            Some((calls, answer)) => (calls, Some(answer.to_owned())),
            None => (*line, None),
        };
        let number = |text: &str| -> u32 {
            text.parse().unwrap_or_else(|_| panic!("{line:?} does not begin with a call's number"))
        };
        let (from, to) = match calls.split_once('-') {
            Some((from, to)) => (number(from), number(to)),
            None => (number(calls), number(calls)),
        };
        (from..=to).map(move |call| (call, answer.clone()))
    })
}

/// Contents as a row writes them.
pub fn contents(of: &[(u64, &[&str])]) -> Contents {
    let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    of.iter().map(|(region, texts)| (*region, own(texts))).collect()
}
