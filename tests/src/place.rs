//! Where the logs of a test are: a directory of its own, or a prefix of its own in the bucket of
//! an S3 endpoint.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use object_store::ObjectStore;
use sealog_shell::Location;
use sealog_tokio::{Error, Options, Wal};
use tempfile::TempDir;

/// The bucket that the endpoint must have.
pub const BUCKET: &str = "sealog-test";

/// A place for logs.
#[derive(Clone, Debug)]
pub struct Place {
    /// The URL of a log.
    pub url: String,
    /// The S3 endpoint, unless it is a directory.
    endpoint: Option<String>,
    _directory: Option<Arc<TempDir>>,
}

impl Place {
    /// A new directory, which is removed at the end.
    ///
    /// # Panics
    ///
    /// It cannot be made.
    pub fn directory() -> Place {
        let directory = match tempfile::tempdir() {
            Ok(directory) => directory,
            Err(error) => panic!("cannot make a directory: {error}"),
        };
        let url = format!("file://{}/log", directory.path().display());
        Place { url, endpoint: None, _directory: Some(Arc::new(directory)) }
    }

    /// A prefix in the bucket `sealog-test` of the endpoint that `SEALOG_TEST_S3_ENDPOINT` names;
    /// credentials are in the client's own variables. What is written there stays.
    ///
    /// Without an endpoint the test has nothing to do: this says so on the test's standard error,
    /// past the capture of the test harness, and gives nothing.
    ///
    /// # Panics
    ///
    /// There is no endpoint, and `SEALOG_REQUIRE_S3` is `1`.
    pub fn bucket(test: &str) -> Option<Place> {
        let Ok(endpoint) = std::env::var("SEALOG_TEST_S3_ENDPOINT") else {
            let required = std::env::var("SEALOG_REQUIRE_S3").is_ok_and(|value| value == "1");
            assert!(!required, "SEALOG_REQUIRE_S3 is 1 and SEALOG_TEST_S3_ENDPOINT is not set");
            let told = format!(
                "{test}: NOTHING WAS TESTED: SEALOG_TEST_S3_ENDPOINT is not set (see scripts/moto)\n"
            );
            let _ = io::stderr().write_all(told.as_bytes());
            return None;
        };
        // The bucket may hold what earlier runs left behind.
        static PLACES: AtomicU64 = AtomicU64::new(0);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let place = PLACES.fetch_add(1, Ordering::Relaxed);
        let name = format!("{test}-{}-{}-{place}", since.as_nanos(), std::process::id());
        let url = format!("s3://{BUCKET}/{name}");
        Some(Place { url, endpoint: Some(endpoint), _directory: None })
    }

    /// Another log in the same place.
    pub fn log(&self, name: impl std::fmt::Display) -> Place {
        Place { url: format!("{}/{name}", self.url), ..self.clone() }
    }

    /// A log at another URL of the same kind.
    pub fn at(&self, url: &str) -> Place {
        Place { url: url.to_owned(), ..self.clone() }
    }

    /// The same log by way of another endpoint: a proxy.
    pub fn by_way_of(&self, endpoint: String) -> Place {
        Place { endpoint: Some(endpoint), ..self.clone() }
    }

    /// The host and port of the endpoint.
    ///
    /// # Panics
    ///
    /// It is a directory, or the endpoint is not `http://host:port`.
    pub fn upstream(&self) -> String {
        let address = self.endpoint.as_deref().and_then(|url| url.strip_prefix("http://"));
        match address {
            Some(address) => address.trim_end_matches('/').to_owned(),
            None => panic!("a proxy goes to http://host:port, not to {:?}", self.endpoint),
        }
    }

    /// The client's configuration that a process there must have in its environment.
    pub fn environment(&self) -> Vec<(String, String)> {
        let endpoint = self.endpoint.iter().flat_map(|endpoint| {
            let plain = endpoint.starts_with("http://").to_string();
            [("AWS_ENDPOINT", endpoint.clone()), ("AWS_ALLOW_HTTP", plain)]
        });
        endpoint.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Store and prefix.
    ///
    /// # Panics
    ///
    /// The URL is none.
    pub fn location(&self) -> Location {
        let mut options = sealog_shell::environment();
        options.retain(|(key, _)| !key.starts_with("aws_endpoint"));
        options.extend(self.environment().into_iter().map(|(k, v)| (k.to_ascii_lowercase(), v)));
        match sealog_shell::open_url(&self.url, options, false) {
            Ok(location) => location,
            Err(error) => panic!("{error}"),
        }
    }

    /// Opens the log there.
    ///
    /// # Errors
    ///
    /// As [`Wal::open`].
    pub async fn open(&self, options: Options) -> Result<Wal, Error> {
        let location = self.location();
        Wal::open(location.store, location.prefix.as_str(), options).await
    }

    /// Opens the log there by way of a store around its own.
    ///
    /// # Errors
    ///
    /// As [`Wal::open`].
    pub async fn open_through(
        &self,
        around: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>,
        options: Options,
    ) -> Result<Wal, Error> {
        let location = self.location();
        Wal::open(around(location.store), location.prefix.as_str(), options).await
    }
}

/// Options of a writer with a name that stores what it has as soon as it can.
pub fn named(name: impl Into<String>) -> Options {
    Options {
        writer_name: Some(name.into()),
        flush_interval: Duration::ZERO,
        linger: Duration::ZERO,
        ..Options::default()
    }
}
