//! Webhooks: the part of the store that knows where a project's alerts are sent.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::webhook::{NewWebhook, Webhook, WebhookOutcome};

use super::StoreError;

/// Operations on webhooks. [`Store`](super::Store) documents what every method guarantees.
///
/// A project has at most one. It ends when the project gets another owner.
#[async_trait]
pub trait WebhookStore: Send + Sync {
    /// Returns the webhook of a project that was not removed.
    async fn find_webhook(&self, slug: &str) -> Result<Option<Webhook>, StoreError>;

    /// Sets the webhook of a project, and turns it on if it was turned off. The secret of one that
    /// exists stays unless it is to be replaced. Returns the webhook, as it is now.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn set_webhook(
        &self,
        slug: &str,
        new: NewWebhook,
        by: By,
        now: Millis,
    ) -> Result<Webhook, StoreError>;

    /// Removes the webhook of a project. Returns whether there was one.
    async fn remove_webhook(&self, slug: &str, by: By, now: Millis) -> Result<bool, StoreError>;

    /// Notes what came of a request to the webhook at `url`, unless the project's webhook has
    /// another address by now. If the receiver is `gone`, the webhook is turned off.
    async fn note_webhook_outcome(
        &self,
        slug: &str,
        url: &str,
        outcome: WebhookOutcome,
        gone: bool,
    ) -> Result<(), StoreError>;
}
