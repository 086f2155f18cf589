//! `sealog verify`: every checksum and every id.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::Args;
use sealog_blocking::{
    DecodeError, Object, ObjectSeq, Part, Problem, RegionId, Survey, SurveyedObject,
};
use serde::Serialize;

use crate::cli::exit::{Exit, Failure, Outcome};
use crate::cli::location::At;
use crate::cli::output::{Cell, Format, Output, Row};
use crate::cli::progress::Progress;
use crate::cli::store::Surveyed;
use crate::cli::survey;

/// Check every object whole: every checksum, every id, and that no history is lost
///
/// Never writes, and works while a writer runs. Reports every problem that it finds, and ends with 1
/// if there is one.
#[derive(Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    at: At,
    /// How many objects are read at once, each held whole in memory
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: u32,
}

impl Verify {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        let surveyed = Surveyed::open(&self.at)?;
        let problems = problems(&surveyed, self.jobs)?;
        let mut rows = output.rows();
        for problem in &problems {
            rows.push(&ProblemRow::of(problem))?;
        }
        rows.end()?;
        let summary = Summary { objects: surveyed.survey.objects.len(), problems: problems.len() };
        match output.format() {
            Format::Json => output.json(&summary)?,
            Format::Table => output.line(summary.text())?,
        }
        Ok(if problems.is_empty() { Exit::Good } else { Exit::Problem })
    }
}

/// Everything that is wrong with a log: of each object in order, then what is lost.
pub(crate) fn problems(surveyed: &Surveyed, jobs: u32) -> Result<Vec<Problem>, Failure> {
    let survey = &surveyed.survey;
    let mut whole = of_bytes(surveyed, jobs)?;
    let gone = whole.values().any(Option::is_none);
    // What a collection removed meanwhile is no problem.
    let still = if gone { Some(surveyed.again()?) } else { None };
    let is_listed = |sequence: ObjectSeq| {
        still.iter().any(|survey| survey.objects.iter().any(|object| object.sequence == sequence))
    };
    let mut problems = Vec::new();
    for object in &survey.objects {
        let mut of_object: Vec<DecodeError> = match whole.remove(&object.sequence) {
            Some(Some(problems)) => problems,
            Some(None) if is_listed(object.sequence) => vec![DecodeError {
                part: Part::Object,
                reason: "expected what the listing shows, found nothing there".into(),
            }],
            _ => Vec::new(),
        };
        // What only the others tell, such as that ids do not ascend along the chain.
        for problem in &object.problems {
            if !of_object.iter().any(|known| known.part == problem.part) {
                of_object.push(problem.clone());
            }
        }
        let key = &object.key;
        problems.extend(of_object.into_iter().map(|error| Problem { key: key.clone(), error }));
    }
    let of_objects: usize = survey.objects.iter().map(|object| object.problems.len()).sum();
    problems.extend(survey.problems().skip(of_objects));
    Ok(problems)
}

/// The objects with something wrong that can be repaired, in order.
pub(crate) fn failing(surveyed: &Surveyed, jobs: u32) -> Result<Vec<ObjectSeq>, Failure> {
    let whole = of_bytes(surveyed, jobs)?;
    let fails = |object: &&SurveyedObject| match whole.get(&object.sequence) {
        Some(Some(problems)) => !problems.is_empty() || !object.problems.is_empty(),
        _ => false,
    };
    let objects = surveyed.survey.objects.iter().filter(fails);
    Ok(objects.map(|object| object.sequence).collect())
}

type Found = BTreeMap<ObjectSeq, Option<Vec<DecodeError>>>;

/// What is wrong with the bytes of each object; `None` of one that is not there any more.
fn of_bytes(surveyed: &Surveyed, jobs: u32) -> Result<Found, Failure> {
    let Survey { objects, .. } = &surveyed.survey;
    let progress = Progress::bytes(Some(objects.iter().map(|object| object.size).sum()));
    let next = AtomicUsize::new(0);
    let found = Mutex::new((BTreeMap::new(), None));
    let work = || {
        while let Some(object) = objects.get(next.fetch_add(1, Ordering::Relaxed)) {
            let problems = (|| {
                let Some(bytes) = surveyed.fetch(object)? else { return Ok(None) };
                let problems = Object::problems(&bytes, object.sequence);
                if problems.is_empty() {
                    return Ok(Some(problems));
                }
                // The download may be damaged.
                let again = surveyed.fetch(object)?;
                Ok(again.map(|bytes| Object::problems(&bytes, object.sequence)))
            })();
            progress.add(object.size);
            let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match problems {
                Ok(problems) => drop(found.0.insert(object.sequence, problems)),
                Err(failure) => {
                    found.1.get_or_insert(failure);
                    // Nobody begins another.
                    next.store(objects.len(), Ordering::Relaxed);
                }
            }
        }
    };
    at_once((jobs as usize).min(objects.len()), thread::Builder::new, &work);
    let (found, failure) = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    failure.map_or(Ok(found), Err)
}

/// Does the work in so many threads at once, this one among them, or in as many as the system gives.
fn at_once(threads: usize, thread: impl Fn() -> thread::Builder, work: &(impl Fn() + Sync)) {
    thread::scope(|scope| {
        for _ in 1..threads {
            if thread().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

#[derive(Serialize)]
struct ProblemRow<'a> {
    key: &'a str,
    part: &'static str,
    region: Option<u64>,
    problem: &'a str,
}

impl<'a> ProblemRow<'a> {
    fn of(problem: &'a Problem) -> ProblemRow<'a> {
        let region = match problem.error.part {
            Part::Segment(region) => Some(region.0),
            _ => None,
        };
        ProblemRow {
            key: &problem.key,
            part: survey::part(&problem.error.part),
            region,
            problem: &problem.error.reason,
        }
    }
}

impl Row for ProblemRow<'_> {
    const COLUMNS: &'static [&'static str] = &["KEY", "PART", "REGION", "PROBLEM"];

    fn cells(&self) -> Vec<Cell> {
        let region = |number| Cell::text(survey::region(RegionId(number)));
        vec![
            Cell::text(self.key),
            Cell::text(self.part),
            self.region.map_or_else(Cell::none, region),
            Cell::text(self.problem).red(),
        ]
    }
}

#[derive(Serialize)]
struct Summary {
    objects: usize,
    problems: usize,
}

impl Summary {
    fn text(&self) -> String {
        let Summary { objects, problems } = self;
        let objects = survey::counted(*objects, "object");
        match problems {
            0 => format!("{objects}, no problem"),
            _ => format!("{objects}, {}", survey::counted(*problems, "problem")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_thread_can_be_started_the_work_is_done_in_fewer() {
        let done = AtomicUsize::new(0);
        let work = || {
            done.fetch_add(1, Ordering::Relaxed);
        };
        at_once(4, thread::Builder::new, &work);
        assert_eq!(done.swap(0, Ordering::Relaxed), 4);
        // No system has room for such a stack.
        at_once(4, || thread::Builder::new().stack_size(1 << 46), &work);
        assert_eq!(done.load(Ordering::Relaxed), 1);
    }
}
