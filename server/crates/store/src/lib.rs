//! What must never be lost: traits of whole operations, by topic.
//!
//! Every method is atomic inside its back end. When it returns, everything that
//! it wrote survives a power cut. A handler that reads and then writes has a
//! race, so a handler calls one method for one thing that happens.

mod administration;
mod audit;
mod backup;
mod counting;
mod deployments;
mod devices;
mod environments;
mod keys;
mod left_guests;
mod logs;
mod players;
mod projects;
mod room;
mod sessions;
mod sign_ins;
mod suspensions;
mod takedown;

use async_trait::async_trait;

pub use self::administration::AdminStore;
pub use self::audit::AuditStore;
pub use self::backup::BackupStore;
pub use self::counting::CountingStore;
pub use self::deployments::DeploymentStore;
pub use self::devices::DeviceStore;
pub use self::environments::EnvironmentStore;
pub use self::keys::KeyStore;
pub use self::left_guests::LeftGuestStore;
pub use self::logs::LogStore;
pub use self::players::{GuestCap, NewGuest, PlayerStore};
pub use self::projects::ProjectStore;
pub use self::room::RoomStore;
pub use self::sessions::SessionStore;
pub use self::sign_ins::SignInStore;
pub use self::suspensions::SuspensionStore;
pub use self::takedown::{Removed, TakedownStore};

/// Writes of frontend log records that may wait in the store at one time. One
/// more is refused as [`StoreError::Busy`].
pub const LOG_WRITES: usize = 256;

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
    /// A row that the new one refers to does not exist.
    #[error("there is no such row in {table}")]
    Missing {
        /// The table that lacks it.
        table: &'static str,
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
    /// Nothing was written: the address holds as many guests as it may.
    #[error("the address holds as many guests as it may")]
    GuestCap,
    /// Nothing was written: the player owns as many projects as one may.
    #[error("the player owns as many projects as one may")]
    ProjectCap,
    /// Nothing was written, because too many writes are waiting already.
    #[error("too many writes are waiting")]
    Busy,
    /// Nothing was written, because the store cannot write now.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The database failed.
    #[error("the database failed")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not that of a store.
    #[error("a store's address is sqlite://<path> or postgres://<host>/<database>, not {0}")]
    Address(String),
    /// The address is good, but nothing in this build speaks to such a store.
    #[error("{0} stores are not supported by this build yet; use sqlite://<path>")]
    Unsupported(&'static str),
    /// A newer program has changed the database.
    #[error(
        "the database has schema version {found}, and this program knows {known} at most; \
         start the newer program that made it, or go back to a backup"
    )]
    TooNew {
        /// The version of the database.
        found: i32,
        /// The newest version that this program knows.
        known: i32,
    },
    /// An older program serves the database, and only serving brings its schema
    /// up to date: a command beside it would take it away from that program.
    #[error(
        "the database has schema version {found}, and this program has {known}; \
         use the program that serves it, or start this one's `serve`, which brings it up to date"
    )]
    TooOld {
        /// The version of the database.
        found: i32,
        /// The version that this program has.
        known: i32,
    },
    /// The directory or the file could not be made.
    #[error(
        "{path} could not be made; set PLATFORM_DATABASE_URL or PLATFORM_DATA to another place"
    )]
    File {
        /// Which one.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The schema could not be brought up to date.
    #[error("the database's schema could not be brought up to date")]
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

/// The store. See the module's documentation for what every method promises.
#[async_trait]
pub trait Store:
    AdminStore
    + AuditStore
    + BackupStore
    + CountingStore
    + DeploymentStore
    + DeviceStore
    + EnvironmentStore
    + KeyStore
    + LeftGuestStore
    + LogStore
    + PlayerStore
    + ProjectStore
    + RoomStore
    + SessionStore
    + SignInStore
    + SuspensionStore
    + TakedownStore
    + std::fmt::Debug
{
    /// Writes out what is queued and stops the writer. Later writes answer
    /// [`StoreError::Unavailable`]; closing again changes nothing.
    async fn close(&self) -> Result<(), StoreError>;
}
