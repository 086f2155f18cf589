//! What the tests that cross Sealog's crates share. The tests themselves are in `tests/`.

pub mod child;
pub mod entries;
pub mod explore;
pub mod hooked;
pub mod matrix;
pub mod model;
pub mod pending;
pub mod place;
pub mod proxy;
pub mod s3;
pub mod shells;
pub mod sim;
pub mod takeover;

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sealog_core::format::{Object, ObjectEncoder};

/// The root of the workspace.
pub fn workspace_root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

/// Where the frozen conformance vectors are.
pub fn conformance_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/conformance")
}

/// The bytes of a file of the conformance vectors.
///
/// # Panics
///
/// It cannot be read.
pub fn fixture(name: &str) -> Bytes {
    let path = conformance_dir().join(name);
    match fs::read(&path) {
        Ok(bytes) => bytes.into(),
        Err(error) => panic!("cannot read {}: {error}", path.display()),
    }
}

/// Encodes a decoded object again, as a writer does: entry by entry.
pub fn encode(object: &Object) -> Bytes {
    let mut encoder = ObjectEncoder::new();
    for (meta, entries) in &object.segments {
        entries.iter().for_each(|entry| encoder.push(meta.region, entry.id, &entry.payload));
    }
    encoder.finish(&object.header).0.to_bytes()
}
