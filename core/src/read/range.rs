//! Fetching a range of an object (DESIGN.md section 8): in parts, and again if that may help.

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use bytes::Bytes;

use super::SegmentReadEvent;
use crate::backoff::Backoff;
use crate::error::StoreError;
use crate::event::{RequestId, StorageAnswer, StorageEffect};
use crate::key::Key;
use crate::options::Options;
use crate::types::Time;

/// Fetches a range of one object, one request at a time.
///
/// A range of more than [`RangeRead::PART`] bytes is fetched in parts of that size: the time limit
/// of a request counts for each, and memory is taken as they arrive, not by what an object says of
/// its size. A fetch that fails in a way that may pass, one that brings more or fewer bytes than were
/// asked for included, is repeated after 100 ms, doubling to 5 s, until
/// [`read_retry_for`](Options::read_retry_for) has passed since the last fetch of the whole read that
/// succeeded, as its [`ReadProgress`] tells, or since this one failed first, whichever is later: a
/// reader may have rested before it, and one request that hangs may use up all of that time. Any
/// other failure is the end at once.
///
/// Hand in the answer to each effect with the time, and a [`Tick`](SegmentReadEvent::Tick) at
/// [`next_tick`](RangeRead::next_tick); then poll effects until there is none. Time never goes back,
/// and a tick too many is harmless. After [`RangeReadEffect::Done`] nothing more comes.
#[derive(Clone, Debug)]
pub struct RangeRead {
    key: Key,
    range: Range<u64>,
    time_limit: Duration,
    retry_for: Duration,
    now: Time,
    /// Under way, or comes next.
    part: Range<u64>,
    /// The parts before it.
    fetched: Vec<u8>,
    id: RequestId,
    /// Of this part.
    backoff: Backoff,
    /// When this part failed first.
    failed: Option<Time>,
    state: State,
    effect: Option<RangeReadEffect>,
}

/// What a [`RangeRead`] wants of the shell.
#[derive(Clone, Debug)]
pub enum RangeReadEffect {
    /// Carry this out.
    Storage(StorageEffect),
    /// The end: all of the range, or why not.
    Done(Result<Bytes, StoreError>),
}

/// What the fetches of one read or replay have in common, over all of its objects: when one of them
/// succeeded last. It is made when the read begins, and handed to each of its machines with each
/// event.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadProgress {
    last_success: Time,
}

#[derive(Clone, Debug)]
enum State {
    Fetching,
    /// For the next attempt, or for the end of patience.
    Waiting {
        again: Time,
        limit: Time,
        error: StoreError,
    },
    Done,
}

impl RangeRead {
    /// The largest number of bytes that is fetched at once: 16 MiB.
    pub const PART: u64 = 16 << 20;

    /// Begins to fetch; the first effect is there at once. Nothing is asked for an empty range. Of
    /// the options count `request_timeout` and `read_retry_for`.
    pub fn new(key: Key, range: Range<u64>, options: &Options) -> RangeRead {
        let (time_limit, retry_for) = (options.request_timeout, options.read_retry_for);
        RangeRead::numbered(RequestId(0), key, range, time_limit, retry_for)
    }

    /// The same, with ids from this one on.
    pub(super) fn numbered(
        id: RequestId,
        key: Key,
        range: Range<u64>,
        time_limit: Duration,
        retry_for: Duration,
    ) -> RangeRead {
        let mut read = RangeRead {
            key,
            part: range.start..range.start,
            range,
            time_limit,
            retry_for,
            now: Time::ZERO,
            fetched: Vec::new(),
            id,
            backoff: Backoff::new(),
            failed: None,
            state: State::Done,
            effect: None,
        };
        match read.range.is_empty() {
            true => read.end(Ok(Bytes::new())),
            false => read.next_part(),
        }
        read
    }

    /// Takes an event. One that is not waited for changes nothing.
    pub fn handle(&mut self, now: Time, progress: &mut ReadProgress, event: SegmentReadEvent) {
        self.now = self.now.max(now);
        match (core::mem::replace(&mut self.state, State::Done), event) {
            (State::Fetching, SegmentReadEvent::Storage(StorageAnswer::Fetched { id, result }))
                if id == self.id =>
            {
                self.id = RequestId(id.0 + 1);
                match exactly(&self.part, result).and_then(|bytes| self.keep(bytes)) {
                    Ok(whole) => {
                        progress.last_success = progress.last_success.max(self.now);
                        match whole {
                            Some(bytes) => self.end(Ok(bytes)),
                            None => self.next_part(),
                        }
                    }
                    Err(error) if error.is_retryable() => {
                        self.failed.get_or_insert(self.now);
                        let again = self.now.after(self.backoff.next());
                        self.wait(progress, again, error);
                    }
                    Err(error) => self.end(Err(error)),
                }
            }
            (State::Waiting { again, error, .. }, SegmentReadEvent::Tick) => {
                self.wait(progress, again, error);
            }
            (state, _) => self.state = state,
        }
    }

    /// The next thing to do, if there is one.
    pub fn poll_effect(&mut self) -> Option<RangeReadEffect> {
        self.effect.take()
    }

    /// When it wants a tick at the latest; `None` while it waits for an answer.
    pub fn next_tick(&self) -> Option<Time> {
        match self.state {
            State::Waiting { again, limit, .. } => Some(again.min(limit)),
            State::Fetching | State::Done => None,
        }
    }

    /// Of a request that it would make next.
    pub(super) fn next_id(&self) -> RequestId {
        self.id
    }

    /// Waits for the next attempt, makes it, or gives up. Where other fetches succeed meanwhile, the
    /// limit moves on: so it is looked at again when it has come.
    fn wait(&mut self, progress: &ReadProgress, again: Time, error: StoreError) {
        let since = progress.last_success.max(self.failed.unwrap_or(self.now));
        let limit = since.after(self.retry_for);
        if self.now >= again {
            self.fetch();
        } else if self.now >= limit {
            self.end(Err(error));
        } else {
            self.state = State::Waiting { again, limit, error };
        }
    }

    fn next_part(&mut self) {
        let start = self.part.end;
        self.part = start..self.range.end.min(start.saturating_add(RangeRead::PART));
        (self.backoff, self.failed) = (Backoff::new(), None);
        self.fetch();
    }

    fn fetch(&mut self) {
        self.state = State::Fetching;
        self.effect = Some(RangeReadEffect::Storage(StorageEffect::FetchRange {
            id: self.id,
            key: self.key.clone(),
            range: self.part.clone(),
            time_limit: self.time_limit,
        }));
    }

    fn end(&mut self, result: Result<Bytes, StoreError>) {
        self.fetched = Vec::new();
        self.state = State::Done;
        self.effect = Some(RangeReadEffect::Done(result));
    }

    /// Takes a part, and gives the whole once it is there.
    fn keep(&mut self, bytes: Bytes) -> Result<Option<Bytes>, StoreError> {
        if self.part == self.range {
            return Ok(Some(bytes));
        }
        let room = self.fetched.capacity() - self.fetched.len();
        if room < bytes.len() {
            // Room for the whole only once half of it is there: a size is a number that was read.
            let rest = (self.range.end - self.part.start).try_into().unwrap_or(usize::MAX);
            let more = rest.min(self.fetched.len().max(bytes.len()));
            self.fetched.try_reserve_exact(more).map_err(|error| {
                let text = format!("{more} more bytes of it have no room in memory: {error}");
                StoreError::transient(text)
            })?;
        }
        self.fetched.extend_from_slice(&bytes);
        let whole = self.part.end == self.range.end;
        Ok(whole.then(|| core::mem::take(&mut self.fetched).into()))
    }
}

/// A body of another length than was asked for is a failed fetch, not data.
fn exactly(range: &Range<u64>, fetched: Result<Bytes, StoreError>) -> Result<Bytes, StoreError> {
    let bytes = fetched?;
    let (expected, found) = (range.end.saturating_sub(range.start), bytes.len());
    if found as u64 == expected {
        return Ok(bytes);
    }
    Err(StoreError::transient(format!("asked for {expected} bytes and got {found}")))
}

#[cfg(test)]
mod tests;
