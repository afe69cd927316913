//! What must never be lost, behind a trait of whole operations.
//!
//! Every method is atomic inside its backend, and when it has answered, what
//! it wrote survives a power cut. Reads-then-writes in a handler are where
//! races live, so a handler calls one method for one thing that happens.

mod administration;
mod counting;
mod devices;
mod left_guests;
mod logs;
mod projects;
mod room;
mod takedown;

use async_trait::async_trait;
use platform_domain::audit::{AuditEvent, AuditQuery, By};
use platform_domain::clock::Millis;
use platform_domain::console_token::{Hold, Holder};
use platform_domain::identity::LinkedIdentity;
use platform_domain::key::{Revocation, StoredKey};
use platform_domain::player::{Player, SuspendedPlayer};
use platform_domain::session::{Session, SessionHash, SessionSummary};
use platform_domain::sign_in::{PendingSignIn, SignIn, SignInOutcome, StateHash, TakenSignIn};
use uuid::Uuid;

pub use self::administration::AdminStore;
pub use self::counting::CountingStore;
pub use self::devices::DeviceStore;
pub use self::left_guests::LeftGuestStore;
pub use self::logs::LogStore;
pub use self::projects::ProjectStore;
pub use self::room::RoomStore;
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

/// What becomes of a database whose schema is older than the program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Older {
    /// It is brought up to date.
    Upgrade,
    /// It is left as it is, and not opened.
    Refuse,
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
    /// How many guests the address may hold; none for any number.
    pub cap: Option<GuestCap>,
    /// The game that asked for a guest whose cookie has yet to come back; none
    /// where it has.
    pub awaiting: Option<String>,
    /// Now.
    pub now: Millis,
}

/// How many guests an address may hold at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestCap {
    /// The most there may be.
    pub guests: u32,
    /// A guest that was last seen before this does not count.
    pub seen_since: Millis,
    /// Rows that there may be of guests whose cookie has not come back, for one
    /// address and one game. They do not count as held.
    pub awaited: u32,
}

/// The store. See the module's documentation for what every method promises.
#[async_trait]
pub trait Store:
    AdminStore
    + CountingStore
    + DeviceStore
    + LeftGuestStore
    + LogStore
    + ProjectStore
    + RoomStore
    + TakedownStore
    + std::fmt::Debug
{
    /// The session of this hash with its player, whether it has ended or not.
    async fn lookup_session(&self, hash: &SessionHash) -> Result<Option<Session>, StoreError>;

    /// Who holds what a token hangs on, if it has not ended at `now`.
    async fn find_holder(&self, hold: &Hold, now: Millis) -> Result<Option<Holder>, StoreError>;

    /// Makes a guest and its session in one. Where too many of its address and
    /// game wait for their cookie to come back, the rows of the oldest of them
    /// go: their cookies make them again.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] on `username` if every name is taken;
    /// [`StoreError::GuestCap`].
    async fn add_guest(&self, guest: NewGuest) -> Result<Player, StoreError>;

    /// Makes a guest again whose row was swept before its cookie came back, and
    /// gives it a session. Where another request of its browser was faster, by
    /// [`BACK_MILLIS`](platform_domain::session::BACK_MILLIS) at most, it gets one
    /// session more.
    ///
    /// # Errors
    /// As [`Store::add_guest`], and [`StoreError::Conflict`] on `id` if the
    /// player is there otherwise.
    async fn bring_back_guest(&self, guest: NewGuest) -> Result<Player, StoreError>;

    /// Moves a session's time of renewal forward to `now`.
    async fn renew_session(&self, hash: &SessionHash, now: Millis) -> Result<(), StoreError>;

    /// Moves a guest's last use forward to `now`, and keeps that its cookie has
    /// come back.
    async fn see_guest(&self, player: Uuid, now: Millis) -> Result<(), StoreError>;

    /// Ends a session for good, by its browser. Ending an unknown or ended one
    /// changes nothing. A guest without a session is held by no address any
    /// more.
    async fn end_session(&self, hash: &SessionHash, by: By, now: Millis) -> Result<(), StoreError>;

    /// Keeps in which browser a session is, in our own words.
    async fn note_browser(&self, hash: &SessionHash, browser: &str) -> Result<(), StoreError>;

    /// Ends one session of the player's. Answers whether it was theirs and had
    /// not ended.
    async fn end_session_of(
        &self,
        player: Uuid,
        hash: &SessionHash,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Ends the player's sessions but `kept`, and signs out every device of
    /// theirs. Answers how many of both.
    async fn end_other_sessions(
        &self,
        player: Uuid,
        kept: Option<&SessionHash>,
        by: By,
        now: Millis,
    ) -> Result<usize, StoreError>;

    /// The player's sessions that have not ended at `now`, newest use first.
    async fn list_sessions(
        &self,
        player: Uuid,
        now: Millis,
    ) -> Result<Vec<SessionSummary>, StoreError>;

    /// Removes the rows of sessions, sign-ins and devices that mean nothing any
    /// more, and of guests whose cookie did not come back, at most `limit` of
    /// each. Answers how many.
    async fn sweep_sessions(&self, now: Millis, limit: usize) -> Result<usize, StoreError>;

    /// The player of this id.
    async fn find_player(&self, id: Uuid) -> Result<Option<Player>, StoreError>;

    /// The identities that are linked to a player, oldest first.
    async fn list_identities(&self, player: Uuid) -> Result<Vec<LinkedIdentity>, StoreError>;

    /// Gives a player another name.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] on `username` if another player has it or one
    /// that looks like it; [`StoreError::Missing`] if there is no such player.
    async fn rename_player(
        &self,
        player: Uuid,
        username: &str,
        by: By,
        now: Millis,
    ) -> Result<(), StoreError>;

    /// Suspends a player, or changes the reason. Answers whether there is such
    /// a player, and one that was not merged away.
    async fn suspend_player(
        &self,
        player: Uuid,
        reason: Option<&str>,
        by: By,
        now: Millis,
    ) -> Result<bool, StoreError>;

    /// Lifts a suspension. Answers whether there was one.
    async fn unsuspend_player(&self, player: Uuid, by: By, now: Millis)
    -> Result<bool, StoreError>;

    /// Who is suspended, and has been only since `since`.
    async fn list_suspended_players(
        &self,
        since: Millis,
    ) -> Result<Vec<SuspendedPlayer>, StoreError>;

    /// Whose sessions ended at `since` or later, and when the last one of each
    /// player did.
    async fn list_ended_sessions(&self, since: Millis) -> Result<Vec<(Uuid, Millis)>, StoreError>;

    /// Keeps a sign-in that a browser has begun.
    async fn add_pending_sign_in(&self, pending: PendingSignIn) -> Result<(), StoreError>;

    /// Takes a sign-in out, if `browser` is the one that began it no more than
    /// [`SIGN_IN_MILLIS`](platform_domain::sign_in::SIGN_IN_MILLIS) before `now`.
    async fn take_pending_sign_in(
        &self,
        state: &StateHash,
        browser: &[u8; 32],
        now: Millis,
    ) -> Result<TakenSignIn, StoreError>;

    /// Signs an identity in: the one way into an account, and the one place
    /// where guests are linked and merged.
    ///
    /// - A known identity leads to its account. The guest, if it is one still,
    ///   is merged into it: its sessions end, and it can never mint again.
    /// - A new identity is linked to the guest, which keeps its id. Without a
    ///   guest an account is made.
    /// - A suspended account changes nothing.
    /// - A guest that is suspended stays as it is: who signs in at its browser
    ///   may be somebody else, and a new identity gets an account of its own.
    ///
    /// The session that the browser held ends, and so do all of the guest's,
    /// so that one that was planted in the browser before opens nothing.
    async fn complete_sign_in(&self, sign_in: SignIn) -> Result<SignInOutcome, StoreError>;

    /// Security events, newest first.
    async fn list_audit_events(&self, query: AuditQuery) -> Result<Vec<AuditEvent>, StoreError>;

    /// Every signing key that is not forgotten yet, oldest first.
    async fn list_keys(&self) -> Result<Vec<StoredKey>, StoreError>;

    /// Adds `key` if the newest key is still `after` (`None`: if there is
    /// none), so that of several nodes that rotate at once only one does.
    /// Answers whether it was added.
    async fn add_key(
        &self,
        key: StoredKey,
        after: Option<&str>,
        by: By,
    ) -> Result<bool, StoreError>;

    /// Forgets keys by their `kid`: those that are out of the key set for good.
    async fn remove_keys(&self, kids: &[String]) -> Result<(), StoreError>;

    /// Takes the key `kid` out if the newest key is still `after`, and adds
    /// `successor` in the same moment, so that a platform without a key that
    /// signs is never seen. Both are events, at `at`.
    async fn revoke_key(
        &self,
        kid: &str,
        successor: Option<StoredKey>,
        after: Option<&str>,
        at: Millis,
        by: By,
    ) -> Result<Revocation, StoreError>;

    /// Replaces private keys, by their `kid`, with the same ones sealed. Keys
    /// that are gone by now stay gone. How they lay before is overwritten.
    async fn reseal_keys(&self, keys: Vec<(String, Vec<u8>)>) -> Result<(), StoreError>;

    /// Writes down that every key may have signed tokens that live so long,
    /// where less is written.
    async fn raise_token_life(&self, millis: Millis) -> Result<(), StoreError>;

    /// Writes out what is queued and stops the writer. Later writes answer
    /// [`StoreError::Unavailable`]; closing again changes nothing.
    async fn close(&self) -> Result<(), StoreError>;
}
