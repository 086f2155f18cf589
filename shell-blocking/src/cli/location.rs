//! Where a log is, as a person says it.

use std::time::SystemTime;

use clap::Args;
use sealog_blocking::{Error, Options, Reader};
use sealog_shell::{
    Location, environment, open_local, open_url, read_local, read_url, scratch_local, scratch_url,
};

use crate::cli::exit::Failure;
use crate::cli::progress::Progress;

/// The location of a log.
#[derive(Args, Clone, Debug)]
pub(crate) struct At {
    /// The log: a directory, or a URL (s3://bucket/prefix, gs://, az://, file:///directory,
    /// memory:///prefix)
    ///
    /// A directory's own name is the log's prefix. s3://, gs:// and az:// need a program that was
    /// built with the features aws, gcp and azure.
    #[arg(value_name = "LOCATION")]
    pub(crate) location: String,
    /// A setting of the store's client, such as aws_region=eu-west-1; goes before the environment
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    store: Vec<(String, String)>,
}

impl At {
    /// A reader of the log. A location that holds none is a failure.
    pub(crate) fn reader(&self) -> Result<Reader, Failure> {
        let Location { store, prefix } = self.existing()?;
        let options = Options { must_exist: true, ..Options::default() };
        let _progress = Progress::waiting("opening the log");
        Reader::open(store, prefix.as_str(), options).map_err(|error| self.failed(error))
    }

    /// The location of a log that is only read: nothing is made there, and a directory that is
    /// missing is a failure. (That nothing is stored at one that is there, only an opening can tell.)
    pub(crate) fn existing(&self) -> Result<Location, Failure> {
        self.locate(|path| read_local(path, true), |url, settings| read_url(url, settings, true))
    }

    /// The location of a log that is written; a directory that is missing is made, unless it
    /// `must_exist`.
    pub(crate) fn open(&self, must_exist: bool) -> Result<Location, Failure> {
        self.locate(
            |path| open_local(path, must_exist),
            |url, settings| open_url(url, settings, must_exist),
        )
    }

    /// A place beside the log, in the same store, for what is deleted in the end: its own name, and
    /// nothing made there yet.
    pub(crate) fn scratch(&self, what: &str) -> Result<Location, Failure> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("{what}-{:x}-{:x}", std::process::id(), since.as_nanos());
        self.locate(
            |path| scratch_local(path, &name),
            |url, settings| scratch_url(url, settings, &name),
        )
    }

    fn locate(
        &self,
        local: impl Fn(&str) -> Result<Location, Error>,
        url: impl Fn(&str, Vec<(String, String)>) -> Result<Location, Error>,
    ) -> Result<Location, Failure> {
        let located = if self.is_url() {
            self.known_settings()?;
            // Later ones count.
            let settings = environment().into_iter().chain(self.store.iter().cloned()).collect();
            url(&self.location, settings)
        } else if let Some((key, _)) = self.store.first() {
            return Err(Failure::usage(format!("--store {key}: a directory has no settings")));
        } else {
            local(&self.location)
        };
        located.map_err(|error| self.failed(error))
    }

    /// What an opening failed with, for a person who named the log in this way.
    pub(crate) fn failed(&self, error: Error) -> Failure {
        match error {
            Error::Missing { .. } => Failure::Usage(format!(
                "there is no log at {}: nothing is stored there. Check the location",
                self.shown()
            )),
            error => error.into(),
        }
    }

    /// Without what may be a secret.
    pub(crate) fn shown(&self) -> &str {
        let end = self.location.find('?').filter(|_| self.is_url());
        let shown = &self.location[..end.unwrap_or(self.location.len())];
        match shown.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@')) {
            Some((_, rest)) => rest,
            None => shown,
        }
    }

    fn is_url(&self) -> bool {
        self.location.contains("://")
    }

    /// The client ignores keys that it does not know, as it must in an environment. What somebody
    /// wrote here is meant.
    fn known_settings(&self) -> Result<(), Failure> {
        let scheme = self.location.split("://").next().unwrap_or_default().to_ascii_lowercase();
        for (key, _) in &self.store {
            let is_known = match scheme.as_str() {
                "file" | "memory" => Some(false),
                #[cfg(feature = "aws")]
                "s3" | "s3a" => Some(key.parse::<object_store::aws::AmazonS3ConfigKey>().is_ok()),
                #[cfg(feature = "gcp")]
                "gs" => Some(key.parse::<object_store::gcp::GoogleConfigKey>().is_ok()),
                #[cfg(feature = "azure")]
                "az" | "adl" | "azure" | "abfs" | "abfss" => {
                    Some(key.parse::<object_store::azure::AzureConfigKey>().is_ok())
                }
                // Which store an https:// URL is of, the client finds out.
                _ => None,
            };
            if is_known == Some(false) {
                return Err(Failure::usage(format!(
                    "--store {key}: a store of {scheme}:// URLs has no such setting"
                )));
            }
        }
        Ok(())
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_ascii_lowercase(), value.into())),
        _ => Err("it is written KEY=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(location: &str, store: &[&str]) -> Result<Location, Failure> {
        let store = store.iter().map(|text| setting(text).unwrap()).collect();
        At { location: location.into(), store }.open(false)
    }

    fn refused(location: &str, store: &[&str]) -> String {
        match opened(location, store) {
            Err(Failure::Usage(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_setting_that_the_store_does_not_have_is_refused_by_its_name() {
        assert!(refused("memory:///a", &["size=4"]).contains("--store size"));
        assert!(refused("some/directory", &["size=4"]).contains("--store size"));
        #[cfg(feature = "aws")]
        {
            assert!(refused("s3://bucket/a", &["aws_regio=x"]).contains("--store aws_regio"));
            let location = opened("s3://bucket/a", &["AWS_REGION=x", "skip_signature=true"]);
            assert_eq!(location.unwrap().prefix.as_str(), "a");
        }
        #[cfg(not(feature = "aws"))]
        assert!(refused("s3://bucket/a", &[]).contains("the feature \"aws\""));
    }

    #[test]
    fn a_location_is_shown_without_its_secrets() {
        let shown =
            |location: &str| At { location: location.into(), store: Vec::new() }.shown().to_owned();
        assert_eq!(shown("s3://key:secret@bucket/log?token=x"), "bucket/log");
        assert_eq!(shown("s3://bucket/log"), "s3://bucket/log");
        assert_eq!(shown("logs/what?/a@b"), "logs/what?/a@b");
    }

    #[test]
    fn a_setting_has_a_key_and_a_value() {
        assert_eq!(setting("A=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(setting("a").is_err());
        assert!(setting("=a").is_err());
    }
}
