//! The server program with TLS of its own, for a browser, which accepts its certificate.

use std::path::{Path, PathBuf};

use platform_test_ports::ReservedPort;
use tempfile::TempDir;

use crate::browser::Engine;
use crate::server::Server;

/// A server that speaks TLS itself, with the demo game. It has its own data.
#[derive(Debug)]
pub struct HttpsServer {
    /// The process.
    pub server: Server,
    /// Its port.
    pub port: u16,
    _data: TempDir,
    _reserved: ReservedPort,
}

impl HttpsServer {
    /// Starts one at `https://<platform>` for a browser of this engine. Games are below `games`.
    ///
    /// # Panics
    /// It does not start.
    pub async fn start(engine: Engine, platform: &str, games: &str) -> Self {
        let data = TempDir::with_prefix("platform-tests-").expect("a folder can be made");
        // The origins contain the port before the server has started.
        let reserved = ReservedPort::take().expect("a port is free");
        let port = reserved.number();
        let (certificate, key) = certify(data.path(), [platform, games]);
        let mut settings = format!(
            "origin = \"https://{platform}:{port}\"\nlisten = \"127.0.0.1:{port}\"\ntls = \"files\"\n\
             tls_certificates = {certificate:?}\ntls_keys = {key:?}\n"
        );
        if games != platform {
            settings += &format!("games_origin = \"https://{games}:{port}\"\n");
        }
        if engine == Engine::WebKit {
            // Only a platform under `localhost` makes the demo, which stays.
            Server::start(data.path()).await.stop().await;
        }
        let listen = format!("127.0.0.1:{port}");
        let variables = [("PLATFORM_LISTEN", listen.as_str())];
        let server = Server::start_set(data.path(), &settings, &variables).await;
        Self {
            server,
            port,
            _data: data,
            _reserved: reserved,
        }
    }
}

/// Returns the host `<label>.localhost`, or another one for WebKit: it takes each name under `localhost`
/// for a site of its own, and its requests go through a proxy, which resolves names under `example`.
#[must_use]
pub fn host(engine: Engine, label: &str) -> String {
    match engine {
        Engine::Chromium | Engine::Firefox => format!("{label}.localhost"),
        Engine::WebKit => format!("{label}.example"),
    }
}

/// Makes a certificate for these hosts and the names below, and returns the paths of it and its key.
fn certify(folder: &Path, hosts: [&str; 2]) -> (PathBuf, PathBuf) {
    let names = hosts.map(|host| [host.to_owned(), format!("*.{host}")]);
    let made = rcgen::generate_simple_self_signed(names.concat()).expect("a certificate is made");
    let paths = (folder.join("tls.pem"), folder.join("tls.key"));
    std::fs::write(&paths.0, made.cert.pem()).expect("the folder can be written");
    std::fs::write(&paths.1, made.signing_key.serialize_pem()).expect("the folder can be written");
    paths
}
