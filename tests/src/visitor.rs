//! A visitor without a browser: cookie, token, plain HTTP.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_protocol::claims::{GameTokenClaims, GameTokenHeader};
use platform_protocol::paths;
use platform_protocol::token::TokenAnswer;
use reqwest::header::{COOKIE, HOST, ORIGIN, SET_COOKIE};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response};
use serde::de::DeserializeOwned;

/// The session cookie's name over http.
const COOKIE_NAME: &str = "platform-session";

/// Uses a platform as browsers do, without one.
#[derive(Clone, Debug)]
pub struct Visitor {
    client: Client,
    address: SocketAddr,
    port: u16,
}

/// What a visitor has after a complete token response.
#[derive(Clone, Debug)]
pub struct Minted {
    /// The cookie's value: the one that was set, otherwise the one that was sent.
    pub cookie: String,
    /// The token.
    pub token: String,
    /// The claims of the token; its signature is not checked here.
    pub claims: GameTokenClaims,
}

/// The reason why there is no token.
#[derive(Debug)]
pub enum NotMinted {
    /// No complete response arrived.
    Lost(reqwest::Error),
    /// The response was not a token.
    Refused {
        /// Its status.
        status: u16,
        /// Its body.
        body: String,
    },
}

impl Visitor {
    /// Creates a visitor of the platform that listens on `address`, whose origin has the port
    /// `port`.
    #[must_use]
    pub fn new(address: SocketAddr, port: u16) -> Self {
        Self::with(Client::builder(), address, port)
    }

    /// Creates a visitor who opens a connection for each request.
    ///
    /// If the server behind a proxy ends while a connection is idle, the proxy may close the
    /// client's connection instead of responding to the next request on it. Browsers then send the
    /// request again; this client does not.
    #[must_use]
    pub fn who_reconnects(address: SocketAddr, port: u16) -> Self {
        Self::with(Client::builder().pool_max_idle_per_host(0), address, port)
    }

    fn with(client: ClientBuilder, address: SocketAddr, port: u16) -> Self {
        let client = client
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(crate::poll::BOUND)
            .build()
            .expect("a client can be made");
        Self {
            client,
            address,
            port,
        }
    }

    /// Returns the platform origin.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://platform.localhost:{}", self.port)
    }

    /// Returns `<label>.platform.localhost:<port>`.
    #[must_use]
    pub fn host(&self, label: &str) -> String {
        format!("{label}.platform.localhost:{}", self.port)
    }

    /// Builds a request to `path` on the address `label`.
    pub fn request(&self, method: reqwest::Method, label: &str, path: &str) -> RequestBuilder {
        self.request_host(method, &self.host(label), path)
    }

    /// Builds a request to `path` on this `host`.
    pub fn request_host(&self, method: reqwest::Method, host: &str, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("http://{}{path}", self.address))
            .header(HOST, host)
    }

    /// Exchanges `cookie`, if there is one, for a token of the game `label`.
    ///
    /// # Errors
    /// Returns an error if no response, or no token, arrived.
    pub async fn mint(&self, label: &str, cookie: Option<&str>) -> Result<Minted, NotMinted> {
        let mut request = self
            .request(reqwest::Method::POST, "auth", paths::TOKEN)
            .header(ORIGIN, format!("http://{}", self.host(label)));
        if let Some(cookie) = cookie {
            request = request.header(COOKIE, format!("{COOKIE_NAME}={cookie}"));
        }
        let answer = request.send().await.map_err(NotMinted::Lost)?;
        let status = answer.status().as_u16();
        let set = cookie_of(&answer);
        let body = answer.bytes().await.map_err(NotMinted::Lost)?;
        if status != 200 {
            let body = String::from_utf8_lossy(&body).into_owned();
            return Err(NotMinted::Refused { status, body });
        }
        let answer: TokenAnswer = serde_json::from_slice(&body).expect("a token answer");
        let claims = claims(&answer.access_token);
        let cookie = set
            .or(cookie.map(str::to_owned))
            .expect("a new guest gets a cookie");
        Ok(Minted {
            cookie,
            token: answer.access_token,
            claims,
        })
    }

    /// Becomes a new guest of the game `label` and brings the cookie back, as a browser does with its
    /// first heartbeat, so that the guest counts as a player.
    ///
    /// # Errors
    /// As [`Self::mint`].
    pub async fn mint_player(&self, label: &str) -> Result<Minted, NotMinted> {
        let first = self.mint(label, None).await?;
        self.mint(label, Some(&first.cookie)).await
    }
}

/// Returns the session cookie that `answer` sets.
fn cookie_of(answer: &Response) -> Option<String> {
    let cookies = answer.headers().get_all(SET_COOKIE).iter();
    cookies
        .filter_map(|cookie| cookie.to_str().ok())
        .find_map(|cookie| {
            let (name, rest) = cookie.split_once('=')?;
            (name == COOKIE_NAME).then(|| rest.split(';').next().unwrap_or(rest).to_owned())
        })
}

/// Returns the claims of a token, without checking its signature.
///
/// # Panics
/// Panics if it is not a game token.
#[must_use]
pub fn claims(token: &str) -> GameTokenClaims {
    part(token, 1)
}

/// Returns the id of the key that signed a token.
///
/// # Panics
/// Panics if it is not a game token.
#[must_use]
pub fn key_of(token: &str) -> String {
    part::<GameTokenHeader>(token, 0).kid
}

/// Reads the header or the payload of a token.
fn part<T: DeserializeOwned>(token: &str, number: usize) -> T {
    let part = token.split('.').nth(number);
    let part = part.expect("a token has three parts");
    let part = URL_SAFE_NO_PAD.decode(part);
    let part = part.expect("a token is base64url");
    serde_json::from_slice(&part).expect("a token has every member")
}
