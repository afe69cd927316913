//! `GET` and `POST /api/score`: the player's best score and the top ten.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use platform_protocol::problem::ProblemCode;
use platform_verifier::{GameTokenClaims, Player};
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::routes::AppState;
use crate::store::{ScoreError, ScoreStore, Standing};

/// No game without cheating ends above this.
const HIGHEST_SCORE: u32 = 1_000_000;

/// The body of `POST /api/score`.
#[derive(Debug, Deserialize)]
pub(crate) struct NewScore {
    score: u32,
}

/// The response of both calls.
#[derive(Debug, Serialize)]
pub(crate) struct Scores {
    /// The player's best score, 0 before the first.
    best: u32,
    /// The player's place among all, from 1; `null` before the first score.
    rank: Option<u32>,
    /// The ten best, best first; of equal scores, the earlier one first.
    top: Vec<TopEntry>,
}

/// One line of the top list. It does not contain `sub`, which is private.
#[derive(Debug, Serialize)]
struct TopEntry {
    username: String,
    best: u32,
    you: bool,
}

/// `GET /api/score`.
pub(crate) async fn show(
    Player(player): Player,
    State(state): State<AppState>,
) -> Result<Json<Scores>, Problem> {
    on_store(&state, player, |store, player| {
        store.standing(&player.sub, &player.username)
    })
    .await
}

/// `POST /api/score`.
pub(crate) async fn submit(
    Player(player): Player,
    State(state): State<AppState>,
    body: Result<Json<NewScore>, JsonRejection>,
) -> Result<Json<Scores>, Problem> {
    let Json(NewScore { score }) = body?;
    if score > HIGHEST_SCORE {
        return Err(Problem::new(
            ProblemCode::InvalidRequest,
            "This score is not possible.",
        ));
    }
    let now = i64::try_from(state.clock.now().as_millis()).unwrap_or(i64::MAX);
    on_store(&state, player, move |store, player| {
        store.record(&player.sub, &player.username, score, now)
    })
    .await
}

/// Runs one operation of the store outside of the asynchronous threads, which SQLite would block.
async fn on_store(
    state: &AppState,
    player: GameTokenClaims,
    operation: impl FnOnce(&ScoreStore, &GameTokenClaims) -> Result<Standing, ScoreError>
    + Send
    + 'static,
) -> Result<Json<Scores>, Problem> {
    let store = Arc::clone(&state.scores);
    let finished = tokio::task::spawn_blocking(move || {
        operation(&store, &player).map(|standing| Scores::of(standing, &player.sub))
    })
    .await;
    match finished {
        Ok(Ok(scores)) => Ok(Json(scores)),
        Ok(Err(error)) => {
            tracing::error!(%error, "a score operation failed");
            Err(ProblemCode::Internal.into())
        }
        Err(error) => {
            tracing::error!(%error, "a score operation did not finish");
            Err(ProblemCode::Internal.into())
        }
    }
}

impl Scores {
    fn of(standing: Standing, sub: &str) -> Self {
        let top = standing.top.into_iter().map(|entry| TopEntry {
            you: entry.sub == sub,
            username: entry.username,
            best: entry.best,
        });
        Self {
            best: standing.best,
            rank: standing.rank,
            top: top.collect(),
        }
    }
}
