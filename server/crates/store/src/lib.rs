//! The store: traits of whole operations, by topic, on data that must never be lost.
//!
//! Every method is atomic inside its back end. When it returns, everything that it wrote survives a
//! power cut. A handler that reads and then writes has a race, so a handler calls one method for
//! one event.

mod administration;
mod alerts;
mod audit;
mod certificates;
mod counting;
mod deletions;
mod deploy_tokens;
mod deployments;
mod device_codes;
mod devices;
mod domains;
mod environments;
mod error_groups;
pub mod exports;
pub mod figures;
mod game_sessions;
mod handovers;
mod keys;
mod left_guests;
mod listings;
mod logs;
mod nodes;
mod people;
mod player_events;
mod player_games;
mod players;
mod previews;
mod projects;
mod retention;
mod room;
mod sessions;
mod sign_ins;
pub mod stored_alerts;
pub mod stored_domains;
mod stored_files;
pub mod stored_forms;
pub mod stored_groups;
mod suspensions;
pub mod tables;
mod takedown;
pub mod traces;
pub mod transfer;
mod webhooks;

use async_trait::async_trait;

pub use self::administration::AdminStore;
pub use self::alerts::AlertStore;
pub use self::audit::AuditStore;
pub use self::certificates::CertificateStore;
pub use self::counting::CountingStore;
pub use self::deletions::DeletionStore;
pub use self::deploy_tokens::DeployTokenStore;
pub use self::deployments::DeploymentStore;
pub use self::device_codes::DeviceCodeStore;
pub use self::devices::DeviceStore;
pub use self::domains::DomainStore;
pub use self::environments::EnvironmentStore;
pub use self::error_groups::ErrorGroupStore;
pub use self::game_sessions::GameSessionStore;
pub use self::handovers::HandoverStore;
pub use self::keys::KeyStore;
pub use self::left_guests::LeftGuestStore;
pub use self::listings::ListingStore;
pub use self::logs::LogStore;
pub use self::nodes::NodeStore;
pub use self::people::PeopleStore;
pub use self::player_events::{PlayerEventStore, deleted_data};
pub use self::player_games::PlayerGameStore;
pub use self::players::{GuestCap, NewGuest, PlayerStore};
pub use self::previews::PreviewStore;
pub use self::projects::ProjectStore;
pub use self::retention::{ADDRESS_COLUMNS, AddressColumn, RetentionStore};
pub use self::room::RoomStore;
pub use self::sessions::SessionStore;
pub use self::sign_ins::SignInStore;
pub use self::stored_files::{CLAIM_HOLDS, StoredFileStore, UNUSED_FILES_STAY};
pub use self::suspensions::SuspensionStore;
pub use self::takedown::{Removed, TakedownStore};
pub use self::webhooks::WebhookStore;

/// Writes of frontend log records that may wait in the store at the same time. One more gets
/// [`StoreError::Busy`].
pub const LOG_WRITES: usize = 256;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A value that must be unique already exists.
    #[error("{table}.{column} exists already")]
    Conflict {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
    },
    /// A row that the new one refers to does not exist.
    #[error("{table} has no such row")]
    Missing {
        /// The table that lacks it.
        table: &'static str,
    },
    /// A row that the schema should forbid.
    #[error("{table}.{column} of row {row} has an invalid value")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's key.
        row: String,
    },
    /// Nothing was written: the address already has the maximum number of guests.
    #[error("the address has reached its limit of guests")]
    GuestCap,
    /// Nothing was written: the player already owns the maximum number of projects.
    #[error("the player has reached the limit of projects")]
    ProjectCap,
    /// Nothing was written, because too many writes are waiting.
    #[error("too many writes are waiting")]
    Busy,
    /// Nothing was written, because the store cannot write now.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The answer to a write was lost: it may have been written, or not. Nobody may write it again
    /// without looking first.
    #[error("the store gave no answer, so the write may have happened: {0}")]
    Uncertain(String),
    /// The database failed.
    #[error("the database failed")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not a valid address of a store.
    #[error("a store's address is sqlite://<path> or postgres://<host>/<database>, not {0}")]
    Address(String),
    /// The address is valid, but this program was built without the back end for it.
    #[error(
        "this program was built without {0}; use the program of a release, or build it with \
         `cargo build --release --bin platform-server --features platform-server/cluster`"
    )]
    Unsupported(&'static str),
    /// A newer program has changed the database.
    #[error(
        "the database has schema version {found}, but this program knows only versions up to \
         {known}; start the newer program that upgraded it, or restore a backup"
    )]
    TooNew {
        /// The version of the database.
        found: i32,
        /// The newest version that this program knows.
        known: i32,
    },
    /// An older program uses the database. Only the server upgrades a schema: another command must
    /// not, because the older program could no longer use it.
    #[error(
        "the database has schema version {found}, but this program has {known}; use the program \
         that serves it, or run this program's `serve`, which upgrades it"
    )]
    TooOld {
        /// The version of the database.
        found: i32,
        /// The version that this program expects.
        known: i32,
    },
    /// A move into the database has begun and not ended.
    #[error(
        "the database is incomplete, because a move into it was interrupted; run the same \
         `platform-server move` again, which goes on with it, or use an empty database"
    )]
    Incomplete,
    /// Running servers use the database whose program could not use the schema of this one.
    #[error(
        "the database is used by servers whose version cannot use the schema of this one: {nodes}; \
         upgrade them to the release before this one first, or stop them, and start again"
    )]
    StillUsed {
        /// The addresses and versions of these servers.
        nodes: String,
    },
    /// The directory or the file could not be made.
    #[error(
        "{path} could not be created; set PLATFORM_DATABASE_URL or PLATFORM_DATA to another place"
    )]
    File {
        /// The path.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The database of log records, which has an address of its own, could not be opened.
    #[error("the database of log records (PLATFORM_LOGS_DATABASE_URL) could not be opened")]
    Logs(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The schema could not be brought up to date.
    #[error("the database's schema could not be upgraded")]
    Migration(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database could not be opened.
    #[error("the database that PLATFORM_DATABASE_URL or PLATFORM_DATA names could not be opened")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What to do with a database whose schema is older than the program expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaPolicy {
    /// Bring it up to date.
    Upgrade,
    /// Leave it as it is, and refuse to open it.
    Refuse,
}

/// The store. See the documentation of this module for what every method guarantees.
#[async_trait]
pub trait Store:
    AdminStore
    + AlertStore
    + AuditStore
    + CertificateStore
    + CountingStore
    + DeletionStore
    + DeployTokenStore
    + DeploymentStore
    + DeviceCodeStore
    + DeviceStore
    + DomainStore
    + EnvironmentStore
    + ErrorGroupStore
    + GameSessionStore
    + HandoverStore
    + KeyStore
    + LeftGuestStore
    + ListingStore
    + LogStore
    + NodeStore
    + PeopleStore
    + PlayerEventStore
    + PlayerGameStore
    + PlayerStore
    + PreviewStore
    + ProjectStore
    + RetentionStore
    + RoomStore
    + SessionStore
    + SignInStore
    + StoredFileStore
    + SuspensionStore
    + TakedownStore
    + WebhookStore
    + std::fmt::Debug
{
    /// Writes what is queued and stops the writer. Later writes return [`StoreError::Unavailable`];
    /// closing again changes nothing.
    async fn close(&self) -> Result<(), StoreError>;

    /// Returns what the store has counted, for each of its databases.
    fn figures(&self) -> Vec<figures::DatabaseFigures>;
}
