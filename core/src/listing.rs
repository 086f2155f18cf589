//! What a listing is believed (DESIGN.md section 4): the answers of a store become a listing once
//! they show what was there, however the store cuts or orders them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::event::Listed;
use crate::key::{Key, KeyKind, Prefix};
use crate::types::ObjectSeq;

/// A page of most stores. What shows so many keys may have been cut off without a word.
const PAGE: usize = 1000;

/// How far the order of the keys decides whether a listing counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Trust {
    /// In ascending order it counts at once: then it was read in the order of the keys, so that it
    /// shows no key without all that were there before that key came. Otherwise it must settle.
    InOrder,
    /// It must settle, since an earlier one of this store came in no order: this one may be in order
    /// by luck.
    Settled,
    /// It counts in any order: it shows what was there before it began, and perhaps more.
    AnyOrder,
}

/// A listing under way. It is asked for from behind a key on, or from the first, and takes each
/// answer; then it says what is to be asked next.
///
/// A listing settles, range by range from the lowest key on, as soon as two passes in a row show the
/// same keys with the same sizes and times: then it is what was there at every moment between the
/// two, but for what was deleted meanwhile. For a pass shows all that was there from its beginning to
/// its end, and nothing that was not there at some time in between; and a key that came between
/// the two would be in the second alone.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    prefix: Prefix,
    trust: Trust,
    unordered: bool,
    /// The keys up to here are settled, or not wanted.
    settled_to: Option<Key>,
    settled: Vec<Listed>,
    /// The pass before, behind what is settled.
    before: Option<Vec<Listed>>,
    /// The pass that is under way, as far as it was answered.
    pass: BTreeMap<Key, Listed>,
    /// Where the answer that is waited for begins.
    asked_from: Option<Key>,
    /// Nothing was shown, once.
    was_empty: bool,
    /// How many keys the last pass showed that the one before did not.
    came: u64,
}

/// What follows from an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// The listing, in the order of its keys.
    Done(Vec<Listed>),
    /// It goes on: ask for what is behind this key. Every listing ends after a few of these.
    More { after: Option<Key> },
    /// It has not settled, so it must be asked again from behind this key on, as often as its caller
    /// likes: it goes on for as long as others write. With the largest sequence that it shows.
    Unsettled { after: Option<Key>, largest: Option<ObjectSeq> },
}

impl Listing {
    /// The listing of a log's objects behind this key; the first answer is to be asked for from
    /// there.
    pub(crate) fn new(prefix: &Prefix, after: Option<Key>, trust: Trust) -> Listing {
        Listing {
            prefix: prefix.clone(),
            trust,
            unordered: false,
            settled_to: after.clone(),
            settled: Vec::new(),
            before: None,
            pass: BTreeMap::new(),
            asked_from: after,
            was_empty: false,
            came: 0,
        }
    }

    /// How many keys came between the last two passes of one that has not settled.
    pub(crate) fn came(&self) -> u64 {
        self.came
    }

    /// Whether an answer came in no order.
    pub(crate) fn is_unordered(&self) -> bool {
        self.unordered
    }

    /// Takes the answer, in the order in which the store gave it.
    pub(crate) fn take(&mut self, keys: Vec<Listed>) -> Round {
        let objects = self.prefix.objects();
        self.unordered |= !keys.is_sorted_by(|a, b| a.key < b.key);
        // The store may ignore from where on it was to list.
        let from = self.asked_from.take();
        let wanted = |listed: &Listed| {
            listed.key.starts_with(&*objects) && Some(&listed.key) > from.as_ref()
        };
        // All that is wanted of it is new to the pass, which ends where the answer begins.
        let before = self.pass.len();
        let keys = keys.into_iter().filter(wanted);
        self.pass.extend(keys.map(|listed| (listed.key.clone(), listed)));
        if self.pass.len() - before >= PAGE
            && let Some((last, _)) = self.pass.last_key_value()
        {
            return self.ask(Some(last.clone()));
        }
        self.end_pass()
    }

    /// Who asks has just created something that the last pass does not show: the next two are to agree.
    /// What has settled stays so.
    pub(crate) fn begin_again(&mut self) {
        self.before = None;
    }

    fn ask(&mut self, after: Option<Key>) -> Round {
        self.asked_from.clone_from(&after);
        Round::More { after }
    }

    fn end_pass(&mut self) -> Round {
        let mut pass: Vec<_> = core::mem::take(&mut self.pass).into_values().collect();
        let shows_nothing = pass.is_empty() && self.settled.is_empty() && self.before.is_none();
        if shows_nothing && !core::mem::replace(&mut self.was_empty, true) {
            return self.ask(self.settled_to.clone());
        }
        let must_settle = match self.trust {
            Trust::InOrder => self.unordered,
            Trust::Settled => true,
            Trust::AnyOrder => false,
        };
        let Some(before) = self.before.take() else {
            if !must_settle || shows_nothing {
                return Round::Done(pass);
            }
            self.before = Some(pass);
            return self.ask(self.settled_to.clone());
        };
        let is_new =
            |listed: &&Listed| before.binary_search_by(|known| known.key.cmp(&listed.key)).is_err();
        self.came = pass.iter().filter(is_new).count() as u64;
        let agreed = before.iter().zip(&pass).take_while(|(a, b)| a == b).count();
        let is_settled = agreed == before.len() && agreed == pass.len();
        self.settled.extend(pass.drain(..agreed));
        if is_settled {
            return Round::Done(core::mem::take(&mut self.settled));
        }
        if let Some(last) = self.settled.last() {
            self.settled_to = Some(last.key.clone());
        }
        let largest = pass.iter().chain(&self.settled).filter_map(|listed| self.sequence(listed));
        let largest = largest.max();
        self.before = Some(pass);
        self.asked_from.clone_from(&self.settled_to);
        Round::Unsettled { after: self.settled_to.clone(), largest }
    }

    fn sequence(&self, listed: &Listed) -> Option<ObjectSeq> {
        match self.prefix.classify(&listed.key) {
            KeyKind::Object(sequence) => Some(sequence),
            KeyKind::OutOfRange | KeyKind::Foreign => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn prefix() -> Prefix {
        Prefix::new("p").unwrap()
    }

    fn key(sequence: u64) -> Key {
        prefix().object_key(ObjectSeq(sequence))
    }

    fn listed(sequence: u64) -> Listed {
        Listed { key: key(sequence), size: 100, modified_millis: sequence }
    }

    fn keys(sequences: impl IntoIterator<Item = u64>) -> Vec<Listed> {
        sequences.into_iter().map(listed).collect()
    }

    fn begin(trust: Trust) -> Listing {
        Listing::new(&prefix(), None, trust)
    }

    fn more(after: Option<u64>) -> Round {
        Round::More { after: after.map(key) }
    }

    fn unsettled(after: Option<u64>, largest: u64) -> Round {
        Round::Unsettled { after: after.map(key), largest: Some(ObjectSeq(largest)) }
    }

    #[test]
    fn what_is_in_order_counts_at_once() {
        for trust in [Trust::InOrder, Trust::AnyOrder] {
            let mut listing = begin(trust);
            assert_eq!(listing.take(keys([3, 5, 9])), Round::Done(keys([3, 5, 9])));
            assert!(!listing.is_unordered());
        }
    }

    #[test]
    fn what_shows_nothing_is_asked_a_second_time() {
        for trust in [Trust::InOrder, Trust::Settled, Trust::AnyOrder] {
            let mut listing = begin(trust);
            assert_eq!(listing.take(Vec::new()), more(None));
            assert_eq!(listing.take(Vec::new()), Round::Done(Vec::new()), "{trust:?}");
        }
        let mut listing = begin(Trust::InOrder);
        assert_eq!(listing.take(Vec::new()), more(None));
        assert_eq!(listing.take(keys([7])), Round::Done(keys([7])), "it was there after all");
    }

    #[test]
    fn what_may_have_been_cut_off_is_asked_for() {
        let mut listing = begin(Trust::InOrder);
        assert_eq!(listing.take(keys(0..1000)), more(Some(999)));
        assert_eq!(listing.take(keys(1000..2500)), more(Some(2499)));
        assert_eq!(listing.take(keys(2500..2999)), Round::Done(keys(0..2999)));
        let mut listing = begin(Trust::InOrder);
        assert_eq!(listing.take(keys(0..1000)), more(Some(999)));
        assert_eq!(listing.take(Vec::new()), Round::Done(keys(0..1000)), "it was all");
        let mut listing = begin(Trust::InOrder);
        assert_eq!(listing.take(keys(0..999)), Round::Done(keys(0..999)));
    }

    #[test]
    fn a_store_that_ignores_where_to_begin_ends_all_the_same() {
        let mut listing = Listing::new(&prefix(), Some(key(10)), Trust::InOrder);
        assert_eq!(listing.take(keys(0..1500)), more(Some(1499)));
        assert_eq!(listing.take(keys(0..1500)), Round::Done(keys(11..1500)));
    }

    #[test]
    fn what_is_of_others_does_not_count() {
        let mut listing = begin(Trust::InOrder);
        let others = |key: &str| Listed { key: key.into(), size: 1, modified_millis: 0 };
        let shown = vec![others("other/objects/1"), listed(2)];
        assert_eq!(listing.take(shown), Round::Done(keys([2])));
        // Of a name that is no object's, the order counts all the same.
        let mut listing = begin(Trust::InOrder);
        assert_eq!(listing.take(vec![others("p/objects/zz"), listed(2)]), more(None));
        assert!(listing.is_unordered());
    }

    #[test]
    fn without_order_two_passes_in_a_row_must_show_the_same() {
        let mut listing = begin(Trust::InOrder);
        assert_eq!(listing.take(keys([3, 1, 2])), more(None));
        assert!(listing.is_unordered());
        assert_eq!(listing.take(keys([2, 3, 1])), Round::Done(keys([1, 2, 3])));
        // By luck in order, after one that was not.
        let mut listing = begin(Trust::Settled);
        assert_eq!(listing.take(keys([1, 2])), more(None));
        assert_eq!(listing.take(keys([1, 2])), Round::Done(keys([1, 2])));
        // One key alone has no order, unless it is shown twice.
        let mut listing = begin(Trust::InOrder);
        assert_eq!(listing.take(keys([3, 3])), more(None));
        assert_eq!(listing.take(keys([3, 3])), Round::Done(keys([3])));
        let mut listing = begin(Trust::AnyOrder);
        assert_eq!(listing.take(keys([3, 1])), Round::Done(keys([1, 3])));
        assert!(listing.is_unordered());
    }

    #[test]
    fn it_settles_range_by_range_from_the_lowest() {
        let mut listing = begin(Trust::InOrder);
        assert_eq!(listing.take(keys([3, 1, 2])), more(None));
        // 2 and 3 could have come in another order than they are shown in.
        assert_eq!(listing.take(keys([1, 3])), unsettled(Some(1), 3));
        assert_eq!(listing.take(keys([3, 2, 1])), unsettled(Some(1), 3), "2 came in between");
        assert_eq!(listing.take(keys([4, 2, 3])), unsettled(Some(3), 4));
        assert_eq!(listing.take(keys([4])), Round::Done(keys([1, 2, 3, 4])));
    }

    /// Else what its own caller creates would keep it from ever settling.
    #[test]
    fn what_its_caller_created_meanwhile_is_in_two_fresh_passes() {
        let mut listing = begin(Trust::InOrder);
        assert_eq!(listing.take(keys([2, 1])), more(None));
        assert_eq!(listing.take(keys([3, 1])), unsettled(Some(1), 3));
        listing.begin_again();
        assert_eq!(listing.take(keys([3, 9])), more(Some(1)));
        assert_eq!(listing.take(keys([9, 3])), Round::Done(keys([1, 3, 9])));
    }

    #[test]
    fn another_size_or_time_is_another_object() {
        for change in [|l: &mut Listed| l.size = 7, |l: &mut Listed| l.modified_millis = 7] {
            let mut listing = begin(Trust::Settled);
            assert_eq!(listing.take(keys([1, 2])), more(None));
            let mut other = keys([1, 2]);
            change(&mut other[0]);
            assert_eq!(listing.take(other.clone()), unsettled(None, 2));
            assert_eq!(listing.take(other.clone()), Round::Done(other));
        }
    }

    #[test]
    fn what_goes_away_meanwhile_is_not_shown() {
        let mut listing = begin(Trust::Settled);
        assert_eq!(listing.take(keys([1, 2])), more(None));
        assert_eq!(listing.take(keys([2])), unsettled(None, 2));
        assert_eq!(listing.take(Vec::new()), Round::Unsettled { after: None, largest: None });
        assert_eq!(listing.take(Vec::new()), Round::Done(Vec::new()), "asked twice by then");
    }

    /// Passes of more than a page, each of which is asked for what is behind it.
    #[test]
    fn a_large_directory_settles() {
        let mut listing = begin(Trust::InOrder);
        let backwards = |range: core::ops::Range<u64>| keys(range.rev());
        assert_eq!(listing.take(backwards(0..2000)), more(Some(1999)));
        assert_eq!(listing.take(backwards(0..2002)), more(None), "behind it there were two more");
        assert_eq!(listing.take(backwards(0..2004)), more(Some(2003)));
        assert_eq!(listing.take(Vec::new()), unsettled(Some(2001), 2003));
        assert_eq!(listing.take(backwards(0..2004)), Round::Done(keys(0..2004)));
    }
}
