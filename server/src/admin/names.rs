//! The names of players that a response mentions by their ids.

use uuid::Uuid;

use super::views::PlayerNames;
use crate::admin::AdminState;
use crate::domain::audit::{Actor, AuditEvent};
use crate::web::api_error::ApiError;

/// Returns the players of an event.
pub(super) fn mentioned(event: &AuditEvent) -> impl Iterator<Item = Uuid> + use<> {
    let actor = match event.actor {
        Actor::Admin(actor) | Actor::Member(actor) => Some(actor),
        Actor::Own | Actor::Operator => None,
    };
    [event.player, event.other, actor].into_iter().flatten()
}

/// Returns the current names of these players.
///
/// # Errors
/// Errors of the store.
pub(super) async fn names_of(
    state: &AdminState,
    players: impl Iterator<Item = Uuid>,
) -> Result<PlayerNames, ApiError> {
    let names = state
        .platform
        .store
        .list_usernames(players.collect())
        .await?;
    let names = names.into_iter();
    Ok(names.map(|(id, name)| (id.to_string(), name)).collect())
}
