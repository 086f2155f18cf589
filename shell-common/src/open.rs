//! Turning a directory or a URL into a store and a prefix.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Component, Path as FilePath, PathBuf};
use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreScheme};
use sealog_core::error::Operation;
use sealog_core::{Error, Prefix};
use url::Url;

use crate::error::{store_error, unreachable};
use crate::local::{Durable, Files, Home};

/// Where a log is: a store and the prefix in it.
#[derive(Clone, Debug)]
pub struct Location {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// The prefix.
    pub prefix: Prefix,
}

/// The log in a local directory, with fsync of files and directories on: an object is durable
/// once its create succeeded.
///
/// The store is the directory's parent and the prefix its name, so that a directory and its
/// `file://` URL name the same log. Symbolic links are resolved. A directory that is missing is
/// made, and made durable, its parents too; with `must_exist` it is not. One that is there is made
/// durable in its parent. Blocks on the file system.
///
/// Objects are created, replaced and deleted in the directory that was opened. If that is not at its path
/// any more, because it was renamed, unmounted, removed or replaced by another, these requests are
/// refused, and nothing is made anew. (Where directories have no inodes, on systems other than Unix, that
/// is seen only if no directory stands there.) Once a sync has failed, an object that it may have lost is never taken for durable by this store again:
/// look after the disk, then open the log anew.
///
/// A process that is killed while it creates an object may leave a temporary file behind, whose
/// name is the object's with `#` and a number after it, such as `….wal#1`. Listings do not show
/// them, and they may be removed by hand while no process writes to the log.
///
/// # Errors
///
/// Each names the directory: [`Error::InvalidOptions`] if its name is none for a prefix,
/// [`Error::Missing`] if it is missing and `must_exist` is set, [`Error::Store`] if it cannot be
/// made or reached.
///
/// ```
/// let parent = tempfile::tempdir().unwrap();
/// let location = sealog_shell::open_local(parent.path().join("log"), false).unwrap();
/// assert_eq!(location.prefix.as_str(), "log");
/// assert!(parent.path().join("log").is_dir());
/// ```
pub fn open_local(directory: impl AsRef<FilePath>, must_exist: bool) -> Result<Location, Error> {
    let directory = directory.as_ref();
    let operation = if must_exist { Operation::List } else { Operation::Create };
    let refused = |error| unreachable_directory(operation, directory, error);
    let absolute = absolute(directory, operation)?;
    if !must_exist {
        // With the folder of the objects: a put that made it and was cut off before it was durable
        // would leave that to nobody.
        create_durably(&absolute.join("objects")).map_err(refused)?;
    }
    let canonical = match absolute.canonicalize() {
        Err(error) if must_exist && error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::Missing { prefix: directory.to_string_lossy().into() });
        }
        found => found.map_err(refused)?,
    };
    let prefix = prefix_of(&canonical, directory)?;
    let home = Home::open(format!("{prefix}/objects"), canonical.join("objects"));
    let home = Some(home.map_err(refused)?);
    let location = located(&canonical, directory, operation, Emptied::Stays, home)?;
    let parent = canonical.parent().unwrap_or(&canonical);
    // Whoever made them, also a process that was killed before it made them durable: what the log
    // acknowledges must not be lost together with its directory.
    for directory in [&canonical, parent] {
        match sync_directory(directory) {
            // It need not be ours to read, nor on a file system that syncs directories.
            Err(error) if is_no_failed_sync(&error) => {}
            synced => synced.map_err(refused)?,
        }
    }
    Ok(location)
}

/// The log in a local directory, for who only reads it: as [`open_local`], but nothing is made, and
/// nothing made durable. Of a directory that is missing it is a log of nothing, until somebody makes
/// the directory; with `must_exist` it fails.
///
/// # Errors
///
/// As [`open_local`].
///
/// ```
/// let parent = tempfile::tempdir().unwrap();
/// let location = sealog_shell::read_local(parent.path().join("log"), false).unwrap();
/// assert_eq!(location.prefix.as_str(), "log");
/// assert!(!parent.path().join("log").exists());
/// ```
pub fn read_local(directory: impl AsRef<FilePath>, must_exist: bool) -> Result<Location, Error> {
    as_it_is(directory.as_ref(), must_exist, Emptied::Stays)
}

/// A place beside the log in a local directory, for who tries its store out: the same store as that
/// of [`open_local`], fsync included, and a prefix that is the log's with a dot and `name` behind it.
/// Nothing is made before it is used, and a directory that is empty after a delete is deleted too, so
/// that nothing is left of the place once all its objects are deleted.
///
/// # Errors
///
/// As [`open_local`]; also [`Error::InvalidOptions`] if `name` cannot be part of a prefix.
///
/// ```
/// let parent = tempfile::tempdir().unwrap();
/// let location = sealog_shell::scratch_local(parent.path().join("log"), "try-1").unwrap();
/// assert_eq!(location.prefix.as_str(), "log.try-1");
/// assert_eq!(parent.path().read_dir().unwrap().count(), 0);
/// ```
pub fn scratch_local(directory: impl AsRef<FilePath>, name: &str) -> Result<Location, Error> {
    beside(as_it_is(directory.as_ref(), false, Emptied::Goes)?, name)
}

fn beside(location: Location, name: &str) -> Result<Location, Error> {
    let prefix = Prefix::new(&format!("{}.{name}", location.prefix))?;
    Ok(Location { prefix, ..location })
}

/// What becomes of a directory whose last object is deleted.
#[derive(Clone, Copy)]
enum Emptied {
    Stays,
    Goes,
}

fn as_it_is(directory: &FilePath, must_exist: bool, emptied: Emptied) -> Result<Location, Error> {
    let absolute = absolute(directory, Operation::List)?;
    match absolute.canonicalize() {
        Ok(canonical) => located(&canonical, directory, Operation::List, emptied, None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match must_exist {
            true => Err(Error::Missing { prefix: directory.to_string_lossy().into() }),
            false => not_there_yet(&absolute, directory, error, emptied),
        },
        Err(error) => Err(unreachable_directory(Operation::List, directory, error)),
    }
}

/// What `directory` is without regard to what is there. Its name is looked at before anything is
/// made: one that is none for a prefix must not leave a directory behind.
fn absolute(directory: &FilePath, operation: Operation) -> Result<PathBuf, Error> {
    let absolute = std::path::absolute(directory)
        .map_err(|error| unreachable_directory(operation, directory, error))?;
    if absolute.file_name().is_some() {
        prefix_of(&absolute, directory)?;
    }
    Ok(absolute)
}

/// The log in a directory that is there.
fn located(
    canonical: &FilePath,
    directory: &FilePath,
    operation: Operation,
    emptied: Emptied,
    home: Option<Home>,
) -> Result<Location, Error> {
    if !canonical.is_dir() {
        let error = io::ErrorKind::NotADirectory.into();
        return Err(unreachable_directory(operation, directory, error));
    }
    let prefix = prefix_of(canonical, directory)?;
    let parent = canonical.parent().unwrap_or(canonical);
    let store = durable_files(parent, Path::default(), directory, emptied, home)?;
    Ok(Location { store: Arc::new(store), prefix })
}

/// The log in a directory that is not there, seen from what is there of its path.
fn not_there_yet(
    absolute: &FilePath,
    directory: &FilePath,
    error: io::Error,
    emptied: Emptied,
) -> Result<Location, Error> {
    let refused = |error| unreachable_directory(Operation::List, directory, error);
    let prefix = prefix_of(absolute, directory)?;
    let parent = absolute.parent().unwrap_or(absolute);
    let Some(there) = parent.ancestors().find(|ancestor| ancestor.is_dir()) else {
        return Err(refused(error));
    };
    let mut missing = Vec::new();
    for part in parent.strip_prefix(there).into_iter().flat_map(FilePath::components) {
        match part {
            Component::Normal(name) if name.to_str().is_some() => missing.extend(name.to_str()),
            // What `..` leads to is not known before there is something to go up from.
            _ => return Err(refused(error)),
        }
    }
    let there = there.canonicalize().map_err(refused)?;
    let store = durable_files(&there, Path::from_iter(missing), directory, emptied, None)?;
    Ok(Location { store: Arc::new(store), prefix })
}

fn durable_files(
    root: &FilePath,
    missing: Path,
    directory: &FilePath,
    emptied: Emptied,
    home: Option<Home>,
) -> Result<Durable<Files>, Error> {
    let client = LocalFileSystem::new_with_prefix(root).map_err(|error| Error::Store {
        operation: Operation::List,
        key: directory.to_string_lossy().into(),
        source: store_error(Operation::List, error),
    })?;
    let cleans_up = matches!(emptied, Emptied::Goes);
    let client = client.with_fsync(true).with_automatic_cleanup(cleans_up);
    Ok(Durable::new(Files::new(client, root, missing, home)))
}

fn unreachable_directory(operation: Operation, directory: &FilePath, error: io::Error) -> Error {
    let key = directory.to_string_lossy().into();
    Error::Store { operation, key, source: unreachable(error) }
}

/// The log at a URL: `file:///directory` as with [`open_local`], `s3://bucket/prefix`,
/// `gs://bucket/prefix`, `az://container/prefix` and the other forms that the client knows if the
/// feature `aws`, `gcp` or `azure` is on, and `memory:///prefix`, which is a new store each time.
///
/// `options` are the client's configuration in its own keys, such as `aws_region`; keys that it
/// does not know are ignored. [`environment`] takes them from the environment. The client repeats
/// a failed request at most twice by itself, since the log repeats and knows when it may, and it
/// has no time limit of its own below an hour, unless `options` set one: the log has its own.
/// No request is made, except that a `file://` URL blocks on the file system.
///
/// # Errors
///
/// [`Error::InvalidOptions`] names the URL and what is wrong with it or with the configuration; a
/// `file://` URL fails as [`open_local`] does.
///
/// ```
/// let location = sealog_shell::open_url("memory:///logs/a", Vec::new(), false).unwrap();
/// assert_eq!(location.prefix.as_str(), "logs/a");
/// ```
pub fn open_url(
    url: &str,
    options: Vec<(String, String)>,
    must_exist: bool,
) -> Result<Location, Error> {
    at_url(url, options, |directory| open_local(directory, must_exist))
}

/// The log at a URL, for who only reads it: as [`open_url`], with [`read_local`] for `file://`.
///
/// # Errors
///
/// As [`open_url`].
pub fn read_url(
    url: &str,
    options: Vec<(String, String)>,
    must_exist: bool,
) -> Result<Location, Error> {
    at_url(url, options, |directory| read_local(directory, must_exist))
}

/// A place beside the log at a URL, for who tries its store out: as [`scratch_local`].
///
/// # Errors
///
/// As [`open_url`]; also [`Error::InvalidOptions`] if `name` cannot be part of a prefix.
pub fn scratch_url(
    url: &str,
    options: Vec<(String, String)>,
    name: &str,
) -> Result<Location, Error> {
    let log = at_url(url, options, |directory| as_it_is(&directory, false, Emptied::Goes))?;
    beside(log, name)
}

fn at_url(
    url: &str,
    options: Vec<(String, String)>,
    at_directory: impl FnOnce(PathBuf) -> Result<Location, Error>,
) -> Result<Location, Error> {
    let parsed = Url::parse(url).map_err(|error| invalid_url(&without_secrets(url), error))?;
    // What errors show of it: passwords do not belong there.
    let mut shown = parsed.clone();
    let _ = shown.set_password(None);
    shown.set_query(None);
    let shown = shown.as_str();

    let (scheme, path) =
        ObjectStoreScheme::parse(&parsed).map_err(|error| invalid_url(shown, error))?;
    // What would be left out must not make a URL name another log than it seems to.
    let local = matches!(scheme, ObjectStoreScheme::Local | ObjectStoreScheme::Memory);
    if parsed.fragment().is_some() || local && parsed.query().is_some() {
        let reason = "a # or ? begins no part of a name: write %23 or %3F for it";
        return Err(invalid_url(shown, reason));
    }
    if scheme == ObjectStoreScheme::Local {
        let directory = parsed
            .to_file_path()
            .map_err(|()| invalid_url(shown, "it names no directory of this system"))?;
        return at_directory(directory);
    }
    let prefix = Prefix::new(path.as_ref())
        .map_err(|_| invalid_url(shown, format!("{:?} is no prefix", path.as_ref())))?;
    let store = remote(scheme, &parsed, shown, options)?;
    Ok(Location { store, prefix })
}

/// The client's configuration in the environment, as [`open_url`] takes it: the variables that
/// begin with `AWS_`, `GOOGLE_` or `AZURE_`.
pub fn environment() -> Vec<(String, String)> {
    let known = |name: &str| ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|p| name.starts_with(p));
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| known(name))
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect()
}

/// Builds the client with few repeats, which the client's own way from a URL to a store has no
/// option for.
#[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
macro_rules! build {
    ($builder:ty, $url:expr, $shown:expr, $options:expr) => {{
        let retry = object_store::RetryConfig {
            max_retries: 2,
            retry_timeout: std::time::Duration::from_secs(10),
            ..Default::default()
        };
        let mut builder = <$builder>::new().with_url($url.as_str()).with_retry(retry);
        let unlimited = (String::from("timeout"), String::from("1h"));
        for (key, value) in std::iter::once(unlimited).chain($options) {
            if let Ok(key) = key.to_ascii_lowercase().parse() {
                builder = builder.with_config(key, value);
            }
        }
        let store = builder.build().map_err(|error| invalid_url($shown, error))?;
        Ok(Arc::new(store) as Arc<dyn ObjectStore>)
    }};
}

#[cfg_attr(
    not(any(feature = "aws", feature = "gcp", feature = "azure")),
    expect(unused_variables, reason = "only the clients of remote stores use them")
)]
fn remote(
    scheme: ObjectStoreScheme,
    url: &Url,
    shown: &str,
    options: Vec<(String, String)>,
) -> Result<Arc<dyn ObjectStore>, Error> {
    match scheme {
        ObjectStoreScheme::Memory => Ok(Arc::new(InMemory::new())),
        #[cfg(feature = "aws")]
        ObjectStoreScheme::AmazonS3 => {
            build!(object_store::aws::AmazonS3Builder, url, shown, options)
        }
        #[cfg(feature = "gcp")]
        ObjectStoreScheme::GoogleCloudStorage => {
            build!(object_store::gcp::GoogleCloudStorageBuilder, url, shown, options)
        }
        #[cfg(feature = "azure")]
        ObjectStoreScheme::MicrosoftAzure => {
            build!(object_store::azure::MicrosoftAzureBuilder, url, shown, options)
        }
        #[cfg(not(feature = "aws"))]
        ObjectStoreScheme::AmazonS3 => Err(not_built_in(shown, "aws")),
        #[cfg(not(feature = "gcp"))]
        ObjectStoreScheme::GoogleCloudStorage => Err(not_built_in(shown, "gcp")),
        #[cfg(not(feature = "azure"))]
        ObjectStoreScheme::MicrosoftAzure => Err(not_built_in(shown, "azure")),
        _ => Err(invalid_url(shown, "no store with conditional creates has URLs of this kind")),
    }
}

#[cfg(not(all(feature = "aws", feature = "gcp", feature = "azure")))]
fn not_built_in(url: &str, feature: &str) -> Error {
    invalid_url(url, format!("this program was built without the feature {feature:?}"))
}

/// Of a text that is no URL, what may be shown.
fn without_secrets(text: &str) -> String {
    let text = text.split_once('?').map_or(text, |(before, _)| before);
    match text.split_once("://") {
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((_, rest)) => format!("{scheme}://{rest}"),
            None => text.into(),
        },
        None => text.into(),
    }
}

fn invalid_url(url: &str, reason: impl fmt::Display) -> Error {
    Error::InvalidOptions {
        option: "url",
        value: format!("{url:?} ({reason})").into(),
        allowed: "file:///directory, or s3://bucket/prefix, gs://bucket/prefix, \
                  az://container/prefix with the features aws, gcp, azure; a prefix is of ASCII \
                  letters, digits and . _ = + - between single slashes",
    }
}

fn prefix_of(path: &FilePath, directory: &FilePath) -> Result<Prefix, Error> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(|name| Prefix::new(name).ok()).ok_or_else(|| Error::InvalidOptions {
        option: "directory",
        value: format!("{directory:?}").into(),
        allowed: "a directory whose own name is of ASCII letters, digits and . _ = + -",
    })
}

/// Makes a directory and what is missing above it, each durable in its parent.
fn create_durably(directory: &FilePath) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let Some(parent) = directory.parent() else {
        return Err(io::ErrorKind::NotFound.into());
    };
    create_durably(parent)?;
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !directory.is_dir() => {
            Err(error)
        }
        _ => sync_directory(parent),
    }
}

fn is_no_failed_sync(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(error.kind(), PermissionDenied | Unsupported | InvalidInput)
}

#[cfg(unix)]
pub(crate) fn sync_directory(directory: &FilePath) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Elsewhere a directory cannot be opened as a file.
#[cfg(not(unix))]
pub(crate) fn sync_directory(_: &FilePath) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
