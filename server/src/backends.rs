//! The games' own backends, and the way there: a reverse proxy.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, header};
use axum::response::Response;
use axum_reverse_proxy::{ProxyError, ProxyPolicy, ReverseProxy};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use platform_protocol::names::Environment;
use platform_protocol::problem::Slug;

use crate::http::context::Context;
use crate::http::cookies::session_cookie_name;
use crate::http::refusal::Refusal;
use crate::http::request_id::X_REQUEST_ID;
use crate::http::upload::{self, Upload};
use crate::origin::PlatformOrigin;
use crate::sites::Game;

/// The paths of a game that its backend answers.
const PATHS: &str = "/api/";
/// How long a backend may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// What a backend may believe, and so comes from the platform alone. With it
/// go all names that begin with `x-forwarded-`.
const FORWARDING: [HeaderName; 5] = [
    header::FORWARDED,
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("true-client-ip"),
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-rewrite-url"),
];

/// The way to one backend.
type Proxy = ReverseProxy<HttpConnector>;

/// Every backend that there is. One may be set while requests are answered.
pub struct Backends {
    proxies: ArcSwap<HashMap<(String, Environment), Arc<Proxy>>>,
    client: Client<HttpConnector, Body>,
    policy: ProxyPolicy,
    session_cookie: &'static str,
    limits: upload::Limits,
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.proxies.load().keys()).finish()
    }
}

impl Backends {
    /// No backends yet.
    #[must_use]
    pub fn new(origin: &PlatformOrigin) -> Self {
        Self::with_limits(origin, upload::Limits::default())
    }

    /// The same, with limits of one's own.
    #[must_use]
    pub fn with_limits(origin: &PlatformOrigin, limits: upload::Limits) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT));
        Self {
            proxies: ArcSwap::default(),
            client: Client::builder(TokioExecutor::new()).build(connector),
            policy: ProxyPolicy::new().with_public_scheme(origin.scheme()),
            session_cookie: session_cookie_name(origin.is_secure()),
            limits,
        }
    }

    /// Sends the `/api/` of a game there from now on.
    pub fn add(&self, slug: &str, environment: Environment, backend: SocketAddr) {
        let proxy = Proxy::new_with_client("", format!("http://{backend}"), self.client.clone());
        let proxy = Arc::new(proxy.with_policy(self.policy.clone()));
        self.proxies.rcu(|proxies| {
            let mut proxies = HashMap::clone(proxies);
            proxies.insert((slug.to_owned(), environment), Arc::clone(&proxy));
            proxies
        });
    }

    /// The backend that answers this path of a game, if any.
    #[must_use]
    pub fn find(&self, game: &Game, path: &str) -> Option<Arc<Proxy>> {
        if !path.starts_with(PATHS) {
            return None;
        }
        self.proxies
            .load()
            .get(&(game.slug.clone(), game.environment))
            .cloned()
    }

    /// Sends a request to a backend and answers what it answers, streaming
    /// both ways.
    ///
    /// # Errors
    /// `backend-unreachable`, `backend-timeout`, `payload-too-large`,
    /// `invalid-request`, 408.
    pub async fn forward(
        &self,
        proxy: &Proxy,
        game: &Game,
        context: &Context,
        request: Request<Body>,
    ) -> Result<Response, Refusal> {
        let (mut parts, body) = request.into_parts();
        self.check(&parts)?;
        say_who_asks(&mut parts, game, context);
        hide_cookie(&mut parts.headers, self.session_cookie);
        // The backend can log under the same id.
        parts
            .headers
            .insert(X_REQUEST_ID, context.id.header().clone());

        let (upload, body) = Upload::watch(body, self.limits);
        let answer = proxy.proxy_request(Request::from_parts(parts, body));
        let mut response = match upload.wait_for(answer).await? {
            Ok(response) => response,
            Err(never) => match never {},
        };
        if response.extensions().get::<ProxyError>().is_some() {
            upload.check()?;
        }
        if let Some(error) = response.extensions().get::<ProxyError>() {
            let slug = match response.status().as_u16() {
                504 => Slug::BackendTimeout,
                _ => Slug::BackendUnreachable,
            };
            return Err(Refusal::new(slug).with_cause(error.message().to_owned()));
        }
        refuse_cookie(response.headers_mut(), self.session_cookie);
        Ok(response)
    }

    fn check(&self, parts: &Parts) -> Result<(), Refusal> {
        let length = parts
            .headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.parse::<u64>().ok());
        if length.is_some_and(|length| length > self.limits.bytes) {
            return Err(Slug::PayloadTooLarge.into());
        }
        // A backend might resolve `..`, and then answer outside its paths.
        let leads_out = parts.uri.path().split('/').any(|segment| {
            let plain = percent_encoding::percent_decode_str(segment).collect::<Vec<u8>>();
            matches!(plain.as_slice(), b"." | b"..")
                || plain.iter().any(|byte| matches!(byte, b'/' | b'\\'))
        });
        if leads_out {
            return Err(Slug::InvalidRequest.into());
        }
        Ok(())
    }
}

/// Says what a backend may believe of a request, and takes out what anyone
/// could have written there.
fn say_who_asks(parts: &mut Parts, game: &Game, context: &Context) {
    let spoofed: Vec<HeaderName> = parts
        .headers
        .keys()
        .filter(|name| {
            // What has an underscore is taken for the name with a hyphen by
            // those who turn headers into variables (RFC 3875 §4.1.18).
            name.as_str().starts_with("x-forwarded-")
                || name.as_str().contains('_')
                || FORWARDING.contains(name)
        })
        .cloned()
        .collect();
    for name in spoofed {
        parts.headers.remove(name);
    }
    // Every header that it names would be taken out on the way.
    let upgrade = parts
        .headers
        .get_all(header::CONNECTION)
        .iter()
        .any(|value| {
            let mut options = value.as_bytes().split(|byte| *byte == b',');
            options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade"))
        });
    parts.headers.remove(header::CONNECTION);
    if upgrade && parts.headers.contains_key(header::UPGRADE) {
        let value = HeaderValue::from_static("upgrade");
        parts.headers.insert(header::CONNECTION, value);
    }
    // The request may have named its host elsewhere than in `Host`.
    let authority = game
        .origin
        .split_once("://")
        .map(|(_, authority)| authority);
    if let Some(host) = authority.and_then(|authority| HeaderValue::from_str(authority).ok()) {
        parts.headers.insert(header::HOST, host);
    }
    // The reverse proxy writes it into `X-Forwarded-For` and `Forwarded`.
    let client = SocketAddr::new(context.client, context.peer.port());
    parts.extensions.insert(ConnectInfo(client));
}

/// Takes the platform's session cookie out. It is the auth service's alone and
/// browsers send it nowhere else; should one arrive here, no game gets it.
fn hide_cookie(headers: &mut HeaderMap, name: &str) {
    let mentioned = headers.get_all(header::COOKIE).iter().any(|value| {
        value
            .as_bytes()
            .windows(name.len())
            .any(|part| part == name.as_bytes())
    });
    if !mentioned {
        return;
    }
    let kept: Vec<Vec<u8>> = headers
        .get_all(header::COOKIE)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b';'))
        .map(|cookie| cookie.trim_ascii().to_vec())
        .filter(|cookie| {
            let found = cookie
                .split(|byte| *byte == b'=')
                .next()
                .unwrap_or_default();
            found.trim_ascii() != name.as_bytes()
        })
        .collect();
    headers.remove(header::COOKIE);
    if !kept.is_empty()
        && let Ok(value) = HeaderValue::from_bytes(&kept.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, value);
    }
}

/// Keeps a game's backend from tossing a session cookie over to the auth
/// service, where two of them would lock the player out.
fn refuse_cookie(headers: &mut HeaderMap, name: &str) {
    let tossed = |value: &HeaderValue| {
        let pair = value.as_bytes().split(|byte| *byte == b';').next();
        // A cookie without a name, `=n=v`, comes back as `n=v` (RFC 6265bis
        // §5.8.3), and so like the cookie `n`.
        let mut pair = pair.unwrap_or_default().trim_ascii();
        while let Some(rest) = pair.strip_prefix(b"=") {
            pair = rest.trim_ascii();
        }
        let found = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
        found.trim_ascii() == name.as_bytes()
    };
    if !headers.get_all(header::SET_COOKIE).iter().any(tossed) {
        return;
    }
    let kept: Vec<HeaderValue> = headers
        .get_all(header::SET_COOKIE)
        .iter()
        .filter(|value| !tossed(value))
        .cloned()
        .collect();
    headers.remove(header::SET_COOKIE);
    for value in kept {
        headers.append(header::SET_COOKIE, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_game_gets_the_session_cookie() {
        let cases: &[(&[&str], Option<&str>)] = &[
            (&["a=1"], Some("a=1")),
            (&["platform-session=x"], None),
            (&["a=1; platform-session=x;b=2"], Some("a=1; b=2")),
            (&["platform-session=x", "b=2"], Some("b=2")),
            (
                &[" platform-session =x; c=platform-session"],
                Some("c=platform-session"),
            ),
            (&["platform-session2=x"], Some("platform-session2=x")),
        ];
        for (values, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in *values {
                headers.append(header::COOKIE, HeaderValue::from_static(value));
            }
            hide_cookie(&mut headers, "platform-session");
            let found = headers
                .get(header::COOKIE)
                .map(|value| value.to_str().unwrap());
            assert_eq!(found, *expected, "{values:?}");
        }
    }

    #[test]
    fn no_game_sets_the_session_cookie() {
        let mut headers = HeaderMap::new();
        for value in [
            "a=1; Path=/",
            "platform-session=x; Domain=platform.localhost",
            "platform-session=x",
            " platform-session =x",
            "=platform-session=x; Domain=platform.localhost",
            " = platform-session=x",
            "==platform-session=x",
            "platform-session; Domain=platform.localhost",
            "b=platform-session",
        ] {
            headers.append(header::SET_COOKIE, HeaderValue::from_static(value));
        }
        refuse_cookie(&mut headers, "platform-session");
        let kept: Vec<_> = headers.get_all(header::SET_COOKIE).iter().collect();
        assert_eq!(kept, ["a=1; Path=/", "b=platform-session"]);
    }
}
