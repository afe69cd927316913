//! Players: heartbeats, counts, the ranking.
//!
//! | module | contents |
//! |---|---|
//! | [`handlers`] | the endpoints, one per file |
//! | [`counting`] | counting, storing and ranking |
//! | [`charts`] | charts of players over time |
//! | [`recording`] | recording heartbeats, without a wait for other nodes |

pub mod charts;
pub mod counting;
pub mod handlers;
pub mod recording;
mod state;

use std::sync::Arc;

use axum::extract::FromRef;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::handlers::{own_games, player_chart, players, ranking};
pub use self::state::PlayersState;
use crate::auth::AuthState;

/// Returns the endpoints about players, with their descriptions.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Arc<PlayersState>: FromRef<S>,
    Arc<AuthState>: FromRef<S>,
{
    OpenApiRouter::default()
        .routes(routes!(ranking::handle))
        .routes(routes!(own_games::list))
        .routes(routes!(own_games::add, own_games::remove))
        .routes(routes!(players::handle))
        .routes(routes!(player_chart::handle))
}
