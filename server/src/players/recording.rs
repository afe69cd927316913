//! Records heartbeats that were accepted.

use std::sync::Arc;

use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::clock::Millis;
use crate::domain::page::PageId;
use crate::games::catalogue::Game;
use crate::players::PlayersState;

/// How many heartbeats this node tells the other nodes of at the same time. Each takes a second at
/// most.
const MOST: u32 = 4_096;

/// Heartbeats that were answered, and that the other nodes are still being told of.
#[derive(Debug)]
pub struct Recording(Arc<Semaphore>);

impl Default for Recording {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST as usize)))
    }
}

impl Recording {
    /// Waits until all of them are recorded.
    pub async fn finish(&self) {
        // It is never closed.
        let _ = self.0.acquire_many(MOST).await;
    }
}

/// A heartbeat that was accepted.
pub struct Beat {
    /// The game.
    pub game: Arc<Game>,
    /// The player.
    pub player: Uuid,
    /// The page.
    pub page: PageId,
    /// When it arrived.
    pub now: Millis,
}

impl Beat {
    /// Records it. Its answer is known, so nothing here waits for what nodes share.
    pub async fn record(self, state: &Arc<PlayersState>) {
        if !state.games.presence.is_shared() {
            self.record_now(state).await;
            return;
        }
        let Ok(permit) = Arc::clone(&state.recording.0).try_acquire_owned() else {
            // This node has more to do than it can. It counts the playing time that it knows of.
            state.counting.beat(&self.game, self.player, self.now, None);
            return;
        };
        let state = Arc::clone(state);
        tokio::spawn(async move {
            self.record_now(&state).await;
            drop(permit);
        });
    }

    async fn record_now(self, state: &PlayersState) {
        let (audience, presence) = (&self.game.audience, &state.games.presence);
        let beat = presence.beat(audience, self.player, self.page, self.now);
        let shared = beat.await;
        state
            .counting
            .beat(&self.game, self.player, self.now, shared);
    }
}
