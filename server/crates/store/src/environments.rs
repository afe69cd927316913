//! Environments: the part of the store that keeps their settings and test players.

use async_trait::async_trait;
use platform_domain::audit::By;
use platform_domain::clock::Millis;
use platform_domain::environment_setting::EnvironmentSetting;
use platform_domain::project::{EnvironmentRecord, HostedEnvironment};
use platform_protocol::names::Environment;
use uuid::Uuid;

use super::StoreError;

/// Operations on environments. [`Store`](super::Store) documents what every method
/// guarantees.
#[async_trait]
pub trait EnvironmentStore: Send + Sync {
    /// Returns the settings of every environment: two for each project.
    async fn list_environments(&self) -> Result<Vec<EnvironmentRecord>, StoreError>;

    /// Returns what the catalogue of games has of every environment, or of those of one
    /// project, as it is at one moment. Projects that were removed are among them.
    async fn list_hosted(&self, slug: Option<&str>) -> Result<Vec<HostedEnvironment>, StoreError>;

    /// Returns the settings of one environment.
    async fn find_environment(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Option<EnvironmentRecord>, StoreError>;

    /// Sets one of the settings of an environment. Returns whether that is a change; if not, nothing
    /// is written, but who saves a backend answers for it from then on.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project.
    async fn set_environment(
        &self,
        slug: &str,
        environment: Environment,
        setting: EnvironmentSetting,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Returns the id of a project's test user or test guest, because a token is issued for it. The
    /// id is `fresh` if there was none before. Records this as an event once an hour for each test
    /// player and each actor.
    ///
    /// # Errors
    /// [`StoreError::Missing`] on `projects` if there is no such project; on `deployments` if
    /// nothing was ever deployed there.
    async fn ensure_test_player(
        &self,
        slug: &str,
        guest: bool,
        number: u8,
        fresh: Uuid,
        by: By,
        now: Millis,
    ) -> Result<Uuid, StoreError>;
}
