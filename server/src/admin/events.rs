//! `GET /api/admin/events`: the log of security events.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::caller::AdminCaller;
use super::names::{mentioned, names_of};
use super::views::{EventView, EventsView};
use crate::admin::AdminState;
use crate::domain::audit::{ActorKind, AuditKind, AuditQuery};
use crate::http::api::query::{digits, limit};
use crate::http::api::{answer, invalid};
use crate::http::api_error::ApiError;

/// Events of one answer where nothing else is asked for.
const EVENTS: usize = 100;
/// Events of one answer, at most.
const MAX_EVENTS: usize = 1_000;

/// Answers a page of events.
///
/// # Errors
/// `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/admin/events",
    operation_id = "listEvents",
    params(
        ("player" = Option<String>, Query, description = "Only those in which this player had a part, also as an administrator."),
        ("kind" = Option<String>, Query, description = "Only events of this kind, such as `suspended`."),
        ("actor" = Option<String>, Query, description = "Only what was done by `self` (the player, or the platform), `operator` or `admin`."),
        ("before" = Option<i64>, Query, description = "Only those before the one of this number.", minimum = 0),
        ("limit" = Option<u32>, Query, description = "100 if not given.", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "The events.", body = EventsView))
)]
pub async fn handle(
    State(state): State<Arc<AdminState>>,
    _admin: AdminCaller,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let query = parse(query.as_deref().unwrap_or_default())?;
    let events = state.platform.store.list_audit_events(query).await?;
    let full = events.len() == query.limit;
    let names = names_of(&state, events.iter().flat_map(mentioned)).await?;
    let view = EventsView {
        before: events.last().map(|event| event.id).filter(|_| full),
        events: events.into_iter().map(EventView::from).collect(),
        names,
    };
    answer(StatusCode::OK, &view)
}

fn parse(query: &str) -> Result<AuditQuery, ApiError> {
    let mut parsed = AuditQuery::newest(EVENTS);
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "player" => {
                let player = value.parse();
                parsed.player = Some(player.map_err(|_| invalid("`player` is a player's id."))?);
            }
            "kind" => {
                let kind = AuditKind::from_name(&value);
                parsed.kind = Some(kind.ok_or_else(|| invalid("There is no such `kind`."))?);
            }
            "actor" => {
                let actor = ActorKind::from_name(&value);
                let actor = actor.ok_or_else(|| invalid("`actor` is self, operator or admin."));
                parsed.actor = Some(actor?);
            }
            "before" => {
                let before = digits(&value);
                parsed.before =
                    Some(before.ok_or_else(|| invalid("`before` is an event's number."))?);
            }
            "limit" => parsed.limit = limit(&value, MAX_EVENTS).map_err(invalid)?,
            _ => {
                return Err(invalid(
                    "The query may have player, kind, actor, before and limit.",
                ));
            }
        }
    }
    Ok(parsed)
}
