//! `GET /api/projects/<slug>/webhook/deliveries` and `POST …/deliveries/<id>/replay`: what was sent
//! about deleted players.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use platform_protocol::problem::ProblemCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::webhook::DeliveryView;
use crate::auth::project_caller::{ProjectEditor, ProjectPath, ProjectReader};
use crate::domain::date::rfc3339;
use crate::domain::player_event::{PLAYER_DELETED, PlayerEvent};
use crate::projects::ProjectsState;
use crate::projects::settings_limits::Act;
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// The maximum number of deliveries in a response.
const LISTED: usize = 50;

/// A delivery in a path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct DeliveryPath {
    /// The number of the delivery.
    delivery: i64,
}

/// An event about a player, and what became of it. It does not say who the player was.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PlayerEventDelivery)]
pub struct PlayerEventView {
    /// Its number.
    pub id: i64,
    /// Its type.
    #[schema(example = "player.deleted")]
    pub r#type: String,
    /// When it happened (RFC 3339).
    #[schema(format = DateTime)]
    pub made_at: String,
    /// How often sending has failed.
    pub tries: u16,
    /// When it is sent next (RFC 3339); null if it was delivered or given up.
    #[schema(required, format = DateTime)]
    pub next_at: Option<String>,
    /// When it was delivered (RFC 3339).
    #[schema(required, format = DateTime)]
    pub delivered_at: Option<String>,
    /// What came of the last request.
    #[schema(required)]
    pub last: Option<DeliveryView>,
}

/// The deliveries of a project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PlayerEventDeliveries)]
pub struct PlayerEventsView {
    /// The last 50 of seven days, newest first.
    pub deliveries: Vec<PlayerEventView>,
}

impl From<PlayerEvent> for PlayerEventView {
    fn from(event: PlayerEvent) -> Self {
        Self {
            id: event.id,
            r#type: PLAYER_DELETED.to_owned(),
            made_at: rfc3339(event.made_at),
            tries: event.tries,
            next_at: event.next_at.map(rfc3339),
            delivered_at: event.delivered_at.map(rfc3339),
            last: event.last.map(DeliveryView::from),
        }
    }
}

async fn deliveries(state: &ProjectsState, slug: &str) -> Result<PlayerEventsView, ApiError> {
    let events = state
        .platform
        .store
        .list_player_events(slug, LISTED)
        .await?;
    Ok(PlayerEventsView {
        deliveries: events.into_iter().map(PlayerEventView::from).collect(),
    })
}

/// Lists what was sent to the webhook of a project about deleted players.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/webhook/deliveries",
    operation_id = "listWebhookDeliveries",
    params(ProjectPath),
    responses((status = 200, description = "The deliveries.", body = PlayerEventsView))
)]
pub async fn list(
    State(state): State<Arc<ProjectsState>>,
    reader: ProjectReader,
) -> Result<ApiJson<PlayerEventsView>, ApiError> {
    deliveries(&state, &reader.project.slug).await.map(ApiJson)
}

/// Sends an event to the webhook of a project again, within seconds.
///
/// # Errors
/// `not-found`, `not-allowed`, `too-many-requests`.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/webhook/deliveries/{delivery}/replay",
    operation_id = "replayWebhookDelivery",
    params(ProjectPath, DeliveryPath),
    responses((status = 200, description = "The deliveries; this one is due.", body = PlayerEventsView))
)]
pub async fn replay(
    State(state): State<Arc<ProjectsState>>,
    editor: ProjectEditor,
    path: Result<Path<DeliveryPath>, PathRejection>,
) -> Result<ApiJson<PlayerEventsView>, ApiError> {
    let missing = || {
        ApiError::new(ProblemCode::NotFound).with_detail(
            "There is no such delivery. They are kept for seven days, with the project's webhook.",
        )
    };
    let Path(DeliveryPath { delivery }) = path.map_err(|_| missing())?;
    state
        .count(Act::Setting, &editor.caller, &editor.project, editor.access)
        .await?;
    let (slug, now) = (&editor.project.slug, state.platform.clock.now());
    let store = &state.platform.store;
    if !store.replay_player_event(slug, delivery, now).await? {
        return Err(missing());
    }
    deliveries(&state, slug).await.map(ApiJson)
}
