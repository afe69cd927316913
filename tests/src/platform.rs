//! A platform in this process without a gateway in front, for tests that use HTTP directly: they
//! have access to its settings, its clock and its store. It is one server, or
//! [several nodes](crate::shared) behind a balancer.

use std::iter;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::future::join_all;
use platform_openid::IdentityProvider;
use platform_server::Running;
use platform_server::clock::{Clock, Millis, SystemClock};
use platform_server::config::{Config, Period, Rate, Secret};
use platform_server::domain::audit::Actor;
use platform_server::entropy::SystemEntropy;
use platform_server::store::{self, SchemaPolicy, Store};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::balancer::Balancer;
use crate::hostile_provider::{CLIENT_ID, CLIENT_SECRET, HostileProvider};
use crate::server::Server;
use crate::shared::{self, Shared};
use crate::tables::Tables;

/// The machine's clock, which a test can advance, together with that of the Redis of several nodes.
#[derive(Debug, Default)]
pub struct ShiftedClock {
    by: AtomicI64,
    shared: Option<Arc<Shared>>,
}

impl ShiftedClock {
    /// Advances the clock by `by` milliseconds.
    pub fn advance(&self, by: Millis) {
        self.by.fetch_add(by, Ordering::SeqCst);
        if let Some(shared) = &self.shared {
            shared.pass(by);
        }
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Millis {
        SystemClock.now() + self.by.load(Ordering::SeqCst)
    }

    fn elapsed(&self) -> Duration {
        let passed = u64::try_from(self.by.load(Ordering::SeqCst)).unwrap_or(0);
        SystemClock.elapsed() + Duration::from_millis(passed)
    }
}

/// The address of a platform.
#[derive(Clone, Debug)]
pub struct Site {
    /// The platform origin.
    pub origin: String,
    /// The address on which it listens.
    pub address: SocketAddr,
}

impl Site {
    /// Returns the site of a server program that listens on the port of its origin, under `localhost`.
    ///
    /// # Panics
    /// Panics if the origin has no port.
    #[must_use]
    pub fn local(origin: &str) -> Self {
        let port = origin.rsplit(':').next().and_then(|port| port.parse().ok());
        let port: u16 = port.expect("an origin with its port");
        Self {
            origin: origin.to_owned(),
            address: ([127, 0, 0, 1], port).into(),
        }
    }

    /// Returns the URL of `path` on the sub-domain `label`; with an empty path, the origin.
    #[must_use]
    pub fn url(&self, label: &str, path: &str) -> String {
        let sub_domain = self.origin.replacen("://", &format!("://{label}."), 1);
        format!("{sub_domain}{path}")
    }

    /// Returns the `Host` of the sub-domain `label`.
    #[must_use]
    pub fn host(&self, label: &str) -> String {
        let url = self.url(label, "");
        url.split_once("://")
            .map_or_else(String::new, |(_, host)| host.to_owned())
    }

    /// Whether it uses https.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.origin.starts_with("https:")
    }
}

impl From<&Server> for Site {
    fn from(server: &Server) -> Self {
        Self {
            origin: server.origin.clone(),
            address: server.address,
        }
    }
}

/// A platform with the demo game, in this process.
#[derive(Debug)]
pub struct Platform {
    /// Its address: that of the balancer, if there are several nodes.
    pub site: Site,
    /// Its clock.
    pub clock: Arc<ShiftedClock>,
    /// The running platform, or the first of its nodes.
    pub running: Running,
    others: Vec<Running>,
    _balancer: Option<Balancer>,
    /// It comes after the nodes, so that they end before what they use.
    shared: Option<Arc<Shared>>,
    data: TempDir,
}

impl Platform {
    /// Starts one with `providers`, each with its id. Only a few tests depend on the limits for
    /// guests, so there are none.
    pub async fn start(providers: &[(&str, &HostileProvider)]) -> Self {
        Self::start_with(providers, |_| {}).await
    }

    /// Starts one with other settings.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub async fn start_with(
        providers: &[(&str, &HostileProvider)],
        settings: impl FnOnce(&mut Config),
    ) -> Self {
        let data = TempDir::with_prefix("platform-tests-").expect("a temporary directory");
        let balancer = shared::nodes().map(|_| Balancer::listen(0));
        let mut config = Config {
            origin: balancer.as_ref().map(Balancer::origin),
            listen: ([127, 0, 0, 1], 0).into(),
            data: data.path().to_owned(),
            guests_per_address: 1_000_000,
            guest_rate: rate(1_000_000, Period::Second, 1_000_000),
            sign_in_rate: rate(1_000_000, Period::Second, 1_000_000),
            identity_providers: providers.iter().map(known).collect(),
            ..Config::default()
        };
        settings(&mut config);
        let shared = balancer.as_ref().map(|_| Arc::new(Shared::start()));
        let clock = Arc::new(ShiftedClock {
            by: AtomicI64::default(),
            shared: shared.clone(),
        });
        let mut nodes = start_nodes(config, shared.as_deref(), clock.clone()).await;
        let (running, others) = (nodes.remove(0), nodes);
        let mut address = running.address;
        if let Some(balancer) = &balancer {
            let nodes = iter::once(&running).chain(&others);
            balancer.lead_to(nodes.map(|node| node.address).collect());
            address = balancer.address;
        }
        let site = Site {
            origin: running.origin.clone(),
            address,
        };
        Self {
            site,
            clock,
            running,
            others,
            _balancer: balancer,
            shared,
            data,
        }
    }

    /// Returns the running platform, or each of its nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &Running> {
        iter::once(&self.running).chain(&self.others)
    }

    /// Returns its address, or that of each of its nodes, for tests of what each node does by itself.
    #[must_use]
    pub fn sites(&self) -> Vec<Site> {
        let sites = self.nodes().map(|node| Site {
            origin: node.origin.clone(),
            address: node.address,
        });
        sites.collect()
    }

    /// Returns its store.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &*self.running.state.platform.store
    }

    /// Suspends a player as the operator's command does, which only changes the store.
    ///
    /// # Panics
    /// Panics if the store refuses.
    pub async fn suspend(&self, player: Uuid, reason: Option<&str>) {
        let now = self.running.state.platform.clock.now();
        let by = Actor::Operator.into();
        let suspended = self.store().suspend_player(player, reason, by, now);
        suspended.await.expect("the store suspends a player");
    }

    /// Lifts a suspension as the operator's command does.
    ///
    /// # Panics
    /// Panics if the store refuses, or the player was not suspended.
    pub async fn unsuspend(&self, player: Uuid) {
        let now = self.running.state.platform.clock.now();
        let lifted = self
            .store()
            .unsuspend_player(player, Actor::Operator.into(), now);
        assert!(lifted.await.expect("the store lifts a suspension"));
    }

    /// Makes it believe that there are no games, as if every project had been removed.
    ///
    /// # Panics
    /// Panics if an empty store cannot be created.
    pub async fn forget_games(&self) {
        let url = format!("sqlite://{}", self.data.path().join("empty.db").display());
        let empty = store::connect(&url, SchemaPolicy::Upgrade)
            .await
            .expect("an empty store opens");
        self.look_for_games(&*empty).await;
        empty.close().await.expect("an empty store closes");
    }

    /// Makes it know its games again.
    pub async fn recall_games(&self) {
        self.look_for_games(self.store()).await;
    }

    async fn look_for_games(&self, store: &dyn Store) {
        for node in self.nodes() {
            let games = &node.state.games;
            let looked = games.catalogue.refresh_all(store, &games.files).await;
            looked.expect("games can be read");
        }
    }

    /// Returns the current rows of its store's tables.
    #[must_use]
    pub fn tables(&self) -> Tables {
        match &self.shared {
            Some(shared) => Tables::of_database(shared.database()),
            None => Tables::read(self.data.path()),
        }
    }
}

/// Where nodes run: a test that keeps its own thread busy must not delay their calls to Redis, which
/// they give up after 50 milliseconds.
static NODES: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be made")
});

/// Starts a platform with these settings, or each of its nodes, at the same time.
///
/// # Panics
/// Panics if one does not start.
pub(crate) async fn start_nodes(
    config: Config,
    shared: Option<&Shared>,
    clock: Arc<dyn Clock>,
) -> Vec<Running> {
    let start = |config| {
        let entropy = Arc::new(SystemEntropy);
        platform_server::app::start(config, Arc::clone(&clock), entropy)
    };
    let Some(shared) = shared else {
        let running = start(config).await;
        return vec![running.expect("the platform starts")];
    };
    let nodes = (1..=shared::nodes().unwrap_or(1)).map(|number| {
        let mut config = config.clone();
        config.data.push(format!("node-{number}"));
        shared.configure(&mut config);
        NODES.spawn(start(config))
    });
    let nodes = join_all(nodes).await.into_iter();
    let nodes = nodes.map(|node| node.expect("the start does not panic"));
    nodes.map(|node| node.expect("the node starts")).collect()
}

/// Returns a rate of `count` per period, with a burst of `burst`.
///
/// # Panics
/// Panics if a number is zero.
#[must_use]
pub fn rate(count: u32, period: Period, burst: u32) -> Rate {
    let number = |number: u32| number.try_into().expect("a rate above zero");
    Rate {
        count: number(count),
        period,
        burst: number(burst),
    }
}

fn known((id, provider): &(&str, &HostileProvider)) -> IdentityProvider {
    IdentityProvider {
        id: (*id).to_owned(),
        name: format!("The provider {id}"),
        issuer: provider.issuer.parse().expect("an issuer is a URL"),
        client_id: CLIENT_ID.to_owned(),
        client_secret: Secret::new(CLIENT_SECRET.to_owned()),
        scopes: vec!["openid".to_owned()],
    }
}
