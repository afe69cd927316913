//! The current players of each audience.
//!
//! An audience has one shard, whose keys are on one server. In a cluster, an audience with a crowd
//! of players has sixteen, which different servers share: a player's shard follows from the last
//! byte of its id. The first shard says whether there are others, until it has been silent for
//! [`KEPT`]. When a crowd comes, play time between the last heartbeat before and the first after
//! that is lost, and a player with several pages counts twice until each of them has sent one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use platform_domain::clock::Millis;
use platform_domain::page::PageId;
use platform_domain::presence::{PAGES, PLAYING_MILLIS};
use tokio::time::Instant;
use uuid::Uuid;

use crate::LiveRedis;
use crate::link::{Unavailable, Urgency};
use crate::place::Connection;

/// How long the keys of an audience without heartbeats are kept. Its last players are forgotten with
/// them.
const KEPT: Millis = 10 * PLAYING_MILLIS;
/// How many players who were silent for too long are forgotten with each heartbeat: more than one,
/// so that they never accumulate.
const FORGOTTEN: usize = 4;
/// How many audiences are counted at once, so that no other call waits for long.
const BATCH: usize = 200;
/// How many shards an audience with a crowd has.
const SHARDS: u8 = 16;
/// How many players are a crowd.
pub(crate) const CROWD: usize = 20_000;
/// How long it is believed that an audience has several shards.
const BELIEVED: Duration = Duration::from_secs(60);

/// Returns the hash tag of a shard of an audience: a script may use all its keys together.
fn tag(audience: &str, shard: u8) -> String {
    format!("{audience}:{shard}")
}

fn key(tag: &str, name: &str) -> String {
    format!("platform:{{{tag}}}:{name}")
}

/// Returns the shard of a player of an audience with several. The last bytes of a UUID are random,
/// in version 4 and 7.
fn shard(player: Uuid) -> u8 {
    player.as_bytes()[15] % SHARDS
}

/// What became of a heartbeat, as the script says it.
const NEW_PAGE: u8 = 1;
/// The audience has several shards, and this is not the player's.
const ELSEWHERE: u8 = 2;

/// The audiences that have several shards, as far as is known, and since when.
#[derive(Debug, Default)]
pub(crate) struct Spread(Mutex<HashMap<Box<str>, Instant>>);

impl Spread {
    fn contains(&self, audience: &str) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(audience) {
            Some(since) if since.elapsed() < BELIEVED => true,
            Some(_) => {
                known.remove(audience);
                false
            }
            None => false,
        }
    }

    fn add(&self, audience: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(audience.into(), Instant::now());
    }
}

impl LiveRedis {
    /// Records that `page` shows the game to `player` now. Returns the time since the player's
    /// previous heartbeat on any node: 0 if there was none lately, negative if the clock was set
    /// back. No later heartbeat says this again, so a late answer is waited for: for a second, for
    /// which a request should not wait.
    ///
    /// # Errors
    /// [`Unavailable`]: it may have been recorded all the same.
    pub async fn beat(
        &self,
        audience: &str,
        player: Uuid,
        page: PageId,
    ) -> Result<Millis, Unavailable> {
        let home = shard(player);
        if !self.spread.contains(audience) {
            let (gap, became) = self.beat_in(audience, 0, player, page).await?;
            if became != ELSEWHERE {
                return Ok(gap);
            }
            self.spread.add(audience);
        }
        let (gap, became) = self.beat_in(audience, home, player, page).await?;
        if became == NEW_PAGE {
            // It may have shown the game to another player, or the player had another shard. If this
            // is not recorded, that player counts until its heartbeat is too old.
            let others = (0..SHARDS).filter(|shard| *shard != home);
            join_all(others.map(|shard| self.leave_in(audience, shard, page))).await;
        }
        Ok(gap)
    }

    async fn beat_in(
        &self,
        audience: &str,
        shard: u8,
        player: Uuid,
        page: PageId,
    ) -> Result<(Millis, u8), Unavailable> {
        let tag = tag(audience, shard);
        let mut beat = self.scripts.beat.prepare_invoke();
        for key in self.keys(&tag, shard) {
            beat.key(key);
        }
        beat.arg(player.as_bytes().as_slice())
            .arg(page.0.as_slice());
        beat.arg(PLAYING_MILLIS).arg(PAGES).arg(FORGOTTEN).arg(KEPT);
        beat.arg(self.crowd).arg(self::shard(player));
        // The first shard may have been lost.
        beat.arg(u8::from(self.spread.contains(audience)));
        let call =
            |mut connection: Connection| async move { beat.invoke_async(&mut connection).await };
        self.link.call_with(Urgency::Background, &tag, call).await
    }

    /// Records that `page` was closed. Returns whether it was known.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub async fn leave(&self, audience: &str, page: PageId) -> Result<bool, Unavailable> {
        if !self.spread.contains(audience) {
            let became = self.leave_in(audience, 0, page).await?;
            if became != ELSEWHERE {
                return Ok(became > 0);
            }
            self.spread.add(audience);
        }
        let shards = (0..SHARDS).map(|shard| self.leave_in(audience, shard, page));
        let became = try_join_all(shards).await?;
        Ok(became.contains(&1))
    }

    async fn leave_in(&self, audience: &str, shard: u8, page: PageId) -> Result<u8, Unavailable> {
        let tag = tag(audience, shard);
        let mut leave = self.scripts.leave.prepare_invoke();
        for key in self.keys(&tag, shard) {
            leave.key(key);
        }
        leave.arg(page.0.as_slice());
        let call =
            |mut connection: Connection| async move { leave.invoke_async(&mut connection).await };
        self.link.call(&tag, call).await
    }

    /// Returns the keys of a shard. In a cluster, those of the first one include the key that says
    /// whether there are others.
    fn keys(&self, tag: &str, shard: u8) -> Vec<String> {
        let names = ["playing", "beats", "pages", "players"];
        let spread = (self.link.is_cluster() && shard == 0).then_some("spread");
        let names = names.into_iter().chain(spread);
        names.map(|name| key(tag, name)).collect()
    }

    /// Returns the number of current players of each of these audiences, in their order.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub async fn count_playing(&self, audiences: &[&str]) -> Result<Vec<usize>, Unavailable> {
        let mut counts = Vec::with_capacity(audiences.len());
        for batch in audiences.chunks(BATCH) {
            if self.link.is_cluster() {
                let each = batch.iter().map(|audience| self.count_in_cluster(audience));
                counts.extend(try_join_all(each).await?);
            } else {
                counts.extend(self.count_batch(batch).await?);
            }
        }
        Ok(counts)
    }

    async fn count_batch(&self, audiences: &[&str]) -> Result<Vec<usize>, Unavailable> {
        let mut count = redis::pipe();
        for audience in audiences {
            self.add_count(&mut count, &tag(audience, 0));
        }
        let call = |mut connection: Connection| async move {
            count.query_async::<Vec<usize>>(&mut connection).await
        };
        // Only a cluster looks at the tag.
        self.link.call("", call).await
    }

    /// Counts the players of one audience, whose shards different servers may have.
    async fn count_in_cluster(&self, audience: &str) -> Result<usize, Unavailable> {
        let tag = tag(audience, 0);
        let mut count = redis::pipe();
        self.add_count(&mut count, &tag);
        count.cmd("EXISTS").arg(key(&tag, "spread"));
        let call = |mut connection: Connection| async move {
            count.query_async::<(usize, bool)>(&mut connection).await
        };
        let (first, is_spread) = self.link.call(&tag, call).await?;
        if is_spread {
            self.spread.add(audience);
        } else if !self.spread.contains(audience) {
            return Ok(first);
        }
        let others = (1..SHARDS).map(|shard| self.count_in(audience, shard));
        let others = try_join_all(others).await?;
        Ok(first + others.into_iter().sum::<usize>())
    }

    async fn count_in(&self, audience: &str, shard: u8) -> Result<usize, Unavailable> {
        let tag = tag(audience, shard);
        let mut count = redis::pipe();
        self.add_count(&mut count, &tag);
        let call = |mut connection: Connection| async move {
            count.query_async::<(usize,)>(&mut connection).await
        };
        self.link.call(&tag, call).await.map(|(players,)| players)
    }

    fn add_count(&self, pipe: &mut redis::Pipeline, tag: &str) {
        let count = pipe.cmd("EVAL").arg(&self.scripts.count).arg(1);
        count.arg(key(tag, "playing")).arg(PLAYING_MILLIS);
    }
}
