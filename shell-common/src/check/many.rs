//! Listings of more keys than a page has: whether they are whole, in order, and begin where they are
//! asked to begin (DESIGN.md section 4, "What a listing is believed").

use std::collections::BTreeSet;

use futures_util::future::join_all;
use sealog_core::{Error, Key, Listed, Operation, StoreError};

use super::{Check, Checked, RACING, bytes, created, timed};
use crate::log::Runtime;

/// A page of most stores. What shows fewer keys is at its end.
const PAGE: usize = 1000;

impl<R: Runtime> Check<R> {
    pub(super) async fn list_many(&mut self, checked: &mut Checked) -> Result<(), Error> {
        if self.keys == 0 {
            return Ok(());
        }
        let keys: BTreeSet<Key> = (0..self.keys).map(|number| self.key(1000 + number)).collect();
        self.create_all(&keys).await?;
        let (listed, took) = self.list(None).await?;
        checked.latencies.push(took);
        if !listed.is_sorted_by(|a, b| a.key < b.key) {
            checked.remarks.push(
                "it lists in no order: an opening, and a look after a skip, lists until two listings in \
                 a row agree, which takes at least twice as long, and longer while another writes"
                    .into(),
            );
        }
        let mut missing = keys.clone();
        let mut last = shown(&mut missing, &listed);
        let (at_first, mut count) = (missing.len(), listed.len());
        // As a log does.
        while count >= PAGE
            && let Some(after) = last.take()
        {
            let (listed, took) = self.list(Some(&after)).await?;
            checked.latencies.push(took);
            count = listed.iter().filter(|listed| listed.key > after).count();
            last = shown(&mut missing, &listed);
        }
        if let Some(key) = missing.first() {
            checked.problems.push(format!(
                "{} of {} keys are missing in a listing of all, such as {key}",
                missing.len(),
                keys.len(),
            ));
        } else if at_first > 0 {
            checked.remarks.push(format!(
                "a listing ends early without saying so, after {} of {} keys: the log asks for what is \
                 behind its last key, which costs a listing more for each page",
                keys.len() - at_first,
                keys.len(),
            ));
        }
        self.list_from_the_middle(&keys, checked).await
    }

    /// As a writer that looks for what came after a key.
    async fn list_from_the_middle(
        &self,
        keys: &BTreeSet<Key>,
        checked: &mut Checked,
    ) -> Result<(), Error> {
        let few = keys.len().min(PAGE) / 2;
        let Some(after) = keys.iter().nth_back(few) else { return Ok(()) };
        let (listed, took) = self.list(Some(after)).await?;
        checked.latencies.push(took);
        let mut missing: BTreeSet<_> = keys.iter().filter(|key| *key > after).cloned().collect();
        shown(&mut missing, &listed);
        if let Some(key) = missing.first() {
            let count = missing.len();
            let problem = format!(
                "{count} keys behind {after} are missing in a listing from there, such as {key}"
            );
            checked.problems.push(problem);
        }
        if listed.iter().any(|listed| listed.key <= *after) {
            checked.remarks.push(
                "it lists from the first key on, wherever a listing is to begin: each look of an \
                 opening costs as much as a listing of everything"
                    .into(),
            );
        }
        Ok(())
    }

    async fn create_all(&mut self, keys: &BTreeSet<Key>) -> Result<(), Error> {
        self.made.extend(keys.iter().cloned());
        let content = bytes(1000, 1);
        let keys: Vec<_> = keys.iter().collect();
        for at_once in keys.chunks(RACING) {
            let create = |key: &&Key| {
                let (runtime, store) = (self.runtime.clone(), self.store.clone());
                let effect = self.put(key, &content);
                self.runtime.spawn(async move { timed(&runtime, &store, effect).await.0 })
            };
            let creates: Vec<_> = at_once.iter().map(create).collect();
            for (key, answer) in at_once.iter().zip(join_all(creates).await) {
                // Only if the runtime went away.
                let mut created_it = created(answer.ok_or(Error::Stopped)?);
                if created_it.as_ref().is_err_and(StoreError::is_retryable) {
                    // A store may be unable to tell under such a rush: alone it must.
                    let again = self.put(key, &content);
                    created_it = created(timed(&self.runtime, &self.store, again).await.0);
                }
                created_it.map_err(|error| self.failed(Operation::Create, key, error))?;
            }
        }
        Ok(())
    }
}

/// Takes out what is shown, and gives the last of all keys shown.
fn shown(missing: &mut BTreeSet<Key>, listed: &[Listed]) -> Option<Key> {
    for listed in listed {
        missing.remove(&listed.key);
    }
    listed.iter().map(|listed| &listed.key).max().cloned()
}
