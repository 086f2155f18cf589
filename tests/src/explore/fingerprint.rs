//! Telling machines apart by what they do from now on.

use std::fmt::{self, Debug, Write};
use std::hash::{Hash, Hasher};

/// A hash of 128 bits over what a machine's `Debug` output shows, without the text being built.
///
/// Two things are left out of it, since they decide nothing:
///
/// - What follows the field `stats`: the figures are the last field of a writer (a test verifies
///   that).
/// - The numbers of requests. They only say which answer belongs to which request, so each is
///   replaced by its place among the numbers in the order of their appearance. The requests that
///   the world holds for the machine are hashed behind it, with the same names.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprint {
    state: u128,
    names: Vec<u64>,
    expected: Expected,
}

/// How far a request's number is: `RequestId`, `(`, the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Nothing,
    Bracket,
    Number,
}

impl Fingerprint {
    pub(crate) fn new() -> Fingerprint {
        // The offset basis of FNV-1a for 128 bits.
        let state = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        Fingerprint { state, names: Vec::new(), expected: Expected::Nothing }
    }

    pub(crate) fn machine(&mut self, machine: &impl Debug) {
        // The only error is that the figures are reached.
        let _ = write!(self, "{machine:?}");
        self.expected = Expected::Nothing;
    }

    /// A request that the world holds for the machine.
    pub(crate) fn request(&mut self, id: u64) {
        let name = self.name(id);
        self.write_u64(name);
    }

    pub(crate) fn value(&mut self, value: &impl Hash) {
        value.hash(self);
    }

    pub(crate) fn get(&self) -> u128 {
        self.state
    }

    fn name(&mut self, id: u64) -> u64 {
        let place = self.names.iter().position(|name| *name == id).unwrap_or_else(|| {
            self.names.push(id);
            self.names.len() - 1
        });
        place as u64
    }
}

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.state ^= u128::from(*byte);
            self.state = self.state.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    fn finish(&self) -> u64 {
        self.state as u64
    }
}

impl Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.expected = match (self.expected, text) {
            (_, "stats") => return Err(fmt::Error),
            (_, "RequestId") => Expected::Bracket,
            (Expected::Bracket, "(") => Expected::Number,
            (Expected::Number, number) => {
                let id = number.parse().map_err(|_| fmt::Error)?;
                self.request(id);
                self.expected = Expected::Nothing;
                return Ok(());
            }
            _ => Expected::Nothing,
        };
        self.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sealog_core::RequestId;

    use super::*;

    fn of(machine: &impl Debug, requests: &[u64]) -> u128 {
        let mut fingerprint = Fingerprint::new();
        fingerprint.machine(machine);
        requests.iter().for_each(|id| fingerprint.request(*id));
        fingerprint.get()
    }

    #[test]
    fn only_the_names_of_requests_make_no_difference() {
        let ids = |a, b| (RequestId(a), 7, RequestId(b));
        assert_eq!(of(&ids(3, 5), &[5]), of(&ids(10, 2), &[2]));
        assert_ne!(of(&ids(3, 5), &[5]), of(&ids(10, 2), &[10]));
        assert_ne!(of(&ids(3, 5), &[]), of(&ids(3, 3), &[]));
        assert_ne!(of(&(RequestId(3), 7), &[]), of(&(RequestId(3), 8), &[]));
    }

    /// Otherwise what comes behind them would be left out as well.
    #[test]
    fn the_figures_are_the_last_field_of_a_writer() {
        let world = super::super::opened_world();
        let text = format!("{:?}", world.0.instance(world.1.instances[0]).phase);
        let (before, figures) = text.split_once("stats: ").unwrap();
        assert!(before.contains("reclaim: Reclaim {"), "what is deleted is told apart");
        let mut depth = 0;
        let end = figures.find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0 && c == '}'
        });
        assert_eq!(&figures[end.unwrap() + 1..], " })", "Writer {{ .., stats: Stats {{ .. }} }}");
    }

    #[test]
    fn figures_are_left_out_and_nothing_else() {
        #[derive(Debug)]
        struct Machine {
            _state: u8,
            stats: Option<u8>,
        }
        let machine = |state, figure| of(&Machine { _state: state, stats: Some(figure) }, &[]);
        assert_eq!(machine(1, 2), machine(1, 3));
        assert_ne!(machine(1, 2), machine(2, 2));
        assert!(Machine { _state: 0, stats: None }.stats.is_none());
    }
}
