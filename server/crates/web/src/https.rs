//! TLS of the platform's own: the handshake, within a time limit, and the choice between HTTP/1.1
//! and HTTP/2 (ALPN, RFC 7301).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::ResolvesServerCert;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The names of the protocols (RFC 7301 §6, RFC 9113 §3.2).
const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";

/// Accepts connections over TLS 1.2 and 1.3.
#[derive(Clone)]
pub struct Https(TlsAcceptor);

impl std::fmt::Debug for Https {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Https")
    }
}

impl Https {
    /// Uses the certificates that `certificates` chooses.
    ///
    /// # Errors
    /// An error of `rustls`, if it does not support its own defaults.
    pub fn new(certificates: Arc<dyn ResolvesServerCert>) -> Result<Self, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(certificates);
        config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
        // Visitors who come back need no signature. The keys of the tickets change, and stay in
        // memory.
        config.ticketer = ring::Ticketer::new()?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Performs the handshake.
    ///
    /// # Errors
    /// What the peer did wrong, or that it took longer than `limit`.
    pub async fn accept(&self, stream: TcpStream, limit: Duration) -> io::Result<Accepted> {
        match tokio::time::timeout(limit, self.0.accept(stream)).await {
            Ok(accepted) => Ok(Accepted(accepted?)),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// A connection after its handshake.
#[derive(Debug)]
pub struct Accepted(TlsStream<TcpStream>);

impl Accepted {
    /// Whether the peer has chosen HTTP/2. Without a choice it is HTTP/1.1.
    #[must_use]
    pub fn speaks_http2(&self) -> bool {
        self.0.get_ref().1.alpn_protocol() == Some(HTTP_2)
    }

    /// Returns the stream.
    #[must_use]
    pub fn into_stream(self) -> TlsStream<TcpStream> {
        self.0
    }
}
