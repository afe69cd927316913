//! Where Redis is: one server, the servers of a cluster, or one that sentinels name. What opens
//! connections to it.

use futures_util::future::select_ok;
use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, IntoConnectionInfo as _, Pipeline,
    RedisFuture, RedisResult, TlsMode, Value,
};
use tokio::sync::Mutex;

use crate::link::{AddressError, CONNECT};

/// How often a call follows to where a cluster has moved a key. Its time limit holds all the same.
const MOVES: u32 = 3;
/// The milliseconds before it does so.
const MOVE_WAIT: (u64, u64) = (1, 5);

/// Where Redis is. Every address is `redis://[<user>[:<password>]@]<host>[:<port>][/<database>]`, or
/// `rediss://…` for TLS.
#[derive(Clone)]
pub enum Place {
    /// One server.
    Single(String),
    /// Some servers of a cluster, which name the others.
    Cluster(Vec<String>),
    /// The primary that sentinels name.
    Sentinel {
        /// The sentinels. User, password and database are those of the primary: sentinels are asked
        /// without.
        sentinels: Vec<String>,
        /// The name under which they watch the primary.
        service: String,
    },
}

impl<T: AsRef<str> + ?Sized> From<&T> for Place {
    fn from(address: &T) -> Self {
        Self::Single(address.as_ref().to_owned())
    }
}

/// What opens connections.
pub(crate) enum Source {
    Single(Box<Client>),
    Cluster {
        cluster: Box<ClusterClient>,
        /// For subscriptions: every server of a cluster passes on all messages.
        servers: Vec<Client>,
    },
    /// A client for each sentinel.
    Sentinel(Vec<Mutex<SentinelClient>>),
}

impl Source {
    pub(crate) fn new(place: &Place) -> Result<Self, AddressError> {
        match place {
            Place::Single(address) => {
                Client::open(address.as_str()).map(|client| Self::Single(Box::new(client)))
            }
            Place::Cluster(servers) => Self::cluster(servers),
            Place::Sentinel { sentinels, service } => Self::sentinel(sentinels, service),
        }
        .map_err(|_| AddressError)
    }

    fn cluster(servers: &[String]) -> RedisResult<Self> {
        let cluster = ClusterClientBuilder::new(servers.iter().map(String::as_str))
            .connection_timeout(CONNECT)
            // The limit of a whole call is its caller's.
            .response_timeout(CONNECT)
            .overall_response_timeout(None)
            .retries(MOVES)
            .min_retry_wait(MOVE_WAIT.0)
            .max_retry_wait(MOVE_WAIT.1)
            .build()?;
        let servers = servers.iter().map(|server| Client::open(server.as_str()));
        Ok(Self::Cluster {
            cluster: Box::new(cluster),
            servers: servers.collect::<RedisResult<_>>()?,
        })
    }

    fn sentinel(sentinels: &[String], service: &str) -> RedisResult<Self> {
        let mut of_primary = SentinelNodeConnectionInfo::default();
        let mut asked = Vec::new();
        for sentinel in sentinels {
            let info = sentinel.as_str().into_connection_info()?;
            if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
                of_primary = of_primary.set_tls_mode(TlsMode::Secure);
            }
            of_primary = of_primary.set_redis_connection_info(info.redis_settings().clone());
            asked.push(info.addr().clone());
        }
        let clients = asked.into_iter().map(|sentinel| {
            let (of_primary, kind) = (Some(of_primary.clone()), SentinelServerType::Master);
            SentinelClient::build(vec![sentinel], service, of_primary, kind).map(Mutex::new)
        });
        Ok(Self::Sentinel(clients.collect::<RedisResult<_>>()?))
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster { .. })
    }

    /// Opens a connection for calls.
    pub(crate) async fn connect(&self) -> RedisResult<Connection> {
        // The time limits are those of the callers.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(None);
        let single = |client: Client| async move {
            let connected = client.get_multiplexed_async_connection_with_config(&config);
            connected.await.map(Connection::Single)
        };
        match self {
            Self::Single(client) => single(Client::clone(client)).await,
            Self::Cluster { cluster, .. } => cluster
                .get_async_connection()
                .await
                .map(Connection::Cluster),
            Self::Sentinel(sentinels) => single(primary(sentinels).await?).await,
        }
    }

    /// Opens a connection for subscriptions. With another `attempt`, it is to another server of a
    /// cluster.
    pub(crate) async fn subscriber(&self, attempt: usize) -> RedisResult<PubSub> {
        let client = match self {
            Self::Single(client) => Client::clone(client),
            Self::Cluster { servers, .. } => {
                let server = servers.get(attempt % servers.len().max(1));
                server.cloned().ok_or((
                    redis::ErrorKind::InvalidClientConfig,
                    "a cluster has servers",
                ))?
            }
            Self::Sentinel(sentinels) => primary(sentinels).await?,
        };
        client.get_async_pubsub().await
    }
}

/// Asks all sentinels for the primary, and takes the first answer: one that cannot be reached may
/// take longer to fail than the caller waits.
async fn primary(sentinels: &[Mutex<SentinelClient>]) -> RedisResult<Client> {
    let asked = sentinels
        .iter()
        .map(|sentinel| Box::pin(async move { sentinel.lock().await.async_get_client().await }));
    let asked: Vec<_> = asked.collect();
    if asked.is_empty() {
        let kind = redis::ErrorKind::InvalidClientConfig;
        return Err((kind, "an address of sentinels names one").into());
    }
    let (client, _) = select_ok(asked).await?;
    Ok(client)
}

/// A connection for calls. Clones share it.
#[derive(Clone)]
pub(crate) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => connection.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(connection) => connection.req_packed_commands(commands, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(commands, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(connection) => connection.get_db(),
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}
