//! `GET /api/projects/<slug>/error-groups`: lists the errors of an environment, those with one cause
//! as one group.

use std::sync::Arc;

use axum::extract::State;
use platform_protocol::names::Environment;
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::{IntoParams, ToSchema};

use crate::auth::project_caller::ProjectPath;
use crate::auth::scoped_caller::LogReader;
use crate::clock::Millis;
use crate::domain::counting::{HOUR, Span};
use crate::domain::date::rfc3339;
use crate::domain::error_group::{
    CountedGroup, ErrorGroupId, ErrorGroupQuery, ErrorState, HOURS_LISTED,
};
use crate::logs::LogsState;
use crate::web::api::query::{Within, digits, value};
use crate::web::api::{ApiJson, ApiQuery, EnvironmentName};
use crate::web::api_error::ApiError;

/// The default number of groups in a response.
const GROUPS: usize = 50;
/// The maximum number of characters of the search text.
const TEXT: usize = 200;

/// Which groups are looked for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GroupsQuery {
    /// The environment; default `prod`.
    #[param(value_type = Option<EnvironmentName>)]
    env: Option<Environment>,
    /// Only groups with this state.
    #[param(value_type = Option<StateName>)]
    state: Option<ErrorState>,
    /// Only groups with this text in type, message or place, case-insensitive.
    #[serde(deserialize_with = "search_text")]
    #[param(max_length = 200)]
    search: Option<String>,
    /// Only groups after the page that returned this value.
    #[serde(deserialize_with = "before")]
    #[param(value_type = Option<String>, pattern = "^[0-9]{1,18}\\.[0-9a-f]{32}$")]
    before: Option<(Millis, ErrorGroupId)>,
    /// The maximum number of groups; default 50.
    #[param(inline)]
    limit: Option<Within<1, 100>>,
}

/// What a developer decided about a group.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = ErrorState, rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum StateName {
    /// Nobody has decided anything, or it came back.
    Open,
    /// It does not happen any more. It becomes open again when a later deployment has it.
    Resolved,
    /// It happens, and nobody wants to see it.
    Ignored,
}

/// A page of groups.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ErrorGroups)]
pub struct GroupsView {
    /// The group with the latest error first.
    pub groups: Vec<GroupView>,
    /// The value of `before` for the next page; null on the last page.
    #[schema(required)]
    pub before: Option<String>,
    /// The number of errors whose causes are not kept, because the environment has too many groups.
    /// They are counted in one group, which has this number as well.
    pub others: u64,
}

/// Errors with one cause.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ErrorGroup)]
pub struct GroupView {
    /// Its id, the same in every environment.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    pub id: String,
    /// `open`, `resolved` or `ignored`.
    #[schema(value_type = StateName)]
    pub state: String,
    /// The type of the errors, such as `TypeError`; null if it is not known.
    #[schema(required)]
    pub kind: Option<String>,
    /// The message of the newest error.
    pub message: String,
    /// The place in the source, such as `src/game.ts:10:5`; null if it is not known.
    #[schema(required)]
    pub place: Option<String>,
    /// When the first error arrived (RFC 3339).
    #[schema(format = DateTime)]
    pub first_at: String,
    /// When the last error arrived (RFC 3339).
    #[schema(format = DateTime)]
    pub last_at: String,
    /// When it came back in a later deployment after it had been resolved; null if it did not.
    #[schema(required, format = DateTime)]
    pub regressed_at: Option<String>,
    /// The number of errors; each repetition counts.
    pub count: u64,
    /// The number of players to whom it happened, as far as they are known. A large number is an
    /// estimate, within 2 %.
    pub players: u64,
    /// The number of errors in each of the last 24 hours, in UTC; the last one is the hour that has
    /// begun.
    #[schema(min_items = 24, max_items = 24)]
    pub hours: Vec<u64>,
}

/// Returns groups of errors.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/error-groups",
    operation_id = "listErrorGroups",
    params(ProjectPath, GroupsQuery),
    responses((status = 200, description = "The groups.", body = GroupsView))
)]
pub async fn handle(
    State(state): State<Arc<LogsState>>,
    reader: LogReader,
    ApiQuery(query): ApiQuery<GroupsQuery>,
) -> Result<ApiJson<GroupsView>, ApiError> {
    let now = state.platform.clock.now();
    let query = ErrorGroupQuery {
        slug: reader.project.slug,
        environment: query.env.unwrap_or(Environment::Prod),
        state: query.state,
        text: query.search.filter(|text| !text.is_empty()),
        before: query.before,
        limit: query.limit.map_or(GROUPS, Within::count),
        hours_from: first_hour(now, HOURS_LISTED),
    };
    let store = &state.platform.store;
    let (slug, environment) = (query.slug.clone(), query.environment);
    let page = store.list_error_groups(query).await?;
    let others = store
        .find_error_group(&slug, environment, ErrorGroupId::OTHERS, Millis::MAX)
        .await?;
    Ok(ApiJson(GroupsView {
        groups: page
            .groups
            .iter()
            .map(|group| GroupView::of(group, now))
            .collect(),
        before: page.next.map(|(at, id)| format!("{at}.{id}")),
        others: others.map_or(0, |others| others.group.count),
    }))
}

/// Returns the beginning of the first of the last `hours`, with the one that has begun.
pub(super) fn first_hour(now: Millis, hours: usize) -> Millis {
    Span::Hour.start(now) - HOUR * Millis::try_from(hours.saturating_sub(1)).unwrap_or_default()
}

/// Returns the number of errors in each of the last `hours`.
pub(super) fn by_hour(counted: &[(Millis, u64)], now: Millis, hours: usize) -> Vec<u64> {
    let mut numbers = vec![0; hours];
    let first = first_hour(now, hours);
    for (hour, count) in counted {
        let at = usize::try_from((hour - first).div_euclid(HOUR)).ok();
        if let Some(number) = at.and_then(|at| numbers.get_mut(at)) {
            *number = *count;
        }
    }
    numbers
}

impl GroupView {
    pub(super) fn of(counted: &CountedGroup, now: Millis) -> Self {
        let group = &counted.group;
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Self {
            id: group.id.to_string(),
            state: group.state.as_str().to_owned(),
            kind: some(&group.detail.kind),
            message: group.detail.message.clone(),
            place: some(&group.detail.place),
            first_at: rfc3339(group.first_at),
            last_at: rfc3339(group.last_at),
            regressed_at: group.detail.regressed_at.map(rfc3339),
            count: group.count,
            players: group.players.count(),
            hours: by_hour(&counted.hours, now, HOURS_LISTED),
        }
    }
}

/// Reads the text of a search.
pub(super) fn search_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    if text.chars().count() > TEXT {
        let sentence = "`search` must have at most 200 characters.";
        return Err(de::Error::custom(sentence));
    }
    // As in the records themselves, whose texts PostgreSQL could not keep otherwise.
    Ok(Some(text.replace('\0', "\u{2400}")))
}

fn before<'de, D>(from: D) -> Result<Option<(Millis, ErrorGroupId)>, D::Error>
where
    D: Deserializer<'de>,
{
    let parse = |text: &str| {
        let (at, id) = text.split_once('.')?;
        Some((digits(at)?, ErrorGroupId::parse(id)?))
    };
    value(from, parse, "the `before` of a page of groups")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::api::query::read;

    #[test]
    fn hours_end_with_the_one_that_has_begun() {
        let now = 1_795_262_400_000 + 5;
        let hour = Span::Hour.start(now);
        let counted = [(hour - 30 * HOUR, 9), (hour - HOUR, 2), (hour, 3)];
        assert_eq!(by_hour(&counted, now, 3), [0, 2, 3]);
        assert_eq!(first_hour(now, 24), hour - 23 * HOUR);
    }

    #[test]
    fn a_query_says_what_is_wrong_with_it() {
        let id = "0".repeat(32);
        let good = format!("env=dev&state=resolved&search=x&before=17.{id}&limit=100");
        let query: GroupsQuery = read(&good).unwrap();
        assert_eq!(query.state, Some(ErrorState::Resolved));
        assert_eq!(query.before, Some((17, ErrorGroupId::OTHERS)));
        for wrong in [
            "state=closed",
            "before=17",
            "before=17.0",
            "limit=101",
            "q=x",
        ] {
            assert!(read::<GroupsQuery>(wrong).is_err(), "{wrong}");
        }
    }
}
