//! `GET /api/projects/<slug>/errors`: how many errors each deployment of an
//! environment had.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::caller::ApiCaller;
use crate::clock::Millis;
use crate::domain::counting::{DAY, HOUR, Span};
use crate::domain::date::rfc3339;
use crate::domain::log::{ERRORS_KNOWN, ErrorCount, ErrorQuery};
use crate::http::api::query::Range;
use crate::http::api::{EnvironmentName, PathParams, answer, invalid};
use crate::http::api_error::ApiError;
use crate::logs::LogsState;

/// Deployments of one answer, at most.
const DEPLOYMENTS: usize = 100;

/// Errors by deployment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Errors)]
pub struct ErrorsView {
    /// `dev` or `prod`.
    pub environment: String,
    /// The start of the first hour that was counted (RFC 3339).
    #[schema(format = DateTime)]
    pub from: String,
    /// The end of the last hour that was counted (RFC 3339).
    #[schema(format = DateTime)]
    pub to: String,
    /// Those with an error or a warning, at most a hundred. The one that had
    /// some last comes first.
    pub deployments: Vec<DeploymentErrors>,
}

/// What went wrong with one deployment.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeploymentErrors {
    /// Its id; null where nothing was deployed.
    #[schema(required, format = "uuid")]
    pub deployment: Option<String>,
    /// How many errors its pages have logged, each repeat for itself.
    pub errors: u64,
    /// How many warnings.
    pub warnings: u64,
    /// When the last of both arrived (RFC 3339).
    #[schema(format = DateTime)]
    pub last_at: String,
}

/// Answers how many errors and warnings there were. They are counted by the hour
/// as they arrive, so this takes no longer where there are many.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/errors",
    operation_id = "countErrors",
    params(
        ("slug" = String, Path, description = "The project.", example = "my-game"),
        ("env" = Option<EnvironmentName>, Query, description = "`prod` if not given."),
        ("from" = Option<String>, Query, format = DateTime, description = "A day before `to` if not given. Its hour is counted as a whole."),
        ("to" = Option<String>, Query, format = DateTime, description = "Now if not given. Its hour is counted as a whole."),
    ),
    responses((status = 200, description = "Errors by deployment.", body = ErrorsView))
)]
pub async fn handle(
    State(state): State<Arc<LogsState>>,
    caller: ApiCaller,
    names: PathParams,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let project = caller.project(&state.auth, names.slug()).await?;
    let now = state.platform.clock.now();
    let query = parse(query.as_deref().unwrap_or_default(), project.slug, now).map_err(invalid)?;
    let (environment, from, to) = (query.environment, query.from, query.to);
    let counts = state.platform.store.count_errors(query).await?;
    let view = ErrorsView {
        environment: environment.as_str().to_owned(),
        from: rfc3339(from),
        to: rfc3339(to),
        deployments: counts.into_iter().map(DeploymentErrors::from).collect(),
    };
    answer(StatusCode::OK, &view)
}

fn parse(query: &str, slug: String, now: Millis) -> Result<ErrorQuery, &'static str> {
    let range = Range::parse(query)?;
    let too_long = "From `from` to `to` there are 91 days at most.";
    let (from, to) = range.bounds(now, ERRORS_KNOWN + DAY, too_long)?;
    Ok(ErrorQuery {
        slug,
        environment: range.environment,
        from: Span::Hour.start(from),
        to: Span::Hour.start(to + HOUR - 1),
        limit: DEPLOYMENTS,
    })
}

impl From<ErrorCount> for DeploymentErrors {
    fn from(count: ErrorCount) -> Self {
        Self {
            deployment: count.deployment.map(|id| id.to_string()),
            errors: count.errors,
            warnings: count.warnings,
            last_at: rfc3339(count.last_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use platform_protocol::names::Environment;

    use super::*;

    const NOW: Millis = 1_795_262_400_000;

    #[test]
    fn hours_are_counted_whole() {
        let query = |query: &str| parse(query, "demo".into(), NOW + 1);
        let asked = query("").unwrap();
        assert_eq!((asked.from, asked.to), (NOW - DAY, NOW + HOUR));
        let asked = query("env=dev&from=2026-11-21T10:59:00Z&to=2026-11-21T11:00:00Z").unwrap();
        assert_eq!((asked.from, asked.to), (NOW - 2 * HOUR, NOW - HOUR));
        assert_eq!(asked.environment, Environment::Dev);
        for wrong in [
            "env=test",
            "from=now",
            "from=2026-11-21T12:00:00Z&to=2026-11-21T12:00:00Z",
            "from=2026-01-01T00:00:00Z",
            "to=9999-12-31T23:30:00Z",
            "limit=1",
        ] {
            assert!(query(wrong).is_err(), "{wrong}");
        }
    }
}
