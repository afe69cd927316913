//! `GET /api/projects/<slug>/players/chart`: a chart of an environment's players over time.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, header};
use platform_protocol::names::Environment;
use serde::Deserialize;
use time::{Duration, OffsetDateTime};
use utoipa::{IntoParams, ToSchema};

use super::players::{Asked, points};
use crate::auth::project_caller::{ProjectPath, ProjectReader};
use crate::clock::Millis;
use crate::domain::counting::{DistinctCount, MINUTE};
use crate::players::PlayersState;
use crate::players::charts::{self, Look, Point};
use crate::web::api::query::Within;
use crate::web::api::range::{Range, Time};
use crate::web::api::{ApiQuery, EnvironmentName, invalid};
use crate::web::api_error::ApiError;

/// The default width of a chart in pixels.
const WIDTH: usize = 800;
/// The height of every chart in pixels.
const HEIGHT: u32 = 220;
/// The number of days for which unique players are shown.
const DAYS: i64 = 30;
/// The number of months for which unique players are shown.
const MONTHS: usize = 12;

/// The content of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = PlayersChart)]
pub enum Chart {
    /// Players at one time: the most, and the mean.
    Playing,
    /// Different players each day.
    Days,
    /// Different players each month.
    Months,
}

/// The colours of the page that shows the chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ChartTheme)]
pub enum Theme {
    /// A light one.
    Light,
    /// A dark one.
    Dark,
}

/// Which chart is asked for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ChartQuery {
    /// The content, default `playing`; `days` are the last thirty, `months` the last twelve.
    show: Option<Chart>,
    /// The environment; default `prod`.
    #[param(value_type = Option<EnvironmentName>)]
    env: Option<Environment>,
    /// The start; default one day before `to`.
    #[param(inline)]
    from: Option<Time>,
    /// The end; default now. At most 366 days after `from`.
    #[param(inline)]
    to: Option<Time>,
    /// The width in pixels; default 800.
    #[param(inline)]
    width: Option<Within<240, 2_000>>,
    /// The colours; default `light`.
    theme: Option<Theme>,
    /// The offset of the local time from UTC in minutes, for the times below the chart; default 0.
    #[param(inline)]
    utc_offset: Option<Within<-900, 900>>,
}

/// Returns players over time as a chart.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/players/chart",
    operation_id = "drawPlayers",
    params(ProjectPath, ChartQuery),
    responses((status = 200, description = "The chart as SVG.", body = String, content_type = "image/svg+xml"))
)]
pub async fn handle(
    State(state): State<Arc<PlayersState>>,
    reader: ProjectReader,
    ApiQuery(query): ApiQuery<ChartQuery>,
) -> Result<([(HeaderName, &'static str); 3], String), ApiError> {
    let now = state.platform.clock.now();
    let (look, chart) = (query.look(), query.show.unwrap_or(Chart::Playing));
    let range = Range::new(query.from, query.to);
    let asked = Asked::new(query.env, range, now).map_err(invalid)?;
    let slug = &reader.project.slug;
    let (store, environment) = (&state.platform.store, asked.environment);
    let drawn = if chart == Chart::Playing {
        let (span, to) = (asked.span, asked.to);
        let from = span.start(asked.from);
        let counts = store.list_player_counts(slug, environment, span, from, to);
        let views = points(&counts.await?, span, from, to, now);
        let starts = (0..).map(|number| from + number * span.millis());
        let points = starts.zip(&views).map(|(start, view)| Point {
            start,
            peak: f64::from(view.peak),
            mean: view.mean,
        });
        let mut points: Vec<_> = points.collect();
        // The current step may have no data yet; this is not a drop to zero.
        points.pop_if(|last| last.peak == 0.0 && last.start + span.millis() > now);
        charts::playing(&points, to, look)
    } else {
        let counts = store.list_distinct_players(slug, environment, DAYS as usize);
        charts::distinct(&periods(&counts.await?, chart, now), look)
    };
    let svg = drawn.map_err(|error| ApiError::internal(&error))?;
    let headers = [
        (header::CONTENT_TYPE, "image/svg+xml"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
    ];
    Ok((headers, svg))
}

/// Returns the last days or months, oldest first, including those without players.
fn periods(counts: &[DistinctCount], chart: Chart, now: Millis) -> Vec<(String, u64)> {
    let today = OffsetDateTime::from_unix_timestamp(now.div_euclid(1_000));
    let today = today.map_or(time::Date::MIN, OffsetDateTime::date);
    let mut names: Vec<String> = if chart == Chart::Days {
        let days = (0..DAYS).filter_map(|back| today.checked_sub(Duration::days(back)));
        days.map(|day| day.to_string()).collect()
    } else {
        let months =
            std::iter::successors(Some(today), |day| day.replace_day(1).ok()?.previous_day());
        let months = months.take(MONTHS);
        months.map(|day| day.to_string()[..7].to_owned()).collect()
    };
    names.reverse();
    let players = |period: &str| {
        let count = counts.iter().find(|count| count.period == period);
        count.map_or(0, |count| count.players)
    };
    let periods = names.into_iter();
    periods
        .map(|period| (period.clone(), players(&period)))
        .collect()
}

impl ChartQuery {
    fn look(&self) -> Look {
        let offset = self.utc_offset.map_or(0, Within::get);
        Look {
            width: u32::try_from(self.width.map_or(WIDTH, Within::count)).unwrap_or(0),
            height: HEIGHT,
            is_dark: self.theme == Some(Theme::Dark),
            utc_offset: Millis::from(offset) * MINUTE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::api::query::read;

    const NOW: Millis = 1_795_262_400_000;

    #[test]
    fn what_is_asked_for_is_taken_or_what_is_wrong_is_said() {
        let query = "show=days&width=360&theme=dark&utc_offset=-90&env=dev";
        let query: ChartQuery = read(query).unwrap();
        let look = query.look();
        assert_eq!((look.width, look.is_dark), (360, true));
        assert_eq!(look.utc_offset, -90 * MINUTE);
        assert_eq!(query.show, Some(Chart::Days));
        assert_eq!(query.env, Some(Environment::Dev));
        let look = ChartQuery::default().look();
        assert_eq!((look.width, look.is_dark, look.utc_offset), (800, false, 0));
        for (query, sentence) in [
            ("show=all", "`show` must be playing, days or months."),
            ("width=239", "`width` must be from 240 to 2000."),
            ("width=2001", "`width` must be from 240 to 2000."),
            ("theme=blue", "`theme` must be light or dark."),
            ("utc_offset=901", "`utc_offset` must be from -900 to 900."),
            ("env=test", "`env` must be dev or prod."),
            (
                "from=now",
                "`from` and `to` must be times in the form of RFC 3339, such as \
                 2026-11-21T12:00:00Z.",
            ),
            (
                "x=1",
                "Allowed parameters of the query: show, env, from, to, width, theme and \
                 utc_offset.",
            ),
        ] {
            let error = read::<ChartQuery>(query).unwrap_err();
            assert_eq!(error.to_string(), sentence, "{query}");
        }
    }

    #[test]
    fn periods_without_players_have_their_place() {
        let count = |period: &str, players| DistinctCount {
            period: period.into(),
            players,
        };
        let counts = [count("2026-11-20", 4), count("2026-10", 9)];
        let days = periods(&counts, Chart::Days, NOW);
        assert_eq!(days.len(), 30);
        assert_eq!(days[0].0, "2026-10-23");
        assert_eq!(
            days[28..],
            [("2026-11-20".into(), 4), ("2026-11-21".into(), 0)]
        );
        let months = periods(&counts, Chart::Months, NOW);
        assert_eq!(months.len(), 12);
        assert_eq!(
            (months[0].0.as_str(), &months[10]),
            ("2025-12", &("2026-10".into(), 9))
        );
    }
}
