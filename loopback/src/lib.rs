//! Names under `localhost`: they never leave this machine (RFC 6761 §6.3), but a plain
//! `getaddrinfo` may not know them. All our clients resolve them with this crate. Servers limit with it how
//! many threads wait for a name server.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tokio::sync::Semaphore;
use tower_service::Service;

/// Whether the name is `localhost` or ends in `.localhost`. A final dot is ignored.
#[must_use]
pub fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// A resolver for hyper's connector: resolves names under `localhost` to 127.0.0.1 and ::1 without
/// a name server, and all others as the system does. The default looks up any number of names at the same
/// time.
///
/// The system's resolver keeps a thread of the runtime busy until it gives up, which takes ten seconds or
/// more if no name server answers, and goes on when nobody waits for it any more. Without a limit, such
/// lookups can take every thread that is for blocking work, of which a server also reads its files.
#[derive(Clone, Debug, Default)]
pub struct Resolver(Option<Arc<Semaphore>>);

impl Resolver {
    /// Creates a resolver that looks up at most `limit` names at the same time. Others wait.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self(Some(Arc::new(Semaphore::new(limit))))
    }

    /// Returns the addresses of a name, with port 0.
    ///
    /// # Errors
    /// The name has no address, or no name server answers.
    pub async fn find(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        if let Some(found) = loopback(name) {
            return Ok(found);
        }
        let Some(places) = &self.0 else {
            return look_up(name).await;
        };
        let place = Arc::clone(places).acquire_owned().await;
        let place = place.map_err(io::Error::other)?;
        let name = name.to_owned();
        // The place is taken for as long as the thread is busy, even if the caller gives up.
        let looking_up = tokio::spawn(async move {
            let found = look_up(&name).await;
            drop(place);
            found
        });
        looking_up.await.map_err(io::Error::other)?
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = self.clone();
        Box::pin(async move { Ok(resolver.find(name.as_str()).await?.into_iter()) })
    }
}

/// Returns the addresses of a name under `localhost`; `None` for any other name. The caller replaces
/// port 0 by the port of the address.
fn loopback(name: &str) -> Option<Vec<SocketAddr>> {
    let loopback = [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    is_localhost(name).then(|| loopback.map(|address| SocketAddr::new(address, 0)).into())
}

async fn look_up(name: &str) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_under_localhost_are_loopback() {
        for name in [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "auth.platform.localhost",
            "a.localhost.",
            "a.B.LOCALHOST.",
        ] {
            assert!(is_localhost(name), "{name}");
        }
        for name in ["localhost.example", "notlocalhost", "example", "", "."] {
            assert!(!is_localhost(name), "{name}");
        }
    }

    #[tokio::test]
    async fn names_under_localhost_wait_for_nobody_and_others_for_a_place() {
        let full = Resolver::with_limit(0);
        assert_eq!(full.find("auth.platform.localhost").await.unwrap().len(), 2);
        let waiting = full.find("game.invalid");
        let waited = tokio::time::timeout(std::time::Duration::ZERO, waiting);
        assert!(waited.await.is_err());
    }
}
