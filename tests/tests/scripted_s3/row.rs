//! A row of the tables: a log, a script, what is done, and what must come of it.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use sealog_tests::pending;
use sealog_tests::s3::{Kind, Rule};
use sealog_tokio::{Error, Options, ReplayFilter, Wal};

use crate::log::{Log, PREFIX, REGION};
use crate::stage::{Checked, Stage, Wrong, ensure, replay, replay_all};

/// What is done while the script counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// An opening, and an append after it.
    Open,
    /// An append to a log that is open.
    Append,
    /// A replay of a log that is open.
    Replay,
    /// A reader, which replays everything.
    View,
    /// A refresh of a reader that has seen everything, which then replays.
    Refresh,
    /// A survey.
    Survey,
}

/// What comes of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    Well,
    Failing(Wrong),
    /// Well, or else like this.
    Either(Wrong),
}

/// What is there afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// What was acknowledged, in every later history.
    Whole,
    /// What was there before, to the byte, for what is there is damaged.
    Untouched,
}

const LIMIT: Duration = Duration::from_secs(20);

type Work = Pin<Box<dyn Future<Output = Checked> + Send>>;

pub(crate) struct Row {
    pub(crate) name: String,
    work: Work,
    /// After this long it does not end.
    limit: Duration,
}

/// A row that is described.
pub(crate) struct Told {
    name: String,
    log: Log,
    does: Does,
    rules: Vec<Rule>,
    ends: Ends,
    after: After,
    options: Box<dyn FnOnce(&mut Options) + Send>,
    prepared: Box<dyn FnOnce(&mut Stage) + Send>,
    bounds: Vec<(Kind, u64, u64)>,
    limit: Duration,
}

impl Row {
    /// A row that tells itself what is done.
    pub(crate) fn new<F>(name: &str, work: impl FnOnce() -> F + Send + 'static) -> Row
    where
        F: Future<Output = Checked> + Send + 'static,
    {
        Row { name: name.into(), work: Box::pin(async move { work().await }), limit: LIMIT }
    }

    pub(crate) fn told(name: impl Into<String>, log: Log, does: Does) -> Told {
        Told {
            name: name.into(),
            log,
            does,
            rules: Vec::new(),
            ends: Ends::Well,
            after: After::Whole,
            options: Box::new(|_| {}),
            prepared: Box::new(|_| {}),
            bounds: Vec::new(),
            limit: LIMIT,
        }
    }
}

impl From<Told> for Row {
    fn from(told: Told) -> Row {
        Row { name: told.name.clone(), limit: told.limit, work: Box::pin(told.run()) }
    }
}

impl Told {
    pub(crate) fn rule(mut self, rule: Rule) -> Told {
        self.rules.push(rule);
        self
    }

    pub(crate) fn fails(self, wrong: Wrong) -> Told {
        Told { ends: Ends::Failing(wrong), ..self }
    }

    pub(crate) fn may_fail(self, wrong: Wrong) -> Told {
        Told { ends: Ends::Either(wrong), ..self }
    }

    /// What is there is damaged: nobody opens it, and nothing is changed.
    pub(crate) fn untouched(self) -> Told {
        Told { after: After::Untouched, ..self }
    }

    pub(crate) fn options(self, change: impl FnOnce(&mut Options) + Send + 'static) -> Told {
        Told { options: Box::new(change), ..self }
    }

    pub(crate) fn prepared(self, change: impl FnOnce(&mut Stage) + Send + 'static) -> Told {
        Told { prepared: Box::new(change), ..self }
    }

    /// It ends within this time or never.
    pub(crate) fn limit(self, limit: Duration) -> Told {
        Told { limit, ..self }
    }

    pub(crate) fn asks(mut self, kind: Kind, least: u64, most: u64) -> Told {
        self.bounds.push((kind, least, most));
        self
    }

    async fn run(self) -> Checked {
        let mut stage = Stage::new(self.log).await;
        (self.options)(&mut stage.options);
        (self.prepared)(&mut stage);
        let answer = done(self.does, &mut stage, self.rules).await?;
        for (kind, least, most) in self.bounds {
            stage.asked(kind, least..=most)?;
        }
        match (self.ends, answer) {
            (Ends::Well | Ends::Either(_), Ok(())) => {}
            (Ends::Well, Err(error)) => {
                return Err(format!("it fails: {}", crate::stage::with_causes(&error)));
            }
            (Ends::Failing(wrong), Ok(())) => return Err(format!("it succeeds, not {wrong:?}")),
            (Ends::Failing(wrong) | Ends::Either(wrong), Err(error)) => wrong.judge(&error)?,
        }
        match self.after {
            After::Whole => stage.nothing_is_lost().await,
            After::Untouched => stage.nothing_was_changed(),
        }
    }
}

async fn done(does: Does, stage: &mut Stage, rules: Vec<Rule>) -> Checked<Result<(), Error>> {
    match does {
        Does::Open => {
            stage.script(rules);
            let wal = match stage.open().await {
                Ok(wal) => wal,
                Err(error) => return Ok(Err(error)),
            };
            stage.s3.bucket().rules_are_over();
            stage.is_whole(&crate::stage::read(&wal).await?)?;
            let appended = stage.append(&wal, "after the opening").await;
            Ok(appended.map(drop).map_err(Error::from))
        }
        Does::Append => {
            let wal = opened(stage).await?;
            stage.script(rules);
            let appended = stage.append(&wal, "under the script").await;
            Ok(appended.map(drop).map_err(Error::from))
        }
        Does::Replay => {
            let wal = opened(stage).await?;
            stage.script(rules);
            let found = match replay_all(&wal).await {
                Ok(found) => found,
                Err(error) => return Ok(Err(error)),
            };
            stage.is_whole(&found).map(Ok)
        }
        Does::View | Does::Refresh => {
            if does == Does::View {
                stage.script(rules.clone());
            }
            let reader = match stage.reader().await {
                Ok(reader) => reader,
                Err(error) => return Ok(Err(error)),
            };
            let refreshed = match does {
                Does::Refresh => {
                    stage.script(rules);
                    reader.refresh().await
                }
                _ => Ok(()),
            };
            stage.s3.bucket().rules_are_over();
            // Whatever a refresh met, the reader goes on with what it has.
            let found = replay(reader.replay(ReplayFilter::all())).await;
            match (refreshed, found) {
                (Err(error), Ok(found)) => stage.is_whole(&found).map(|()| Err(error)),
                (Ok(()), Ok(found)) => stage.is_whole(&found).map(Ok),
                (_, Err(error)) => Err(format!("it does not replay: {error}")),
            }
        }
        Does::Survey => {
            stage.script(rules);
            let prefix = sealog_core::Prefix::new(PREFIX).map_err(|error| error.to_string())?;
            let (store, options) = (stage.s3.store(), stage.options.clone());
            let surveyed = tokio::task::spawn_blocking(move || {
                sealog_blocking::survey(store, prefix.as_str(), options)
            });
            let survey = match surveyed.await.map_err(|error| error.to_string())? {
                Ok(survey) => survey,
                Err(error) => return Ok(Err(error)),
            };
            let objects = survey.objects.len();
            let stored = stage.s3.bucket().objects().len();
            ensure!(objects == stored, "it saw {objects} objects of {stored}");
            let problems: Vec<_> = survey.problems().collect();
            ensure!(problems.is_empty(), "{problems:?}");
            Ok(Ok(()))
        }
    }
}

/// The log, open, with an entry of the writer's own.
pub(crate) async fn opened(stage: &mut Stage) -> Checked<Wal> {
    let wal = stage.open().await.map_err(|error| format!("it does not open: {error}"))?;
    let first = stage.append(&wal, "before the script").await;
    first.map_err(|error| format!("nothing can be appended: {error}"))?;
    let found = wal.durable(REGION).await.map_err(|error| error.to_string())?;
    ensure!(found.0 > 0, "nothing is durable");
    Ok(wal)
}

/// Runs rows side by side, and judges them all.
pub(crate) async fn judge(rows: Vec<Row>) {
    const AT_ONCE: usize = 12;
    let results = stream::iter(rows).map(|row| async move {
        let work = tokio::time::timeout(row.limit, row.work);
        let result = match AssertUnwindSafe(work).catch_unwind().await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err("it does not end".into()),
            Err(panic) => Err(pending::text(panic)),
        };
        (row.name, result)
    });
    let results: Vec<_> = results.buffer_unordered(AT_ONCE).collect().await;
    if std::env::var_os("SEALOG_ROWS").is_some() {
        use std::io::Write;
        let mut err = std::io::stderr();
        for (name, result) in &results {
            let _ = writeln!(err, "ROW {name}: {result:?}");
        }
    }
    pending::judge(results);
}
