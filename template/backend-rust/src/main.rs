//! The game's backend in Rust, the same as the one in TypeScript:
//!
//! | request | response |
//! |---|---|
//! | `GET /api/me` | `{"sub","username","is_anon","best"}` |
//! | `POST /api/score` `{"score":n}` | `{"best"}` |
//!
//! `AUTH_ISSUER`, `AUTH_AUDIENCE` and `AUTH_JWKS_URL` come from the platform (locally from `npm run
//! dev:rust`); you can set `PORT`, `HOST` and `SCORES`. A handler that takes a `Player` runs only
//! for a verified player; everyone else gets a 401 with Problem Details.

mod problem;
mod scores;

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, FromRef, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use platform_verifier::{Player, Verifier, VerifierConfig};
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::scores::Scores;

/// The maximum plausible score; higher ones were made up.
const MOST: u64 = 100_000;

#[derive(Clone)]
struct AppState {
    verifier: Arc<Verifier>,
    scores: Arc<Scores>,
}

/// Lets `Player` find the verifier in the state.
impl FromRef<AppState> for Arc<Verifier> {
    fn from_ref(state: &AppState) -> Self {
        Self::clone(&state.verifier)
    }
}

#[derive(Serialize)]
struct Me {
    sub: String,
    username: String,
    is_anon: bool,
    best: u64,
}

async fn me(State(state): State<AppState>, Player(player): Player) -> Json<Me> {
    // Use `sub` as the key of your data; `username` can change.
    let best = state.scores.best(&player.sub).await;
    Json(Me {
        sub: player.sub,
        username: player.username,
        is_anon: player.is_anon,
        best,
    })
}

#[derive(Deserialize)]
struct Score {
    score: u64,
}

#[derive(Serialize)]
struct Best {
    best: u64,
}

async fn score(
    State(state): State<AppState>,
    Player(player): Player,
    body: Result<Json<Score>, JsonRejection>,
) -> Result<Json<Best>, Problem> {
    let Ok(Json(Score {
        score: score @ 0..=MOST,
    })) = body
    else {
        return Err(Problem::invalid("The score must be a whole number."));
    };
    let best = state
        .scores
        .raise(player.sub, score)
        .await
        .map_err(|error| {
            // The cause is only in the log, not in the response.
            eprintln!("the scores cannot be written: {error}");
            Problem::internal()
        })?;
    Ok(Json(Best { best }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let variable = |name: &str, default: &str| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty());
        value.unwrap_or_else(|| default.to_owned())
    };
    let state = AppState {
        verifier: Arc::new(Verifier::new(VerifierConfig::from_env()?)?),
        scores: Arc::new(Scores::open(variable("SCORES", "scores.json").into()).await?),
    };
    let app = Router::new()
        .route("/api/me", get(me))
        .route("/api/score", post(score))
        .fallback(async || Problem::not_found())
        .layer(DefaultBodyLimit::max(1024))
        .with_state(state);
    let address = format!(
        "{}:{}",
        variable("HOST", "127.0.0.1"),
        variable("PORT", "8788")
    );
    let listener = tokio::net::TcpListener::bind(&address).await?;
    println!("The backend listens on {address}.");
    axum::serve(listener, app)
        .with_graceful_shutdown(async {
            // If no handler can be installed, the default one ends the program.
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    Ok(())
}
