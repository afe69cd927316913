//! Who plays: heartbeats, what is counted of them, the ranking.
//!
//! | module | holds |
//! |---|---|
//! | [`handlers`] | the endpoints, one a file |
//! | [`counting`] | what is counted, kept and ranked |
//! | [`charts`] | players over time as pictures |

pub mod charts;
pub mod counting;
pub mod handlers;
mod state;

use std::sync::Arc;

use axum::extract::FromRef;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::handlers::{player_chart, players, ranking};
pub use self::state::PlayersState;
use crate::auth::AuthState;

/// The calls about players, with their descriptions.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Arc<PlayersState>: FromRef<S>,
    Arc<AuthState>: FromRef<S>,
{
    OpenApiRouter::default()
        .routes(routes!(ranking::handle))
        .routes(routes!(players::handle))
        .routes(routes!(player_chart::handle))
}
