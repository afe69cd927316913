//! An independent OpenID provider for players to sign in with: npm's `oidc-provider`, on another
//! site than the platform's.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use platform_openid::IdentityProvider;
use platform_server::config::Secret;
use platform_test_ports::ReservedPort;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::{npm, poll, settings};

/// The text before its issuer that it prints when it is ready.
const READY: &str = "identity provider ready on ";

/// A running provider. It ends when the pipe to its standard input closes: when this is dropped or
/// the test program ends.
#[derive(Debug)]
pub struct ExternalProvider {
    issuer: String,
    port: u16,
    client: Client,
    _process: Child,
}

impl ExternalProvider {
    /// Returns the provider that all tests of this program share: its accounts are identified by
    /// login, and every platform is a separate client.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<ExternalProvider> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    async fn start() -> Self {
        let mut process = Command::new(settings::program("NODE", &["node"]))
            .arg("identity-provider.mjs")
            .current_dir(npm::packages("npm").await)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It only prints warnings about production use.
            .stderr(Stdio::null())
            .spawn()
            .expect("node starts");
        let output = process.stdout.take().expect("the output is a pipe");
        let reading = tokio::task::spawn_blocking(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.find_map(|line| line.strip_prefix(READY).map(str::to_owned))
        });
        let issuer = poll::within("the identity provider", reading)
            .await
            .expect("the reader ends")
            .expect("identity-provider.mjs ended before it was ready: run it by hand");
        let port = issuer
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok())
            .expect("an issuer with a port");
        let client = Client::builder()
            .no_proxy()
            .timeout(poll::BOUND)
            .build()
            .expect("a client can be made");
        Self {
            issuer,
            port,
            client,
            _process: process,
        }
    }

    /// Registers the platform whose auth service is at `auth_url` as a client (RFC 7591). Returns
    /// the platform's settings for this provider, with the id `elsewhere`.
    ///
    /// # Panics
    /// Panics if the provider refuses.
    pub async fn register(&self, auth_url: &str) -> IdentityProvider {
        let registration = self
            .client
            .post(format!("http://127.0.0.1:{}/reg", self.port))
            .header("host", format!("id.localhost:{}", self.port))
            .header("content-type", "application/json")
            .body(
                json!({ "redirect_uris": [format!("{auth_url}/callback/elsewhere")] }).to_string(),
            )
            .send()
            .await
            .expect("the provider answers");
        let answer = registration.bytes().await.expect("a whole answer");
        let client: Value = serde_json::from_slice(&answer).expect("a client as JSON");
        let member = |name: &str| {
            let value = client[name].as_str();
            value
                .unwrap_or_else(|| panic!("no {name} in {client}"))
                .to_owned()
        };
        IdentityProvider {
            id: "elsewhere".to_owned(),
            name: "Elsewhere".to_owned(),
            issuer: self.issuer.parse().expect("an address"),
            client_id: member("client_id"),
            client_secret: Secret::new(member("client_secret")),
            scopes: vec!["openid".to_owned()],
        }
    }
}

/// A provider that is down: nothing listens at its address, and no other program gets its port
/// while this exists.
#[derive(Debug)]
pub struct GoneProvider {
    /// The platform's settings for it, with the id `gone`.
    pub settings: IdentityProvider,
    _port: ReservedPort,
}

impl GoneProvider {
    /// Reserves a port on which nothing responds.
    ///
    /// # Panics
    /// Panics if no port is free.
    #[must_use]
    pub fn new() -> Self {
        let port = ReservedPort::take().expect("a port is free");
        let issuer = format!("http://gone.localhost:{}", port.number());
        let settings = IdentityProvider {
            id: "gone".to_owned(),
            name: "Gone".to_owned(),
            issuer: issuer.parse().expect("an address"),
            client_id: "platform".to_owned(),
            client_secret: Secret::new("secret".to_owned()),
            scopes: vec!["openid".to_owned()],
        };
        Self {
            settings,
            _port: port,
        }
    }
}

impl Default for GoneProvider {
    fn default() -> Self {
        Self::new()
    }
}
