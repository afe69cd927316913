//! The connection to Redis, its time limit and its breaker.
//!
//! The breaker is closed while there is a connection. A lost connection opens it, and so do several
//! calls in a row that fail or take too long. A task writes every second, so that this is noticed also
//! where nobody plays. While it is open, calls fail at once, and the task tries to connect and to
//! write, which closes it again.
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

/// How long a call may take.
pub const PATIENCE: Duration = Duration::from_millis(50);
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
    /// How long a call may take: [`PATIENCE`], apart from tests of something else.
    pub(crate) patience: Duration,
    breaker: Arc<Breaker>,
    /// The task that closes the breaker, and opens it where no call does. It ends with this.
    _probe: JoinSet<()>,
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
    /// The connection, while the breaker is closed.
    connection: ArcSwapOption<Connection>,
    /// Calls in a row that have failed, by group of slots.
    failures: [AtomicU32; GROUPS],
}

impl fmt::Debug for Breaker {
    /// The client knows the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_closed = self.connection.load().is_some();
        f.debug_struct("Breaker")
            .field("is_closed", &is_closed)
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
            connection: ArcSwapOption::empty(),
            failures: std::array::from_fn(|_| AtomicU32::new(0)),
        });
        if let Err(error) = breaker.try_close().await {
            warn(&error);
        }
        let mut probe = JoinSet::new();
        probe.spawn(probe_for_ever(Arc::clone(&breaker)));
        Ok(Self {
            patience: PATIENCE,
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
        self.breaker.connection.load().is_some()
    }

    /// Makes a call, which may send several commands. In a cluster all of them concern keys with the
    /// hash tag `tag`.
    pub(crate) async fn call<T, F>(
        &self,
        tag: &str,
        call: impl FnOnce(Connection) -> F + Send,
    ) -> Result<T, Unavailable>
    where
        F: Future<Output = RedisResult<T>> + Send,
    {
        let Some(connection) = self.breaker.connection.load_full() else {
            return Err(Unavailable);
        };
        let failures = self.breaker.failures_of(tag);
        let call = call(Connection::clone(&connection));
        let called = timeout(self.patience, call).await;
        let error = match called {
            Ok(Ok(value)) => {
                failures.store(0, Ordering::Relaxed);
                return Ok(value);
            }
            Ok(Err(error)) => CallError::Redis(error),
            Err(_elapsed) => CallError::Slow(self.patience),
        };
        self.breaker.note(&connection, failures, &error);
        Err(Unavailable)
    }
}

impl Breaker {
    fn failures_of(&self, tag: &str) -> &AtomicU32 {
        let group = if self.source.is_cluster() {
            group(tag)
        } else {
            0
        };
        &self.failures[group]
    }

    /// Notes that a call on `connection` has failed, and opens the breaker if that was one too many.
    fn note(&self, connection: &Arc<Connection>, failures: &AtomicU32, error: &CallError) {
        // A cluster's connection is several.
        let is_lost = !self.source.is_cluster()
            && matches!(error, CallError::Redis(error) if error.is_unrecoverable_error());
        let failures = failures.fetch_add(1, Ordering::Relaxed) + 1;
        if !is_lost && failures < FAILURES {
            return;
        }
        // A call that began before the breaker closed again says nothing about the new connection.
        let before = self.connection.compare_and_swap(connection, None);
        if matches!(&*before, Some(before) if Arc::ptr_eq(before, connection)) {
            warn(error);
        }
    }

    /// Writes on the connection of a closed breaker, and opens it if that fails several times in a
    /// row.
    async fn check(&self, connection: &Arc<Connection>) {
        let writes = self.probed.iter().map(|Probed { key, tag }| async move {
            let failures = self.failures_of(tag);
            match timeout(CONNECT, write(connection, key)).await {
                Ok(Ok(())) => failures.store(0, Ordering::Relaxed),
                Ok(Err(error)) => self.note(connection, failures, &CallError::Redis(error)),
                Err(_elapsed) => self.note(connection, failures, &CallError::Slow(CONNECT)),
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
        for failures in &self.failures {
            failures.store(0, Ordering::Relaxed);
        }
        self.connection.store(Some(Arc::new(connection)));
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
        match breaker.connection.load_full() {
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
