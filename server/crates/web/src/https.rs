//! TLS of the platform's own: the handshake, within a time limit, and the choice between HTTP/1.1
//! and HTTP/2 (ALPN, RFC 7301). A certificate may be obtained only when somebody asks for its name, and
//! a handshake may be a certificate authority's challenge (RFC 8737).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::{Request, header};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{Acceptor, ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::server::{StartHandshake, TlsStream};
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};

/// The names of the protocols (RFC 7301 §6, RFC 9113 §3.2, RFC 8737 §6.2).
const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";
const CHALLENGE: &[u8] = b"acme-tls/1";

/// How long a handshake waits for a certificate that is obtained for it: less than browsers wait.
const OBTAIN: Duration = Duration::from_secs(25);

/// Chooses certificates, and knows for which names they are.
pub trait ChoosesCertificates: ResolvesServerCert {
    /// Whether a request for `host` is on the wrong connection, where the certificate for `shown` was shown:
    /// that one is not for the host, and another one is (RFC 9110 §7.4). Both names are in lower case.
    fn is_misdirected(&self, shown: &str, host: &str) -> bool;
}

/// Obtains certificates when somebody asks for their names.
#[async_trait]
pub trait OnDemand: std::fmt::Debug + Send + Sync {
    /// Returns when the certificate for this name, in lower case, can be resolved, or when it is known
    /// that there will be none. It may be dropped at any time.
    async fn prepare(&self, name: &str);

    /// Returns the certificate that answers the challenge for this name, in lower case (RFC 8737 §3), if
    /// there is a challenge.
    async fn answer_challenge(&self, name: &str) -> Option<Arc<CertifiedKey>>;
}

/// Accepts connections over TLS 1.2 and 1.3.
#[derive(Clone)]
pub struct Https {
    acceptor: TlsAcceptor,
    certificates: Arc<dyn ChoosesCertificates>,
    on_demand: Option<Arc<dyn OnDemand>>,
}

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
    pub fn new(certificates: Arc<dyn ChoosesCertificates>) -> Result<Self, rustls::Error> {
        let mut config = server(certificates.clone(), &[HTTP_2, HTTP_1])?;
        // Visitors who come back need no signature. The keys of the tickets change, and stay in
        // memory.
        config.ticketer = ring::Ticketer::new()?;
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            certificates,
            on_demand: None,
        })
    }

    /// Lets `on_demand` obtain what `certificates` cannot choose yet.
    ///
    /// # Errors
    /// As [`Https::new`].
    pub fn on_demand(
        certificates: Arc<dyn ChoosesCertificates>,
        on_demand: Arc<dyn OnDemand>,
    ) -> Result<Self, rustls::Error> {
        Ok(Self {
            on_demand: Some(on_demand),
            ..Self::new(certificates)?
        })
    }

    /// Performs the handshake. `None` if it was a challenge, after which nothing follows.
    ///
    /// # Errors
    /// What the peer did wrong, or that it took longer than `limit`. The time for obtaining a certificate
    /// does not count.
    pub async fn accept(&self, stream: TcpStream, limit: Duration) -> io::Result<Option<Accepted>> {
        let Some(on_demand) = &self.on_demand else {
            let accepted = in_time(limit, self.acceptor.accept(stream)).await?;
            return Ok(Some(self.accepted(accepted)));
        };
        // It is only part of a connection's future while it is needed.
        Box::pin(self.accept_on_demand(&**on_demand, stream, limit)).await
    }

    async fn accept_on_demand(
        &self,
        on_demand: &dyn OnDemand,
        stream: TcpStream,
        limit: Duration,
    ) -> io::Result<Option<Accepted>> {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), stream);
        let handshake = in_time(limit, hello).await?;
        let hello = handshake.client_hello();
        let name = hello.server_name().map(str::to_ascii_lowercase);
        if is_challenge(&hello) {
            answer(handshake, on_demand, name.as_deref(), limit).await?;
            return Ok(None);
        }
        if let Some(name) = &name {
            let until = Instant::now() + OBTAIN;
            // If it was not obtained by then, the visitor's next attempt may find it.
            let _ = timeout_at(until, on_demand.prepare(name)).await;
        }
        let config = Arc::clone(self.acceptor.config());
        let accepted = in_time(limit, handshake.into_stream(config)).await?;
        Ok(Some(self.accepted(accepted)))
    }

    fn accepted(&self, stream: TlsStream<TcpStream>) -> Accepted {
        let name = stream.get_ref().1.server_name();
        let shown = name.map(|name| ShownCertificate {
            certificates: Arc::clone(&self.certificates),
            name: name.to_ascii_lowercase().into(),
        });
        Accepted { stream, shown }
    }
}

/// Waits for a part of a handshake.
async fn in_time<T>(limit: Duration, part: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let done = tokio::time::timeout(limit, part).await;
    done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn server(
    certificates: Arc<dyn ResolvesServerCert>,
    protocols: &[&[u8]],
) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// A challenge offers its own protocol and no other (RFC 8737 §3).
fn is_challenge(hello: &ClientHello<'_>) -> bool {
    let offered = hello.alpn();
    offered.is_some_and(|offered| offered.eq([CHALLENGE]))
}

/// Answers a challenge, and ends the connection (RFC 8737 §3).
async fn answer(
    handshake: StartHandshake<TcpStream>,
    on_demand: &dyn OnDemand,
    name: Option<&str>,
    limit: Duration,
) -> io::Result<()> {
    let key = match name {
        Some(name) => {
            let answered = async { Ok(on_demand.answer_challenge(name).await) };
            in_time(limit, answered).await?
        }
        None => None,
    };
    let resolver: Arc<dyn ResolvesServerCert> = match key {
        Some(key) => Arc::new(SingleCertAndKey::from(key)),
        None => Arc::new(Nothing),
    };
    let config = server(resolver, &[CHALLENGE]).map_err(io::Error::other)?;
    in_time(limit, handshake.into_stream(Arc::new(config))).await?;
    Ok(())
}

/// Has no certificate, so that the peer is told so (an alert).
#[derive(Debug)]
struct Nothing;

impl ResolvesServerCert for Nothing {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        None
    }
}

/// The certificate that was shown on a connection.
#[derive(Clone, Debug)]
pub(crate) struct ShownCertificate {
    certificates: Arc<dyn ChoosesCertificates>,
    name: Arc<str>,
}

impl ShownCertificate {
    /// Whether a request is on the wrong connection.
    pub(crate) fn is_misdirected<B>(&self, request: &Request<B>) -> bool {
        let of_target = request.uri().host();
        let of_head = || request.headers().get(header::HOST)?.to_str().ok();
        let Some(host) = of_target.or_else(of_head) else {
            return false;
        };
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        if host.eq_ignore_ascii_case(&self.name) {
            return false;
        }
        let host = host.to_ascii_lowercase();
        self.certificates.is_misdirected(&self.name, &host)
    }
}

/// A connection after its handshake.
#[derive(Debug)]
pub struct Accepted {
    stream: TlsStream<TcpStream>,
    /// Unless the peer asked for no name.
    shown: Option<ShownCertificate>,
}

impl Accepted {
    /// Whether the peer has chosen HTTP/2. Without a choice it is HTTP/1.1.
    #[must_use]
    pub fn speaks_http2(&self) -> bool {
        self.stream.get_ref().1.alpn_protocol() == Some(HTTP_2)
    }

    /// Returns the stream.
    #[must_use]
    pub fn into_stream(self) -> TlsStream<TcpStream> {
        self.stream
    }

    pub(crate) fn shown(&self) -> Option<ShownCertificate> {
        self.shown.clone()
    }
}
