//! What a listing is believed (DESIGN.md section 4).
//!
//! A store that lists in the order of its keys and says where its listing ends is believed at once.
//! One that does not is asked until two answers agree; one that may have been cut off is asked for
//! what comes behind; one that shows nothing is asked a second time.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::event::Listed;
use crate::key::{Key, KeyKind, Prefix};

/// Stores answer in pages of at most 1,000 keys. An answer of that many may be a page whose
/// successor was lost.
const PAGE: usize = 1000;

/// What to do with an answer that is not in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unordered {
    /// It counts once two in a row are equal.
    Settles,
    /// It counts as it is: for a view, which shows what was there before the listing began.
    #[allow(dead_code, reason = "views come to it with the opening")]
    IsTaken,
}

/// Judges the answers to one listing of a log's objects.
///
/// Ask from behind `from`, hand every answer in with [`answered`](Listing::answered), and ask again
/// from where it says, until it says that the listing settled. A failed request is not handed in: it
/// is asked again, or the listing is given up. How often it is asked at most is the caller's business.
///
/// What a listing must show is the caller's business too.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    prefix: Prefix,
    /// Keys up to this one are not wanted.
    from: Option<Key>,
    if_unordered: Unordered,
    unordered: bool,
    /// The last request asks for what comes behind this key.
    asked: Option<Key>,
    /// What counts already: everything up to `asked`.
    settled: BTreeMap<Key, Listed>,
    /// Without order: what the last answer showed behind `asked`.
    before: Option<BTreeMap<Key, Listed>>,
    /// It showed nothing once.
    was_empty: bool,
}

/// What comes of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// Ask once more, for what comes behind this key.
    Again { after: Option<Key> },
    /// The listing: the keys behind `from` of this log's objects, and of what is
    /// [out of range](KeyKind::OutOfRange), in ascending order, each once.
    Settled(Vec<Listed>),
}

impl Listing {
    /// A listing of what comes behind `from`. `unordered`: an earlier listing of the same store was.
    pub(crate) fn new(
        prefix: &Prefix,
        from: Option<Key>,
        unordered: bool,
        if_unordered: Unordered,
    ) -> Listing {
        Listing {
            prefix: prefix.clone(),
            asked: from.clone(),
            from,
            if_unordered,
            unordered,
            settled: BTreeMap::new(),
            before: None,
            was_empty: false,
        }
    }

    /// What the request that is due asks for: what comes behind this key.
    pub(crate) fn after(&self) -> Option<Key> {
        self.asked.clone()
    }

    /// Whether the store lists in no order, as far as this listing or an earlier one showed. Later
    /// listings of the same machine begin with that.
    pub(crate) fn is_unordered(&self) -> bool {
        self.unordered
    }

    /// Takes an answer, in the order in which the store gave it. It may show what was not asked for.
    pub(crate) fn answered(&mut self, answer: Vec<Listed>) -> Judged {
        // A key may come twice, where one page ends and the next begins.
        let ordered = answer.is_sorted_by(|one, next| one.key <= next.key);
        let was_unordered = self.unordered;
        self.unordered |= !ordered;
        let cut = self.cut_off_at(&answer);
        let shown = self.shown(answer);
        if self.unordered && self.if_unordered == Unordered::Settles {
            if !was_unordered {
                // What counts so far was taken for a part of a listing in order.
                let elsewhere = self.asked != self.from;
                self.settled.clear();
                self.asked = self.from.clone();
                self.before = (!elsewhere).then_some(shown);
                return self.again();
            }
            return self.compare(shown, cut);
        }
        if shown.is_empty() && self.settled.is_empty() && !self.was_empty && cut.is_none() {
            self.was_empty = true;
            self.asked = self.from.clone();
            return self.again();
        }
        self.settled.extend(shown);
        self.end_unless(cut)
    }

    /// The key to ask from, if the answer may have been cut off behind it.
    fn cut_off_at(&self, answer: &[Listed]) -> Option<Key> {
        let last = answer.iter().map(|listed| &listed.key).max()?;
        if Some(last) <= self.asked.as_ref() {
            // The store lists everything again, whatever it is asked, and there is no more of it.
            return None;
        }
        // The first answer may have lost what comes behind keys that were not wanted.
        let first = self.asked == self.from;
        let wanted = |listed: &&Listed| first || Some(&listed.key) > self.asked.as_ref();
        (answer.iter().filter(wanted).count() >= PAGE).then(|| last.clone())
    }

    /// What of an answer counts. Of a key that comes twice, the later one does.
    fn shown(&self, answer: Vec<Listed>) -> BTreeMap<Key, Listed> {
        let wanted = |listed: &Listed| {
            Some(&listed.key) > self.asked.as_ref()
                && self.prefix.classify(&listed.key) != KeyKind::Foreign
        };
        answer.into_iter().filter(wanted).map(|listed| (listed.key.clone(), listed)).collect()
    }

    /// Range by range from the lowest: what two answers in a row show alike stood like that between
    /// them. From then on only what comes behind it is asked for, so a log that changes somewhere need
    /// not stand still everywhere at once.
    fn compare(&mut self, shown: BTreeMap<Key, Listed>, cut: Option<Key>) -> Judged {
        let Some(before) = self.before.take() else {
            self.before = Some(shown);
            return self.again();
        };
        if before == shown {
            self.settled.extend(shown);
            // What comes behind an answer that may have been cut off showed nothing so far.
            self.before = Some(BTreeMap::new());
            return self.end_unless(cut);
        }
        let alike = before.values().zip(shown.values()).take_while(|(one, other)| one == other);
        let through = alike.last().map(|(one, _)| one.key.clone());
        let mut shown = shown;
        if let Some(through) = through {
            let mut rest = shown.split_off(&through);
            self.settled.append(&mut shown);
            self.settled.extend(rest.remove_entry(&through));
            self.asked = Some(through);
            shown = rest;
        }
        self.before = Some(shown);
        self.again()
    }

    fn end_unless(&mut self, cut: Option<Key>) -> Judged {
        match cut {
            Some(last) => {
                self.asked = Some(last);
                self.again()
            }
            None => Judged::Settled(core::mem::take(&mut self.settled).into_values().collect()),
        }
    }

    fn again(&self) -> Judged {
        Judged::Again { after: self.asked.clone() }
    }
}

#[cfg(test)]
mod tests;
