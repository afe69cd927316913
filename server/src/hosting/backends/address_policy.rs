//! Decides which addresses a backend may have: on a public platform no private ones, whatever a
//! name resolves to, and never the platform's own. This is checked on the address to which a
//! connection is actually made, so changing a name's DNS records does not help an attacker.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioIo;
use moka::future::Cache;
use platform_loopback::Resolver;
use tokio::net::TcpStream;
use tower::Service;
use url::Host;

use super::early_response::EarlyResponseStream;
use super::own_sockets::OwnSockets;
use crate::config::PrivateBackends;
use crate::origin::PlatformOrigin;
use crate::web::serve::SILENT;

/// The timeout for connecting to a backend, and for resolving its name.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the addresses of a name are cached.
const KEPT: Duration = Duration::from_secs(10);
/// The maximum number of names with cached addresses.
const NAMES: u64 = 4_096;
/// The maximum number of names that are looked up at the same time, each of another backend: a quarter of the
/// threads for blocking work, so that name servers that do not respond hold up only backends.
const LOOKUPS: usize = 128;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The addresses that may be reached.
#[derive(Clone, Debug)]
pub struct AddressPolicy {
    private: PrivateBackends,
    /// The names at and below which everything is the platform.
    platform: Vec<String>,
    /// The platform's own sockets.
    own: Arc<OwnSockets>,
}

impl AddressPolicy {
    /// Creates the policy of the setting; by default, private networks are allowed for a platform
    /// under `localhost`.
    #[must_use]
    pub fn new(private: Option<PrivateBackends>, origin: &PlatformOrigin, own: OwnSockets) -> Self {
        let by_origin = if origin.is_local() {
            PrivateBackends::All
        } else {
            PrivateBackends::None
        };
        Self {
            private: private.unwrap_or(by_origin),
            platform: vec![origin.host().to_owned()],
            own: Arc::new(own),
        }
    }

    /// Adds the origin below which games have their addresses.
    #[must_use]
    pub fn with_games(mut self, games: &PlatformOrigin) -> Self {
        self.platform.push(games.host().to_owned());
        self
    }

    /// Returns the platform's own sockets.
    #[must_use]
    pub fn own_sockets(&self) -> &OwnSockets {
        &self.own
    }

    /// Whether a backend may have this host. The addresses of a name are checked when it is
    /// resolved.
    ///
    /// # Errors
    /// A sentence with the reason.
    pub fn check_host(&self, host: &Host<&str>, port: u16) -> Result<(), &'static str> {
        const OWN: &str = "The platform itself cannot be the backend of a game.";
        const PORT: &str = "A backend cannot use this port: it belongs to another protocol, and browsers refuse it as well.";
        const PRIVATE: &str = "A backend's address must not be in a private network.";
        let address = match host {
            Host::Domain(name) => {
                let name = name.to_ascii_lowercase();
                let name = name.trim_end_matches('.');
                let below = |own: &String| name.strip_suffix(own.as_str());
                let mut below = self.platform.iter().filter_map(below);
                if below.any(|below| below.is_empty() || below.ends_with('.')) {
                    return Err(OWN);
                }
                if self.own.is_service(name, port) {
                    return Err(OWN);
                }
                if is_bad_port(port) {
                    return Err(PORT);
                }
                if !is_localhost(name) {
                    return Ok(());
                }
                IpAddr::V4(Ipv4Addr::LOCALHOST)
            }
            Host::Ipv4(address) => (*address).into(),
            Host::Ipv6(address) => (*address).into(),
        };
        if self.own.contains(SocketAddr::new(address, port)) {
            Err(OWN)
        } else if is_bad_port(port) {
            Err(PORT)
        } else if self.allows(address) {
            Ok(())
        } else {
            Err(PRIVATE)
        }
    }

    /// Whether connecting to this address is allowed.
    fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match &self.private {
            PrivateBackends::All => true,
            PrivateBackends::None => is_public(address),
            PrivateBackends::Networks(networks) => {
                is_public(address) || networks.iter().any(|network| network.contains(&address))
            }
        }
    }
}

/// Resolves names. Only one lookup per name is in progress at a time, so that a name server that
/// does not respond only delays requests for this name.
#[derive(Clone, Debug)]
struct PolicyResolver {
    reach: Arc<AddressPolicy>,
    found: Cache<String, Arc<[IpAddr]>>,
    names: Resolver,
}

impl PolicyResolver {
    async fn look_up(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        let finding = self.found.try_get_with(name.to_owned(), self.find(name));
        let found = finding
            .await
            .map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        // Port 0 is replaced by the port of the URL.
        let reachable: Vec<SocketAddr> = found
            .iter()
            .filter(|address| self.reach.allows(**address))
            .map(|address| SocketAddr::new(*address, 0))
            .collect();
        if reachable.is_empty() {
            return Err(io::Error::other(
                "the name has no address that may be reached",
            ));
        }
        Ok(reachable)
    }

    async fn find(&self, name: &str) -> io::Result<Arc<[IpAddr]>> {
        let found = tokio::time::timeout(CONNECT, self.names.find(name)).await;
        let found = found.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok(found.iter().map(SocketAddr::ip).collect())
    }
}

impl Service<Name> for PolicyResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = self.clone();
        Box::pin(async move { Ok(resolver.look_up(name.as_str()).await?.into_iter()) })
    }
}

/// Connects to allowed addresses.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    reach: Arc<AddressPolicy>,
    plain: HttpConnector<PolicyResolver>,
}

impl Connector {
    pub(super) fn new(reach: Arc<AddressPolicy>) -> Self {
        let found = Cache::builder()
            .max_capacity(NAMES)
            .time_to_live(KEPT)
            .build();
        let mut plain = HttpConnector::new_with_resolver(PolicyResolver {
            reach: Arc::clone(&reach),
            found,
            names: Resolver::with_limit(LOOKUPS),
        });
        plain.set_nodelay(true);
        plain.set_connect_timeout(Some(CONNECT));
        plain.set_keepalive(Some(SILENT));
        plain.enforce_http(false);
        Self { reach, plain }
    }
}

impl Service<Uri> for Connector {
    type Response = EarlyResponseStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.plain.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        // An IP address is not looked up.
        let host = target.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let literal = host.parse::<IpAddr>();
        let refused = literal.is_ok_and(|address| !self.reach.allows(address))
            || target.port_u16().is_some_and(is_bad_port);
        let connecting = self.plain.call(target);
        let reach = Arc::clone(&self.reach);
        Box::pin(async move {
            if refused {
                return Err("the address may not be reached".into());
            }
            let stream = connecting.await?;
            // Nothing has been sent yet.
            if reach.own.contains(stream.inner().peer_addr()?) {
                return Err("the address is the platform's own".into());
            }
            Ok(EarlyResponseStream::new(stream))
        })
    }
}

/// The "bad ports" of the Fetch standard: servers of the protocols on these ports could interpret
/// an HTTP request as commands.
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

fn is_bad_port(port: u16) -> bool {
    BAD_PORTS.binary_search(&port).is_ok()
}

fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether this is a public address (by the special-purpose registries of RFC 6890).
pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            let shared = a == 100 && (64..128).contains(&b);
            let protocols = (a, b, c) == (192, 0, 0);
            let relays = (a, b, c) == (192, 88, 99);
            // The host of a virtual machine in Azure, with access to its secrets.
            let azure = address.octets() == [168, 63, 129, 16];
            let benchmarks = a == 198 && (b == 18 || b == 19);
            !(a == 0
                || a >= 224
                || shared
                || protocols
                || relays
                || benchmarks
                || azure
                || address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_documentation())
        }
        // 2000::/3 is the allocated range; it includes 6to4 and Teredo, which lead to IPv4, and
        // documentation.
        IpAddr::V6(address) => {
            let [a, b, ..] = address.segments();
            (0x2000..0x3fff).contains(&a)
                && a != 0x2002
                && !(a == 0x2001 && b < 0x200)
                && !(a == 0x2001 && b == 0xdb8)
        }
    }
}

#[cfg(test)]
mod tests;
