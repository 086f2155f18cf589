//! Numbers and byte strings, one after the other.

use bytes::{Buf, Bytes};

use super::EngineError;

pub(crate) fn put_u64(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend(number.to_le_bytes());
}

pub(crate) fn put_bytes(bytes: &mut Vec<u8>, string: &[u8]) {
    put_u64(bytes, string.len() as u64);
    bytes.extend(string);
}

/// What is left to decode of something.
pub(crate) struct Fields {
    what: &'static str,
    bytes: Bytes,
}

impl Fields {
    pub(crate) fn new(what: &'static str, bytes: Bytes) -> Fields {
        Fields { what, bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn u64(&mut self) -> Result<u64, EngineError> {
        self.bytes.try_get_u64_le().map_err(|_| EngineError::Damaged { what: self.what })
    }

    pub(crate) fn bytes(&mut self) -> Result<Bytes, EngineError> {
        let size = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
        if size > self.bytes.len() {
            return Err(EngineError::Damaged { what: self.what });
        }
        Ok(self.bytes.split_to(size))
    }
}
