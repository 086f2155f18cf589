//! What openings of all kinds end with.

use alloc::string::String;

use crate::opening::*;

/// What an opening of these tests ends with.
pub(super) trait Ending: Aim {
    /// Verifies what always holds of it.
    fn check(&self);
    /// It in a few words.
    fn told(&self) -> String;
}

impl Ending for Recovered {
    fn check(&self) {
        self.catalog.check();
        assert_eq!(self.catalog.last(), Some(self.start));
        assert!(self.catalog.boundary() <= self.next_sequence);
    }

    fn told(&self) -> String {
        alloc::format!("{}, boundary {}", self.start, self.catalog.boundary())
    }
}

impl Ending for View {
    fn check(&self) {
        self.catalog().check();
        assert!(self.objects().map(|object| object.header.sequence).is_sorted());
        assert_eq!(self.tip(), self.catalog().last());
    }

    fn told(&self) -> String {
        let tip = self.tip().map_or("nothing".into(), |tip| alloc::format!("{tip}"));
        alloc::format!("a view of {tip}, boundary {}", self.catalog().boundary())
    }
}

impl Ending for Survey {
    fn check(&self) {
        self.catalog.check();
        assert!(self.objects.iter().map(|object| object.sequence).is_sorted());
    }

    fn told(&self) -> String {
        let (objects, problems) = (self.objects.len(), self.problems().count());
        alloc::format!("a survey of {objects} objects, {problems} problems")
    }
}
