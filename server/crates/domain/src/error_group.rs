//! Errors with one cause as one group: how often, when and to whom they happened, and what a
//! developer decided about them.

mod room;

use self::room::Placed;
pub use self::room::{CONFIRMED, CROWDED, GROUPS_OF_PLAYER, Held, Room};

use std::collections::BTreeMap;

use platform_protocol::names::Environment;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::Millis;
use crate::counting::{DAY, Distinct, HOUR};
use crate::error_alert::AlertReason;
use crate::log::LogId;
use crate::stack::Engine;

/// The maximum number of groups of an environment, without the one for all other errors: whatever
/// a page sends, there are no more. New ones then take the place of [the least important](Room).
pub const GROUPS: usize = 1_000;
/// How many of them may have begun with a record without a player's token: anybody can send those.
pub const GROUPS_OF_STRANGERS: usize = GROUPS / 2;
/// How long a group is kept after its last error.
pub const GROUPS_KNOWN: Millis = 90 * DAY;
/// How long the counts by hour are kept.
pub const HOURS_KNOWN: Millis = 7 * DAY;
/// The hours that a list of groups shows.
pub const HOURS_LISTED: usize = 24;
/// The deployments of a group, at most: those with the latest errors.
const DEPLOYMENTS: usize = 20;
/// The newest records of a group that are known.
pub const RECORDS: usize = 10;
/// The players of one group in one batch that are counted, at most.
const PLAYERS: usize = 1_000;

/// The id of a group: a fingerprint of the cause, the same in every environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorGroupId(pub [u8; 16]);

impl ErrorGroupId {
    /// The group of all errors for which there is no group any more.
    pub const OTHERS: Self = Self([0; 16]);

    /// Parses 32 hexadecimal digits in lower case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 32 || !text.bytes().all(is_digit) {
            return None;
        }
        let number = u128::from_str_radix(text, 16).ok()?;
        Some(Self(number.to_be_bytes()))
    }
}

impl std::fmt::Display for ErrorGroupId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// What a developer decided about a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorState {
    /// Nobody has decided anything, or it came back.
    Open,
    /// It does not happen any more. It becomes open again when a later deployment has it.
    Resolved,
    /// It happens, and nobody wants to see it.
    Ignored,
}

impl ErrorState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Open, Self::Resolved, Self::Ignored];

    /// The state, as it stands in JSON and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resolved => "resolved",
            Self::Ignored => "ignored",
        }
    }

    /// Reads the state from [`ErrorState::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A frame of the newest error, in the game's sources if there is a map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFrame {
    /// The function; empty if it has no name.
    pub call: String,
    /// The source, or the script.
    pub file: String,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
    /// Whether a source map named the place.
    pub mapped: bool,
}

/// The lines of a source around an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// The source.
    pub file: String,
    /// The number of the first line, from 1.
    pub first: u32,
    /// The number of the line with the error.
    pub line: u32,
    /// The lines, without their ends.
    pub lines: Vec<String>,
}

/// The errors of a group in one deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupDeployment {
    /// The deployment.
    pub id: Uuid,
    /// How many errors.
    pub count: u64,
    /// When the last one was received.
    pub last_at: Millis,
}

/// What one group is about, and what is known about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupDetail {
    /// The type of the errors, such as `TypeError`; empty if it is not known.
    pub kind: String,
    /// The message of the newest one.
    pub message: String,
    /// Where it happened, such as `src/game.ts:10:5`; empty if it is not known.
    pub place: String,
    /// The deployments, the one with the latest error first.
    pub deployments: Vec<GroupDeployment>,
    /// The deployment that had the first error.
    pub first_deployment: Option<Uuid>,
    /// How many errors each engine had.
    pub engines: BTreeMap<Engine, u64>,
    /// The frames of the newest error with a stack.
    pub frames: Vec<SourceFrame>,
    /// The source around its place.
    pub excerpt: Option<Excerpt>,
    /// The newest records, the newest first.
    pub records: Vec<i64>,
    /// When it was resolved or ignored.
    pub decided_at: Option<Millis>,
    /// If it is resolved, when the deployment of that moment was made: what a later one has is a
    /// regression.
    pub resolved_upto: Option<Millis>,
    /// When it came back after it had been resolved, until somebody decides again.
    pub regressed_at: Option<Millis>,
    /// When an alert last told that it grows.
    pub grew_at: Option<Millis>,
    /// What an alert would have told, if it was left out.
    pub untold: Option<AlertReason>,
}

/// A group of errors of one environment.
#[derive(Clone, Debug)]
pub struct ErrorGroup {
    /// Its id.
    pub id: ErrorGroupId,
    /// What a developer decided.
    pub state: ErrorState,
    /// When the first error was received.
    pub first_at: Millis,
    /// When the last error was received.
    pub last_at: Millis,
    /// How many errors, with repetitions.
    pub count: u64,
    /// Whether its first error came from a page without a player's token.
    pub of_stranger: bool,
    /// The player of its first error, if known.
    pub begun_by: Option<Uuid>,
    /// The players to whom it happened, as far as they are known.
    pub players: Distinct,
    /// Everything else.
    pub detail: GroupDetail,
}

impl ErrorGroup {
    /// What a search looks through, in lower case.
    #[must_use]
    pub fn search_text(&self) -> String {
        let GroupDetail {
            kind,
            message,
            place,
            ..
        } = &self.detail;
        format!("{kind}: {message} {place}").to_lowercase()
    }

    /// Whether a decision would change more than its time.
    #[must_use]
    pub fn would_change(&self, state: ErrorState, deployed_at: Option<Millis>) -> bool {
        self.state != state
            || self.detail.regressed_at.is_some()
            || (state == ErrorState::Resolved && self.detail.resolved_upto != deployed_at)
    }

    /// Takes a developer's decision. `deployed_at` is when the environment's current deployment was
    /// made.
    pub fn decide(&mut self, state: ErrorState, deployed_at: Option<Millis>, now: Millis) {
        self.state = state;
        self.detail.regressed_at = None;
        self.detail.decided_at = (state != ErrorState::Open).then_some(now);
        self.detail.resolved_upto =
            (state == ErrorState::Resolved).then(|| deployed_at.unwrap_or(now));
    }

    /// Adds errors.
    fn add(&mut self, new: Occurrences) {
        self.first_at = self.first_at.min(new.first_at);
        self.last_at = self.last_at.max(new.last_at);
        self.count = self.count.saturating_add(new.count);
        for player in new.players {
            self.players.add(player);
        }
        let detail = &mut self.detail;
        for (id, deployment) in new.deployments {
            if let (ErrorState::Resolved, Some(deployed), Some(upto)) =
                (self.state, deployment.deployed_at, detail.resolved_upto)
                && deployed > upto
            {
                self.state = ErrorState::Open;
                detail.regressed_at = Some(deployment.last_at);
                detail.decided_at = None;
                detail.resolved_upto = None;
            }
            match detail.deployments.iter_mut().find(|known| known.id == id) {
                Some(known) => {
                    known.count = known.count.saturating_add(deployment.count);
                    known.last_at = known.last_at.max(deployment.last_at);
                }
                None => detail.deployments.push(GroupDeployment {
                    id,
                    count: deployment.count,
                    last_at: deployment.last_at,
                }),
            }
        }
        detail
            .deployments
            .sort_by_key(|known| std::cmp::Reverse((known.last_at, known.id)));
        detail.deployments.truncate(DEPLOYMENTS);
        for (engine, count) in new.engines {
            let known = detail.engines.entry(engine).or_default();
            *known = known.saturating_add(count);
        }
        let records = new.records.iter().map(|id| id.0);
        detail.records.extend(records);
        detail.records.sort_unstable_by(|a, b| b.cmp(a));
        detail.records.dedup();
        detail.records.truncate(RECORDS);
        if self.id == ErrorGroupId::OTHERS {
            return;
        }
        let sample = new.sample;
        (detail.kind, detail.message, detail.place) = (sample.kind, sample.message, sample.place);
        if !sample.frames.is_empty() {
            detail.frames = sample.frames;
            // An excerpt of another place would be wrong.
            detail.excerpt = sample.excerpt;
        }
    }
}

/// The newest error of a group in a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The type; empty if it is not known.
    pub kind: String,
    /// The message.
    pub message: String,
    /// The place; empty if it is not known.
    pub place: String,
    /// The frames.
    pub frames: Vec<SourceFrame>,
    /// The source around the place.
    pub excerpt: Option<Excerpt>,
}

/// The errors of a group in one deployment, in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewInDeployment {
    /// How many.
    pub count: u64,
    /// When the last one was received.
    pub last_at: Millis,
    /// When the deployment was made. `None` if it is not kept, or if the page was of another one.
    pub deployed_at: Option<Millis>,
}

/// The errors of one group in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrences {
    /// The group.
    pub id: ErrorGroupId,
    /// When the first one was received.
    pub first_at: Millis,
    /// When the last one was received.
    pub last_at: Millis,
    /// How many, with repetitions.
    pub count: u64,
    /// How many in each hour.
    pub hours: BTreeMap<Millis, u64>,
    /// The players.
    pub players: Vec<Uuid>,
    /// The deployment of the first one.
    pub first_deployment: Option<Uuid>,
    /// By deployment.
    pub deployments: BTreeMap<Uuid, NewInDeployment>,
    /// By engine.
    pub engines: BTreeMap<Engine, u64>,
    /// The records, oldest first.
    pub records: Vec<LogId>,
    /// The newest one.
    pub sample: Sample,
}

/// One error, ready to be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The record.
    pub record: LogId,
    /// How many equal errors it stands for.
    pub count: u32,
    /// The player, if known.
    pub player: Option<Uuid>,
    /// The deployment that was current then, and when it was made, if it is kept and the page was
    /// of it.
    pub deployment: Option<(Uuid, Option<Millis>)>,
    /// The engine, if known.
    pub engine: Option<Engine>,
    /// What is shown.
    pub sample: Sample,
}

impl Occurrences {
    /// The group's first error of a batch.
    #[must_use]
    pub fn new(id: ErrorGroupId, first: Occurrence) -> Self {
        let at = first.record.received_at();
        let mut new = Self {
            id,
            first_at: at,
            last_at: at,
            count: 0,
            hours: BTreeMap::new(),
            players: Vec::new(),
            first_deployment: first.deployment.map(|(id, _)| id),
            deployments: BTreeMap::new(),
            engines: BTreeMap::new(),
            records: Vec::new(),
            sample: Sample::default(),
        };
        new.add(first);
        new
    }

    /// Adds a later error.
    pub fn add(&mut self, one: Occurrence) {
        let (at, count) = (one.record.received_at(), u64::from(one.count));
        self.first_at = self.first_at.min(at);
        self.last_at = self.last_at.max(at);
        self.count = self.count.saturating_add(count);
        *self.hours.entry(at - at.rem_euclid(HOUR)).or_default() += count;
        if let Some(player) = one.player
            && self.players.len() < PLAYERS
        {
            self.players.push(player);
        }
        if let Some((id, deployed_at)) = one.deployment {
            let known = self.deployments.entry(id).or_insert(NewInDeployment {
                count: 0,
                last_at: at,
                deployed_at,
            });
            known.count = known.count.saturating_add(count);
            known.last_at = known.last_at.max(at);
            known.deployed_at = known.deployed_at.max(deployed_at);
        }
        if let Some(engine) = one.engine {
            *self.engines.entry(engine).or_default() += count;
        }
        self.records.push(one.record);
        self.sample = one.sample;
    }

    /// To how many players they happened, as far as they are known.
    fn reach(&self) -> u64 {
        let mut players = Distinct::default();
        for player in &self.players {
            players.add(*player);
        }
        players.count()
    }

    fn join(&mut self, other: Self) {
        self.first_at = self.first_at.min(other.first_at);
        self.last_at = self.last_at.max(other.last_at);
        self.count = self.count.saturating_add(other.count);
        for (hour, count) in other.hours {
            *self.hours.entry(hour).or_default() += count;
        }
        self.players.extend(other.players);
        for (id, new) in other.deployments {
            let known = self
                .deployments
                .entry(id)
                .or_insert(NewInDeployment { count: 0, ..new });
            known.count = known.count.saturating_add(new.count);
            known.last_at = known.last_at.max(new.last_at);
        }
        for (engine, count) in other.engines {
            *self.engines.entry(engine).or_default() += count;
        }
        self.records.extend(other.records);
    }
}

/// Errors of one environment to be added to their groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupedErrors {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// The record up to which errors were grouped before. If that has changed, nothing is added.
    pub after: LogId,
    /// The record up to which they are grouped then.
    pub upto: LogId,
    /// The errors by group.
    pub groups: Vec<Occurrences>,
    /// Now, if the project wants alerts.
    pub alert_at: Option<Millis>,
}

/// Groups that are to be written, and how many errors each had in an hour.
#[derive(Clone, Debug, Default)]
pub struct Regrouped {
    /// The groups.
    pub groups: Vec<ErrorGroup>,
    /// Group, hour and number.
    pub hours: Vec<(ErrorGroupId, Millis, u64)>,
    /// The groups that are new or came back; never the one for all others.
    pub changed: BTreeMap<ErrorGroupId, AlertReason>,
    /// The groups that make room. Their errors are counted among all others.
    pub removed: Vec<ErrorGroupId>,
}

/// Adds errors to the groups that exist, and makes those that are missing, as long as there is room.
/// `known` are the groups of the errors that exist, and the one for all others if it does.
#[must_use]
pub fn regroup(known: Vec<ErrorGroup>, room: impl Into<Room>, new: Vec<Occurrences>) -> Regrouped {
    let mut room = room.into();
    room.keep(&new);
    let (mut begun_by, mut removed) = (BTreeMap::new(), Vec::new());
    let mut known: BTreeMap<ErrorGroupId, ErrorGroup> =
        known.into_iter().map(|group| (group.id, group)).collect();
    let (mut regrouped, mut others) = (Regrouped::default(), None::<Occurrences>);
    let mut add = |group: Option<ErrorGroup>, new: Occurrences| {
        let hours = new
            .hours
            .iter()
            .map(|(hour, count)| (new.id, *hour, *count));
        regrouped.hours.extend(hours);
        let state = group.as_ref().map(|group| group.state);
        let mut group = group.unwrap_or_else(|| begun(&new));
        group.add(new);
        let reason = match state {
            None => Some(AlertReason::New),
            Some(state) if state != group.state => Some(AlertReason::Regressed),
            Some(_) => None,
        };
        if let Some(reason) = reason
            && group.id != ErrorGroupId::OTHERS
        {
            regrouped.changed.insert(group.id, reason);
        }
        regrouped.groups.push(group);
    };
    let mut join = |new: Occurrences| match &mut others {
        Some(others) => others.join(new),
        None => others = Some(new),
    };
    for mut new in new {
        let group = known.remove(&new.id);
        if group.is_none() {
            match room.place(&new, &begun_by) {
                Placed::Own => {}
                Placed::Instead(held) => {
                    removed.push(held.id);
                    join(held.into_others());
                }
                Placed::Others => {
                    new.id = ErrorGroupId::OTHERS;
                    join(new);
                    continue;
                }
            }
            if let Some(player) = new.players.first() {
                *begun_by.entry(*player).or_default() += 1;
            }
        }
        add(group, new);
    }
    if let Some(others) = others {
        add(known.remove(&ErrorGroupId::OTHERS), others);
    }
    regrouped.removed = removed;
    regrouped
}

/// Returns the group of the first errors of a cause, without these.
fn begun(new: &Occurrences) -> ErrorGroup {
    let mut detail = GroupDetail {
        first_deployment: new.first_deployment,
        ..GroupDetail::default()
    };
    if new.id == ErrorGroupId::OTHERS {
        detail.message = "All other errors".to_owned();
    }
    ErrorGroup {
        id: new.id,
        state: ErrorState::Open,
        first_at: new.first_at,
        last_at: new.last_at,
        count: 0,
        of_stranger: new.players.is_empty(),
        begun_by: new.players.first().copied(),
        players: Distinct::default(),
        detail,
    }
}

/// An environment with errors that are not grouped yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ungrouped {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// The record up to which errors are grouped.
    pub after: LogId,
}

/// A query for the groups of one environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorGroupQuery {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// Only groups with this state.
    pub state: Option<ErrorState>,
    /// Only groups whose type, message or place contains this text. Case is ignored.
    pub text: Option<String>,
    /// Only groups after this one: the time of its last error, and its id.
    pub before: Option<(Millis, ErrorGroupId)>,
    /// How many, at most.
    pub limit: usize,
    /// From which hour on their errors are counted by hour.
    pub hours_from: Millis,
}

/// Which groups of one environment are meant: those that fit everything that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorGroupFilter {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// Only this one.
    pub id: Option<ErrorGroupId>,
    /// Only groups with this state.
    pub state: Option<ErrorState>,
    /// Only groups whose type, message or place contains this text. Case is ignored.
    pub text: Option<String>,
}

/// A group with its errors by hour.
#[derive(Clone, Debug)]
pub struct CountedGroup {
    /// The group.
    pub group: ErrorGroup,
    /// Hours with errors, oldest first.
    pub hours: Vec<(Millis, u64)>,
}

/// A page of groups.
#[derive(Clone, Debug, Default)]
pub struct ErrorGroupPage {
    /// The group with the latest error first.
    pub groups: Vec<CountedGroup>,
    /// The last group, if there are more.
    pub next: Option<(Millis, ErrorGroupId)>,
}

#[cfg(test)]
mod tests;
