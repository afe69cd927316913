//! What must never be lost, behind a trait of whole operations.
//!
//! Every method is atomic inside its backend, and when it has answered, what
//! it wrote survives a power cut. Reads-then-writes in a handler are where
//! races live, so a handler calls one method for one thing that happens.

pub mod sqlite;

use async_trait::async_trait;
use platform_protocol::names::Environment;
use uuid::Uuid;

use crate::clock::Millis;
use crate::domain::key::StoredKey;
use crate::domain::player::Player;
use crate::domain::project::{Deployment, Project};
use crate::domain::session::{Session, SessionHash};

/// Why the store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A value that must be unique exists already.
    #[error("{table}.{column} exists already")]
    Conflict {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
    },
    /// A row that the schema should forbid.
    #[error("{table}.{column} of row {row} is not what it should be")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's key.
        row: String,
    },
    /// Nothing was written, because the store cannot write now.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The database failed.
    #[error("the database failed")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A guest that is about to exist.
#[derive(Clone, Debug)]
pub struct NewGuest {
    /// The player's id.
    pub id: Uuid,
    /// Names to try, best first; the first that nobody has is taken.
    pub usernames: Vec<String>,
    /// The session of the browser that asked.
    pub session: SessionHash,
    /// The address (IPv4, or IPv6 /64) that it came from.
    pub address: String,
    /// Now.
    pub now: Millis,
}

/// The store. See the module's documentation for what every method promises.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// The session of this hash with its player, whether it has ended or not.
    async fn lookup_session(&self, hash: &SessionHash) -> Result<Option<Session>, StoreError>;

    /// Makes a guest and its session in one.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] on `username` if every name is taken.
    async fn add_guest(&self, guest: NewGuest) -> Result<Player, StoreError>;

    /// Moves a session's time of renewal forward to `now`.
    async fn renew_session(&self, hash: &SessionHash, now: Millis) -> Result<(), StoreError>;

    /// Ends a session. Ending an unknown or ended one changes nothing.
    async fn end_session(&self, hash: &SessionHash, now: Millis) -> Result<(), StoreError>;

    /// Every signing key that is not forgotten yet, oldest first.
    async fn list_keys(&self) -> Result<Vec<StoredKey>, StoreError>;

    /// Adds `key` if the newest key is still `after` (`None`: if there is
    /// none), so that of several nodes that rotate at once only one does.
    /// Answers whether it was added.
    async fn add_key(&self, key: StoredKey, after: Option<&str>) -> Result<bool, StoreError>;

    /// Forgets keys by their `kid`: those that are out of the key set for good.
    async fn remove_keys(&self, kids: &[String]) -> Result<(), StoreError>;

    /// Adds a project.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] on `slug` if it is taken.
    async fn add_project(&self, project: Project) -> Result<(), StoreError>;

    /// Every project, by slug.
    async fn list_projects(&self) -> Result<Vec<Project>, StoreError>;

    /// The project of this slug.
    async fn find_project(&self, slug: &str) -> Result<Option<Project>, StoreError>;

    /// Records a deployment and makes it the environment's current one, in one.
    async fn add_deployment(&self, deployment: Deployment) -> Result<(), StoreError>;

    /// The current deployment of an environment.
    async fn find_current_deployment(
        &self,
        slug: &str,
        environment: Environment,
    ) -> Result<Option<Deployment>, StoreError>;

    /// Writes out what is queued and stops the writer. Later writes answer
    /// [`StoreError::Unavailable`].
    async fn close(&self) -> Result<(), StoreError>;
}
