//! Administration, under `/api/admin/` on the console's origin: players, keys,
//! guests and projects. For administrators alone, by a bearer token of the
//! audience `platform:console`; what is done is kept with who did it.
//!
//! | module | holds |
//! |---|---|
//! | [`caller`] | who may |
//! | [`views`] | what is answered |
//! | [`names`] | the names of whom it mentions |
//! | the others | one address each |

pub mod caller;
pub mod events;
pub mod guests;
pub mod keys;
mod names;
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
use axum::Router;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::routing::{get, post, put};
use platform_protocol::problem::ProblemCode;
use uuid::Uuid;

use crate::auth::AuthState;
use crate::domain::player::Player;
use crate::http::api::PathParams;
use crate::http::api_error::ApiError;

/// The addresses of administration.
pub fn routes<S>() -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    Arc<AdminState>: FromRef<S>,
    Arc<AuthState>: FromRef<S>,
{
    Router::new()
        .route("/api/admin/players", get(players::handle))
        .route("/api/admin/players/{player}", get(player::handle))
        .route(
            "/api/admin/players/{player}/suspension",
            put(suspension::suspend).delete(suspension::lift),
        )
        .route(
            "/api/admin/players/{player}/end-sessions",
            post(sessions::end),
        )
        .route("/api/admin/events", get(events::handle))
        .route("/api/admin/keys", get(keys::list))
        .route("/api/admin/keys/rotate", post(keys::rotate))
        .route("/api/admin/keys/{kid}/revoke", post(keys::revoke))
        .route("/api/admin/guests", get(guests::handle))
        .route("/api/admin/projects", get(projects::handle))
        .route("/api/admin/projects/{slug}/owner", put(owner::handle))
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
        let Ok(names) = PathParams::from_request_parts(parts, state).await;
        let nobody =
            || ApiError::new(ProblemCode::NotFound).with_detail("There is no such player.");
        let id: Uuid = names.get("player").parse().map_err(|_| nobody())?;
        let state = Arc::<AdminState>::from_ref(state);
        let player = state.platform.store.find_player(id).await?;
        player.map(Self).ok_or_else(nobody)
    }
}
