//! The connection to Redis, its time limit and its breaker.
//!
//! The breaker is closed while there is a connection. A lost connection opens it, and so do several
//! calls in a row that fail or take too long. A task writes every second, so that this is noticed also
//! where nobody plays. While it is open, calls fail at once, and the task tries to connect and to
//! write, which closes it again.
//!
//! A call that nobody waits for may take longer, so that its answer is not lost only for being late.
//! The breaker has a second switch for such calls, which stays closed while Redis answers slowly.
//!
//! A cluster has one breaker for all of its servers, since a key that cannot be counted makes the
//! rest useless. So that the servers that answer do not hide one that does not, calls in a row are
//! counted for each group of slots, and all groups must accept a write before it closes.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures_util::future::{join_all, try_join_all};
use platform_domain::errors::chain;
use redis::aio::PubSub;
use redis::{RedisError, RedisResult};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::place::{Connection, Place, Source};

/// How long a call may take that somebody waits for.
pub const PATIENCE: Duration = Duration::from_millis(50);
/// How long a call may take whose answer is used whenever it comes.
const LONG_PATIENCE: Duration = Duration::from_secs(1);
/// How many calls in a row may fail before the breaker opens. A single slow answer may be the fault
/// of a busy machine.
const FAILURES: u32 = 3;
/// How often an open breaker tries to close, and a closed one asks whether Redis answers.
pub(crate) const PROBE: Duration = Duration::from_secs(1);
/// How long connecting may take, and a first write.
pub(crate) const CONNECT: Duration = Duration::from_secs(1);
/// What the probe writes, so that a Redis that is read-only or full is noticed.
const PROBED: &str = "platform:probe";
/// How many groups of slots a cluster's servers share. Slots of a group are neighbours, and so
/// mostly those of one server.
const GROUPS: usize = 64;
/// How many slots a cluster has.
const SLOTS: u16 = 16_384;

/// Returns the group of the slot of keys with this hash tag, `{…}`.
fn group(tag: &str) -> usize {
    let slot = crc16::State::<crc16::XMODEM>::calculate(tag.as_bytes()) % SLOTS;
    usize::from(slot) * GROUPS / usize::from(SLOTS)
}

/// Returns a hash tag of each group.
fn tags() -> Vec<String> {
    let mut tags = vec![None; GROUPS];
    for tag in (0_u32..).map(|number| number.to_string()) {
        if let Some(missing) = tags.get_mut(group(&tag)) {
            missing.get_or_insert(tag);
        }
        if tags.iter().all(Option::is_some) {
            break;
        }
    }
    tags.into_iter().flatten().collect()
}

/// The address is not one of Redis. It is not repeated, since it may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not the address of a Redis server; write redis://<user>:<password>@<host>:<port>")]
pub struct AddressError;

/// Redis cannot be reached, or took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Redis is not available")]
pub struct Unavailable;

/// The connection and its breaker.
#[derive(Debug)]
pub(crate) struct Link {
    /// How long a call may take, by its urgency: [`PATIENCE`] and [`LONG_PATIENCE`], apart from tests
    /// of something else.
    pub(crate) patience: [Duration; 2],
    breaker: Arc<Breaker>,
    /// The task that closes the breaker, and opens it where no call does. It ends with this.
    _probe: JoinSet<()>,
}

/// Whether somebody waits for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Somebody does.
    Awaited,
    /// Nobody does, and its answer is used whenever it comes.
    Background,
}

/// A key that the probe writes.
struct Probed {
    key: String,
    /// Its hash tag in a cluster.
    tag: String,
}

impl Probed {
    fn alone() -> Self {
        Self {
            key: PROBED.to_owned(),
            tag: String::new(),
        }
    }

    fn with_tag(tag: String) -> Self {
        Self {
            key: format!("{PROBED}:{{{tag}}}"),
            tag,
        }
    }
}

struct Breaker {
    source: Source,
    /// The keys that the probe writes: one for each group of slots, or a single one.
    probed: Vec<Probed>,
    /// The switches of calls, by their urgency.
    switches: [Switch; 2],
}

/// Lets calls of one urgency through while it is closed.
struct Switch {
    /// The connection, while it is closed.
    connection: ArcSwapOption<Connection>,
    /// Calls in a row that have failed, by group of slots.
    failures: [AtomicU32; GROUPS],
}

impl Switch {
    fn opened() -> Self {
        Self {
            connection: ArcSwapOption::empty(),
            failures: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }

    fn close(&self, connection: Arc<Connection>) {
        for failures in &self.failures {
            failures.store(0, Ordering::Relaxed);
        }
        self.connection.store(Some(connection));
    }

    /// Opens it, if it was closed with this connection. Returns whether it was.
    fn open(&self, connection: &Arc<Connection>) -> bool {
        // A call that began before the switch closed again says nothing about the new connection.
        let before = self.connection.compare_and_swap(connection, None);
        matches!(&*before, Some(before) if Arc::ptr_eq(before, connection))
    }
}

impl fmt::Debug for Breaker {
    /// The client knows the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error("Redis did not answer within {0:?}")]
    Slow(Duration),
    #[error("Redis failed")]
    Redis(#[from] RedisError),
}

impl Link {
    pub(crate) async fn open(place: &Place) -> Result<Self, AddressError> {
        let source = Source::new(place)?;
        let probed = if source.is_cluster() {
            tags().into_iter().map(Probed::with_tag).collect()
        } else {
            vec![Probed::alone()]
        };
        let breaker = Arc::new(Breaker {
            source,
            probed,
            switches: [Switch::opened(), Switch::opened()],
        });
        if let Err(error) = breaker.try_close().await {
            warn(&error);
        }
        let mut probe = JoinSet::new();
        probe.spawn(probe_for_ever(Arc::clone(&breaker)));
        Ok(Self {
            patience: [PATIENCE, LONG_PATIENCE],
            breaker,
            _probe: probe,
        })
    }

    /// Returns what opens further connections.
    pub(crate) fn subscribers(&self) -> Subscribers {
        Subscribers(Arc::clone(&self.breaker))
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.breaker.source.is_cluster()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.breaker.is_closed()
    }

    /// Makes a call that somebody waits for, as [`Link::call_with`].
    pub(crate) async fn call<T, F>(
        &self,
        tag: &str,
        call: impl FnOnce(Connection) -> F + Send,
    ) -> Result<T, Unavailable>
    where
        F: Future<Output = RedisResult<T>> + Send,
    {
        self.call_with(Urgency::Awaited, tag, call).await
    }

    /// Makes a call, which may send several commands. In a cluster all of them concern keys with the
    /// hash tag `tag`.
    pub(crate) async fn call_with<T, F>(
        &self,
        urgency: Urgency,
        tag: &str,
        call: impl FnOnce(Connection) -> F + Send,
    ) -> Result<T, Unavailable>
    where
        F: Future<Output = RedisResult<T>> + Send,
    {
        let switch = self.breaker.switch(urgency);
        let Some(connection) = switch.connection.load_full() else {
            return Err(Unavailable);
        };
        let failures = &switch.failures[self.breaker.group(tag)];
        let call = call(Connection::clone(&connection));
        let patience = self.patience[urgency as usize];
        let called = timeout(patience, call).await;
        let error = match called {
            Ok(Ok(value)) => {
                failures.store(0, Ordering::Relaxed);
                return Ok(value);
            }
            Ok(Err(error)) => CallError::Redis(error),
            Err(_elapsed) => CallError::Slow(patience),
        };
        self.breaker.note(&connection, switch, tag, &error);
        Err(Unavailable)
    }
}

impl Breaker {
    fn switch(&self, urgency: Urgency) -> &Switch {
        &self.switches[urgency as usize]
    }

    /// Whether calls are let through that somebody waits for.
    fn is_closed(&self) -> bool {
        self.switch(Urgency::Awaited).connection.load().is_some()
    }

    fn group(&self, tag: &str) -> usize {
        if self.source.is_cluster() {
            group(tag)
        } else {
            0
        }
    }

    /// Notes that a call through `switch` on `connection` has failed, and opens the switch if that
    /// was one too many.
    fn note(&self, connection: &Arc<Connection>, switch: &Switch, tag: &str, error: &CallError) {
        // A cluster's connection is several.
        let is_lost = !self.source.is_cluster()
            && matches!(error, CallError::Redis(error) if error.is_unrecoverable_error());
        let failures = switch.failures[self.group(tag)].fetch_add(1, Ordering::Relaxed) + 1;
        if !is_lost && failures < FAILURES {
            return;
        }
        let awaited = self.switch(Urgency::Awaited);
        if awaited.open(connection) {
            warn(error);
        }
        // What takes too long for somebody who waits may only be slow.
        if is_lost || !std::ptr::eq(switch, awaited) {
            self.switch(Urgency::Background).open(connection);
        }
    }

    /// Writes on the connection of a closed breaker, and opens it if that fails several times in a
    /// row.
    async fn check(&self, connection: &Arc<Connection>) {
        let switch = self.switch(Urgency::Awaited);
        let writes = self.probed.iter().map(|Probed { key, tag }| async move {
            match timeout(CONNECT, write(connection, key)).await {
                Ok(Ok(())) => switch.failures[self.group(tag)].store(0, Ordering::Relaxed),
                Ok(Err(error)) => self.note(connection, switch, tag, &CallError::Redis(error)),
                Err(_elapsed) => self.note(connection, switch, tag, &CallError::Slow(CONNECT)),
            }
        });
        join_all(writes).await;
    }

    /// Connects and writes.
    async fn try_close(&self) -> Result<(), CallError> {
        let connect = async {
            let connection = self.source.connect().await?;
            let writes = self
                .probed
                .iter()
                .map(|probed| write(&connection, &probed.key));
            try_join_all(writes).await?;
            Ok::<_, RedisError>(connection)
        };
        let connected = timeout(CONNECT, connect).await;
        let connection = connected.map_err(|_elapsed| CallError::Slow(CONNECT))??;
        let connection = Arc::new(connection);
        for switch in &self.switches {
            switch.close(Arc::clone(&connection));
        }
        Ok(())
    }
}

/// Opens connections for subscriptions.
pub(crate) struct Subscribers(Arc<Breaker>);

impl Subscribers {
    /// Opens a connection. With another `attempt`, it is to another server of a cluster.
    pub(crate) async fn open(&self, attempt: usize) -> RedisResult<PubSub> {
        self.0.source.subscriber(attempt).await
    }
}

/// Writes a key of the probe.
async fn write(connection: &Connection, key: &str) -> RedisResult<()> {
    let mut write = redis::cmd("SET");
    write.arg(key).arg(1).arg("EX").arg(1);
    write.query_async(&mut connection.clone()).await
}

/// Closes the breaker whenever it is open and Redis can be reached, and opens it if Redis does not
/// answer although nobody calls.
async fn probe_for_ever(breaker: Arc<Breaker>) {
    let mut ticks = interval(PROBE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match breaker.switch(Urgency::Awaited).connection.load_full() {
            Some(connection) => breaker.check(&connection).await,
            None if breaker.try_close().await.is_ok() => {
                tracing::info!("Redis can be reached again");
            }
            None => {}
        }
    }
}

/// Says what works less well. It is said once, not with every call.
fn warn(error: &CallError) {
    let error = chain(error);
    tracing::warn!(
        error,
        "Redis cannot be reached: the number of current players is unknown, and rate limits are \
         those of each node"
    );
}
