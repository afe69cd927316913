//! Groups new errors by their causes. The records were accepted before: a page never waits for this.
//!
//! | module | contents |
//! |---|---|
//! | [`sources`] | the sources of deployed scripts |

pub mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use platform_frontend_logs::origin::in_game;
use platform_frontend_logs::source_map;
use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use uuid::Uuid;

use self::sources::{Batch, Budget, FILE, NAME, Place, cut, is_own};
use super::LogsState;
use crate::clock::Millis;
use crate::domain::error_group::{
    ErrorGroupId, Excerpt, GroupedErrors, Occurrence, Occurrences, Sample, SourceFrame, Ungrouped,
};
use crate::domain::fingerprint::{Cause, fingerprint};
use crate::domain::log::{LogTail, StoredLogRecord};
use crate::domain::stack::{Described, Frame};
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::store::StoreError;

/// The interval of looking for new errors.
const LOOK: Duration = Duration::from_secs(1);
/// The maximum number of records that are grouped in one write, so that other writes do not wait
/// long.
const RECORDS: usize = 100;
/// The maximum number of bytes of their texts.
const BYTES: usize = 1024 * 1024;
/// The maximum number of environments per round: in each round, each of them has one batch.
const ENVIRONMENTS: usize = 32;
/// The maximum number of rounds per run.
const ROUNDS: usize = 20;
/// How long a record waits for its scripts, if too much is read for its environment. A page may name
/// more scripts than are kept in memory, so a record could wait for ever: after this time, places are
/// mapped with what is in memory.
const WAIT_MILLIS: Millis = 10 * 60 * 1_000;
/// The frames of an error that are mapped, at most.
const FRAMES: usize = 20;
/// The maximum number of bytes of a message.
const MESSAGE: usize = 500;
/// The lines of an excerpt before and after the error.
const AROUND: u32 = 5;
/// The maximum number of bytes of a line of an excerpt.
const EXCERPT_LINE: usize = 200;

/// Groups the new errors of all environments, and returns their number.
///
/// # Errors
/// The first error of the store. The other environments are grouped all the same.
pub async fn group_errors(state: &LogsState) -> Result<usize, StoreError> {
    let (mut grouped, mut failed) = (0, None);
    // Those that failed in this run, or wait for the next one: they stay at the head of the list, and
    // must not keep the others away.
    let mut passed_over = BTreeSet::new();
    let mut budgets = BTreeMap::new();
    for _ in 0..ROUNDS {
        let limit = ENVIRONMENTS + passed_over.len();
        let waiting = state.platform.store.list_ungrouped(limit).await?;
        let mut goes_on = false;
        for environment in waiting {
            let key = (environment.slug.clone(), environment.environment.as_str());
            if passed_over.contains(&key) {
                continue;
            }
            let budget = budgets.entry(key.clone()).or_insert(Budget::WHOLE);
            match group_batch(state, environment, budget).await {
                Ok(batch) => {
                    grouped += batch.count;
                    goes_on |= batch.count > 0 || batch.waits;
                    if batch.waits {
                        passed_over.insert(key);
                    }
                }
                Err(error) => {
                    passed_over.insert(key);
                    failed = Some(error);
                    goes_on = true;
                }
            }
        }
        // Records of a clock that is far ahead wait for their time.
        if !goes_on {
            break;
        }
    }
    failed.map_or(Ok(grouped), Err)
}

/// What came of a batch.
struct Grouped {
    /// How many records were grouped.
    count: usize,
    /// Whether the next record waits for the next run.
    waits: bool,
}

/// Groups the next errors of an environment.
async fn group_batch(
    state: &LogsState,
    waiting: Ungrouped,
    budget: &mut Budget,
) -> Result<Grouped, StoreError> {
    let store = &*state.platform.store;
    let Ungrouped {
        slug,
        environment,
        after,
    } = waiting;
    let now = state.platform.clock.now();
    let tail = LogTail {
        slug: slug.clone(),
        environment,
        level: LogLevel::Error,
        after,
        now,
        limit: RECORDS,
        bytes: BYTES,
        backlog: None,
    };
    let records = store.list_log_records_after(tail).await?.records;
    let deployments = store.list_deployments(&slug, environment).await?;
    let made: BTreeMap<Uuid, Millis> = deployments
        .iter()
        .map(|known| (known.id, known.created_at))
        .collect();
    let mut batch = Batch::new(
        &state.sources,
        (&state.games.files, store),
        (&slug, environment),
        origins(state, &slug, environment),
        *budget,
    );
    let (mut upto, mut count, mut waits) = (after, 0, false);
    let mut groups: BTreeMap<ErrorGroupId, Occurrences> = BTreeMap::new();
    for record in &records {
        let begun_with = batch.budget();
        let (id, occurrence) = examine(&mut batch, record, &made).await;
        // The next run begins with this record. With a whole budget, there is no more to wait for.
        let may_wait = begun_with != Budget::WHOLE && now - record.id.received_at() < WAIT_MILLIS;
        if batch.was_refused() && may_wait {
            waits = true;
            break;
        }
        (upto, count) = (record.id, count + 1);
        match groups.get_mut(&id) {
            Some(group) => group.add(occurrence),
            None => {
                groups.insert(id, Occurrences::new(id, occurrence));
            }
        }
    }
    *budget = batch.budget();
    if count == 0 {
        return Ok(Grouped { count, waits });
    }
    let webhook = store.find_webhook(&slug).await?;
    let wants_alerts = webhook.is_some_and(|webhook| webhook.off_at.is_none());
    let errors = GroupedErrors {
        slug: slug.clone(),
        environment,
        after,
        upto,
        alert_at: wants_alerts.then_some(now),
        groups: groups.into_values().collect(),
    };
    let added = store.add_to_error_groups(errors).await?;
    Ok(Grouped {
        count: if added { count } else { 0 },
        waits,
    })
}

/// Returns the addresses of an environment, and what follows the label of any address of its game.
fn origins(state: &LogsState, slug: &str, environment: Environment) -> (Vec<String>, String) {
    let origin = &state.platform.games_origin;
    let scheme = format!("{}://", origin.scheme());
    let mut addresses = vec![origin.sub_domain(&environment.label(slug))];
    let domains = state.games.catalogue.at_domains_of(slug, environment);
    addresses.extend(domains.iter().map(|game| game.origin.clone()));
    (
        addresses,
        origin.sub_domain(&format!("--{slug}")).replace(&scheme, ""),
    )
}

/// Returns the group of a record, and what it adds to it.
async fn examine(
    batch: &mut Batch<'_>,
    record: &StoredLogRecord,
    made: &BTreeMap<Uuid, Millis>,
) -> (ErrorGroupId, Occurrence) {
    let entry = &record.entry;
    let error = Described::read(&entry.message, entry.stack.as_deref());
    let mut mapped = Mapped::default();
    batch.next_record();
    let frames: Vec<Frame<'_>> = match &in_game(&error)[..] {
        // An error of a script without a stack has a place all the same.
        [] => place_of(record).into_iter().collect(),
        frames => frames.iter().take(FRAMES).copied().copied().collect(),
    };
    for frame in &frames {
        mapped.add(batch, record.deployment, frame, &error).await;
    }
    let cause = mapped.cause();
    let id = match (&cause, entry.source) {
        // The address is what matters.
        (None, LogSource::Resource) => {
            let url = entry.url.as_deref().unwrap_or(&entry.message);
            let path = url.split(['?', '#']).next().unwrap_or_default();
            let cause = Cause {
                file: path,
                code: Some(""),
                call: "",
            };
            fingerprint("resource", "", Some(&cause))
        }
        _ => fingerprint(error.kind, error.message, cause.as_ref()),
    };
    let place = cause.as_ref().and_then(|_| mapped.place());
    let sample = Sample {
        kind: cut(error.kind, NAME),
        message: cut(error.message, MESSAGE),
        place: place.unwrap_or_default(),
        frames: mapped.frames,
        excerpt: mapped.excerpt,
    };
    let deployment = record.deployment.map(|id| {
        let deployed_at = made.get(&id).copied();
        (id, deployed_at.filter(|_| !mapped.is_outdated))
    });
    let occurrence = Occurrence {
        record: record.id,
        count: entry.count,
        player: record.player,
        deployment,
        engine: error.engine,
        sample,
    };
    (id, occurrence)
}

/// The place that a record names itself.
fn place_of(record: &StoredLogRecord) -> Option<Frame<'_>> {
    let entry = &record.entry;
    let is_script = entry.source == LogSource::Error;
    Some(Frame {
        call: "",
        file: entry.url.as_deref().filter(|_| is_script)?,
        line: entry.line.filter(|line| *line > 0)?,
        column: entry.column.unwrap_or(0),
    })
}

/// The frames of an error in the game's sources.
#[derive(Default)]
struct Mapped {
    frames: Vec<SourceFrame>,
    /// The places of the game's own frames, with the number of the frame and the engine's name for
    /// the function.
    places: Vec<(usize, Place, String)>,
    excerpt: Option<Excerpt>,
    /// Whether the excerpt is of the game's own code.
    has_own: bool,
    /// Whether a script is not of the deployment that was current.
    is_outdated: bool,
}

impl Mapped {
    async fn add(
        &mut self,
        batch: &mut Batch<'_>,
        deployment: Option<Uuid>,
        frame: &Frame<'_>,
        error: &Described<'_>,
    ) {
        let path = batch.path_of(frame.file);
        let mut shown = SourceFrame {
            call: cut(frame.call, NAME),
            file: cut(path.as_deref().unwrap_or(frame.file), FILE),
            line: frame.line,
            column: frame.column,
            mapped: false,
        };
        if let (Some(path), Some(deployment)) = (path, deployment)
            && let Some(found) = batch.script(deployment, &path).await
        {
            self.is_outdated |= !found.is_current;
            let place = found.script.place(frame, &path, error.engine);
            (shown.file, shown.line, shown.column) =
                (cut(&place.file, FILE), place.line, place.column);
            shown.mapped = place.is_mapped;
            let own = is_own(&place);
            if self.excerpt.is_none() || (own && !self.has_own) {
                let text = found.script.text(frame, error.engine);
                let excerpt = text.and_then(|text| excerpt(text, &place));
                if excerpt.is_some() {
                    (self.excerpt, self.has_own) = (excerpt, own);
                }
            }
            let number = self.frames.len();
            self.places.push((number, place, frame.call.to_owned()));
        }
        self.frames.push(shown);
    }

    /// The innermost frame in the game's own code, or in a library if there is none.
    fn innermost(&self) -> Option<&(usize, Place, String)> {
        let own = self.places.iter().find(|(_, place, _)| is_own(place));
        own.or_else(|| self.places.first())
    }

    fn cause(&self) -> Option<Cause<'_>> {
        let (_, place, call) = self.innermost()?;
        Some(Cause {
            file: &place.file,
            code: place.code.as_deref().filter(|code| !code.is_empty()),
            call,
        })
    }

    fn place(&self) -> Option<String> {
        let (number, ..) = self.innermost()?;
        let frame = self.frames.get(*number)?;
        Some(format!("{}:{}:{}", frame.file, frame.line, frame.column))
    }
}

/// Returns the lines around a place. Long lines are cut around the column.
fn excerpt(text: &source_map::Text, place: &Place) -> Option<Excerpt> {
    text.line(place.line)?;
    let first = place.line.saturating_sub(AROUND).max(1);
    let mut lines = Vec::new();
    for number in first..=place.line.saturating_add(AROUND) {
        let Some(line) = text.line(number) else { break };
        let from = if number == place.line {
            (place.column as usize).saturating_sub(EXCERPT_LINE / 2)
        } else {
            0
        };
        let from = if line.len() > EXCERPT_LINE { from } else { 0 };
        let start = line.floor_char_boundary(from.min(line.len()));
        lines.push(cut(&line[start..], EXCERPT_LINE));
    }
    Some(Excerpt {
        file: cut(&place.file, FILE),
        first,
        line: place.line,
        lines,
    })
}

/// The job that groups new errors.
#[derive(Debug)]
pub(crate) struct GroupErrors(pub(crate) Arc<LogsState>);

#[async_trait]
impl Job for GroupErrors {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("group-errors", LOOK).on_one_node()
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let grouped = group_errors(&self.0).await;
        grouped
            .map(drop)
            .map_err(JobError::because("new errors could not be grouped"))
    }
}
