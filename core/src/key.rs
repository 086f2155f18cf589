//! Keys: where a log's objects stand in the store (DESIGN.md section 2).

use alloc::format;
use alloc::sync::Arc;
use core::fmt;

use crate::error::Error;
use crate::types::ObjectSeq;

/// The full key of something in the store; cheap to clone.
pub type Key = Arc<str>;

/// The validated prefix of one log: relative, non-empty, of ASCII letters, digits and `. _ = + -`
/// between single slashes, with no `.` or `..` component.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prefix(Arc<str>);

impl Prefix {
    /// Checks a prefix.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] names the prefix and what is allowed.
    pub fn new(prefix: &str) -> Result<Prefix, Error> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._=+-".contains(c);
        let sound = |part: &str| !matches!(part, "" | "." | "..") && part.chars().all(allowed);
        if prefix.split('/').all(sound) {
            Ok(Prefix(prefix.into()))
        } else {
            Err(Error::InvalidOptions {
                option: "prefix",
                value: format!("{prefix:?}").into(),
                allowed: "a relative, non-empty path of ASCII letters, digits and . _ = + - \
                          between single slashes, without . or .. components",
            })
        }
    }

    /// The prefix as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What every object key of this log begins with: `<prefix>/objects/`. This is what a listing
    /// lists.
    pub fn objects(&self) -> Key {
        format!("{}/objects/", self.0).into()
    }

    /// The key of the object at `sequence`.
    pub fn object_key(&self, sequence: ObjectSeq) -> Key {
        format!("{}/objects/{:020}.wal", self.0, sequence.0).into()
    }

    /// Where a repair keeps what it replaced: `<prefix>/quarantine/`, then the object's sequence and
    /// the checksum of its bytes, so that the same bytes are kept once and no others take their
    /// place. A log never looks there.
    pub fn quarantine_key(&self, sequence: ObjectSeq, bytes: &[u8]) -> Key {
        let crc = crc32fast::hash(bytes);
        format!("{}/quarantine/{:020}-{crc:08x}.wal", self.0, sequence.0).into()
    }

    /// Says what a listed key is.
    pub fn classify(&self, key: &str) -> KeyKind {
        let digits = key
            .strip_prefix(&*self.0)
            .and_then(|rest| rest.strip_prefix("/objects/"))
            .and_then(|name| name.strip_suffix(".wal"))
            .filter(|digits| digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit()));
        // 20 digits can exceed a u64; such a sequence is certainly too large.
        match digits.map(str::parse::<u64>) {
            None => KeyKind::Foreign,
            Some(Ok(sequence)) if ObjectSeq(sequence).is_valid() => {
                KeyKind::Object(ObjectSeq(sequence))
            }
            Some(_) => KeyKind::OutOfRange,
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<&str> for Prefix {
    type Error = Error;

    fn try_from(prefix: &str) -> Result<Prefix, Error> {
        Prefix::new(prefix)
    }
}

/// What a key under the prefix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// The key of the object at this sequence.
    Object(ObjectSeq),
    /// Well-formed, but no object can have this sequence: ignored, with a notice.
    OutOfRange,
    /// Somebody else's: never read, never deleted.
    Foreign,
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_prefix_is_relative_and_plain() {
        for good in ["a", "logs/a", "A-z_0.9=+/b", "..a", "a/.b", "..."] {
            assert!(Prefix::new(good).is_ok(), "{good}");
        }
        for bad in [
            "", "/", "/a", "a/", "a//b", ".", "..", "a/..", "a/./b", "a b", "a\\b", "ä", "a%",
            "a:b", "a*",
        ] {
            let error = Prefix::new(bad).unwrap_err();
            assert!(
                matches!(error, Error::InvalidOptions { option: "prefix", .. }),
                "{bad}: {error}"
            );
            assert!(error.to_string().contains(&format!("{bad:?}")), "{error}");
        }
    }

    #[test]
    fn keys_are_told_apart() {
        let prefix = Prefix::new("logs/a").unwrap();
        let seq = ObjectSeq(ObjectSeq::LIMIT.0 - 1);
        assert_eq!(&*prefix.object_key(ObjectSeq(7)), "logs/a/objects/00000000000000000007.wal");
        assert_eq!(prefix.classify(&prefix.object_key(seq)), KeyKind::Object(seq));
        assert_eq!(prefix.classify(&prefix.object_key(seq.next())), KeyKind::OutOfRange);
        for (key, kind) in [
            ("logs/a/objects/99999999999999999999.wal", KeyKind::OutOfRange),
            ("logs/a/objects/7.wal", KeyKind::Foreign),
            ("logs/a/objects/0000000000000000000a.wal", KeyKind::Foreign),
            ("logs/a/objects/+0000000000000000007.wal", KeyKind::Foreign),
            ("logs/a/objects/00000000000000000007.wal.tmp", KeyKind::Foreign),
            ("logs/a/objects/x/00000000000000000007.wal", KeyKind::Foreign),
            ("logs/ab/objects/00000000000000000007.wal", KeyKind::Foreign),
            ("logs/a/quarantine/00000000000000000007.wal", KeyKind::Foreign),
        ] {
            assert_eq!(prefix.classify(key), kind, "{key}");
        }
    }
}
