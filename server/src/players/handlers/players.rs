//! `GET /api/projects/<slug>/players`: an environment's players over time.

use std::sync::Arc;

use axum::extract::State;
use platform_protocol::names::Environment;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::project_caller::{ProjectPath, ProjectReader};
use crate::clock::Millis;
use crate::domain::counting::{DAY, DISTINCT_ERROR, DistinctCount, PlayerCount, Span};
use crate::domain::date::rfc3339;
use crate::players::PlayersState;
use crate::web::api::range::{Range, Time};
use crate::web::api::{ApiJson, ApiQuery, EnvironmentName, invalid};
use crate::web::api_error::ApiError;

/// The longest time range that is returned in minutes.
const IN_MINUTES: Millis = 2 * DAY;
/// How long minutes are kept.
const MINUTES_KNOWN: Millis = 90 * DAY;
/// The longest time range of a response.
const LONGEST: Millis = 366 * DAY;
/// The number of days, and of months, for which unique players are returned.
const PERIODS: usize = 90;

/// Which players are asked for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PlayersQuery {
    /// The environment; default `prod`.
    #[param(value_type = Option<EnvironmentName>)]
    env: Option<Environment>,
    /// The start; default one day before `to`.
    #[param(inline)]
    from: Option<Time>,
    /// The end; default now. At most 366 days after `from`.
    #[param(inline)]
    to: Option<Time>,
}

/// Players over time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Players)]
pub struct PlayersView {
    /// `dev` or `prod`.
    pub environment: String,
    /// The exact number of players now; null if it is not known.
    #[schema(required)]
    pub now: Option<u64>,
    /// The start of the first point (RFC 3339).
    #[schema(format = DateTime)]
    pub from: String,
    /// The end of the last point (RFC 3339).
    #[schema(format = DateTime)]
    pub to: String,
    /// The seconds between two points: 60 for ranges of up to two days within the last 90 days,
    /// else 3600.
    pub step_seconds: i64,
    /// One per step, oldest first, without gaps.
    pub points: Vec<PointView>,
    /// The number of different players on each day (UTC), newest first. Days without players are
    /// left out.
    pub days: Vec<DistinctView>,
    /// The same for each month.
    pub months: Vec<DistinctView>,
    /// The relative standard deviation of the numbers of different players, which are estimated by
    /// a sketch. Small numbers are exact.
    pub distinct_error: f64,
}

/// The players in one step.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PlayersPoint)]
pub struct PointView {
    /// When the step began (RFC 3339).
    #[schema(format = DateTime)]
    pub time: String,
    /// The maximum number of concurrent players.
    pub peak: u32,
    /// The average number of players.
    pub mean: f64,
}

/// The number of different players on a day or in a month.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DistinctPlayers)]
pub struct DistinctView {
    /// `2026-11-21` or `2026-11`.
    pub period: String,
    /// The number of players.
    pub players: u64,
}

/// Returns players over time.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/players",
    operation_id = "listPlayers",
    params(ProjectPath, PlayersQuery),
    responses((status = 200, description = "Players over time.", body = PlayersView))
)]
pub async fn handle(
    State(state): State<Arc<PlayersState>>,
    reader: ProjectReader,
    ApiQuery(query): ApiQuery<PlayersQuery>,
) -> Result<ApiJson<PlayersView>, ApiError> {
    let now = state.platform.clock.now();
    let range = Range::new(query.from, query.to);
    let asked = Asked::new(query.env, range, now).map_err(invalid)?;
    let Asked {
        environment, span, ..
    } = asked;
    let (from, to) = (span.start(asked.from), asked.to);
    let (slug, store) = (reader.project.slug, &state.platform.store);
    let counts = store.list_player_counts(&slug, environment, span, from, to);
    let points = points(&counts.await?, span, from, to, now);
    let distinct = store.list_distinct_players(&slug, environment, PERIODS);
    let (days, months) = distinct
        .await?
        .into_iter()
        .map(DistinctView::from)
        .partition(|view| view.period.len() == "2026-11-21".len());
    let audience = environment.audience(&slug);
    let playing = state.games.presence.playing(&audience, now).await;
    let end = from + span.millis() * i64::try_from(points.len()).unwrap_or_default();
    Ok(ApiJson(PlayersView {
        environment: environment.as_str().to_owned(),
        now: playing.map(|playing| playing as u64),
        from: rfc3339(from),
        to: rfc3339(end),
        step_seconds: span.millis() / 1_000,
        points,
        days,
        months,
        distinct_error: DISTINCT_ERROR,
    }))
}

/// The requested environment, time range and step.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) environment: Environment,
    pub(super) span: Span,
    pub(super) from: Millis,
    pub(super) to: Millis,
}

impl Asked {
    pub(super) fn new(
        environment: Option<Environment>,
        range: Range,
        now: Millis,
    ) -> Result<Self, &'static str> {
        let too_long = "`from` and `to` must not be more than 366 days apart.";
        let (from, to) = range.bounds(now, LONGEST, too_long)?;
        let minutes = to - from <= IN_MINUTES && from >= now - MINUTES_KNOWN;
        Ok(Self {
            environment: environment.unwrap_or(Environment::Prod),
            span: if minutes { Span::Minute } else { Span::Hour },
            from,
            to,
        })
    }
}

/// Returns one point for each step, including those without players.
pub(super) fn points(
    counts: &[PlayerCount],
    span: Span,
    from: Millis,
    to: Millis,
    now: Millis,
) -> Vec<PointView> {
    let mut counts = counts.iter().peekable();
    let mut points = Vec::new();
    let mut start = from;
    while start < to {
        let count = counts.next_if(|count| count.start == start);
        // The current step is not over yet.
        let length = (now - start).clamp(1, span.millis());
        let player_millis = count.map_or(0, |count| count.player_millis);
        let mean = player_millis as f64 / length as f64;
        points.push(PointView {
            time: rfc3339(start),
            peak: count.map_or(0, |count| count.peak),
            mean: (mean * 100.0).round() / 100.0,
        });
        start += span.millis();
    }
    points
}

impl From<DistinctCount> for DistinctView {
    fn from(count: DistinctCount) -> Self {
        Self {
            period: count.period,
            players: count.players,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::counting::{HOUR, MINUTE};
    use crate::web::api::query::read;

    const NOW: Millis = 1_795_262_400_000;

    fn asked(query: &str) -> Result<Asked, String> {
        let query: PlayersQuery = read(query).map_err(|error| error.to_string())?;
        let asked = Asked::new(query.env, Range::new(query.from, query.to), NOW);
        asked.map_err(str::to_owned)
    }

    #[test]
    fn a_day_is_in_minutes_and_longer_in_hours() {
        let span = |query: &str| asked(query).map(|asked| asked.span);
        assert_eq!(span(""), Ok(Span::Minute));
        for (query, expected) in [
            ("from=2026-11-20T12:00:00Z", Span::Minute),
            ("from=2026-11-01T00:00:00Z", Span::Hour),
            (
                "from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z",
                Span::Hour,
            ),
            ("from=2026-11-20T13:00:00+01:00", Span::Minute),
            ("from=2026-11-20T13:00:00%2B01:00&env=dev", Span::Minute),
        ] {
            assert_eq!(span(query), Ok(expected), "{query}");
        }
    }

    #[test]
    fn what_cannot_be_answered_is_said() {
        for (query, sentence) in [
            ("env=test", "`env` must be dev or prod."),
            (
                "from=yesterday",
                "`from` and `to` must be times in the form of RFC 3339, such as \
                 2026-11-21T12:00:00Z.",
            ),
            (
                "from=2026-11-21T12:00:00Z&to=2026-11-21T12:00:00Z",
                "`from` must be before `to`.",
            ),
            (
                "from=2024-01-01T00:00:00Z",
                "`from` and `to` must not be more than 366 days apart.",
            ),
            (
                "to=9999-12-31T23:30:00Z",
                "`from` and `to` must be in the years 1 to 9998.",
            ),
            (
                "limit=3",
                "Allowed parameters of the query: env, from and to.",
            ),
        ] {
            assert_eq!(asked(query).unwrap_err(), sentence, "{query}");
        }
    }

    #[test]
    fn points_have_no_gap() {
        let start = Span::Hour.start(NOW);
        let counts = [PlayerCount {
            start: start + MINUTE,
            peak: 3,
            player_millis: 90_000,
        }];
        let points = points(&counts, Span::Minute, start, start + 3 * MINUTE, NOW + HOUR);
        let numbers: Vec<_> = points
            .iter()
            .map(|point| (point.peak, point.mean))
            .collect();
        assert_eq!(numbers, [(0, 0.0), (3, 1.5), (0, 0.0)]);
        assert_eq!(points[2].time, rfc3339(start + 2 * MINUTE));
    }
}
