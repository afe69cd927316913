//! `GET /api/projects/<slug>/players/chart`: an environment's players over time
//! as a picture.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use time::{Duration, OffsetDateTime};
use utoipa::ToSchema;

use super::players::{Asked, points};
use crate::auth::caller::ApiCaller;
use crate::clock::Millis;
use crate::domain::counting::{DistinctCount, MINUTE};
use crate::http::api::query::digits;
use crate::http::api::{EnvironmentName, PathParams, invalid};
use crate::http::api_error::ApiError;
use crate::players::PlayersState;
use crate::players::charts::{self, Look, Point};

/// Pixels that a chart is wide.
const WIDTHS: std::ops::RangeInclusive<u32> = 240..=2_000;
const WIDTH: u32 = 800;
/// Pixels that every chart is high.
const HEIGHT: u32 = 220;
/// Minutes that a clock is before or behind UTC, at most.
const OFFSET: i32 = 900;
/// Days of which different players are shown.
const DAYS: i64 = 30;
/// Months of which different players are shown.
const MONTHS: usize = 12;

/// What a chart shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(as = PlayersChart, rename_all = "lowercase")]
pub enum Chart {
    /// Players at one time: the most, and the mean.
    Playing,
    /// Different players each day.
    Days,
    /// Different players each month.
    Months,
}

/// For which page a chart is.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(as = ChartTheme, rename_all = "lowercase")]
pub enum Theme {
    /// A light one.
    Light,
    /// A dark one.
    Dark,
}

/// Answers players over time as a picture.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/players/chart",
    operation_id = "drawPlayers",
    params(
        ("slug" = String, Path, description = "The project.", example = "my-game"),
        ("show" = Option<Chart>, Query, description = "`playing` if not given; `days` are the last thirty, `months` the last twelve."),
        ("env" = Option<EnvironmentName>, Query, description = "`prod` if not given."),
        ("from" = Option<String>, Query, format = DateTime, description = "A day before `to` if not given."),
        ("to" = Option<String>, Query, format = DateTime, description = "Now if not given. At most 366 days after `from`."),
        ("width" = Option<u32>, Query, description = "Pixels; 800 if not given.", minimum = 240, maximum = 2000),
        ("theme" = Option<Theme>, Query, description = "`light` if not given."),
        ("utc_offset" = Option<i32>, Query, description = "Minutes that the clock is before UTC, for the times below the chart; 0 if not given.", minimum = -900, maximum = 900),
    ),
    responses((status = 200, description = "The picture, SVG.", body = String, content_type = "image/svg+xml"))
)]
pub async fn handle(
    State(state): State<Arc<PlayersState>>,
    caller: ApiCaller,
    names: PathParams,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let project = caller.project(&state.auth, names.slug()).await?;
    let now = state.platform.clock.now();
    let (asked, chart, look) = parse(query.as_deref().unwrap_or_default(), now).map_err(invalid)?;
    let (slug, store, environment) = (&project.slug, &state.platform.store, asked.environment);
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
        // Of the step that is running nothing is written yet; that is no fall.
        points.pop_if(|last| last.peak == 0.0 && last.start + span.millis() > now);
        charts::playing(&points, to, look)
    } else {
        let counts = store.list_distinct_players(slug, environment, DAYS as usize);
        charts::distinct(&periods(&counts.await?, chart, now), look)
    };
    let svg = drawn.map_err(|error| ApiError::internal(&error))?;
    let mut response = (StatusCode::OK, svg).into_response();
    for (name, value) in [
        (header::CONTENT_TYPE, "image/svg+xml"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

/// The last days or months, oldest first, those without a player as well.
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

fn parse(query: &str, now: Millis) -> Result<(Asked, Chart, Look), &'static str> {
    let mut chart = Chart::Playing;
    let mut look = Look {
        width: WIDTH,
        height: HEIGHT,
        is_dark: false,
        utc_offset: 0,
    };
    // The rest is asked for as the numbers themselves are.
    let mut rest = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "show" => {
                chart = match &*value {
                    "playing" => Chart::Playing,
                    "days" => Chart::Days,
                    "months" => Chart::Months,
                    _ => return Err("`show` is playing, days or months."),
                }
            }
            "width" => {
                let width = digits(&value).filter(|width| WIDTHS.contains(width));
                look.width = width.ok_or("`width` is from 240 to 2000.")?;
            }
            "theme" => {
                look.is_dark = match &*value {
                    "light" => false,
                    "dark" => true,
                    _ => return Err("`theme` is light or dark."),
                }
            }
            "utc_offset" => {
                let offset = value.parse::<i32>().ok();
                let offset = offset.filter(|offset| (-OFFSET..=OFFSET).contains(offset));
                let minutes = offset.ok_or("`utc_offset` is from -900 to 900.")?;
                look.utc_offset = Millis::from(minutes) * MINUTE;
            }
            "env" | "from" | "to" => {
                rest.append_pair(&name, &value);
            }
            _ => {
                return Err("The query may have show, env, from, to, width, theme and utc_offset.");
            }
        }
    }
    Ok((Asked::parse(&rest.finish(), now)?, chart, look))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_795_262_400_000;

    #[test]
    fn what_is_asked_for_is_taken_or_what_is_wrong_is_said() {
        let (_, chart, look) =
            parse("show=days&width=360&theme=dark&utc_offset=-90&env=dev", NOW).unwrap();
        assert_eq!((chart, look.width, look.is_dark), (Chart::Days, 360, true));
        assert_eq!(look.utc_offset, -90 * MINUTE);
        for wrong in [
            "show=all",
            "width=239",
            "width=2001",
            "theme=blue",
            "utc_offset=901",
            "env=test",
            "from=now",
            "to=9999-12-31T23:30:00Z",
            "x=1",
        ] {
            assert!(parse(wrong, NOW).is_err(), "{wrong}");
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
