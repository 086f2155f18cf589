//! Reading directories as a listing.

use std::fs::{self, ReadDir};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error as ClientError, ObjectMeta, Result};
use tokio::runtime::Handle;

use super::failed;
use crate::notice::tell_unnameable;

/// The files below a directory, in the order in which the system shows them; none of a directory that
/// is not there. A link to a file counts as the file, and one to a directory leads nowhere. What goes
/// away meanwhile is not shown, nor is what the client stages.
pub(super) struct Walk {
    /// With the keys that they are.
    to_read: Vec<(PathBuf, Path)>,
    reading: Option<(ReadDir, PathBuf, Path)>,
    after: Option<Path>,
    /// Whether the operator knows of a file whose name no key can have.
    told: Arc<AtomicBool>,
}

/// How many files are looked at before the caller has a turn.
const PART: usize = 1024;

impl Walk {
    pub(super) fn new(
        directory: PathBuf,
        key: Path,
        after: Option<Path>,
        told: Arc<AtomicBool>,
    ) -> Walk {
        Walk { to_read: vec![(directory, key)], reading: None, after, told }
    }

    /// On a thread for blocking work, if there is a runtime with such threads.
    pub(super) fn in_parts(self) -> BoxStream<'static, Result<ObjectMeta>> {
        let Ok(runtime) = Handle::try_current() else { return stream::iter(self).boxed() };
        stream::try_unfold(self, move |mut walk| {
            let part = runtime.spawn_blocking(move || {
                let part: Vec<_> = walk.by_ref().take(PART).collect();
                (part, walk)
            });
            async move {
                let (part, walk) = part.await?;
                Ok::<_, ClientError>((!part.is_empty()).then_some((stream::iter(part), walk)))
            }
        })
        .try_flatten()
        .boxed()
    }

    /// The next file that is there.
    fn next_file(&mut self) -> io::Result<Option<ObjectMeta>> {
        loop {
            let Some((entries, directory, key)) = &mut self.reading else {
                let Some((directory, key)) = self.to_read.pop() else { return Ok(None) };
                if let Some(entries) = unless_gone(fs::read_dir(&directory))? {
                    self.reading = Some((entries, directory, key));
                }
                continue;
            };
            let Some(entry) = entries.next() else {
                self.reading = None;
                continue;
            };
            let entry = entry?;
            let name = entry.file_name();
            let Some(location) = name.to_str().and_then(|name| below(key, name)) else {
                if !self.told.swap(true, Ordering::Relaxed) {
                    tell_unnameable(directory, &name);
                }
                continue;
            };
            let Some(kind) = unless_gone(entry.file_type())? else { continue };
            if kind.is_dir() {
                self.to_read.push((entry.path(), location));
                continue;
            }
            // Before the file is looked at, which takes longer than the reading.
            let is_wanted = self.after.as_ref().is_none_or(|after| location > *after);
            if !is_wanted || name.to_str().is_some_and(is_staged) {
                continue;
            }
            let Some(found) = unless_gone(fs::metadata(entry.path()))? else { continue };
            if found.is_file() {
                return Ok(Some(ObjectMeta {
                    location,
                    last_modified: found.modified()?.into(),
                    size: found.len(),
                    e_tag: None,
                    version: None,
                }));
            }
        }
    }
}

impl Iterator for Walk {
    type Item = Result<ObjectMeta>;

    fn next(&mut self) -> Option<Result<ObjectMeta>> {
        let found = self.next_file().transpose()?;
        if found.is_err() {
            (self.reading, self.to_read) = (None, Vec::new());
        }
        Some(found.map_err(|error| failed("Unable to list a directory".into(), error)))
    }
}

fn below(key: &Path, name: &str) -> Option<Path> {
    let key = key.as_ref();
    Path::parse(if key.is_empty() { name.into() } else { format!("{key}/{name}") }).ok()
}

fn unless_gone<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Whether the name is one of those that the client gives to files that it has not finished.
pub(super) fn is_staged(name: &str) -> bool {
    name.split_once('#').is_some_and(|(_, number)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests;
