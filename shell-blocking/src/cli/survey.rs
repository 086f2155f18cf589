//! What the commands that look at everything share: how the objects of a survey are told.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sealog_blocking::{Link, ObjectKind, ObjectStatus, Part, RegionId, SegmentMeta};
use sealog_blocking::{Survey, SurveyedObject};
use serde::Serialize;

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Named {
    seq: u64,
    epoch: u64,
}

impl From<Link> for Named {
    fn from(link: Link) -> Named {
        Named { seq: link.sequence.0, epoch: link.epoch.0 }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.epoch)
    }
}

pub(crate) fn kind(object: &SurveyedObject) -> Option<&'static str> {
    Some(match object.kind()? {
        ObjectKind::Start => "start",
        ObjectKind::Claim => "claim",
        ObjectKind::Data => "data",
        ObjectKind::Release => "release",
        ObjectKind::Carrier => "carrier",
    })
}

pub(crate) fn status(object: &SurveyedObject) -> &'static str {
    match object.status {
        ObjectStatus::Chain => "chain",
        ObjectStatus::Orphan => "orphan",
        ObjectStatus::BelowBoundary => "below_boundary",
        ObjectStatus::Damaged => "damaged",
    }
}

pub(crate) fn is_tip(survey: &Survey, object: &SurveyedObject) -> bool {
    survey.tip().is_some_and(|tip| tip.sequence == object.sequence)
}

/// Everything that is wrong with an object, in a line; `None` if nothing is.
pub(crate) fn error(object: &SurveyedObject) -> Option<String> {
    let problems: Vec<_> = object.problems.iter().map(ToString::to_string).collect();
    (!problems.is_empty()).then(|| problems.join("; "))
}

pub(crate) fn part(part: &Part) -> &'static str {
    match part {
        Part::Object => "object",
        Part::Header => "header",
        Part::Footer => "footer",
        Part::Trailer => "trailer",
        Part::Segment(_) => "segment",
        Part::ReleaseRecords => "release records",
        Part::WriterRecord => "writer record",
    }
}

/// The segments of callers' regions.
pub(crate) fn user_segments(object: &SurveyedObject) -> impl Iterator<Item = &SegmentMeta> {
    object.segments.iter().flatten().filter(|meta| !meta.region.is_reserved())
}

/// What a region's number says to a person.
pub(crate) fn region(region: RegionId) -> String {
    match region {
        RegionId::RELEASES => "release records".into(),
        RegionId::WRITER => "writer record".into(),
        region => region.to_string(),
    }
}

/// A number of things.
pub(crate) fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The boundary that the tip carries.
pub(crate) fn boundary(survey: &Survey) -> Option<u64> {
    let tip = survey.objects.iter().find(|object| is_tip(survey, object))?;
    Some(tip.header?.boundary.0)
}

pub(crate) fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// How long ago something was written, to the second: the clock here and that of the store need not
/// agree better.
pub(crate) fn age(now_millis: u64, modified_millis: u64) -> String {
    let seconds = now_millis.saturating_sub(modified_millis) / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600, seconds / 60);
    let rounded = match (days, hours, minutes) {
        (0, 0, 0) => seconds,
        (0, 0, _) => seconds / 10 * 10,
        (0, ..) => minutes * 60,
        _ => hours * 3600,
    };
    humantime::format_duration(Duration::from_secs(rounded)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_as_exactly_as_a_person_wants_to_know() {
        let of = |seconds: u64| age(10_000_000_000, 10_000_000_000 - seconds * 1000);
        assert_eq!([0, 59, 69, 3_599].map(of), ["0s", "59s", "1m", "59m 50s"]);
        assert_eq!([3_661, 90_061].map(of), ["1h 1m", "1day 1h"]);
        assert_eq!(age(5, 10), "0s", "a clock that is ahead");
    }
}
