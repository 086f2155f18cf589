//! `sealog quarantine`: an operator's repair of an object.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use sealog_blocking::quarantine::{keep, replace};
use sealog_blocking::repair::{Place, Refused, Repair, Span, likely_behind, signs};
use sealog_blocking::{Epoch, Header, Key, Link, ObjectSeq, SurveyedObject, WriterRecord};
use serde::Serialize;

use crate::cli::exit::{Exit, Failure, Outcome, warn};
use crate::cli::inspect;
use crate::cli::location::At;
use crate::cli::output::{Cell, Format, Output, Row};
use crate::cli::store::Surveyed;
use crate::cli::survey::Named;
use crate::cli::verify;

/// Replace an object that does not verify by what of it does, after asking
///
/// An opening fails while an object does not verify. This copies it to PREFIX/quarantine/, and puts
/// in its place an object with the same sequence, epoch, predecessor and boundary that holds the
/// segments that verify. It says first which regions and ids that gives up, and asks.
///
/// Where the header itself does not verify, --prev names what came before it, or --cut accepts that
/// all that follows it is given up, too.
///
/// No writer may run: this is the one command that replaces a key. It refuses if it sees one at work,
/// but one that has nothing to do cannot be seen.
#[derive(Args)]
pub(crate) struct Quarantine {
    #[command(flatten)]
    at: At,
    /// The sequence of the object; without it, the first one that does not verify
    #[arg(long, value_name = "SEQ")]
    seq: Option<u64>,
    /// The header is lost: the object before this one was SEQ of that epoch, or none
    #[arg(long, value_name = "SEQ:EPOCH|none", value_parser = predecessor)]
    prev: Option<Before>,
    /// The header is lost: the epoch of this object [default: by which a later one names it]
    #[arg(long, value_name = "EPOCH", requires = "prev")]
    epoch: Option<u64>,
    /// The header is lost: the boundary it carried [default: the lowest that it can have carried]
    #[arg(long, value_name = "SEQ", requires = "prev")]
    boundary: Option<u64>,
    /// Put in its place what only stands in the way: all that follows it is given up
    #[arg(long, conflicts_with = "prev")]
    cut: bool,
    /// Say what it would do, and do nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Refuse if an object was created so recently, by the store's clock: its writer may be at work
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    quiet_for: Duration,
}

/// How many objects are read at once, to find one that fails.
const AT_ONCE: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Before(Option<Link>);

fn predecessor(text: &str) -> Result<Before, String> {
    if text == "none" {
        return Ok(Before(None));
    }
    let link = text.split_once(':').and_then(|(sequence, epoch)| {
        let (sequence, epoch) = (ObjectSeq(sequence.parse().ok()?), Epoch(epoch.parse().ok()?));
        Some(Link { sequence, epoch })
    });
    link.map(|link| Before(Some(link))).ok_or("it is written SEQ:EPOCH, or none".into())
}

impl Quarantine {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        let surveyed = Surveyed::open_to_write(&self.at)?;
        let Some((object, bytes)) = self.object(&surveyed)? else {
            if output.format() == Format::Table {
                output.line("every object verifies: there is nothing to repair")?;
            }
            return Ok(inspect::told(&surveyed.survey));
        };
        let sequence = object.sequence;
        let place = self.place(&surveyed, sequence)?;
        let repair = match Repair::plan(&surveyed.survey, sequence, &bytes, &place) {
            Ok(repair) => repair,
            Err(refused) => return self.refused(output, &refused),
        };
        say(output, sequence, &repair)?;
        if self.dry_run {
            return Ok(Exit::Good);
        }
        output.flush()?;
        if !self.yes && !is_confirmed()? {
            return Err(Failure::usage("not confirmed: nothing was changed"));
        }
        self.carry_out(&surveyed, &repair)?;
        let after = surveyed.again()?;
        if output.format() == Format::Table {
            output.line(format!(
                "object {sequence} is repaired; what stood there is kept in {}/quarantine/",
                after.prefix
            ))?;
        }
        for problem in after.problems() {
            warn(&format!("{}: {}", problem.key, problem.error));
        }
        Ok(if after.problems().next().is_some() { Exit::Problem } else { Exit::Good })
    }

    /// The object to repair, with its bytes.
    fn object<'a>(
        &self,
        surveyed: &'a Surveyed,
    ) -> Result<Option<(&'a SurveyedObject, Bytes)>, Failure> {
        let sequence = match self.seq {
            Some(sequence) => ObjectSeq(sequence),
            None => match verify::failing(surveyed, AT_ONCE)?.first() {
                Some(sequence) => *sequence,
                None => return Ok(None),
            },
        };
        let is_it = |object: &&SurveyedObject| object.sequence == sequence;
        let object = surveyed.survey.objects.iter().find(is_it);
        let object = object.ok_or_else(|| Failure::usage(Refused::NotThere(sequence)))?;
        let gone = || {
            let key = &object.key;
            Failure::Damage(format!("{key}: listed, but nothing is there to repair"))
        };
        Ok(Some((object, surveyed.fetch(object)?.ok_or_else(gone)?)))
    }

    fn place(&self, surveyed: &Surveyed, sequence: ObjectSeq) -> Result<Place, Failure> {
        if self.cut {
            let identity = sealog_shell::identity()?;
            return Ok(Place::Cut(WriterRecord {
                nonce: identity.nonce,
                opened_at_millis: identity.opened_at_millis,
                max_in_flight: 1,
                name: "sealog quarantine".into(),
            }));
        }
        let Some(Before(predecessor)) = self.prev else { return Ok(Place::Kept) };
        let likely = likely_behind(&surveyed.survey, sequence, predecessor);
        Ok(Place::Named(Header {
            epoch: self.epoch.map_or(likely.epoch, Epoch),
            boundary: self.boundary.map_or(likely.boundary, ObjectSeq),
            ..likely
        }))
    }

    fn refused(&self, output: &mut Output, refused: &Refused) -> Outcome {
        match refused {
            Refused::Sound(_) => {
                if output.format() == Format::Table {
                    output.line(refused)?;
                }
                Ok(Exit::Good)
            }
            Refused::HeaderLost { likely, .. } => {
                let prev =
                    likely.predecessor.map_or("none".into(), |link| Named::from(link).to_string());
                Err(Failure::usage(format!(
                    "{refused}. The other objects say that it probably was --prev {prev} --epoch {} \
                     --boundary {}; else --cut",
                    likely.epoch, likely.boundary
                )))
            }
            refused => Err(Failure::usage(refused)),
        }
    }

    /// Keeps everything that is replaced before anything is; looks for a writer after that, since the
    /// copies tell the store's time. One object at a time is in memory.
    fn carry_out(&self, surveyed: &Surveyed, repair: &Repair) -> Result<(), Failure> {
        let Surveyed { location, survey, time_limit, .. } = surveyed;
        let mut replaced = Vec::new();
        let mut store_time = None;
        for replacement in &repair.replacements {
            let sequence = replacement.sequence;
            let object = survey.objects.iter().find(|object| object.sequence == sequence);
            let object = object.ok_or_else(|| meanwhile(&replacement.key))?;
            let bytes = surveyed.fetch(object)?.ok_or_else(|| meanwhile(&object.key))?;
            let kept_as = location.prefix.quarantine_key(sequence, &bytes);
            let kept = keep(location.store.clone(), &kept_as, &bytes, *time_limit)?;
            store_time = store_time.max(Some(kept));
            replaced.push((object, replacement, kept_as));
        }
        if let Some(sign) = signs(survey, &surveyed.again()?, store_time, self.quiet_for) {
            return Err(Failure::Store(format!(
                "a writer may be at work: {sign}. Nothing was replaced. Stop every writer of this \
                 log; if none runs, wait, or lower --quiet-for"
            )));
        }
        for (object, replacement, kept_as) in replaced {
            let bytes = surveyed.fetch(object)?.ok_or_else(|| meanwhile(&object.key))?;
            // Its name tells the bytes.
            if location.prefix.quarantine_key(object.sequence, &bytes) != kept_as {
                return Err(meanwhile(&object.key));
            }
            replace(location.store.clone(), &bytes, replacement, *time_limit)?;
        }
        Ok(())
    }
}

fn meanwhile(key: &Key) -> Failure {
    Failure::Store(format!(
        "{key} was changed meanwhile, and not by this command: a writer is at work"
    ))
}

fn is_confirmed() -> Result<bool, Failure> {
    let mut error = io::stderr().lock();
    let _ = write!(error, "Replace it? Only if no writer runs. Type yes: ");
    let _ = error.flush();
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Failure::usage(format!("cannot read the answer: {error}")))?;
    Ok(answer.trim() == "yes")
}

/// Says what a repair gives up, before anything is done.
fn say(output: &mut Output, sequence: ObjectSeq, repair: &Repair) -> io::Result<()> {
    let summary = Summary::of(sequence, repair);
    if output.format() == Format::Json {
        for (what, spans) in [("gives_up", &repair.gives_up), ("brings_back", &repair.brings_back)]
        {
            spans.iter().try_for_each(|span| output.json(&SpanRow::of(what, span)))?;
        }
        return output.json(&summary);
    }
    for line in summary.lines(repair) {
        output.line(line)?;
    }
    for (what, spans) in [
        ("It gives up:", &repair.gives_up),
        ("It brings back what was released:", &repair.brings_back),
    ] {
        if !spans.is_empty() {
            output.line(what)?;
            let mut rows = output.rows();
            spans.iter().try_for_each(|span| rows.push(&SpanRow::of("", span)))?;
            rows.end()?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct SpanRow {
    what: &'static str,
    region: u64,
    min_id: u64,
    max_id: u64,
    entries: u32,
    object: u64,
}

impl SpanRow {
    fn of(what: &'static str, span: &Span) -> SpanRow {
        SpanRow {
            what,
            region: span.region.0,
            min_id: span.min_id.0,
            max_id: span.max_id.0,
            entries: span.entries,
            object: span.object.0,
        }
    }
}

impl Row for SpanRow {
    const COLUMNS: &'static [&'static str] =
        &["REGION", "FIRST ID", "LAST ID", "ENTRIES", "OBJECT"];

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::id(self.region),
            Cell::id(self.min_id),
            Cell::id(self.max_id),
            Cell::count(self.entries.into()),
            Cell::id(self.object),
        ]
    }
}

#[derive(Serialize)]
struct Summary {
    seq: u64,
    replaces: Vec<u64>,
    gives_up: usize,
    brings_back: usize,
    remains: usize,
    unknown: Vec<u64>,
    loses_releases: bool,
    tip_before: Option<Named>,
    tip_after: Named,
    still_lost: Vec<String>,
}

impl Summary {
    fn of(sequence: ObjectSeq, repair: &Repair) -> Summary {
        Summary {
            seq: sequence.0,
            replaces: repair.replacements.iter().map(|replaced| replaced.sequence.0).collect(),
            gives_up: repair.gives_up.len(),
            brings_back: repair.brings_back.len(),
            remains: repair.remains.len(),
            unknown: repair.unknown.iter().map(|sequence| sequence.0).collect(),
            loses_releases: repair.loses_releases,
            tip_before: repair.tip_before.map(Named::from),
            tip_after: repair.tip_after.into(),
            still_lost: repair.still_lost.iter().map(ToString::to_string).collect(),
        }
    }

    fn lines(&self, repair: &Repair) -> Vec<String> {
        let mut lines = Vec::new();
        let damaged = repair.replacements.last();
        let header = damaged.map(|replacement| replacement.header);
        if let (Some(replacement), Some(header)) = (damaged, header) {
            let seq = replacement.sequence;
            lines.push(if header.links_to_itself() {
                format!("Object {seq} is replaced by a claim, which is never history.")
            } else {
                let before = header.predecessor.map_or("nothing".into(), |link| link.to_string());
                format!(
                    "Object {seq} is replaced by one of epoch {} after {before}, boundary {}, with {} \
                     of its segments.",
                    header.epoch, header.boundary, replacement.segments.len()
                )
            });
        }
        if self.replaces.len() > 1 {
            let others: Vec<_> = self.replaces.iter().filter(|seq| **seq != self.seq).collect();
            lines
                .push(format!("So are these, which would prove that history is lost: {others:?}."));
        }
        let was = self.tip_before.map_or("none".into(), |tip| tip.to_string());
        let tip = self.tip_after;
        if was != tip.to_string() {
            lines.push(format!("The tip was {was} and will be {tip}."));
        }
        for seq in &self.unknown {
            let sequence = ObjectSeq(*seq);
            lines.push(format!(
                "The table of object {sequence} does not verify: of any region, ids {} to {} may be \
                 given up beside those below.",
                seq << 20 | 1,
                ((seq + 1) << 20) - 1
            ));
        }
        if self.loses_releases {
            lines.push("Its release records do not verify: what they released comes back.".into());
        }
        for lost in &self.still_lost {
            lines.push(format!("An opening will still fail: {lost}."));
        }
        if self.gives_up == 0 {
            lines.push("It gives up no entries that are known.".into());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_predecessor_is_a_link_or_none() {
        let link = Link { sequence: ObjectSeq(4), epoch: Epoch(2) };
        assert_eq!(predecessor("4:2"), Ok(Before(Some(link))));
        assert_eq!(predecessor("none"), Ok(Before(None)));
        for wrong in ["4", "4:", ":2", "4:2:1", "-1:2", ""] {
            assert!(predecessor(wrong).is_err(), "{wrong}");
        }
    }
}
