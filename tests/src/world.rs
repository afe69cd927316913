//! A platform in this process, behind a [`Gateway`], with games on it. It is one server, or
//! [several nodes](crate::shared), with a balancer between them and the gateway.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use platform_protocol::log::LogLevel;
use platform_protocol::names::Environment;
use platform_server::Running;
use platform_server::app::state::AppState;
use platform_server::clock::{Clock, ManualClock, Millis, SystemClock};
use platform_server::config::Config;
use platform_server::domain::audit::Actor;
use platform_server::domain::environment_setting::EnvironmentSetting;
use platform_server::domain::log::{LogEntry, LogQuery};
use platform_server::domain::player::Player;
use platform_server::domain::project::Project;
use platform_server::domain::takedown::{Change, Changed};
use platform_server::origin::PlatformOrigin;
use platform_server::projects::deploy::Target;
use platform_server::web::seal::PRESS_MILLIS;
use reqwest::Method;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::backend::Backend;
use crate::balancer::Balancer;
use crate::gateway::{Fault, Gateway};
use crate::owner::Owner;
use crate::platform::{Site, start_nodes};
use crate::poll;
use crate::shared::{self, Shared};
use crate::visitor::Visitor;

/// The game under which tests publish their pages.
pub const GAME: &str = "arena";

/// Replaces the page's monotonic clock and its intervals, and lets a test advance them, once the
/// runtime's module has started: a call that is aborted sends nothing, but waits for it. After each
/// second, all waiting tasks of the page may run. The clock begins with a whole number: sums of
/// fractions are not exact, and a test waits for exactly as long as the runtime does.
const CLOCK: &str = "<script>{
    let now = Math.floor(performance.now());
    const intervals = [];
    performance.now = () => now;
    window.setInterval = (callback, period) => intervals.push({ callback, period, due: now + period });
    window.pass = async seconds => {
        await globalThis.platform?.fetch('/', { signal: AbortSignal.abort() }).catch(() => {});
        for (const end = now + seconds * 1000; now < end; ) {
            now += 1000;
            for (const interval of intervals) {
                for (; interval.due <= now; interval.due += interval.period) interval.callback();
            }
            await new Promise(turn => setTimeout(turn));
        }
    };
}</script>";

/// A page with the runtime's tag, and other files.
#[derive(Clone, Debug, Default)]
pub struct PageBuilder {
    before: String,
    after: String,
    files: Vec<(String, String)>,
}

impl PageBuilder {
    /// Creates a page that contains only the tag.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts `html` before the tag.
    #[must_use]
    pub fn before(mut self, html: &str) -> Self {
        self.before.push_str(html);
        self
    }

    /// Puts `html` after the tag.
    #[must_use]
    pub fn after(mut self, html: &str) -> Self {
        self.after.push_str(html);
        self
    }

    /// Adds a file next to the page.
    #[must_use]
    pub fn file(mut self, path: &str, content: &str) -> Self {
        self.files.push((path.to_owned(), content.to_owned()));
        self
    }

    /// Stops the page's time until a test advances it with `await pass(seconds)`: the runtime, and
    /// everything after it, sees no other clock and no other interval.
    #[must_use]
    pub fn clock(self) -> Self {
        self.before(CLOCK)
    }

    /// Returns the page. Its icon is empty, so that no browser requests one.
    #[must_use]
    pub fn html(&self) -> String {
        format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Arena</title>\
             <link rel=\"icon\" href=\"data:,\">{}\
             <script defer src=\"/__platform/runtime.js\"></script>{}</head><body></body></html>",
            self.before, self.after
        )
    }
}

/// A platform with the demo game, and the possibility to publish a test's own game.
#[derive(Debug)]
pub struct World {
    /// The proxy between browsers and the platform.
    pub gateway: Gateway,
    /// The backend of [`GAME`].
    pub backend: Backend,
    /// The address of the platform without the gateway.
    address: SocketAddr,
    /// The platform, or each of its nodes.
    nodes: Vec<Running>,
    clock: Arc<ManualClock>,
    owner: OnceCell<Owner>,
    _balancer: Option<Balancer>,
    /// It comes after the nodes, so that they end before what they use.
    shared: Option<Shared>,
    _data: TempDir,
}

impl World {
    /// Starts a platform whose clock starts with the current time and then stands still.
    pub async fn start() -> Self {
        Self::start_with(async |_| {}).await
    }

    /// Starts a platform with settings that `change` has modified. The origin is already set.
    pub async fn start_with(change: impl AsyncFnOnce(&mut Config)) -> Self {
        let gateway = Gateway::listen().await;
        let data = TempDir::with_prefix("platform-tests-").expect("a temporary directory");
        let mut config = Config {
            origin: Some(PlatformOrigin::local(gateway.port())),
            listen: ([127, 0, 0, 1], 0).into(),
            data: data.path().to_owned(),
            ..Config::default()
        };
        change(&mut config).await;
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let balancer = shared::nodes().map(|_| Balancer::listen(0));
        let shared = balancer.as_ref().map(|_| Shared::start());
        let nodes = start_nodes(config, shared.as_ref(), clock.clone()).await;
        let mut address = nodes[0].address;
        if let Some(balancer) = &balancer {
            balancer.lead_to(nodes.iter().map(|node| node.address).collect());
            address = balancer.address;
        }
        gateway.lead_to(address);
        Self {
            gateway,
            backend: Backend::listen().await,
            address,
            nodes,
            clock,
            owner: OnceCell::new(),
            _balancer: balancer,
            shared,
            _data: data,
        }
    }

    /// Returns the state of the platform, or of its first node.
    fn state(&self) -> &AppState {
        &self.nodes[0].state
    }

    /// Waits until every node has read what was changed in the store.
    async fn settle(&self) {
        self.state().platform.nodes.settle().await;
    }

    /// Returns the URL of `path` on `<label>.platform.localhost`; with an empty label, on the platform
    /// itself, and with an empty path, the origin.
    #[must_use]
    pub fn url(&self, label: &str, path: &str) -> String {
        let dot = if label.is_empty() { "" } else { "." };
        format!(
            "http://{label}{dot}platform.localhost:{}{path}",
            self.gateway.port()
        )
    }

    /// Publishes `page` as the game [`GAME`], whose `/api/` is this world's backend, and returns
    /// the game's address.
    pub async fn publish(&self, page: PageBuilder) -> String {
        let mut files = vec![("index.html".to_owned(), Bytes::from(page.html()))];
        files.extend(
            page.files
                .into_iter()
                .map(|(path, content)| (path, Bytes::from(content))),
        );
        self.deploy(GAME, files).await;
        for node in &self.nodes {
            let backends = &node.state.hosting.backends;
            backends.add(GAME, Environment::Prod, self.backend.address);
        }
        self.url(GAME, "/")
    }

    /// Publishes `files` as a new game, in production.
    pub async fn deploy(&self, slug: &str, files: Vec<(String, Bytes)>) {
        let state = self.state();
        let now = self.clock.now();
        let project = Project {
            slug: slug.to_owned(),
            owner: None,
            created_at: now,
        };
        state
            .platform
            .store
            .add_project(project)
            .await
            .expect("the slug is free");
        self.publish_files(slug, Environment::Prod, files).await;
    }

    async fn publish_files(
        &self,
        slug: &str,
        environment: Environment,
        files: Vec<(String, Bytes)>,
    ) {
        let state = self.state();
        let target = Target::of_platform(slug, environment);
        let deployed = state.projects.deployments.deploy_contents(files, &target);
        deployed.await.expect("the files can be deployed");
        self.settle().await;
    }

    /// Has each call of `platform.fetch` in the game [`GAME`] begin a trace, from the next visit on.
    pub async fn trace_requests(&self) {
        let store = &self.state().platform.store;
        let done = store.set_environment(
            GAME,
            Environment::Prod,
            EnvironmentSetting::Traced(true),
            Actor::Own.into(),
            self.clock.now(),
        );
        done.await.expect("the store answers");
        for node in &self.nodes {
            let read = node.state.hosting.refresh_all().await;
            read.expect("the store answers");
        }
    }

    /// Returns the runtime as the platform serves it, and as `platform runtime` prints it.
    pub async fn runtime_js(&self) -> String {
        let answer = self
            .visitor()
            .request(Method::GET, "demo", platform_protocol::paths::RUNTIME_JS)
            .send()
            .await
            .expect("the platform answers");
        answer.text().await.expect("the runtime is text")
    }

    /// Refuses the next `times` token requests for [`GAME`] with a problem.
    pub fn refuse_tokens(&self, status: u16, slug: &str, detail: &str, times: usize) {
        self.refuse_tokens_of(GAME, status, slug, detail, times);
    }

    /// Refuses the next `times` token requests for the game at the address `label` with a problem.
    pub fn refuse_tokens_of(
        &self,
        label: &str,
        status: u16,
        slug: &str,
        detail: &str,
        times: usize,
    ) {
        let body = serde_json::json!({
            "type": self.url("auth", &format!("/problems/{slug}")),
            "title": slug,
            "status": status,
            "detail": detail,
            "request_id": "of-this-request",
        });
        let headers = vec![
            ("content-type", "application/problem+json".to_owned()),
            ("access-control-allow-origin", self.url(label, "")),
            ("access-control-allow-credentials", "true".to_owned()),
            ("vary", "Origin".to_owned()),
        ];
        let answer = Fault::Answer {
            status,
            headers,
            body: body.to_string().into_bytes(),
        };
        self.gateway.spoil(Method::POST, "/token", answer, times);
    }

    /// Returns a visitor without a browser, who uses the platform without the gateway.
    #[must_use]
    pub fn visitor(&self) -> Visitor {
        Visitor::new(self.address, self.gateway.port())
    }

    /// Returns the address of the platform without the gateway.
    #[must_use]
    pub fn site(&self) -> Site {
        Site {
            origin: self.nodes[0].origin.clone(),
            address: self.address,
        }
    }

    /// Returns the player `sub` from the store.
    ///
    /// # Panics
    /// Panics if there is none.
    pub async fn find_player(&self, sub: &str) -> Player {
        let id = Uuid::parse_str(sub).expect("a player's id is a UUID");
        let player = self.state().platform.store.find_player(id).await;
        player
            .expect("the store answers")
            .unwrap_or_else(|| panic!("there is no player {sub}"))
    }

    /// Disables the game [`GAME`] as the operator's command does, and runs the check that the
    /// platform performs every half minute.
    pub async fn disable(&self) {
        let state = self.state();
        let change = Change::Disable { reason: None };
        let now = self.clock.now();
        let done = state
            .platform
            .store
            .change_standing(GAME, change, Actor::Operator.into(), now);
        assert_eq!(done.await.expect("the store answers"), Changed::Done);
        for node in &self.nodes {
            let games = &node.state.games;
            let store = &*state.platform.store;
            let looked = games.catalogue.refresh_all(store, &games.files).await;
            looked.expect("the store answers");
        }
    }

    /// Suspends the player `sub` as the operator's command does, and runs the check that the
    /// platform performs every ten seconds.
    pub async fn suspend(&self, sub: &str, reason: &str) {
        let id = Uuid::parse_str(sub).expect("a player's id is a UUID");
        let now = self.clock.now();
        let store = &self.state().platform.store;
        let done = store
            .suspend_player(id, Some(reason), Actor::Operator.into(), now)
            .await;
        assert!(done.expect("the store answers"), "nobody was suspended");
        let life = self.state().platform.config.token_seconds;
        for node in &self.nodes {
            let suspensions = &node.state.auth.suspensions;
            let looked = suspensions.refresh(&**store, life, now).await;
            looked.expect("the store answers");
        }
    }

    /// Lifts the suspension of the player `sub`.
    pub async fn lift_suspension(&self, sub: &str) {
        let id = Uuid::parse_str(sub).expect("a player's id is a UUID");
        let now = self.clock.now();
        let store = &self.state().platform.store;
        let done = store
            .unsuspend_player(id, Actor::Operator.into(), now)
            .await;
        assert!(done.expect("the store answers"), "nobody was suspended");
    }

    /// Ends every session of the player `sub`, as signing out does, and runs the platform's check
    /// for ended sessions.
    ///
    /// # Panics
    /// Panics if there was no session.
    pub async fn end_sessions(&self, sub: &str) {
        let id = Uuid::parse_str(sub).expect("a player's id is a UUID");
        let now = self.clock.now();
        let state = self.state();
        let done = state
            .platform
            .store
            .end_other_sessions(id, None, Actor::Own.into(), now)
            .await;
        assert!(done.expect("the store answers") > 0, "nobody was signed in");
        let life = state.platform.config.token_seconds;
        for node in &self.nodes {
            let endings = &node.state.auth.endings;
            let looked = endings.refresh(&*state.platform.store, life, now).await;
            looked.expect("the store answers");
        }
    }

    /// Creates the project `slug`, owned by this world's [`Owner`], with a page in its dev
    /// environment, which creates its test players.
    pub async fn own(&self, slug: &str) {
        self.owner().await.create(slug).await;
        let page = Bytes::from(PageBuilder::new().html());
        let files = vec![("index.html".to_owned(), page)];
        self.publish_files(slug, Environment::Dev, files).await;
    }

    /// Returns what `platform test-token --json` prints for a test player of `slug`, which
    /// [`World::own`] created.
    pub async fn test_token(&self, slug: &str, kind: &str, number: u8) -> serde_json::Value {
        self.owner().await.test_token(slug, kind, number).await
    }

    /// Returns a player with an account who owns projects.
    async fn owner(&self) -> &Owner {
        self.owner
            .get_or_init(async || Owner::sign_in(&self.site(), "Ada").await)
            .await
    }

    /// Creates a new signing key, which will sign once verifiers know it.
    pub async fn rotate_keys(&self) {
        let keys = &self.state().auth.keys;
        let rotated = keys.rotate(Actor::Operator).await;
        rotated.expect("a key can be made");
        self.settle().await;
    }

    /// Waits until the store has a frontend log record of [`GAME`] whose message contains `part`.
    pub async fn kept(&self, part: &str) -> LogEntry {
        poll::until(&format!("the store to have {part:?}"), async || {
            let query = LogQuery {
                slug: GAME.to_owned(),
                environment: Environment::Prod,
                level: LogLevel::Debug,
                before: None,
                limit: 100,
                bytes: usize::MAX,
            };
            let store = &self.state().platform.store;
            let records = store.list_log_records(query).await;
            let records = records.expect("the log can be read").records;
            let mut entries = records.into_iter().map(|record| record.entry);
            entries.find(|entry| entry.message.contains(part))
        })
        .await
    }

    /// Advances the clock by the time after which a press on a page counts.
    pub fn pass_reading(&self) {
        self.pass(PRESS_MILLIS);
    }

    /// Advances the clock by `minutes`, and runs the work that the platform does every half minute.
    pub async fn pass_minutes(&self, minutes: i64) {
        self.pass(minutes * 60_000);
        for node in &self.nodes {
            let read = node.state.auth.keys.refresh().await;
            read.expect("the keys can be read");
        }
    }

    fn pass(&self, time: Millis) {
        self.clock.advance(time);
        if let Some(shared) = &self.shared {
            shared.pass(time);
        }
    }
}
