//! The current players of each audience.

use platform_domain::clock::Millis;
use platform_domain::page::PageId;
use platform_domain::presence::{PAGES, PLAYING_MILLIS};
use redis::aio::MultiplexedConnection;
use uuid::Uuid;

use crate::LiveRedis;
use crate::link::Unavailable;

/// How long the keys of an audience without heartbeats are kept. Its last players are forgotten with
/// them.
const KEPT: Millis = 10 * PLAYING_MILLIS;
/// How many players who were silent for too long are forgotten with each heartbeat: more than one,
/// so that they never accumulate.
const FORGOTTEN: usize = 4;
/// How many audiences are counted at once, so that no other call waits for long.
const BATCH: usize = 200;

/// The keys of an audience. They have the same hash tag, so that a script may use them together.
fn keys(audience: &str) -> [String; 4] {
    ["playing", "beats", "pages", "players"].map(|name| key(audience, name))
}

/// An audience has one shard.
fn key(audience: &str, name: &str) -> String {
    format!("platform:{{{audience}:0}}:{name}")
}

impl LiveRedis {
    /// Records that `page` shows the game to `player` now. Returns the time since the player's
    /// previous heartbeat on any node: 0 if there was none lately, negative if the clock was set
    /// back.
    ///
    /// # Errors
    /// [`Unavailable`]: it may have been recorded all the same.
    pub async fn beat(
        &self,
        audience: &str,
        player: Uuid,
        page: PageId,
    ) -> Result<Millis, Unavailable> {
        let mut beat = self.scripts.beat.prepare_invoke();
        for key in keys(audience) {
            beat.key(key);
        }
        beat.arg(player.as_bytes().as_slice())
            .arg(page.0.as_slice());
        beat.arg(PLAYING_MILLIS).arg(PAGES).arg(FORGOTTEN).arg(KEPT);
        let call = |mut connection: MultiplexedConnection| async move {
            beat.invoke_async(&mut connection).await
        };
        self.link.call(call).await
    }

    /// Records that `page` was closed. Returns whether it was known.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub async fn leave(&self, audience: &str, page: PageId) -> Result<bool, Unavailable> {
        let mut leave = self.scripts.leave.prepare_invoke();
        for key in keys(audience) {
            leave.key(key);
        }
        leave.arg(page.0.as_slice());
        let call = |mut connection: MultiplexedConnection| async move {
            leave.invoke_async(&mut connection).await
        };
        self.link.call(call).await
    }

    /// Returns the number of current players of each of these audiences, in their order.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub async fn count_playing(&self, audiences: &[&str]) -> Result<Vec<usize>, Unavailable> {
        let mut counts = Vec::with_capacity(audiences.len());
        for batch in audiences.chunks(BATCH) {
            let mut count = redis::pipe();
            for audience in batch {
                let count = count.cmd("EVAL").arg(&self.scripts.count).arg(1);
                count.arg(key(audience, "playing")).arg(PLAYING_MILLIS);
            }
            let call = |mut connection: MultiplexedConnection| async move {
                count.query_async::<Vec<usize>>(&mut connection).await
            };
            counts.extend(self.link.call(call).await?);
        }
        Ok(counts)
    }
}
