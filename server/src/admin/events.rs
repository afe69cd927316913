//! `GET /api/admin/events`: the audit log.

use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Deserializer, de};
use utoipa::IntoParams;
use uuid::Uuid;

use super::caller::AdminCaller;
use super::names::{mentioned, names_of};
use super::views::{EventView, EventsView};
use crate::admin::AdminState;
use crate::domain::audit::{ActorKind, AuditKind, AuditQuery};
use crate::web::api::query::{Within, digits, value};
use crate::web::api::{ApiJson, ApiQuery};
use crate::web::api_error::ApiError;

/// The default number of events in a response.
const EVENTS: usize = 100;

/// Which events are asked for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsQuery {
    /// Only events that involve this player, also as an administrator or a member.
    #[serde(deserialize_with = "player")]
    #[param(value_type = Option<String>)]
    player: Option<Uuid>,
    /// Only events of this kind, such as `suspended`.
    #[serde(deserialize_with = "kind")]
    #[param(value_type = Option<String>)]
    kind: Option<AuditKind>,
    /// Only events caused by `self` (the player, or the platform), `operator`, `admin` or `member`.
    #[serde(deserialize_with = "actor")]
    #[param(value_type = Option<String>)]
    actor: Option<ActorKind>,
    /// Only events before the one with this number.
    #[serde(deserialize_with = "before")]
    #[param(minimum = 0)]
    before: Option<i64>,
    /// The maximum number of entries; default 100.
    #[param(inline)]
    limit: Option<Within<1, 1_000>>,
}

/// Returns a page of events.
///
/// # Errors
/// `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/admin/events",
    operation_id = "listEvents",
    params(EventsQuery),
    responses((status = 200, description = "The events.", body = EventsView))
)]
pub async fn handle(
    State(state): State<Arc<AdminState>>,
    _admin: AdminCaller,
    ApiQuery(query): ApiQuery<EventsQuery>,
) -> Result<ApiJson<EventsView>, ApiError> {
    let query = query.into_audit_query();
    let events = state.platform.store.list_audit_events(query).await?;
    let full = events.len() == query.limit;
    let names = names_of(&state, events.iter().flat_map(mentioned)).await?;
    Ok(ApiJson(EventsView {
        before: events.last().map(|event| event.id).filter(|_| full),
        events: events.into_iter().map(EventView::from).collect(),
        names,
    }))
}

impl EventsQuery {
    /// Returns the query to the store.
    fn into_audit_query(self) -> AuditQuery {
        AuditQuery {
            player: self.player,
            kind: self.kind,
            actor: self.actor,
            before: self.before,
            ..AuditQuery::newest(self.limit.map_or(EVENTS, Within::count))
        }
    }
}

fn player<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Uuid>, D::Error> {
    value(from, |text| text.parse().ok(), "a player's id")
}

fn kind<'de, D: Deserializer<'de>>(from: D) -> Result<Option<AuditKind>, D::Error> {
    let kind = AuditKind::from_name(&String::deserialize(from)?);
    let kind = kind.ok_or_else(|| de::Error::custom("This `kind` does not exist."))?;
    Ok(Some(kind))
}

fn actor<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ActorKind>, D::Error> {
    value(
        from,
        ActorKind::from_name,
        "self, operator, admin or member",
    )
}

fn before<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    value(from, digits, "an event's number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::api::query::read;

    #[test]
    fn events_are_chosen_or_it_is_said_what_is_wrong() {
        let id = "0198c5a0-0000-7000-8000-000000000001";
        let query = format!("player={id}&kind=suspended&actor=self&before=7&limit=2");
        let query = read::<EventsQuery>(&query).unwrap().into_audit_query();
        assert_eq!(query.player, Some(id.parse().unwrap()));
        assert_eq!(query.kind, Some(AuditKind::Suspended));
        assert_eq!(query.actor, Some(ActorKind::Own));
        assert_eq!((query.before, query.limit), (Some(7), 2));
        assert_eq!(
            read::<EventsQuery>("").unwrap().into_audit_query().limit,
            EVENTS
        );
        for (query, sentence) in [
            ("player=ada", "`player` must be a player's id."),
            ("kind=played", "This `kind` does not exist."),
            (
                "actor=me",
                "`actor` must be self, operator, admin or member.",
            ),
            ("before=-1", "`before` must be an event's number."),
            ("limit=1001", "`limit` must be from 1 to 1000."),
            (
                "x=1",
                "Allowed parameters of the query: player, kind, actor, before and limit.",
            ),
        ] {
            let error = read::<EventsQuery>(query).unwrap_err();
            assert_eq!(error.to_string(), sentence, "{query}");
        }
    }
}
