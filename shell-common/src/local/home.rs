//! The directory that a log was opened in, whatever becomes of its path.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use object_store::{Error as ClientError, Result};

use super::failed;
use crate::error::Refusal;

/// The directory of a log's objects, as it was opened: it is held open, so that no other can have its
/// inode as long as the log lives. If another stands at its path, or none, what is written there would
/// be in another log, or in none: then it is refused, and nothing is made.
///
/// Where directories have no inodes (not a Unix system) all that is seen is that none stands there.
#[derive(Debug)]
pub(crate) struct Home {
    key: String,
    path: PathBuf,
    opened: OnceLock<Opened>,
}

#[derive(Debug)]
struct Opened {
    #[cfg(unix)]
    directory: File,
}

impl Home {
    /// The directory at this path, which may be missing as long as nothing is written there.
    pub(crate) fn open(key: String, path: PathBuf) -> io::Result<Home> {
        let home = Home { key, path, opened: OnceLock::new() };
        match home.opened() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(home),
        }
    }

    /// The key that all keys in it begin with, without the last slash.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    fn opened(&self) -> io::Result<&Opened> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let opened = Opened::at(&self.path)?;
        Ok(self.opened.get_or_init(|| opened))
    }

    /// That it stands at its path. Blocks.
    pub(super) fn stands(&self) -> Result<()> {
        let at_path = match fs::metadata(&self.path) {
            Err(error) if is_missing(&error) => None,
            found => Some(found.map_err(|error| self.failed("look at", error))?),
        };
        let opened = match self.opened() {
            Err(error) if is_missing(&error) => None,
            opened => Some(opened.map_err(|error| self.failed("open", error))?),
        };
        match (opened, at_path) {
            (Some(opened), Some(found))
                if opened.is(&found).map_err(|error| self.failed("look at", error))? =>
            {
                Ok(())
            }
            (opened, found) => Err(self.is_away(opened, found.is_some())),
        }
    }

    fn is_away(&self, opened: Option<&Opened>, another: bool) -> ClientError {
        let path = self.path.display();
        let (what, advice) = match opened.is_some_and(Opened::is_removed) {
            true => ("was removed while the log was open", REMOVED),
            false => ("is not the one at its path any more", AWAY),
        };
        let there = if another { "another directory stands there" } else { "nothing stands there" };
        Refusal { text: format!("the log's directory {path} {what}: {there}"), advice }
            .into_client_error()
    }

    fn failed(&self, what: &str, error: io::Error) -> ClientError {
        failed(format!("Unable to {what} {}", self.path.display()), error)
    }
}

const AWAY: &str = "It was renamed or unmounted, or is hidden by another. All that was acknowledged is in \
                    the directory that was opened, and nothing was written to another: bring it back to \
                    its path, or open the log where it is now";
const REMOVED: &str = "What was acknowledged went with it, and is lost unless a copy was made; nothing was \
                       written to another directory: restore it, and open the log anew";

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(not(unix))]
impl Opened {
    fn at(path: &std::path::Path) -> io::Result<Opened> {
        match fs::metadata(path)?.is_dir() {
            true => Ok(Opened {}),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn is(&self, found: &Metadata) -> io::Result<bool> {
        Ok(found.is_dir())
    }

    fn is_removed(&self) -> bool {
        false
    }
}

#[cfg(not(unix))]
impl Home {
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(unix)]
mod on_unix {
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path as FilePath;

    use object_store::{PutPayload, PutResult};
    use rustix::fs::{AtFlags, Mode, OFlags, linkat, openat, renameat, unlinkat};

    use super::*;

    impl Opened {
        pub(super) fn at(path: &FilePath) -> io::Result<Opened> {
            let directory = File::open(path)?;
            match directory.metadata()?.is_dir() {
                true => Ok(Opened { directory }),
                false => Err(io::ErrorKind::NotADirectory.into()),
            }
        }

        pub(super) fn is(&self, found: &Metadata) -> io::Result<bool> {
            let own = self.directory.metadata()?;
            Ok((own.dev(), own.ino()) == (found.dev(), found.ino()))
        }

        pub(super) fn is_removed(&self) -> bool {
            self.directory.metadata().is_ok_and(|own| own.nlink() == 0)
        }
    }

    impl Home {
        /// Makes its entries durable. Blocks.
        pub(in super::super) fn sync(&self) -> io::Result<()> {
            self.opened()?.directory.sync_all()
        }

        /// As the client puts a file, step by step and with its texts, but in the directory that was
        /// opened, not in what its path leads to. Blocks.
        pub(in super::super) fn put(
            &self,
            name: &str,
            payload: &PutPayload,
            replaces: bool,
        ) -> Result<PutResult> {
            self.stands()?;
            let opened = self.opened().map_err(|error| self.failed("open", error))?;
            let (file, staged) = self.stage(opened, name)?;
            let put = self.finish(opened, file, &staged, name, payload, replaces);
            // Of a name that it has not any more, unless that is its only one.
            let _ = unlinkat(&opened.directory, &staged, AtFlags::empty());
            put?;
            self.stands()?;
            Ok(PutResult { e_tag: None, version: None, extensions: Default::default() })
        }

        fn stage(&self, opened: &Opened, name: &str) -> Result<(File, String)> {
            let mut number = 1_u64;
            loop {
                let staged = format!("{name}#{number}");
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                match openat(&opened.directory, &staged, flags, Mode::from_raw_mode(0o666)) {
                    Ok(file) => return Ok((OwnedFd::into(file), staged)),
                    Err(rustix::io::Errno::EXIST) => number += 1,
                    // It was removed since the look.
                    Err(rustix::io::Errno::NOENT) if opened.is_removed() => {
                        return Err(self.is_away(Some(opened), self.path.exists()));
                    }
                    Err(error) => {
                        let what = format!("Unable to open file {}", self.file(&staged));
                        return Err(failed(what, error.into()));
                    }
                }
            }
        }

        fn finish(
            &self,
            opened: &Opened,
            mut file: File,
            staged: &str,
            name: &str,
            payload: &PutPayload,
            replaces: bool,
        ) -> Result<()> {
            for chunk in payload.iter() {
                let written = file.write_all(chunk);
                written.map_err(|error| failed("Unable to copy data to file".into(), error))?;
            }
            // After it a close has nothing to tell.
            file.sync_all().map_err(|error| {
                failed(format!("Unable to sync data to disk for {}", self.file(staged)), error)
            })?;
            let directory = &opened.directory;
            let named = match replaces {
                true => renameat(directory, staged, directory, name),
                false => linkat(directory, staged, directory, name, AtFlags::empty()),
            };
            let unable = |error| failed("Unable to rename file".into(), error);
            match named {
                Err(rustix::io::Errno::EXIST) => Err(ClientError::AlreadyExists {
                    path: self.file(name),
                    source: io::Error::from(io::ErrorKind::AlreadyExists).into(),
                }),
                Err(error) => Err(unable(error.into())),
                Ok(()) => directory.sync_all().map_err(unable),
            }
        }

        /// Blocks.
        pub(in super::super) fn remove(&self, name: &str) -> Result<()> {
            self.stands()?;
            let opened = self.opened().map_err(|error| self.failed("open", error))?;
            match unlinkat(&opened.directory, name, AtFlags::empty()) {
                Err(rustix::io::Errno::NOENT) => Err(ClientError::NotFound {
                    path: self.file(name),
                    source: io::Error::from(io::ErrorKind::NotFound).into(),
                }),
                removed => removed.map_err(|error| {
                    failed(format!("Unable to delete file {}", self.file(name)), error.into())
                }),
            }
        }

        fn file(&self, name: &str) -> String {
            self.path.join(name).display().to_string()
        }
    }
}

#[cfg(all(test, unix))]
mod tests;
