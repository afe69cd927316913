//! The sockets of the server: those that a service manager has passed, and those that it opens itself.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::StartError;
use crate::app::sockets::{Purpose, Sockets};
use crate::config::Config;

/// A socket, and its address.
pub(in crate::app) type Listening = (TcpListener, SocketAddr);

/// The sockets of a server.
pub(super) struct Listeners {
    /// For visitors.
    pub(super) visitors: Listening,
    /// For visitors without TLS, who are redirected.
    pub(super) redirect: Option<Listening>,
    /// For the operator: health checks and metrics.
    pub(super) operations: Option<Listening>,
}

/// Listens for visitors, and for whom else the settings name a socket.
///
/// # Errors
/// [`StartError::Listen`]
pub(super) async fn listen_for_all(
    mut sockets: Sockets,
    config: &Config,
) -> Result<Listeners, StartError> {
    let (to_redirect, to_operate) = (config.tls.redirect_listen, config.operations_listen);
    // Visitors get what is left, so the others come first.
    let operations = listen_if_set(&mut sockets, Purpose::Operations, to_operate).await?;
    let redirect = listen_if_set(&mut sockets, Purpose::Redirect, to_redirect).await?;
    let passed = sockets.take_for_visitors(config.listen);
    let visitors = listen(passed, config.listen, Purpose::Visitors.setting()).await?;
    for (address, purpose) in sockets.left() {
        match purpose {
            Some(purpose @ (Purpose::Redirect | Purpose::Operations)) => tracing::warn!(
                %address,
                "the service manager passes a socket that nobody uses: set {}",
                purpose.setting()
            ),
            Some(Purpose::Visitors) | None => tracing::warn!(
                %address,
                "the service manager passes a socket that no setting names"
            ),
        }
    }
    Ok(Listeners {
        visitors,
        redirect,
        operations,
    })
}

/// Listens for this purpose, if the settings name a socket for it.
async fn listen_if_set(
    sockets: &mut Sockets,
    purpose: Purpose,
    address: Option<SocketAddr>,
) -> Result<Option<Listening>, StartError> {
    let Some(address) = address else {
        return Ok(None);
    };
    let passed = sockets.take(purpose, address);
    Ok(Some(listen(passed, address, purpose.setting()).await?))
}

/// Listens on the socket that was passed, or on `address`, which `setting` names. Returns the socket, and its address with
/// the port that the system chose if it is 0.
async fn listen(
    passed: Option<std::net::TcpListener>,
    address: SocketAddr,
    setting: &'static str,
) -> Result<Listening, StartError> {
    let failed = |source| StartError::Listen {
        address,
        setting,
        source,
    };
    let listener = match passed {
        None => TcpListener::bind(address).await,
        Some(socket) => {
            let prepared = socket.set_nonblocking(true);
            prepared.and_then(|()| TcpListener::from_std(socket))
        }
    };
    let listener = listener.map_err(failed)?;
    let listening = listener.local_addr().map_err(failed)?;
    Ok((listener, listening))
}
