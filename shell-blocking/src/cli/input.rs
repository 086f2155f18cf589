//! Records of an input: lines, or records with their length before them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sealog_blocking::RegionId;

use crate::cli::exit::Failure;

/// How an input is divided into records.
#[derive(Clone, Debug)]
pub(crate) enum Division {
    /// At each line feed, which belongs to no record. What follows the last one is a record if it
    /// is not empty.
    Lines,
    /// A length of four bytes, big-endian, then so many bytes.
    Lengths,
}

/// Which region a record goes to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// All to one.
    Region(RegionId),
    /// The one that its column names, counted from 1.
    Column(usize, String),
}

impl Target {
    pub(crate) fn of(&self, record: &[u8]) -> Result<RegionId, String> {
        match self {
            Target::Region(region) => Ok(*region),
            Target::Column(number, delimiter) => {
                let field = nth_field(record, *number, delimiter.as_bytes())
                    .ok_or_else(|| format!("it has no column {number}"))?;
                let text = String::from_utf8_lossy(field);
                text.trim()
                    .parse()
                    .map(RegionId)
                    .map_err(|_| format!("column {number} is {text:?}, not the number of a region"))
            }
        }
    }
}

fn nth_field<'a>(mut record: &'a [u8], number: usize, delimiter: &[u8]) -> Option<&'a [u8]> {
    for _ in 1..number {
        let end = find(record, delimiter)?;
        record = &record[end + delimiter.len()..];
    }
    Some(&record[..find(record, delimiter).unwrap_or(record.len())])
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// A file or standard input.
pub(crate) struct Input {
    name: String,
    from: Box<dyn BufRead + Send>,
    bytes: Option<u64>,
}

impl Input {
    pub(crate) fn standard() -> Input {
        // Of its own, not the shared one: the thread that reads it must not hold a lock.
        let from = Box::new(BufReader::new(io::stdin()));
        Input { name: "standard input".into(), from, bytes: None }
    }

    pub(crate) fn open(path: &Path) -> Result<Input, Failure> {
        if path == Path::new("-") {
            return Ok(Input::standard());
        }
        let unusable = |error| Failure::usage(format!("{}: {error}", path.display()));
        let file = File::open(path).map_err(unusable)?;
        let found = file.metadata().map_err(unusable)?;
        if found.is_dir() {
            return Err(unusable(io::ErrorKind::IsADirectory.into()));
        }
        let bytes = found.is_file().then_some(found.len());
        let from = Box::new(BufReader::with_capacity(1 << 18, file));
        Ok(Input { name: path.display().to_string(), from, bytes })
    }

    /// Standard input if none is named.
    pub(crate) fn all(paths: &[PathBuf]) -> Result<Vec<Input>, Failure> {
        if paths.is_empty() {
            return Ok(vec![Input::standard()]);
        }
        paths.iter().map(|path| Input::open(path)).collect()
    }

    /// How many bytes it has, if that is known.
    pub(crate) fn len(&self) -> Option<u64> {
        self.bytes
    }

    /// Its records of up to `most` bytes.
    pub(crate) fn records(self, division: Division, most: u64) -> Records {
        Records { input: self, division, most, number: 0 }
    }
}

pub(crate) struct Records {
    input: Input,
    division: Division,
    most: u64,
    /// Of the record that was read last, from 1.
    number: u64,
}

impl Records {
    /// The next record; `None` at the end of the input.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        self.number += 1;
        match self.division {
            Division::Lines => self.line(),
            Division::Lengths => self.with_length(),
        }
    }

    /// What is wrong with the record that was read last.
    pub(crate) fn wrong(&self, what: impl std::fmt::Display) -> Failure {
        let unit = match self.division {
            Division::Lines => "line",
            Division::Lengths => "record",
        };
        Failure::usage(format!("{unit} {} of {}: {what}", self.number, self.input.name))
    }

    fn line(&mut self) -> Result<Option<Bytes>, Failure> {
        let mut line = Vec::new();
        let within = self.most.saturating_add(1);
        let read = self.input.from.by_ref().take(within).read_until(b'\n', &mut line);
        if let Err(error) = read {
            return Err(self.wrong(error));
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.is_empty() {
            return Ok(None);
        } else if line.len() as u64 > self.most {
            return Err(self.too_large());
        }
        Ok(Some(line.into()))
    }

    fn with_length(&mut self) -> Result<Option<Bytes>, Failure> {
        match self.input.from.fill_buf() {
            Ok([]) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(self.wrong(error)),
        }
        let mut length = [0; 4];
        self.exactly(&mut length)?;
        let length = u32::from_be_bytes(length);
        if u64::from(length) > self.most {
            return Err(self.too_large());
        }
        // A length that is no length must not take memory that the input does not fill.
        let mut record = Vec::new();
        match self.input.from.by_ref().take(length.into()).read_to_end(&mut record) {
            Ok(read) if read == length as usize => Ok(Some(record.into())),
            Ok(read) => Err(self.wrong(format!("the input ends after {read} of {length} bytes"))),
            Err(error) => Err(self.wrong(error)),
        }
    }

    fn exactly(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        self.input.from.read_exact(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.wrong("the input ends within its length"),
            _ => self.wrong(error),
        })
    }

    fn too_large(&self) -> Failure {
        self.wrong(format!("it has more than {} bytes, see --max-append-bytes", self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(input: &[u8], division: Division, most: u64) -> (Vec<Bytes>, Option<String>) {
        let from = Box::new(BufReader::with_capacity(3, io::Cursor::new(input.to_vec())));
        let input = Input { name: "test".into(), from, bytes: None };
        let mut records = input.records(division, most);
        let mut found = Vec::new();
        loop {
            match records.next() {
                Ok(Some(record)) => found.push(record),
                Ok(None) => return (found, None),
                Err(Failure::Usage(text)) => return (found, Some(text)),
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn lines_end_at_line_feeds_and_with_the_input() {
        let (found, failure) = records(b"one\n\ntwo\r\nlast", Division::Lines, 100);
        assert_eq!(found, ["one", "", "two\r", "last"]);
        assert_eq!(failure, None);
        assert_eq!(records(b"", Division::Lines, 100).0.len(), 0);
        assert_eq!(records(b"a\n", Division::Lines, 100).0, ["a"]);
    }

    #[test]
    fn a_record_larger_than_an_append_may_be_is_named() {
        let (found, failure) = records(b"abc\nabcd\nx\n", Division::Lines, 3);
        assert_eq!(found, ["abc"]);
        assert!(failure.unwrap().starts_with("line 2 of test: it has more than 3 bytes"));
        let (found, failure) = records(b"\0\0\0\x01a\xff\xff\xff\xff", Division::Lengths, 3);
        assert_eq!(found, ["a"]);
        assert!(failure.unwrap().starts_with("record 2 of test: it has more than 3 bytes"));
    }

    #[test]
    fn records_have_their_length_before_them() {
        let (found, failure) =
            records(b"\0\0\0\x03a\nb\0\0\0\0\0\0\0\x01c", Division::Lengths, 100);
        assert_eq!(found, ["a\nb", "", "c"]);
        assert_eq!(failure, None);
        for (cut, text) in
            [(1, "within its length"), (3, "within its length"), (6, "after 2 of 3 bytes")]
        {
            let (found, failure) = records(&b"\0\0\0\x03abc"[..cut], Division::Lengths, 100);
            assert!(found.is_empty());
            assert!(failure.unwrap().ends_with(text), "{cut}");
        }
    }

    #[test]
    fn a_column_names_the_region() {
        let of = |number, delimiter: &str, record: &str| {
            Target::Column(number, delimiter.into()).of(record.as_bytes())
        };
        assert_eq!(of(1, "\t", "7\ta"), Ok(RegionId(7)));
        assert_eq!(of(2, ",", "a, 8 ,c"), Ok(RegionId(8)));
        assert_eq!(of(3, "::", "a::b::9"), Ok(RegionId(9)));
        assert!(of(3, ",", "a,b").unwrap_err().contains("no column 3"));
        assert!(of(1, ",", "eu,b").unwrap_err().contains("\"eu\", not the number of a region"));
    }
}
