//! A platform in this process without a gateway in front, for tests that use HTTP directly: they
//! have access to its settings, its clock and its store.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use platform_server::Running;
use platform_server::clock::{Clock, Millis, SystemClock};
use platform_server::config::provider::IdentityProvider;
use platform_server::config::{Config, Period, Rate, Secret};
use platform_server::domain::audit::Actor;
use platform_server::entropy::SystemEntropy;
use platform_server::store::{self, SchemaPolicy, Store};
use tempfile::TempDir;
use uuid::Uuid;

use crate::hostile_provider::{CLIENT_ID, CLIENT_SECRET, HostileProvider};
use crate::server::Server;
use crate::tables::Tables;

/// The machine's clock, which a test can advance.
#[derive(Debug, Default)]
pub struct ShiftedClock(AtomicI64);

impl ShiftedClock {
    /// Advances the clock by `by` milliseconds.
    pub fn advance(&self, by: Millis) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Millis {
        SystemClock.now() + self.0.load(Ordering::SeqCst)
    }

    fn elapsed(&self) -> Duration {
        let passed = u64::try_from(self.0.load(Ordering::SeqCst)).unwrap_or(0);
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
    /// Its address.
    pub site: Site,
    /// Its clock.
    pub clock: Arc<ShiftedClock>,
    /// The running platform.
    pub running: Running,
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
        let mut config = Config {
            listen: ([127, 0, 0, 1], 0).into(),
            data: data.path().to_owned(),
            guests_per_address: 1_000_000,
            guest_rate: rate(1_000_000, Period::Second, 1_000_000),
            sign_in_rate: rate(1_000_000, Period::Second, 1_000_000),
            identity_providers: providers.iter().map(known).collect(),
            ..Config::default()
        };
        settings(&mut config);
        let clock = Arc::new(ShiftedClock::default());
        let running = platform_server::app::start(config, clock.clone(), Arc::new(SystemEntropy))
            .await
            .expect("the platform starts");
        let site = Site {
            origin: running.origin.clone(),
            address: running.address,
        };
        Self {
            site,
            clock,
            running,
            data,
        }
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
        let catalogue = &self.running.state.games.catalogue;
        catalogue
            .refresh_all(store, &self.running.state.games.files)
            .await
            .expect("games can be read");
    }

    /// Returns the current rows of its store's tables.
    #[must_use]
    pub fn tables(&self) -> Tables {
        Tables::read(self.data.path())
    }
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
