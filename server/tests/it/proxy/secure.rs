//! Backends with TLS, whose certificates the machine must trust.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::program::{Server, program};
use crate::support::TestApp;

/// Returns what accepts TLS with a certificate for `name`, and the signing certificate as PEM.
pub(crate) fn certified(name: &str) -> (TlsAcceptor, String) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &authority).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), authority.pem())
}

/// A backend with a certificate for `name`; returns its port, and the signing certificate as PEM.
async fn serve(name: &str) -> (u16, String) {
    let (acceptor, authority) = certified(name);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret";
                stream.write_all(answer).await.unwrap();
                let _ = stream.shutdown().await;
            });
        }
    });
    (port, authority)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_over_tls_must_have_a_certificate_for_its_name() {
    for (certified, trusted, reached) in [
        ("localhost", true, true),
        ("localhost", false, false),
        ("other.localhost", true, false),
    ] {
        let (port, authority) = serve(certified).await;
        let app = TestApp::start().await;
        app.set_backend(&format!("https://localhost:{port}"), &["/api/"])
            .await;
        let TestApp {
            running, directory, ..
        } = app;
        running.stop().await.unwrap();
        let (_, other) = serve(certified).await;
        let file = directory.path().join("authorities.pem");
        std::fs::write(&file, if trusted { authority } else { other }).unwrap();
        let answer = tokio::task::spawn_blocking(move || {
            let mut command = program(directory.path());
            let server = Server::start(command.env("SSL_CERT_FILE", &file));
            let answer = server.ask("GET /api/x", "demo.platform.localhost", "");
            server.stop("-TERM");
            answer
        });
        let answer = answer.await.unwrap();
        if reached {
            assert!(answer.ends_with("\r\n\r\nsecret"), "{answer}");
        } else {
            assert!(answer.contains("/backend-unreachable"), "{answer}");
        }
    }
}
