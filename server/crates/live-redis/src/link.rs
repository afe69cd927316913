//! The connection to Redis, its time limit and its breaker.
//!
//! The breaker is closed while there is a connection. A lost connection opens it, and so do several
//! calls in a row that fail or take too long. While it is open, calls fail at once, and a task tries
//! every second to connect and to write, which closes it again.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use platform_domain::errors::chain;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// How long a call may take.
pub const PATIENCE: Duration = Duration::from_millis(50);
/// How many calls in a row may fail before the breaker opens. A single slow answer may be the fault
/// of a busy machine.
const FAILURES: u32 = 3;
/// How often an open breaker tries to close.
pub(crate) const PROBE: Duration = Duration::from_secs(1);
/// How long connecting may take, and a first write.
pub(crate) const CONNECT: Duration = Duration::from_secs(1);
/// What the probe writes, so that a Redis that is read-only or full is noticed.
const PROBED: &str = "platform:probe";

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
    /// The task that closes the breaker. It ends with this.
    _probe: JoinSet<()>,
}

struct Breaker {
    client: Client,
    /// The connection, while the breaker is closed.
    connection: ArcSwapOption<MultiplexedConnection>,
    /// Calls in a row that have failed.
    failures: AtomicU32,
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
    pub(crate) async fn open(url: &str) -> Result<Self, AddressError> {
        let breaker = Arc::new(Breaker {
            client: Client::open(url).map_err(|_| AddressError)?,
            connection: ArcSwapOption::empty(),
            failures: AtomicU32::new(0),
        });
        if let Err(error) = breaker.try_close().await {
            warn(&error);
        }
        let mut probe = JoinSet::new();
        probe.spawn(close_for_ever(Arc::clone(&breaker)));
        Ok(Self {
            patience: PATIENCE,
            breaker,
            _probe: probe,
        })
    }

    /// Returns what opens further connections.
    pub(crate) fn client(&self) -> Client {
        self.breaker.client.clone()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.breaker.connection.load().is_some()
    }

    /// Makes a call, which may send several commands.
    pub(crate) async fn call<T, F>(
        &self,
        call: impl FnOnce(MultiplexedConnection) -> F + Send,
    ) -> Result<T, Unavailable>
    where
        F: Future<Output = RedisResult<T>> + Send,
    {
        let Some(connection) = self.breaker.connection.load_full() else {
            return Err(Unavailable);
        };
        let call = call(MultiplexedConnection::clone(&connection));
        let called = timeout(self.patience, call).await;
        let error = match called {
            Ok(Ok(value)) => {
                self.breaker.failures.store(0, Ordering::Relaxed);
                return Ok(value);
            }
            Ok(Err(error)) => CallError::Redis(error),
            Err(_elapsed) => CallError::Slow(self.patience),
        };
        self.breaker.note(&connection, &error);
        Err(Unavailable)
    }
}

impl Breaker {
    /// Notes that a call on `connection` has failed, and opens the breaker if that was one too many.
    fn note(&self, connection: &Arc<MultiplexedConnection>, error: &CallError) {
        let is_lost = matches!(error, CallError::Redis(error) if error.is_unrecoverable_error());
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if !is_lost && failures < FAILURES {
            return;
        }
        // A call that began before the breaker closed again says nothing about the new connection.
        let before = self.connection.compare_and_swap(connection, None);
        if matches!(&*before, Some(before) if Arc::ptr_eq(before, connection)) {
            warn(error);
        }
    }

    /// Connects and writes.
    async fn try_close(&self) -> Result<(), CallError> {
        // The time limits are those of the callers.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(None);
        let connect = async {
            let client = &self.client;
            let mut connection = client
                .get_multiplexed_async_connection_with_config(&config)
                .await?;
            let mut write = redis::cmd("SET");
            write.arg(PROBED).arg(1).arg("EX").arg(1);
            write.query_async::<()>(&mut connection).await?;
            Ok::<_, RedisError>(connection)
        };
        let connected = timeout(CONNECT, connect).await;
        let connection = connected.map_err(|_elapsed| CallError::Slow(CONNECT))??;
        self.failures.store(0, Ordering::Relaxed);
        self.connection.store(Some(Arc::new(connection)));
        Ok(())
    }
}

/// Closes the breaker whenever it is open and Redis can be reached.
async fn close_for_ever(breaker: Arc<Breaker>) {
    let mut ticks = interval(PROBE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let is_open = breaker.connection.load().is_none();
        if is_open && breaker.try_close().await.is_ok() {
            tracing::info!("Redis can be reached again");
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
