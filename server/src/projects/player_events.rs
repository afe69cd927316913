//! Tells projects' webhooks that asked for it about deleted players.
//!
//! An event is sent at least once: if its receiver responded and this could not be noted, it is sent
//! again with the same id.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::domain::player_event::{PLAYER_DELETED, SentPlayerEvent, WaitingPlayerEvent};
use crate::domain::webhook::{WebhookOutcome, retry_at};
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::projects::{ProjectsState, alerts};
use crate::store::StoreError;

/// The interval of looking for events to send.
const LOOK: Duration = Duration::from_secs(1);
/// The maximum number of events that are looked at together.
const EVENTS: usize = 256;

/// Sends the events that are due, one after the other for each project, and returns how many were
/// delivered. If one fails, the others of its project wait for the next call.
///
/// # Errors
/// The first error of the store. The events of the other projects are sent all the same.
pub async fn send_player_events(state: &Arc<ProjectsState>) -> Result<usize, StoreError> {
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    let mut projects: BTreeMap<String, Vec<WaitingPlayerEvent>> = BTreeMap::new();
    for event in store.list_due_player_events(now, EVENTS).await? {
        projects.entry(event.slug.clone()).or_default().push(event);
    }
    // Dropped with this future, if another node takes over.
    let mut sending = JoinSet::new();
    for (slug, events) in projects {
        let state = Arc::clone(state);
        sending.spawn(async move { send_of_project(&state, &slug, events).await });
    }
    let (mut delivered, mut failed) = (0, None);
    while let Some(sent) = sending.join_next().await {
        match sent {
            Ok(Ok(number)) => delivered += number,
            Ok(Err(error)) => failed = Some(error),
            // The panic hook has logged a panic, and the events are still due.
            Err(_) => {}
        }
    }
    failed.map_or(Ok(delivered), Err)
}

/// Sends events of one project, until one of them fails.
async fn send_of_project(
    state: &ProjectsState,
    slug: &str,
    events: Vec<WaitingPlayerEvent>,
) -> Result<usize, StoreError> {
    let platform = &state.platform;
    let store = &platform.store;
    let webhook = store.find_webhook(slug).await?;
    let wanted = webhook.filter(|webhook| webhook.off_at.is_none() && webhook.wants.players);
    let Some(webhook) = wanted else {
        store.give_up_player_events(slug).await?;
        return Ok(0);
    };
    let mut delivered = 0;
    for event in events {
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        let id = format!("player-event-{}-{slug}", event.id);
        let told = (id.as_str(), PLAYER_DELETED, event.made_at);
        let sent = alerts::send(state, &webhook, told, data).await;
        let outcome = alerts::note(state, slug, &webhook, &sent).await?;
        let tries = event.tries.saturating_add(1);
        let now = platform.clock.now();
        let is_over = outcome.is_delivered || outcome.is_gone;
        let next_at = if is_over {
            None
        } else {
            retry_at(tries, now, &*platform.entropy)
        };
        if next_at.is_none() && !is_over {
            tracing::info!(slug, id, tries, "an event about a player is given up");
        }
        let sent = SentPlayerEvent {
            id: event.id,
            outcome: WebhookOutcome {
                at: now,
                status: sent.answer.as_ref().ok().copied(),
                error: sent.answer.err(),
            },
            is_delivered: outcome.is_delivered,
            next_at,
        };
        store.note_player_event(sent).await?;
        if outcome.is_gone {
            store.give_up_player_events(slug).await?;
        }
        if !outcome.is_delivered {
            // The next one would most probably fail as well. It stays due.
            break;
        }
        delivered += 1;
    }
    Ok(delivered)
}

/// The job that sends them.
#[derive(Debug)]
pub(crate) struct SendPlayerEvents(pub(crate) Arc<ProjectsState>);

#[async_trait]
impl Job for SendPlayerEvents {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("send-player-events", LOOK).on_one_node()
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let sent = send_player_events(&self.0).await;
        sent.map(drop)
            .map_err(JobError::because("events about players could not be sent"))
    }
}
