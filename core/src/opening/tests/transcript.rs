//! What an opening asked and was answered, as a text.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::Write;

use super::Ending;
use super::store::{Run, operation_of, prefix, start_of};
use crate::format::Header;
use crate::opening::*;

impl<T: Ending> Run<T> {
    pub(super) fn write(&mut self, effect: &OpeningEffect<T>) {
        let out = &mut self.transcript;
        match effect {
            OpeningEffect::Storage(effect) => {
                let operation = operation_of(effect);
                write!(out, "{operation} {}", short(effect.key())).unwrap();
                if let StorageEffect::List { after: Some(after), .. } = effect {
                    write!(out, " from behind {}", short(after)).unwrap();
                }
                if let StorageEffect::FetchRange { range, .. } = effect {
                    write!(out, " {range:?}").unwrap();
                }
                if let StorageEffect::PutObject { payload, .. } = effect {
                    let (header, record) = start_of(&payload.to_bytes());
                    let after = header.predecessor.map_or("nothing".into(), |p| p.to_string());
                    write!(
                        out,
                        ": {} after {after}, boundary {}, nonce {:02x}.., by {}",
                        header.link(),
                        header.boundary,
                        record.nonce[0],
                        record.name
                    )
                    .unwrap();
                }
                writeln!(out).unwrap();
            }
            OpeningEffect::Notice(notice) => writeln!(out, "notice: {}", told(notice)).unwrap(),
            OpeningEffect::Opened(ending) => {
                writeln!(out, "opened with {}", ending.told()).unwrap()
            }
            OpeningEffect::Failed(error) => writeln!(out, "failed: {error}").unwrap(),
        }
    }

    pub(super) fn write_answer(&mut self, answer: &StorageAnswer) {
        let text = match answer {
            StorageAnswer::Listed { result: Ok(listing), .. } => format!("{} keys", listing.len()),
            StorageAnswer::Fetched { result: Ok(bytes), .. } => format!("{} bytes", bytes.len()),
            StorageAnswer::CreateResult { result: Ok(()), .. } => "created".into(),
            StorageAnswer::ReadBackResult { result: Ok(found), .. } => {
                let header = Header::decode(&found.header);
                let header = header.map_or_else(|e| e.to_string(), |h| h.link().to_string());
                format!("{header}, {} bytes", found.size)
            }
            StorageAnswer::DeleteResult { .. } => panic!("an opening deletes nothing"),
            StorageAnswer::Listed { result: Err(error), .. }
            | StorageAnswer::Fetched { result: Err(error), .. }
            | StorageAnswer::CreateResult { result: Err(error), .. }
            | StorageAnswer::ReadBackResult { result: Err(error), .. } => error.to_string(),
        };
        writeln!(self.transcript, "    {text}").unwrap();
    }
}

fn told(notice: &Notice) -> String {
    match notice {
        Notice::OpeningRetries { error } => format!("repeats after: {error}"),
        Notice::OpeningAgain { key, epoch } => {
            format!("starts again, since {} is of epoch {epoch}", short(key))
        }
        Notice::Opened { recovered_objects, took, .. } => {
            format!("opened, {recovered_objects} objects recovered, in {took:?}")
        }
        other => format!("{other:?}"),
    }
}

/// A key without its prefix and zeros.
fn short(key: &str) -> String {
    match prefix().classify(key) {
        KeyKind::Object(sequence) => format!("{sequence}.wal"),
        _ => key.into(),
    }
}
