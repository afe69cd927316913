//! The servers of a database's address, and connecting to the one that accepts writes.
//!
//! An address may name several servers. After a failure, the one that is named first may say
//! nothing at all, so the servers are asked at the same time and not one after the other.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Connect;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use platform_store::ConnectError;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address;
use super::migrations::not_opened;

/// How long the server in use has to itself, before the others are asked as well.
const HEAD_START: Duration = Duration::from_millis(250);
/// How long a connection outside the pool may take to open.
const LIMIT: Duration = Duration::from_secs(10);

/// No server of the address answered.
#[derive(Debug, thiserror::Error)]
#[error("no server of the address answered within {} seconds", LIMIT.as_secs())]
struct Silent;

/// A new connection, with the task that drives it.
type Connected = (Client, JoinHandle<()>);

/// Which server is in use.
#[derive(Debug, Default)]
struct InUse {
    /// Its place in the address.
    server: Option<usize>,
    /// When it took over from another one.
    since: Option<Instant>,
}

/// The servers of an address. A clone is another handle of the same ones.
#[derive(Clone)]
pub(super) struct Servers {
    each: Arc<[Config]>,
    tls: MakeRustlsConnect,
    in_use: Arc<Mutex<InUse>>,
    /// How often a server took over from another one.
    takeovers: watch::Sender<u64>,
}

impl Servers {
    /// Returns the servers that the settings of an address name.
    pub(super) fn new(config: &Config) -> Result<Self, ConnectError> {
        Ok(Self {
            each: apart(config).into(),
            tls: address::tls()?,
            in_use: Arc::default(),
            takeovers: watch::Sender::new(0),
        })
    }

    /// Returns a receiver that notices when a server takes over from another one.
    pub(super) fn takeovers(&self) -> watch::Receiver<u64> {
        self.takeovers.subscribe()
    }

    /// Returns whether another server took over after a connection was made at this time.
    pub(super) fn took_over_since(&self, made: std::time::Instant) -> bool {
        let in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.since.is_some_and(|since| made < since.into_std())
    }

    /// Connects to the server in use, or to the first of the others that is as the address asks.
    /// If a server accepts the connection and then says nothing, this waits as long as the caller
    /// does.
    async fn find(&self) -> Result<Connected, Error> {
        let known = {
            let in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
            in_use.server
        };
        let mut asked = FuturesUnordered::new();
        if let Some(known) = known
            && self.each.len() > 1
        {
            asked.push(self.ask(known));
            match tokio::time::timeout(HEAD_START, asked.next()).await {
                Ok(Some((server, Ok(connected)))) => return Ok(self.found(server, connected)),
                // It refused: it is asked again with the others, since it may be starting.
                Ok(_) => asked.push(self.ask(known)),
                Err(_) => {}
            }
        }
        let others =
            (0..self.each.len()).filter(|server| known != Some(*server) || asked.is_empty());
        let others: Vec<usize> = others.collect();
        asked.extend(others.into_iter().map(|server| self.ask(server)));
        let mut failed = None;
        while let Some((server, result)) = asked.next().await {
            match result {
                Ok(connected) => return Ok(self.found(server, connected)),
                // What a server says is of more use than that another one cannot be reached.
                Err(error) if failed.is_none() || error.as_db_error().is_some() => {
                    failed = Some(error);
                }
                Err(_) => {}
            }
        }
        match failed {
            Some(error) => Err(error),
            None => self.ask(0).await.1,
        }
    }

    async fn ask(&self, server: usize) -> (usize, Result<Connected, Error>) {
        let config = self.each.get(server).cloned().unwrap_or_default();
        (server, connect(config, self.tls.clone()).await)
    }

    /// Notes which server is in use.
    fn found(&self, server: usize, connected: Connected) -> Connected {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        let before = in_use.server.replace(server);
        if before.is_some_and(|before| before != server) {
            in_use.since = Some(Instant::now());
            drop(in_use);
            tracing::warn!("another server of the database's address accepts writes now");
            self.takeovers.send_modify(|takeovers| *takeovers += 1);
        }
        connected
    }
}

impl Connect for Servers {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, Error>> + Send + '_>> {
        Box::pin(self.find())
    }
}

/// Opens a connection outside a pool, to a server that is as the settings ask.
pub(super) async fn open(config: &Config) -> Result<Client, ConnectError> {
    let servers = Servers::new(config)?;
    let found = tokio::time::timeout(LIMIT, servers.connect(config)).await;
    let found = found.map_err(|_| ConnectError::Database(Box::new(Silent)))?;
    // The task ends when the client is dropped.
    let (client, _) = found.map_err(not_opened)?;
    Ok(client)
}

async fn connect(config: Config, tls: MakeRustlsConnect) -> Result<Connected, Error> {
    let (client, connection) = config.connect(tls).await?;
    let task = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to the database ended");
        }
    });
    Ok((client, task))
}

/// Returns the settings of each server by itself.
fn apart(config: &Config) -> Vec<Config> {
    let (hosts, addresses) = (config.get_hosts().len(), config.get_hostaddrs().len());
    let (count, ports) = (hosts.max(addresses), config.get_ports());
    let fits = |others: usize| others <= 1 || others == count;
    if count <= 1 || !fits(ports.len()) || (hosts > 0 && addresses > 0 && hosts != addresses) {
        // There is only one, or connecting says what is wrong with the address.
        return vec![config.clone()];
    }
    let of_each = |server: usize| {
        let mut one = shared(config);
        match config.get_hosts().get(server) {
            Some(Host::Tcp(name)) => {
                one.host(name);
            }
            #[cfg(unix)]
            Some(Host::Unix(path)) => {
                one.host_path(path);
            }
            None => {}
        }
        if let Some(address) = config.get_hostaddrs().get(server) {
            one.hostaddr(*address);
        }
        // One port is the port of every server.
        if let Some(port) = ports.get(server).or_else(|| ports.first()) {
            one.port(*port);
        }
        one
    };
    (0..count).map(of_each).collect()
}

/// Returns the settings that hold for every server.
fn shared(config: &Config) -> Config {
    let mut one = Config::new();
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(name) = config.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    if let Some(limit) = config.get_connect_timeout() {
        one.connect_timeout(*limit);
    }
    if let Some(limit) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*limit);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .target_session_attrs(config.get_target_session_attrs());
    one
}
