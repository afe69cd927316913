//! `GET /api/projects/<slug>/errors`: how many errors each deployment of an
//! environment had.

use std::sync::Arc;

use axum::extract::State;
use platform_protocol::names::Environment;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::project_caller::ProjectPath;
use crate::auth::scoped_caller::LogReader;
use crate::clock::Millis;
use crate::domain::counting::{DAY, HOUR, Span};
use crate::domain::date::rfc3339;
use crate::domain::log::{ERRORS_KNOWN, ErrorCount, ErrorQuery};
use crate::logs::LogsState;
use crate::web::api::range::{Range, Time};
use crate::web::api::{ApiJson, ApiQuery, EnvironmentName, invalid};
use crate::web::api_error::ApiError;

/// The maximum number of deployments in a response.
const DEPLOYMENTS: usize = 100;

/// Which errors are counted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ErrorsQuery {
    /// The environment; default `prod`.
    #[param(value_type = Option<EnvironmentName>)]
    env: Option<Environment>,
    /// The start; default one day before `to`. Its hour is counted as a whole.
    #[param(inline)]
    from: Option<Time>,
    /// The end; default now. Its hour is counted as a whole.
    #[param(inline)]
    to: Option<Time>,
}

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
    /// The deployments with an error or a warning, at most a hundred, those with the latest one
    /// first.
    pub deployments: Vec<DeploymentErrors>,
}

/// The errors and warnings of one deployment.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeploymentErrors {
    /// Its id; null if nothing was deployed.
    #[schema(required, format = "uuid")]
    pub deployment: Option<String>,
    /// The number of errors that its pages logged; each repetition counts.
    pub errors: u64,
    /// The number of warnings.
    pub warnings: u64,
    /// When the last error or warning arrived (RFC 3339).
    #[schema(format = DateTime)]
    pub last_at: String,
}

/// Returns the numbers of errors and warnings. They are counted by the hour as they arrive, so
/// large numbers take no longer.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/errors",
    operation_id = "countErrors",
    params(ProjectPath, ErrorsQuery),
    responses((status = 200, description = "Errors by deployment.", body = ErrorsView))
)]
pub async fn handle(
    State(state): State<Arc<LogsState>>,
    reader: LogReader,
    ApiQuery(query): ApiQuery<ErrorsQuery>,
) -> Result<ApiJson<ErrorsView>, ApiError> {
    let now = state.platform.clock.now();
    let query = query.of(reader.project.slug, now).map_err(invalid)?;
    let (environment, from, to) = (query.environment, query.from, query.to);
    let counts = state.platform.store.count_errors(query).await?;
    Ok(ApiJson(ErrorsView {
        environment: environment.as_str().to_owned(),
        from: rfc3339(from),
        to: rfc3339(to),
        deployments: counts.into_iter().map(DeploymentErrors::from).collect(),
    }))
}

impl ErrorsQuery {
    /// Returns the query to the store for the project.
    fn of(self, slug: String, now: Millis) -> Result<ErrorQuery, &'static str> {
        let range = Range::new(self.from, self.to);
        let too_long = "`from` and `to` must not be more than 91 days apart.";
        let (from, to) = range.bounds(now, ERRORS_KNOWN + DAY, too_long)?;
        Ok(ErrorQuery {
            slug,
            environment: self.env.unwrap_or(Environment::Prod),
            from: Span::Hour.start(from),
            to: Span::Hour.start(to + HOUR - 1),
            limit: DEPLOYMENTS,
        })
    }
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
    use super::*;
    use crate::web::api::query::read;

    const NOW: Millis = 1_795_262_400_000;

    #[test]
    fn hours_are_counted_whole() {
        let query = |query: &str| {
            let query: ErrorsQuery = read(query).map_err(|error| error.to_string())?;
            query.of("demo".into(), NOW + 1).map_err(str::to_owned)
        };
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
