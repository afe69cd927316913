//! How every back end stores alerts and webhooks.

use platform_domain::clock::Millis;
use platform_domain::error_alert::{AlertDetail, AlertReason, NewAlert, WaitingAlert};
use platform_domain::error_group::ErrorGroupId;
use platform_domain::webhook::{Wants, Webhook, WebhookOutcome, WebhookSecret};
use platform_protocol::names::Environment;

use super::StoreError;

/// A row of an alert.
#[derive(Clone, Debug)]
pub struct StoredAlert {
    /// The id.
    pub id: i64,
    /// The project.
    pub slug: String,
    /// The name of the environment.
    pub environment: String,
    /// The fingerprint of the group.
    pub fingerprint: Vec<u8>,
    /// The reason.
    pub reason: String,
    /// When it was made.
    pub made_at: Millis,
    /// How often sending has failed.
    pub tries: i16,
    /// What it says, as JSON.
    pub detail: String,
}

impl StoredAlert {
    /// Returns the alert of the row.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`]
    pub fn read(self) -> Result<WaitingAlert, StoreError> {
        let corrupt = |column| StoreError::Corrupt {
            table: "log_error_alerts",
            column,
            row: self.id.to_string(),
        };
        let environment = Environment::ALL
            .into_iter()
            .find(|known| known.as_str() == self.environment);
        let group = self.fingerprint.as_slice().try_into();
        let detail = serde_json::from_str(&self.detail);
        Ok(WaitingAlert {
            id: self.id,
            environment: environment.ok_or_else(|| corrupt("environment"))?,
            made_at: self.made_at,
            tries: u16::try_from(self.tries).map_err(|_| corrupt("tries"))?,
            alert: NewAlert {
                group: ErrorGroupId(group.map_err(|_| corrupt("fingerprint"))?),
                reason: AlertReason::parse(&self.reason).ok_or_else(|| corrupt("reason"))?,
                detail: detail.map_err(|_| corrupt("detail"))?,
            },
            slug: self.slug,
        })
    }
}

/// Returns the stored form of what an alert says.
#[must_use]
pub fn write_alert_detail(detail: &AlertDetail) -> String {
    serde_json::json!(detail).to_string()
}

/// The columns of a webhook, in the order of [`StoredWebhook`].
pub const WEBHOOK_COLUMNS: &str = "w.url, w.secret, w.created_at, w.off_at, w.last_at, w.last_status, w.last_error, \
     w.wants_errors, w.wants_players";

/// A row of a webhook.
#[derive(Clone, Debug)]
pub struct StoredWebhook {
    /// The address.
    pub url: String,
    /// The secret's text.
    pub secret: String,
    /// When the project got it.
    pub created_at: Millis,
    /// When it was turned off.
    pub off_at: Option<Millis>,
    /// When the last request ended.
    pub last_at: Option<Millis>,
    /// The status of its response.
    pub last_status: Option<i16>,
    /// Why there was none.
    pub last_error: Option<String>,
    /// Whether it is told about errors.
    pub wants_errors: bool,
    /// Whether it is told about deleted players.
    pub wants_players: bool,
}

impl StoredWebhook {
    /// Returns the webhook of the row.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`]
    pub fn read(self, slug: &str) -> Result<Webhook, StoreError> {
        let secret = WebhookSecret::parse(&self.secret).ok_or_else(|| StoreError::Corrupt {
            table: "webhooks",
            column: "secret",
            row: slug.to_owned(),
        })?;
        Ok(Webhook {
            url: self.url,
            secret,
            wants: Wants {
                errors: self.wants_errors,
                players: self.wants_players,
            },
            created_at: self.created_at,
            off_at: self.off_at,
            last: self.last_at.map(|at| WebhookOutcome {
                at,
                status: self.last_status.and_then(|status| status.try_into().ok()),
                error: self.last_error,
            }),
        })
    }
}

/// Returns the stored form of a response's status.
#[must_use]
pub fn write_status(status: Option<u16>) -> Option<i16> {
    status.and_then(|status| status.try_into().ok())
}
