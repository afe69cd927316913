//! Frontend logs: received records, their search and their streams. `platform-frontend-logs` reads what
//! pages send.
//!
//! | module | contents |
//! |---|---|
//! | [`handlers`] | the endpoints: receiving records (`ingest`), search, streams, errors |
//! | [`grouping`] | grouping errors by their causes |
//! | [`limits`] | the rate limits on received records |
//! | [`streams`] | sending new records to those who follow |
//! | [`sweep`] | removing old records, and those over a quota |

pub mod grouping;
pub mod handlers;
pub mod limits;
pub mod streams;
pub mod sweep;

use std::sync::Arc;

use axum::extract::FromRef;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::grouping::GroupErrors;
use self::grouping::sources::Sources;
use self::handlers::{
    error_group, error_groups, error_removal, error_state, errors, search, stream,
};
pub use self::limits::{LogLimits, LogRates, WAITING};
pub(crate) use self::sweep::SweepLogs;
use crate::auth::AuthState;
use crate::games::GamesState;
use crate::logs::streams::LogStreams;
use crate::platform::Platform;
use crate::projects::ProjectsState;

/// Returns the endpoints for frontend logs, with their descriptions.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Arc<LogsState>: FromRef<S>,
    Arc<AuthState>: FromRef<S>,
{
    OpenApiRouter::default()
        .routes(routes!(search::handle))
        .routes(routes!(stream::handle))
        .routes(routes!(errors::handle))
        .routes(routes!(error_groups::handle, error_removal::found))
        .routes(routes!(
            error_group::handle,
            error_state::handle,
            error_removal::one
        ))
}

/// The state of frontend logs.
#[derive(Debug)]
pub struct LogsState {
    /// The state that every slice uses.
    pub platform: Arc<Platform>,
    /// The games, whose files errors refer to.
    pub games: Arc<GamesState>,
    /// The projects, whose people decide about errors.
    pub projects: Arc<ProjectsState>,
    /// The senders and readers of logs.
    pub auth: Arc<AuthState>,
    /// The rate limits on received records.
    pub limits: LogLimits,
    /// The open streams.
    pub streams: LogStreams,
    /// The sources of scripts, for places in stacks.
    pub sources: Sources,
}
