//! Sends the alerts about groups of errors to projects' webhooks.
//!
//! An alert is sent at least once: if its receiver responded and this could not be noted, it is sent
//! again with the same id.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::StatusCode;
use platform_protocol::names::Environment;
use platform_protocol::paths::PROJECT_PAGES;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::clock::Millis;
use crate::domain::date::rfc3339;
use crate::domain::error_alert::WaitingAlert;
use crate::domain::webhook::{Webhook, WebhookOutcome, retry_at};
use crate::hosting::backends::{Event, Sent};
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::projects::ProjectsState;
use crate::store::StoreError;

/// The interval of looking for alerts to send.
const LOOK: Duration = Duration::from_secs(1);
/// How long one run takes up further alerts. The next one tries receivers again that failed.
const RUN: Duration = Duration::from_secs(30);
/// The maximum number of alerts that are looked at together.
const ALERTS: usize = 512;
/// The maximum number of alerts of one environment among them, which are sent one after the other.
const PER_ENVIRONMENT: usize = 8;
/// The projects whose alerts are sent at the same time.
const PARALLEL: usize = 32;

/// Sends the alerts that are due, also those that become due meanwhile, and returns how many were
/// delivered. Those of a project whose receiver fails wait for the next call.
///
/// # Errors
/// The first error of the store. The alerts of the other projects are sent all the same.
pub async fn send_alerts(state: &Arc<ProjectsState>) -> Result<usize, StoreError> {
    let store = &state.platform.store;
    // Dropped with this future, if another node takes over.
    let mut sending = JoinSet::new();
    let mut busy: BTreeSet<String> = BTreeSet::new();
    let (mut delivered, mut failed) = (0, None);
    let end = Instant::now() + RUN;
    loop {
        let mut due = Vec::new();
        if sending.len() < PARALLEL && Instant::now() < end {
            let now = state.platform.clock.now();
            due = store.list_due_alerts(now, PER_ENVIRONMENT, ALERTS).await?;
            due.retain(|alert| !busy.contains(&alert.slug));
        }
        let free = PARALLEL.saturating_sub(sending.len());
        for (slug, alerts) in by_project(due).into_iter().take(free) {
            busy.insert(slug.clone());
            let state = Arc::clone(state);
            sending.spawn(async move {
                let sent = send_of_project(&state, &slug, alerts).await;
                (slug, sent)
            });
        }
        // A slow receiver does not keep others from being told meanwhile.
        match timeout(LOOK, sending.join_next()).await {
            Ok(None) => break,
            Ok(Some(Ok((slug, Ok(sent))))) => {
                delivered += sent.delivered;
                if !sent.has_failed {
                    busy.remove(&slug);
                }
            }
            Ok(Some(Ok((_, Err(error))))) => failed = Some(error),
            // The panic hook has logged a panic, and the alerts are still due.
            Ok(Some(Err(_))) | Err(_) => {}
        }
    }
    failed.map_or(Ok(delivered), Err)
}

/// Groups alerts by their projects, that with the first alert first.
fn by_project(alerts: Vec<WaitingAlert>) -> Vec<(String, Vec<WaitingAlert>)> {
    let mut projects: Vec<(String, Vec<WaitingAlert>)> = Vec::new();
    for alert in alerts {
        match projects.iter_mut().find(|(slug, _)| *slug == alert.slug) {
            Some((_, alerts)) => alerts.push(alert),
            None => projects.push((alert.slug.clone(), vec![alert])),
        }
    }
    projects
}

/// What came of alerts of one project.
#[derive(Default)]
struct SentOfProject {
    delivered: usize,
    has_failed: bool,
}

/// Sends alerts of one project one after the other, until one of them fails.
async fn send_of_project(
    state: &ProjectsState,
    slug: &str,
    alerts: Vec<WaitingAlert>,
) -> Result<SentOfProject, StoreError> {
    let store = &state.platform.store;
    let webhook = store.find_webhook(slug).await?;
    let wanted = webhook.filter(|webhook| webhook.off_at.is_none() && webhook.wants.errors);
    let Some(webhook) = wanted else {
        store.remove_alerts(slug).await?;
        return Ok(SentOfProject::default());
    };
    let mut all = SentOfProject::default();
    for alert in alerts {
        let (kind, data) = event_of(state, &alert);
        let id = format!("alert-{}-{slug}", alert.id);
        let sent = send(state, &webhook, (&id, &kind, alert.made_at), data).await;
        let outcome = note(state, slug, &webhook, &sent).await?;
        if outcome.is_gone {
            tracing::info!(slug, "the webhook's receiver is gone, so it was turned off");
            store.remove_alerts(slug).await?;
            break;
        }
        if outcome.is_delivered {
            store.remove_alert(alert.id).await?;
            all.delivered += 1;
            continue;
        }
        let tries = alert.tries.saturating_add(1);
        let platform = &state.platform;
        match retry_at(tries, platform.clock.now(), &*platform.entropy) {
            Some(at) => store.postpone_alert(alert.id, tries, at).await?,
            None => {
                tracing::info!(
                    slug,
                    id,
                    tries,
                    "an alert could not be sent and is given up"
                );
                store.remove_alert(alert.id).await?;
            }
        }
        // The next one would most probably fail as well. It stays due.
        all.has_failed = true;
        break;
    }
    Ok(all)
}

/// What a request to a webhook means for it.
pub(super) struct Outcome {
    /// Whether the receiver has taken the event.
    pub(super) is_delivered: bool,
    /// Whether it says that there will never be a receiver again.
    pub(super) is_gone: bool,
}

/// Notes what came of a request to a project's webhook.
pub(super) async fn note(
    state: &ProjectsState,
    slug: &str,
    webhook: &Webhook,
    sent: &Sent,
) -> Result<Outcome, StoreError> {
    let status = sent.answer.as_ref().ok().copied();
    let is_gone = status == Some(StatusCode::GONE.as_u16());
    let outcome = WebhookOutcome {
        at: state.platform.clock.now(),
        status,
        error: sent.answer.as_ref().err().cloned(),
    };
    let store = &state.platform.store;
    store
        .note_webhook_outcome(slug, &webhook.url, outcome, is_gone)
        .await?;
    Ok(Outcome {
        is_delivered: status.is_some_and(|status| (200..300).contains(&status)),
        is_gone,
    })
}

/// Signs an event with this id, type and time, and sends it.
pub(super) async fn send(
    state: &ProjectsState,
    webhook: &Webhook,
    (id, kind, at): (&str, &str, Millis),
    data: Value,
) -> Sent {
    let body = json!({ "type": kind, "timestamp": rfc3339(at), "data": data }).to_string();
    // The receiver refuses a signature that was made long ago, so each try has its own.
    let seconds = state.platform.clock.now().div_euclid(1_000);
    let event = Event {
        signature: webhook.secret.sign(id, seconds, &body),
        id: id.to_owned(),
        seconds,
        body,
    };
    state
        .hosting
        .backends
        .send_event(&webhook.url, &event)
        .await
}

/// Returns the type and the data of an alert's event.
fn event_of(state: &ProjectsState, alert: &WaitingAlert) -> (String, Value) {
    let (group, detail) = (alert.alert.group.to_string(), &alert.alert.detail);
    let data = json!({
        "project": alert.slug,
        "environment": alert.environment.as_str(),
        "group": group,
        "kind": detail.kind,
        "message": detail.message,
        "place": detail.place,
        "count": detail.count,
        "count_in_hour": detail.in_hour,
        "first_at": rfc3339(detail.first_at),
        "last_at": rfc3339(detail.last_at),
        "left_out": detail.left_out,
        "url": page(state, &alert.slug, alert.environment, &group),
    });
    (format!("error.{}", alert.alert.reason.as_str()), data)
}

/// The address of a group's page in the console.
fn page(state: &ProjectsState, slug: &str, environment: Environment, group: &str) -> String {
    let origin = &state.platform.origin;
    let environment = environment.as_str();
    format!("{origin}{PROJECT_PAGES}/{slug}/errors/{group}?env={environment}")
}

/// The job that sends alerts.
#[derive(Debug)]
pub(crate) struct SendAlerts(pub(crate) Arc<ProjectsState>);

#[async_trait]
impl Job for SendAlerts {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("send-alerts", LOOK).on_one_node()
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let sent = send_alerts(&self.0).await;
        sent.map(drop)
            .map_err(JobError::because("alerts could not be sent"))
    }
}
