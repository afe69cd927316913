//! Projects: creation, deployment, settings and taking down.
//!
//! | module | contents |
//! |---|---|
//! | [`handlers`] | the endpoints, one per file, and their responses |
//! | [`deploy`](mod@deploy) | deploying a set of files to an environment |
//! | [`alerts`], [`player_events`] | sending alerts about errors, and events about deleted players, to webhooks |
//! | [`domains`] | domains of projects' own: their records, and the daily look at them |
//! | [`removal`] | removal of deleted projects |
//! | [`settings_limits`] | rate limits on changes of a project's settings |

pub mod alerts;
pub mod deploy;
pub mod domains;
pub mod handlers;
pub mod player_events;
pub mod removal;
pub mod settings_limits;
mod state;

use std::sync::Arc;

use axum::extract::FromRef;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::handlers::{
    backend, create_project, deliveries, deploy_tokens, deployed_file, deployment, environment,
    frames, handover, invitations, isolation, list_projects, listing, pane, people, previews,
    project, rollback, takedown, test_token, tracing, webhook,
};
pub use self::state::ProjectsState;
use crate::auth::AuthState;

/// Returns the endpoints for projects, with their descriptions.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Arc<ProjectsState>: FromRef<S>,
    Arc<AuthState>: FromRef<S>,
{
    OpenApiRouter::default()
        .routes(routes!(list_projects::handle, create_project::handle))
        .routes(routes!(project::handle, takedown::delete))
        .routes(routes!(takedown::disable))
        .routes(routes!(takedown::enable))
        .routes(routes!(takedown::restore))
        .routes(routes!(test_token::handle))
        .routes(routes!(pane::handle))
        .routes(routes!(deploy_tokens::list, deploy_tokens::create))
        .routes(routes!(deploy_tokens::revoke))
        .routes(routes!(webhook::read, webhook::set, webhook::remove))
        .routes(routes!(webhook::test))
        .routes(routes!(deliveries::list))
        .routes(routes!(deliveries::replay))
        .routes(routes!(people::list))
        .routes(routes!(people::change_role, people::remove))
        .routes(routes!(handover::offer, handover::end))
        .routes(routes!(handover::accept))
        .routes(routes!(invitations::list, invitations::create))
        .routes(routes!(invitations::withdraw))
        .routes(routes!(invitations::read))
        .routes(routes!(invitations::accept))
        .routes(routes!(listing::read, listing::set))
        .routes(routes!(previews::list))
        .routes(routes!(previews::qr))
        .routes(routes!(environment::handle))
        .routes(routes!(rollback::handle))
        .routes(routes!(deployed_file::handle))
        .routes(routes!(backend::handle))
        .routes(routes!(isolation::handle))
        .routes(routes!(tracing::handle))
        .routes(routes!(frames::handle))
        .routes(routes!(handlers::domains::list, handlers::domains::create))
        .routes(routes!(handlers::domains::set, handlers::domains::remove))
        .routes(routes!(handlers::domains::verify))
}

/// Returns the endpoints that receive archives, which have no overall time limit.
pub fn upload_routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Arc<ProjectsState>: FromRef<S>,
    Arc<AuthState>: FromRef<S>,
{
    OpenApiRouter::default()
        .routes(routes!(deployment::handle))
        .routes(routes!(previews::deploy, previews::remove))
}
