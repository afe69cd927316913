//! Administration, under `/api/admin/` on the console's origin: players, keys, guests and projects.
//! Only for administrators, with a bearer token of the audience `platform:console`; the audit log
//! records their actions.
//!
//! | module | contents |
//! |---|---|
//! | [`caller`] | the extractor for administrators |
//! | [`views`] | the responses |
//! | [`names`] | the names of players that a response mentions |
//! | the others | one endpoint each |

pub mod caller;
pub mod events;
pub mod guests;
pub mod keys;
mod names;
pub mod nodes;
pub mod owner;
pub mod player;
pub mod players;
pub mod projects;
pub mod sessions;
mod state;
pub mod suspension;
pub mod views;

use std::sync::Arc;

pub use self::state::AdminState;
use axum::extract::{FromRef, FromRequestParts, Path};
use axum::http::request::Parts;
use platform_protocol::problem::ProblemCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::auth::AuthState;
use crate::domain::player::Player;
use crate::web::api_error::ApiError;

/// Returns the endpoints of administration, with their descriptions.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Arc<AdminState>: FromRef<S>,
    Arc<AuthState>: FromRef<S>,
{
    OpenApiRouter::default()
        .routes(routes!(players::handle))
        .routes(routes!(player::handle))
        .routes(routes!(suspension::suspend, suspension::lift))
        .routes(routes!(sessions::end))
        .routes(routes!(events::handle))
        .routes(routes!(keys::list))
        .routes(routes!(keys::rotate))
        .routes(routes!(keys::revoke))
        .routes(routes!(guests::handle))
        .routes(routes!(nodes::handle))
        .routes(routes!(projects::handle))
        .routes(routes!(owner::handle))
}

/// A path that names a player.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct PlayerPath {
    /// The player's id.
    #[param(value_type = String)]
    pub player: Uuid,
}

/// The player that a path names.
#[derive(Debug)]
pub struct NamedPlayer(pub Player);

impl<S> FromRequestParts<S> for NamedPlayer
where
    S: Send + Sync,
    Arc<AdminState>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let nobody =
            || ApiError::new(ProblemCode::NotFound).with_detail("This player does not exist.");
        let path = Path::<PlayerPath>::from_request_parts(parts, state).await;
        let Path(path) = path.map_err(|_| nobody())?;
        let state = Arc::<AdminState>::from_ref(state);
        let player = state.platform.store.find_player(path.player).await?;
        player.map(Self).ok_or_else(nobody)
    }
}
