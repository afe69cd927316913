//! `GET`, `PUT` and `DELETE /api/projects/<slug>/webhook`, and `POST …/webhook/test`: where the
//! project's alerts are sent, and what is told of deleted players.

use std::sync::Arc;

use axum::extract::State;
use platform_protocol::people::Role;
use platform_protocol::problem::ProblemCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;
use utoipa::ToSchema;

use crate::auth::caller::Access;
use crate::auth::project_caller::{ProjectEditor, ProjectPath, ProjectReader};
use crate::domain::date::rfc3339;
use crate::domain::webhook::{NewWebhook, Wants, Webhook, WebhookOutcome, WebhookSecret};
use crate::hosting::backends::{AddressPolicy, Sent};
use crate::projects::settings_limits::Act;
use crate::projects::{ProjectsState, alerts};
use crate::web::api::{ApiJson, invalid};
use crate::web::api_error::ApiError;

/// The maximum number of bytes of an address.
const BYTES: usize = 500;

/// What a webhook is told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = WebhookEvents)]
pub enum Events {
    /// Groups of errors: `error.new`, `error.regressed` and `error.growing`.
    Errors,
    /// Deleted players: `player.deleted`.
    Players,
}

/// The webhook to set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewWebhook)]
pub struct WantedWebhook {
    /// Where alerts are sent: an `https` address, without a name, a password and a fragment. On a
    /// platform under `localhost` it may be an `http` address.
    #[schema(
        max_length = 500,
        pattern = r"^https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[!$-;=?-Z_a-z~]*)?$",
        example = "https://hooks.example/platform"
    )]
    url: String,
    /// Whether to replace the secret of a webhook that exists. Alerts are signed with the new one
    /// at once.
    #[serde(default)]
    #[schema(default = false)]
    new_secret: bool,
    /// What it is told about, at least one of them. Without this member that stays as it is; a new
    /// webhook is told about errors.
    #[serde(default)]
    #[schema(min_items = 1)]
    events: Option<Vec<Events>>,
}

/// What came of the last request to a webhook.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub struct DeliveryView {
    /// When it ended (RFC 3339).
    #[schema(format = DateTime)]
    pub at: String,
    /// The status of the response; null if there was none.
    #[schema(required, example = 204)]
    pub status: Option<u16>,
    /// Why there was none.
    #[schema(required)]
    pub error: Option<String>,
}

/// The webhook of a project.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub struct WebhookView {
    /// Where alerts are sent; null for viewers, because an address may contain a secret.
    #[schema(required)]
    pub url: Option<String>,
    /// What it is told about.
    pub events: Vec<Events>,
    /// When the project got it (RFC 3339).
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was turned off, because its receiver responded with 410 Gone (RFC 3339). Setting it
    /// again turns it on.
    #[schema(required, format = DateTime)]
    pub off_at: Option<String>,
    /// What came of the last request.
    #[schema(required)]
    pub last: Option<DeliveryView>,
}

/// The webhook of a project, if there is one.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProjectWebhook)]
pub struct ProjectWebhookView {
    /// The webhook; null if the project has none.
    #[schema(required)]
    pub webhook: Option<WebhookView>,
}

/// The webhook of a project after it was set.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SetWebhook)]
pub struct SetWebhookView {
    /// The webhook.
    pub webhook: WebhookView,
    /// The secret with which alerts are signed, if it is a new one. No later response has it.
    #[schema(required, example = "whsec_…")]
    pub secret: Option<String>,
}

/// What came of a test.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookTest)]
pub struct TestView {
    /// The status of the response; null if there was none.
    #[schema(required, example = 204)]
    pub status: Option<u16>,
    /// How long it took.
    pub milliseconds: u64,
    /// A sentence about the response, or about the reason why there was none.
    pub sentence: String,
}

impl WebhookView {
    fn of(webhook: Webhook, access: Access) -> Self {
        let is_shown = access != Access::Role(Role::Viewer);
        Self {
            url: is_shown.then_some(webhook.url),
            events: Events::of(webhook.wants),
            created_at: rfc3339(webhook.created_at),
            off_at: webhook.off_at.map(rfc3339),
            last: webhook.last.map(DeliveryView::from),
        }
    }
}

impl From<WebhookOutcome> for DeliveryView {
    fn from(outcome: WebhookOutcome) -> Self {
        Self {
            at: rfc3339(outcome.at),
            status: outcome.status,
            error: outcome.error,
        }
    }
}

impl Events {
    fn of(wants: Wants) -> Vec<Self> {
        let errors = wants.errors.then_some(Self::Errors);
        let players = wants.players.then_some(Self::Players);
        errors.into_iter().chain(players).collect()
    }

    /// Returns what is wanted, or a sentence with the error.
    fn read(wanted: &[Self]) -> Result<Wants, &'static str> {
        if wanted.is_empty() {
            return Err("A webhook is told about something: errors, players, or both.");
        }
        Ok(Wants {
            errors: wanted.contains(&Self::Errors),
            players: wanted.contains(&Self::Players),
        })
    }
}

impl From<Sent> for TestView {
    fn from(sent: Sent) -> Self {
        let Sent {
            answer,
            milliseconds,
        } = sent;
        let sentence = match &answer {
            Ok(410) => "It responded with 410, which means that it is gone, so the webhook is \
                        turned off now. Save it again to turn it on."
                .to_owned(),
            Ok(status) if (200..300).contains(status) => {
                format!("It responded with {status} in {milliseconds} ms.")
            }
            Ok(status) if (300..400).contains(status) => format!(
                "It responded with {status}, but redirects are not followed: set the address to \
                 which it leads."
            ),
            Ok(status) => format!(
                "It responded with {status} in {milliseconds} ms. An alert would be sent again, \
                 until the response is 2xx."
            ),
            Err(why) => format!(
                "There was no response: {why}. An alert would be sent again, until the response \
                 is 2xx."
            ),
        };
        Self {
            status: answer.ok(),
            milliseconds,
            sentence,
        }
    }
}

/// Returns the webhook of a project.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/webhook",
    operation_id = "readWebhook",
    params(ProjectPath),
    responses((status = 200, description = "The webhook, without its secret.", body = ProjectWebhookView))
)]
pub async fn read(
    State(state): State<Arc<ProjectsState>>,
    reader: ProjectReader,
) -> Result<ApiJson<ProjectWebhookView>, ApiError> {
    let slug = &reader.project.slug;
    let webhook = state.platform.store.find_webhook(slug).await?;
    Ok(ApiJson(ProjectWebhookView {
        webhook: webhook.map(|webhook| WebhookView::of(webhook, reader.access)),
    }))
}

/// Sets the webhook of a project.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`, `too-many-requests`.
#[utoipa::path(
    put,
    path = "/api/projects/{slug}/webhook",
    operation_id = "setWebhook",
    params(ProjectPath),
    request_body = WantedWebhook,
    responses((status = 200, description = "The webhook, as it is now, with its secret if that is new.", body = SetWebhookView))
)]
pub async fn set(
    State(state): State<Arc<ProjectsState>>,
    editor: ProjectEditor,
    ApiJson(wanted): ApiJson<WantedWebhook>,
) -> Result<ApiJson<SetWebhookView>, ApiError> {
    let platform = &state.platform;
    let reach = state.hosting.backends.reach();
    let url = address(&wanted.url, reach, platform.origin.is_local()).map_err(invalid)?;
    let wants = wanted.events.as_deref().map(Events::read).transpose();
    let wants = wants.map_err(invalid)?;
    state
        .count(Act::Setting, &editor.caller, &editor.project, editor.access)
        .await?;
    let secret = WebhookSecret::generate(&*platform.entropy);
    let new = NewWebhook {
        url,
        secret: secret.clone(),
        rotate: wanted.new_secret,
        wants,
    };
    let (slug, now) = (&editor.project.slug, platform.clock.now());
    let webhook = platform
        .store
        .set_webhook(slug, new, editor.by(), now)
        .await?;
    let is_new = webhook.secret == secret;
    Ok(ApiJson(SetWebhookView {
        webhook: WebhookView::of(webhook, editor.access),
        secret: is_new.then(|| secret.expose().to_owned()),
    }))
}

/// Removes the webhook of a project, if there is one. Alerts that wait are not sent.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    delete,
    path = "/api/projects/{slug}/webhook",
    operation_id = "removeWebhook",
    params(ProjectPath),
    responses((status = 200, description = "The project has no webhook.", body = ProjectWebhookView))
)]
pub async fn remove(
    State(state): State<Arc<ProjectsState>>,
    editor: ProjectEditor,
) -> Result<ApiJson<ProjectWebhookView>, ApiError> {
    let platform = &state.platform;
    let (slug, now) = (&editor.project.slug, platform.clock.now());
    let store = &platform.store;
    store.remove_webhook(slug, editor.by(), now).await?;
    store.remove_alerts(slug).await?;
    Ok(ApiJson(ProjectWebhookView { webhook: None }))
}

/// Sends a test event to the webhook of a project at once.
///
/// # Errors
/// `not-found`, `not-allowed`, `too-many-requests`.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/webhook/test",
    operation_id = "testWebhook",
    params(ProjectPath),
    responses((status = 200, description = "What came of it.", body = TestView))
)]
pub async fn test(
    State(state): State<Arc<ProjectsState>>,
    editor: ProjectEditor,
) -> Result<ApiJson<TestView>, ApiError> {
    let platform = &state.platform;
    let slug = &editor.project.slug;
    let webhook = platform.store.find_webhook(slug).await?.ok_or_else(|| {
        ApiError::new(ProblemCode::NotFound)
            .with_detail("This project has no webhook. Set one first.")
    })?;
    state
        .count(Act::Setting, &editor.caller, &editor.project, editor.access)
        .await?;
    let now = platform.clock.now();
    let id = format!("test-{}", platform.entropy.uuid_v7(now));
    let data = json!({ "project": slug });
    let sent = alerts::send(&state, &webhook, (&id, "test", now), data).await;
    alerts::note(&state, slug, &webhook, &sent).await?;
    Ok(ApiJson(sent.into()))
}

/// Returns a webhook's address in the parser's form, or a sentence with the error.
fn address(text: &str, reach: &AddressPolicy, is_local: bool) -> Result<String, &'static str> {
    const FORM: &str = "A webhook's address is https://<host>/<path>, without a name, a password \
                        and a fragment, and at most 500 bytes long.";
    const HOST: &str = "Alerts cannot be sent to this address: it must be public, and neither the \
                        platform itself nor on a port of another protocol.";
    let url = Url::parse(text).map_err(|_| FORM)?;
    let has_scheme = url.scheme() == "https" || (is_local && url.scheme() == "http");
    let is_plain = has_scheme
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none();
    if !is_plain || text.len() > BYTES || url.as_str().len() > BYTES {
        return Err(FORM);
    }
    let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return Err(FORM);
    };
    reach.check_host(&host, port).map_err(|_| HOST)?;
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosting::backends::OwnSockets;
    use crate::origin::PlatformOrigin;

    #[test]
    fn a_webhook_is_a_public_address_or_a_local_one_of_a_local_platform() {
        let own = || OwnSockets::new(vec!["127.0.0.1:8787".parse().unwrap()], Vec::new());
        let local = AddressPolicy::new(None, &PlatformOrigin::local(8787), own());
        let public = "https://play.example".parse::<PlatformOrigin>().unwrap();
        let public = AddressPolicy::new(None, &public, own());
        for (url, of_local, of_public) in [
            ("https://hooks.example/a?key=b", true, true),
            ("http://hooks.example/a", true, false),
            ("http://127.0.0.1:3000/hook", true, false),
            ("https://127.0.0.1:3000/hook", true, false),
            ("https://localhost:3000/", true, false),
            ("https://[::1]:3000/", true, false),
            ("https://[::ffff:10.0.0.1]/", true, false),
            ("https://10.0.0.1/", true, false),
            ("https://169.254.169.254/latest/", true, false),
            ("https://play.example/", true, false),
            ("https://game.play.example/api/", true, false),
            ("http://127.0.0.1:8787/", false, false),
            ("https://hooks.example:25/", false, false),
            ("https://user@hooks.example/", false, false),
            ("https://user:word@hooks.example/", false, false),
            ("https://hooks.example/#a", false, false),
            ("ftp://hooks.example/", false, false),
            ("hooks.example", false, false),
            ("", false, false),
        ] {
            assert_eq!(address(url, &local, true).is_ok(), of_local, "{url}");
            assert_eq!(address(url, &public, false).is_ok(), of_public, "{url}");
        }
        let long = format!("https://hooks.example/{}", "a".repeat(500));
        assert!(address(&long, &local, true).is_err());
    }
}
