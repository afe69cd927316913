//! Who plays, and the best round, which the game's backend keeps.

use platform_game::{PlatformError, Player, Retry, fetch};
use serde::{Deserialize, Serialize};

/// Where the backend keeps it.
const SCORE: &str = "/api/score";

/// What the backend knows about a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The points of the best round.
    pub best: u32,
}

/// A round that was played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Played {
    /// Its points.
    pub points: u32,
}

/// Returns who plays, and the best round.
///
/// # Errors
/// There is no player, or the backend does not answer.
pub async fn load() -> Result<(Player, Standing), PlatformError> {
    let player = platform_game::player().await?;
    let standing = fetch(SCORE).retry(Retry::default()).json().await?;
    Ok((player, standing))
}

/// Sends a round. It may arrive twice, since only the best one counts.
///
/// # Errors
/// The backend does not answer.
pub async fn save(points: u32) -> Result<Standing, PlatformError> {
    let played = Played { points };
    let call = fetch(SCORE).put(&played).retry(Retry::default());
    call.json().await
}

#[cfg(test)]
mod tests {
    use platform_game::{Problem, stub};

    use super::*;

    #[tokio::test]
    async fn the_best_round_is_loaded_and_saved_although_the_backend_starts_only_now() {
        let starts = Problem {
            status: 502,
            ..Problem::default()
        };
        stub::refuse("GET", SCORE, PlatformError::of(starts));
        stub::answer("GET", SCORE, &Standing { best: 120 });
        stub::answer("PUT", SCORE, &Standing { best: 260 });
        let (player, standing) = load().await.unwrap();
        assert_eq!(
            (player.username.as_str(), standing.best),
            ("test-guest-1", 120)
        );
        assert_eq!(save(260).await.unwrap(), Standing { best: 260 });
        let sent = stub::sent();
        assert_eq!(sent.len(), 3);
        let body = sent[2].body.as_deref().unwrap();
        let played: Played = serde_json::from_str(body).unwrap();
        assert_eq!(played, Played { points: 260 });
    }
}
