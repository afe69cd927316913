//! Presence in memory, for one node.
//!
//! Each audience has a room. A room's players are distributed over shards by their id, so that
//! heartbeats of different players rarely wait for each other. A heartbeat of a known page takes
//! one lock and allocates nothing. There is also an index from page to player, for a final
//! heartbeat that only names its page. No two locks are held at the same time, except in the sweep.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use uuid::Uuid;

use super::presence::Presence;
use crate::clock::Millis;
use crate::domain::page::PageId;
use crate::domain::presence::{self, PAGES};

/// The number of shards of a room.
const SHARDS: usize = 16;

/// Presence of every audience.
#[derive(Debug, Default)]
pub struct MemoryPresence {
    /// Replaced as a whole when there is a new audience, which is rare, so finding a room takes no
    /// lock.
    rooms: ArcSwap<HashMap<Arc<str>, Arc<Room>>>,
}

impl MemoryPresence {
    /// Creates it without players.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn find(&self, audience: &str) -> Option<Arc<Room>> {
        self.rooms.load().get(audience).cloned()
    }

    fn find_or_add(&self, audience: &str) -> Arc<Room> {
        if let Some(room) = self.find(audience) {
            return room;
        }
        let added = Arc::new(Room::default());
        let name: Arc<str> = audience.into();
        self.rooms.rcu(|rooms| {
            let mut rooms = HashMap::clone(rooms);
            rooms
                .entry(Arc::clone(&name))
                .or_insert_with(|| Arc::clone(&added));
            rooms
        });
        // If two callers add one at the same time, both use the first one.
        self.find(audience).unwrap_or(added)
    }
}

#[async_trait]
impl Presence for MemoryPresence {
    async fn beat(
        &self,
        audience: &str,
        player: Uuid,
        page: PageId,
        now: Millis,
    ) -> Option<Millis> {
        self.find_or_add(audience).beat(player, page, now);
        // There are no other nodes.
        None
    }

    async fn leave(&self, audience: &str, page: PageId) -> Option<bool> {
        Some(self.find(audience).is_some_and(|room| room.leave(page)))
    }

    async fn playing_each(&self, audiences: &[&str], now: Millis) -> Vec<Option<usize>> {
        let playing = |audience: &&str| self.find(audience).map_or(0, |room| room.playing(now));
        audiences.iter().map(playing).map(Some).collect()
    }

    async fn sweep(&self, now: Millis) {
        for room in self.rooms.load().values() {
            room.sweep(now);
        }
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn is_known(&self) -> bool {
        true
    }
}

/// A page and its last heartbeat.
#[derive(Clone, Copy, Debug)]
struct Seen {
    page: PageId,
    at: Millis,
}

impl Seen {
    fn counts(self, now: Millis) -> bool {
        presence::counts(self.at, now)
    }
}

type Players = HashMap<Uuid, Vec<Seen>>;
type Pages = HashMap<PageId, Uuid>;

/// The players of one audience.
#[derive(Debug, Default)]
struct Room {
    players: [Mutex<Players>; SHARDS],
    pages: [Mutex<Pages>; SHARDS],
}

/// A panic of a holder leaves no partial change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the shard of 16 bytes. The last bytes of a UUID are random, in version 4 and 7.
fn shard(bytes: &[u8; 16]) -> usize {
    usize::from(bytes[15]) % SHARDS
}

impl Room {
    fn players(&self, player: Uuid) -> MutexGuard<'_, Players> {
        lock(&self.players[shard(player.as_bytes())])
    }

    fn pages(&self, page: PageId) -> MutexGuard<'_, Pages> {
        lock(&self.pages[shard(&page.0)])
    }

    fn beat(&self, player: Uuid, page: PageId, now: Millis) {
        let displaced = {
            let mut players = self.players(player);
            let seen = players
                .entry(player)
                .or_insert_with(|| Vec::with_capacity(1));
            if let Some(known) = seen.iter_mut().find(|known| known.page == page) {
                known.at = now;
                return;
            }
            let displaced = (seen.len() >= PAGES).then(|| remove_oldest(seen)).flatten();
            seen.push(Seen { page, at: now });
            displaced
        };
        if let Some(displaced) = displaced {
            self.pages(displaced).remove(&displaced);
        }
        let before = self.pages(page).insert(page, player);
        if let Some(before) = before.filter(|before| *before != player) {
            self.forget(before, page);
        }
    }

    fn leave(&self, page: PageId) -> bool {
        let player = self.pages(page).remove(&page);
        if let Some(player) = player {
            self.forget(player, page);
        }
        player.is_some()
    }

    /// Removes a page from a player, and the player if it was the last page.
    fn forget(&self, player: Uuid, page: PageId) {
        let mut players = self.players(player);
        if let Some(seen) = players.get_mut(&player) {
            seen.retain(|known| known.page != page);
            if seen.is_empty() {
                players.remove(&player);
            }
        }
    }

    fn playing(&self, now: Millis) -> usize {
        let counts = |seen: &&Vec<Seen>| seen.iter().any(|known| known.counts(now));
        self.players
            .iter()
            .map(|shard| lock(shard).values().filter(counts).count())
            .sum()
    }

    fn sweep(&self, now: Millis) {
        for shard in &self.players {
            let mut players = lock(shard);
            players.retain(|_, seen| {
                seen.retain(|known| known.counts(now));
                !seen.is_empty()
            });
            if players.capacity() > 4 * (players.len() + 16) {
                players.shrink_to_fit();
            }
        }
        for shard in &self.pages {
            let mut pages = lock(shard);
            pages.retain(|page, player| {
                let players = self.players(*player);
                let seen = players.get(player);
                seen.is_some_and(|seen| seen.iter().any(|known| known.page == *page))
            });
            if pages.capacity() > 4 * (pages.len() + 16) {
                pages.shrink_to_fit();
            }
        }
    }
}

fn remove_oldest(seen: &mut Vec<Seen>) -> Option<PageId> {
    let (oldest, _) = seen.iter().enumerate().min_by_key(|(_, known)| known.at)?;
    Some(seen.swap_remove(oldest).page)
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod tests;
