//! The client's store of local files, with what a log needs beside it.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

use super::home::Home;
use super::walk::{Walk, is_staged};
use super::{Directory, blocking};
use crate::open::sync_directory;

/// The files below a directory.
///
/// - What is created, replaced or deleted in the [`Home`] is so in the directory that was opened, or
///   not at all.
/// - A listing passes over a file whose name no key can have, and says so once. The client's ends
///   there with an error.
///
/// Everything else is as the client does it.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    client: PrefixStore<LocalFileSystem>,
    /// What the keys are below. It need not be there.
    root: PathBuf,
    home: Option<Arc<Home>>,
    told: Arc<AtomicBool>,
}

impl Files {
    /// The files below what is `missing` of a path in the client's `root`.
    pub(crate) fn new(
        client: LocalFileSystem,
        root: &FilePath,
        missing: Path,
        home: Option<Home>,
    ) -> Files {
        let root = below(root, &missing);
        let client = PrefixStore::new(client, missing);
        Files { client, root, home: home.map(Arc::new), told: Arc::default() }
    }

    /// The home, and the name in it, of a key that is in it.
    fn at_home(&self, key: &Path) -> Option<(Arc<Home>, String)> {
        let home = self.home.as_ref()?;
        let (folder, name) = key.as_ref().rsplit_once('/')?;
        // That nothing can have such a name, the client says.
        (folder == home.key() && !is_staged(name)).then(|| (home.clone(), name.to_owned()))
    }

    fn walk(&self, prefix: Option<&Path>, after: Option<&Path>) -> Walk {
        let prefix = prefix.cloned().unwrap_or_default();
        Walk::new(below(&self.root, &prefix), prefix, after.cloned(), self.told.clone())
    }
}

fn below(directory: &FilePath, key: &Path) -> PathBuf {
    key.parts().fold(directory.to_owned(), |path, part| path.join(part.as_ref()))
}

impl Directory for Files {
    fn sync_parent(&self, key: &Path) -> io::Result<()> {
        match self.at_home(key) {
            Some((home, _)) => home.sync(),
            None => below(&self.root, key).parent().map_or(Ok(()), sync_directory),
        }
    }

    fn stands(&self, key: &Path) -> Result<()> {
        self.at_home(key).map_or(Ok(()), |(home, _)| home.stands())
    }
}

#[async_trait]
impl ObjectStore for Files {
    #[cfg(unix)]
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        use object_store::PutMode;
        let replaces = match &options.mode {
            _ if !options.attributes.is_empty() => None,
            PutMode::Create => Some(false),
            PutMode::Overwrite => Some(true),
            PutMode::Update(_) => None,
        };
        match (self.at_home(location), replaces) {
            (Some((home, name)), Some(replaces)) => {
                blocking(move || home.put(&name, &payload, replaces)).await
            }
            _ => self.client.put_opts(location, payload, options).await,
        }
    }

    /// Without descriptors of directories the client must do it: one that goes away between the first
    /// look and the put is made anew.
    #[cfg(not(unix))]
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.stands(location)?;
        let put = self.client.put_opts(location, payload, options).await?;
        self.stands(location)?;
        Ok(put)
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.client.get_opts(location, options).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.walk(prefix, None).in_parts()
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.walk(prefix, Some(offset)).in_parts()
    }

    #[cfg(unix)]
    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        if self.home.is_none() {
            return self.client.delete_stream(locations);
        }
        let files = self.clone();
        locations
            .map(move |location| {
                let files = files.clone();
                async move {
                    let location = location?;
                    match files.at_home(&location) {
                        Some((home, name)) => blocking(move || home.remove(&name)).await?,
                        None => files.client.delete(&location).await?,
                    }
                    Ok(location)
                }
            })
            // As many as the client deletes at once.
            .buffered(10)
            .boxed()
    }

    #[cfg(not(unix))]
    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.client.delete_stream(locations)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.client.put_multipart_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.client.get_ranges(location, ranges).await
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.client.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.client.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.client.rename_opts(from, to, options).await
    }
}

/// By this name it is known that its listings have no order.
impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalFileSystem({})", self.root.display())
    }
}
