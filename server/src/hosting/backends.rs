//! The games' own backends, and the way there: a reverse proxy.
//!
//! | module | holds |
//! |---|---|
//! | `paths` | which paths a backend answers, and which are the platform's |
//! | `headers` | what a backend hears, and what a page gets |
//! | `address_policy` | which addresses a backend may have |
//! | `response_body` | answers that stop in the middle |
//! | `open_connections` | what ends when a game is taken down |
//! | `connection_test` | whether one answers when it is set |
//! | `assertion` | what the platform says of itself to a backend |
//! | `forward` | what a proxy does with a request and its answer, WebSockets included |
//! | `early_response` | answers that come before all of a request was sent |

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use axum::response::Response;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use platform_protocol::names::Environment;
use platform_protocol::problem::ProblemCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::domain::errors::chain;
use crate::domain::project::BackendSettings;
use crate::games::catalogue::{Catalogue, Game};
use crate::hosting::request_body::{self, Upload};
use crate::origin::PlatformOrigin;
use crate::web::api_error::ApiError;
use crate::web::client_address::Network;
use crate::web::fair_shares::{Share, Shares};
use crate::web::places::{Group, Lasting, Stay};
use crate::web::request_context::Context;
use crate::web::tls;

mod address_policy;
mod assertion;
mod connection_test;
mod early_response;
mod forward;
mod headers;
mod open_connections;
mod paths;
mod response_body;

pub use self::address_policy::AddressPolicy;
pub use self::assertion::Assertions;
use self::assertion::LastAssertion;
pub use self::connection_test::Trial;
use self::forward::{BackendClient, Handshake};
use self::open_connections::{Door, Doors};
pub use self::paths::is_reserved;

/// The paths of a game that its backend answers where nothing else is set.
const PATHS: &str = "/api/";
/// How long a connection that nobody uses is kept. Node and other servers close
/// theirs after 5 s, and a request that meets the closing is lost.
const KEPT: Duration = Duration::from_secs(4);
/// Connections that are kept for one backend, at most.
const KEPT_CONNECTIONS: usize = 64;
/// Requests and WebSockets that one backend may have open at one time, so that
/// one that does not answer takes nothing from those of other games.
const IN_FLIGHT: usize = 1_024;
/// Which part of those one network may have, and which part it and those around
/// it may have together, once more than half are taken: few visitors cannot take
/// all of them, and a school may be one network. This machine itself may have
/// all: programs that measure are many visitors in one.
const SHARES: (usize, usize) = (16, 8);

/// One backend, and which paths of its game it answers.
pub struct Backend {
    settings: BackendSettings,
    places: Arc<Semaphore>,
    networks: Shares<Group>,
    assertion: LastAssertion,
    /// Its game has no backend any more. What takes its place has the same.
    removed: Arc<AtomicBool>,
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

/// How backends are asked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What a request's body may take, and how long an answer may take to begin.
    pub limits: request_body::Limits,
    /// How long an answer may be silent in its middle.
    pub idle: Duration,
    /// Requests that one backend may have open at one time.
    pub in_flight: usize,
    /// Which addresses a backend may have.
    pub reach: AddressPolicy,
}

impl Settings {
    /// Those of the platform's settings.
    #[must_use]
    pub fn new(config: &Config, origin: &PlatformOrigin, listening: SocketAddr) -> Self {
        Self {
            limits: request_body::Limits {
                quiet: Duration::from_secs(config.backend_timeout_seconds),
                ..request_body::Limits::default()
            },
            idle: Duration::from_secs(config.backend_idle_seconds),
            in_flight: IN_FLIGHT,
            reach: AddressPolicy::new(config.private_backends.clone(), origin, listening),
        }
    }
}

/// One environment of one project.
type Key = (String, Environment);

/// The backends of all games.
type Table = HashMap<Key, Arc<Backend>>;

/// Every backend that there is. One may be set while requests are answered.
pub struct Backends {
    /// The platform's own, which no setting changes.
    built_in: ArcSwap<Table>,
    /// What the games' owners have set. It goes before the others.
    set: ArcSwap<Table>,
    /// Held while they are changed.
    following: Mutex<()>,
    client: BackendClient,
    /// The platform's name in `Via`.
    name: String,
    settings: Settings,
    assertions: Option<Assertions>,
    closing: CancellationToken,
    doors: Doors,
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.built_in.load().keys())
            .entries(self.set.load().keys())
            .finish()
    }
}

impl Backends {
    /// No backends yet.
    ///
    /// # Errors
    /// TLS cannot be set up at all.
    pub fn new(origin: &PlatformOrigin, settings: Settings) -> Result<Self, rustls::Error> {
        let name = origin.to_string();
        let name = name
            .split_once("://")
            .map_or("", |(_, name)| name)
            .to_owned();
        let closing = CancellationToken::new();
        Ok(Self {
            built_in: ArcSwap::default(),
            set: ArcSwap::default(),
            following: Mutex::default(),
            client: client(settings.reach.clone())?,
            name,
            settings,
            assertions: None,
            doors: Doors::new(closing.clone()),
            closing,
        })
    }

    /// Signs what is forwarded.
    #[must_use]
    pub fn signed_by(mut self, assertions: Assertions) -> Self {
        self.assertions = Some(assertions);
        self
    }

    /// Which addresses a backend may have.
    #[must_use]
    pub const fn reach(&self) -> &AddressPolicy {
        &self.settings.reach
    }

    /// Ends all WebSockets, those to come included: the server stops.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Sends the `/api/` of a game there from now on, unless its owner has set
    /// another backend.
    pub fn add(&self, slug: &str, environment: Environment, backend: SocketAddr) {
        let settings = BackendSettings {
            url: format!("http://{backend}"),
            paths: vec![PATHS.to_owned()],
        };
        let backend = self.backend(settings, Arc::default());
        self.built_in.rcu(|table| {
            let mut table = Table::clone(table);
            table.insert((slug.to_owned(), environment), Arc::clone(&backend));
            table
        });
    }

    /// Whether the platform's own backend answers for a game while its owner has
    /// set none.
    #[must_use]
    pub fn is_built_in(&self, slug: &str, environment: Environment) -> bool {
        let key = (slug.to_owned(), environment);
        self.built_in.load().contains_key(&key)
    }

    /// Follows a change of all games, or of those of one project. What is open to a
    /// backend that was taken away ends, and what is open to the backends of games that
    /// are not shown: their WebSockets, and answers on their way. What is open to one
    /// whose address or paths were changed goes on there.
    pub fn follow(&self, catalogue: &Catalogue, slug: Option<&str>) {
        {
            // No older look goes over a newer one.
            let _following = self.following.lock();
            match slug {
                Some(slug) => self.follow_project(catalogue, slug),
                None => {
                    let games = catalogue.all();
                    let set = games.iter().filter_map(|game| {
                        let key = (game.slug.clone(), game.environment);
                        Some((key, game.backend.as_ref()?))
                    });
                    self.replace(set);
                }
            }
        }
        self.doors.follow(|slug, environment| {
            let game = catalogue.find(&environment.label(slug))?;
            Some(!game.taken_down)
        });
    }

    fn follow_project(&self, catalogue: &Catalogue, slug: &str) {
        let games = Environment::ALL.map(|environment| {
            let game = catalogue.find(&environment.label(slug));
            ((slug.to_owned(), environment), game)
        });
        let before = self.set.load_full();
        let is_as_before = games.iter().all(|(key, game)| {
            let settings = game.as_ref().and_then(|game| game.backend.as_ref());
            before.get(key).map(|known| &known.settings) == settings
        });
        if is_as_before {
            return;
        }
        let others = before.iter().filter(|((of, _), _)| of != slug);
        let others = others.map(|(key, known)| (key.clone(), &known.settings));
        let own = games.iter().filter_map(|(key, game)| {
            let settings = game.as_ref()?.backend.as_ref()?;
            Some((key.clone(), settings))
        });
        self.replace(others.chain(own));
    }

    /// Makes `set` what the games' owners have set.
    fn replace<'a>(&self, set: impl Iterator<Item = (Key, &'a BackendSettings)>) {
        let before = self.set.load_full();
        let table: Table = set
            .map(|(key, settings)| {
                let backend = match before.get(&key) {
                    Some(known) if known.settings == *settings => Arc::clone(known),
                    Some(known) => self.backend(settings.clone(), Arc::clone(&known.removed)),
                    None => self.backend(settings.clone(), Arc::default()),
                };
                (key, backend)
            })
            .collect();
        let table = Arc::new(table);
        self.set.store(Arc::clone(&table));
        for (key, gone) in before.iter().filter(|(key, _)| !table.contains_key(*key)) {
            // A request that found it before comes to a closed door, or, if it
            // comes later, sees this.
            gone.removed.store(true, Ordering::Release);
            self.doors.end(key);
        }
    }

    fn backend(&self, settings: BackendSettings, removed: Arc<AtomicBool>) -> Arc<Backend> {
        Arc::new(Backend {
            settings,
            places: Arc::new(Semaphore::new(self.settings.in_flight)),
            networks: Shares::default(),
            assertion: LastAssertion::default(),
            removed,
        })
    }

    /// The backend that answers this path of a game, if any.
    #[must_use]
    pub fn find(&self, game: &Game, path: &str) -> Option<Arc<Backend>> {
        let key = (game.slug.clone(), game.environment);
        let set = self.set.load().get(&key).cloned();
        let backend = set.or_else(|| self.built_in.load().get(&key).cloned())?;
        let answers = |prefix: &String| paths::is_below(path, prefix);
        // Some are the platform's, whatever was set.
        (backend.settings.paths.iter().any(answers) && !is_reserved(path)).then_some(backend)
    }

    /// Refuses a request that has been here before: a backend that leads back
    /// to the platform would ask itself without end.
    ///
    /// # Errors
    /// `backend-unreachable`
    pub fn refuse_loop(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        if headers.contains_key(header::VIA) && headers::came_through(headers, &self.name) {
            return Err(ApiError::new(ProblemCode::BackendUnreachable)
                .with_detail("The game's backend leads back to the platform itself."));
        }
        Ok(())
    }

    /// Sends a request to a backend and answers what it answers, streaming
    /// both ways.
    ///
    /// # Errors
    /// `backend-unreachable`, `backend-timeout`, `payload-too-large`,
    /// `invalid-request`, `unavailable`, 408.
    pub async fn forward(
        &self,
        backend: &Backend,
        game: &Game,
        context: &Context,
        mut request: Request<Body>,
    ) -> Result<Response, ApiError> {
        let handshake = Handshake::of(&mut request);
        let (mut parts, body) = request.into_parts();
        self.check(&parts)?;
        let place = self.place(backend, context)?;
        let held = parts.extensions.remove::<Stay>();
        let lasting = upgraded(&parts.headers, held.as_ref())?;
        let gone = || {
            ApiError::new(ProblemCode::BackendUnreachable)
                .with_detail("The game was taken down, or has this backend no more.")
        };
        let Door { sockets, answers } = self.doors.of(&game.slug, game.environment);
        if backend.removed.load(Ordering::Acquire) {
            return Err(gone());
        }
        let assertion = self.assertions.as_ref();
        let assertion = assertion.and_then(|all| all.of(&backend.assertion, game));
        headers::prepare(&mut parts, game, context, assertion);
        let held = (place, lasting, held);

        let (upload, body) = Upload::watch(body, self.settings.limits);
        let request = Request::from_parts(parts, body);
        let url = &backend.settings.url;
        let asked = forward::send(&self.client, &self.name, url, request, handshake.as_ref());
        let answered = tokio::select! {
            answered = upload.wait_for(asked) => answered?,
            () = answers.cancelled() => return Err(gone()),
        };
        let mut response = match answered {
            Ok(response) => response,
            Err(cause) => {
                upload.check()?;
                return Err(ApiError::new(ProblemCode::BackendUnreachable).with_cause(cause));
            }
        };
        headers::protect_others(response.headers_mut(), game);
        match handshake {
            Some(handshake) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                handshake.tunnel(&mut response, held, sockets);
                Ok(response)
            }
            _ => {
                let idle = self.settings.idle;
                Ok(response.map(|body| response_body::listen(body, idle, answers, held)))
            }
        }
    }

    /// A place for one more request at a backend, and its network's share in it.
    fn place(
        &self,
        backend: &Backend,
        context: &Context,
    ) -> Result<(OwnedSemaphorePermit, Vec<Share<Group>>), ApiError> {
        let busy = |detail: &'static str| {
            ApiError::new(ProblemCode::Unavailable)
                .with_detail(detail)
                .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
        };
        let all = self.settings.in_flight;
        let place = Arc::clone(&backend.places).try_acquire_owned();
        let place = place
            .map_err(|_| busy("The game's backend has too much to do. Try again in a moment."))?;
        let taken = all.saturating_sub(backend.places.available_permits());
        let are_scarce = taken * 2 > all;
        let most = |part: usize| if are_scarce { all.div_ceil(part) } else { all };
        let network = Group::Network(Network::of(context.client));
        let groups = if context.client.is_loopback() {
            vec![(network, all)]
        } else {
            let around = Group::around(context.client);
            vec![(network, most(SHARES.0)), (around, most(SHARES.1))]
        };
        let shares = groups.into_iter();
        let shares = shares.map(|(group, most)| backend.networks.take(group, most));
        let shares = shares.collect::<Option<Vec<_>>>().ok_or_else(|| {
            busy("Your network has too many requests at the game's backend. Try again in a moment.")
        })?;
        Ok((place, shares))
    }

    fn check(&self, parts: &Parts) -> Result<(), ApiError> {
        let length = parts
            .headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.parse::<u64>().ok());
        if length.is_some_and(|length| length > self.settings.limits.bytes) {
            return Err(ProblemCode::PayloadTooLarge.into());
        }
        // It would show a page what the platform alone tells a backend (RFC 9110
        // §9.3.8); `TRACK` is the same to some servers. `CONNECT`
        // asks for a tunnel to somewhere else.
        if parts.method == Method::TRACE
            || parts.method == Method::CONNECT
            || parts.method.as_str().eq_ignore_ascii_case("track")
        {
            let allowed = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
            return Err(ApiError::new(ProblemCode::MethodNotAllowed)
                .with_header(header::ALLOW, HeaderValue::from_static(allowed)));
        }
        if paths::leads_out(parts.uri.path()) {
            return Err(ProblemCode::InvalidRequest.into());
        }
        Ok(())
    }
}

/// Counts a connection that is to become a WebSocket (RFC 6455 §4.1) as one that
/// lasts, before the backend hears of it.
fn upgraded(headers: &HeaderMap, held: Option<&Stay>) -> Result<Option<Lasting>, ApiError> {
    let values = headers.get_all(header::UPGRADE).into_iter();
    let wanted = values.filter_map(|value| value.to_str().ok());
    let mut wanted = wanted.flat_map(|value| value.split(','));
    match held {
        Some(stay) if wanted.any(|to| to.trim().eq_ignore_ascii_case("websocket")) => {
            stay.last().map(Some)
        }
        _ => Ok(None),
    }
}

fn client(reach: AddressPolicy) -> Result<BackendClient, rustls::Error> {
    // Where the machine has no certificates, backends over plain http work.
    let tls = tls::client(true).or_else(|error| {
        tracing::warn!(
            error = chain(&error),
            "no backend can be reached over https; install the machine's CA certificates"
        );
        tls::client(false)
    })?;
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(address_policy::Connector::new(Arc::new(reach)));
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(KEPT)
        .pool_max_idle_per_host(KEPT_CONNECTIONS)
        .build(connector))
}
