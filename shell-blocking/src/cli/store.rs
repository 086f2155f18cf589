//! What stands in the store, for commands that look at everything.

use std::time::Duration;

use bytes::Bytes;
use sealog_blocking::{Error, Fetcher, Options, StoreErrorKind, Survey, SurveyedObject, survey};
use sealog_shell::Location;

use crate::cli::exit::Failure;
use crate::cli::location::At;

/// A survey, and the way to what was surveyed. Nothing is written.
pub(crate) struct Surveyed {
    pub(crate) survey: Survey,
    pub(crate) location: Location,
    pub(crate) time_limit: Duration,
    options: Options,
    fetcher: Fetcher,
}

impl Surveyed {
    /// Surveys the log at a location, to read it; a failure if none is there.
    pub(crate) fn open(at: &At) -> Result<Surveyed, Failure> {
        Surveyed::of(at, at.existing()?)
    }

    /// The same for somebody who will write there.
    pub(crate) fn open_to_write(at: &At) -> Result<Surveyed, Failure> {
        Surveyed::of(at, at.open(true)?)
    }

    fn of(at: &At, location: Location) -> Result<Surveyed, Failure> {
        let options = Options { must_exist: true, ..Options::default() };
        let survey = survey(location.store.clone(), location.prefix.as_str(), options.clone())
            .map_err(|error| at.failed(error))?;
        // An object is put whole.
        let largest = survey.objects.iter().map(|object| object.size).max().unwrap_or_default();
        let time_limit = options.request_timeout + Duration::from_secs(largest >> 23);
        let fetcher = Fetcher::new(location.store.clone(), options.clone())?;
        Ok(Surveyed { survey, location, time_limit, options, fetcher })
    }

    /// The same log as it is now.
    pub(crate) fn again(&self) -> Result<Survey, Failure> {
        let Location { store, prefix } = &self.location;
        Ok(survey(store.clone(), prefix.as_str(), self.options.clone())?)
    }

    /// The bytes of an object; `None` if it is not there any more. What fails and may pass is
    /// repeated.
    pub(crate) fn fetch(&self, object: &SurveyedObject) -> Result<Option<Bytes>, Failure> {
        match self.fetcher.fetch(&object.key, 0..object.size) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::Store { source, .. }) if source.kind == StoreErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
