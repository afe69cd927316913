//! Events about players: the part of the store that knows which webhooks are still to be told.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::date::rfc3339;
use platform_domain::player_event::{PlayerEvent, SentPlayerEvent, WaitingPlayerEvent};
use serde_json::json;
use uuid::Uuid;

use super::StoreError;

/// Returns what webhooks are told about a deleted player: the id, and those of the guests that were
/// merged into it.
#[must_use]
pub fn deleted_data(player: Uuid, guests: &[Uuid], now: Millis) -> String {
    let guests: Vec<String> = guests.iter().map(Uuid::to_string).collect();
    json!({
        "sub": player.to_string(),
        "merged_subs": guests,
        "deleted_at": rfc3339(now),
    })
    .to_string()
}

/// Operations on events about players, which
/// [`delete_player`](super::DeletionStore::delete_player) adds for every project whose webhook asked
/// for them. [`Store`](super::Store) documents what every method guarantees.
#[async_trait]
pub trait PlayerEventStore: Send + Sync {
    /// Returns events that are to be sent by `now`, at most `limit`: those that are due for longest
    /// first.
    async fn list_due_player_events(
        &self,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<WaitingPlayerEvent>, StoreError>;

    /// Notes what became of sending an event. One that was removed stays so.
    async fn note_player_event(&self, sent: SentPlayerEvent) -> Result<(), StoreError>;

    /// Gives up what is to be sent to a project's webhook, which does not want it any more.
    async fn give_up_player_events(&self, slug: &str) -> Result<(), StoreError>;

    /// Returns a project's events, newest first.
    async fn list_player_events(
        &self,
        slug: &str,
        limit: usize,
    ) -> Result<Vec<PlayerEvent>, StoreError>;

    /// Lets an event of a project be sent again at once. Returns whether there is such an event.
    async fn replay_player_event(
        &self,
        slug: &str,
        id: i64,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Removes events from before, settled or not, at most `limit`. Returns how many.
    async fn sweep_player_events(&self, before: Millis, limit: usize) -> Result<usize, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_names_the_player_and_the_guests_that_became_it() {
        let told = deleted_data(Uuid::nil(), &[Uuid::max()], 0);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let expected = json!({
            "sub": "00000000-0000-0000-0000-000000000000",
            "merged_subs": ["ffffffff-ffff-ffff-ffff-ffffffffffff"],
            "deleted_at": "1970-01-01T00:00:00Z",
        });
        assert_eq!(told, expected);
    }
}
