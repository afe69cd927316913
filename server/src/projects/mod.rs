//! Projects: making them, deploying to them, their settings and their standing.
//!
//! | module | holds |
//! |---|---|
//! | [`handlers`] | the endpoints, one a file, and what they answer |
//! | [`deploy`](mod@deploy) | how a set of files becomes what an environment shows |
//! | [`archive`] | reading a deploy's archive, of which nothing is believed |
//! | [`staging`] | the files of a deployment before they are kept: names and limits |
//! | [`removal`] | the end of deleted projects |
//! | [`settings_limits`] | how often a project's settings may be written |

pub mod archive;
pub mod deploy;
pub mod handlers;
pub mod removal;
pub mod settings_limits;
pub mod staging;
mod state;

use std::sync::Arc;

use axum::extract::FromRef;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::handlers::{
    backend, create_project, deployed_file, deployment, environment, frames, isolation,
    list_projects, project, rollback, takedown, test_token,
};
pub use self::state::ProjectsState;
use crate::auth::AuthState;

/// The calls about projects, with their descriptions.
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
        .routes(routes!(environment::handle))
        .routes(routes!(rollback::handle))
        .routes(routes!(deployed_file::handle))
        .routes(routes!(backend::handle))
        .routes(routes!(isolation::handle))
        .routes(routes!(frames::handle))
}

/// The call that takes archives, for as long as one flows.
pub fn upload_routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Arc<ProjectsState>: FromRef<S>,
    Arc<AuthState>: FromRef<S>,
{
    OpenApiRouter::default().routes(routes!(deployment::handle))
}
