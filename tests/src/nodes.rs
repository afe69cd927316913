//! Several nodes behind a balancer, and steady load on them while parts of them are broken.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform_cluster::{Cluster, Plan};
use platform_protocol::heartbeat::Heartbeat;
use platform_protocol::paths;
use reqwest::Method;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::person::{GAME, Person};
use crate::platform::Site;
use crate::visitor::{Minted, NotMinted, Visitor};
use crate::{poll, server, settings};

/// Settings of the nodes: all load comes from one address.
const SETTINGS: [(&str, &str); 3] = [
    ("PLATFORM_GUESTS_PER_ADDRESS", "0"),
    ("PLATFORM_GUEST_RATE", "1000000/s, burst 1000000"),
    ("PLATFORM_SIGN_IN_RATE", "1000000/s, burst 1000000"),
];

/// Starts a cluster of three nodes. Call this on the thread of the test, which lives as long as the
/// cluster.
///
/// # Panics
/// Panics if it does not start.
#[must_use]
pub fn start() -> Cluster {
    start_with(None)
}

/// Starts one whose nodes have this settings file. Call this on the thread of the test.
///
/// # Panics
/// Panics if it does not start.
#[must_use]
pub fn start_with(config: Option<String>) -> Cluster {
    start_of(3, &[], config)
}

/// Starts one of `nodes` nodes with more settings. Call this on the thread of the test.
///
/// # Panics
/// Panics if it does not start.
#[must_use]
pub fn start_of(nodes: usize, more: &[(&str, &str)], config: Option<String>) -> Cluster {
    start_planned(&Plan {
        nodes,
        config,
        settings: strings(&[&SETTINGS[..], more].concat()),
        ..plan()
    })
}

/// Starts one whose nodes reach PostgreSQL through relays that can fall silent. Call this on the
/// thread of the test.
///
/// # Panics
/// Panics if it does not start.
#[must_use]
pub fn start_relayed() -> Cluster {
    start_planned(&Plan {
        relayed: true,
        ..plan()
    })
}

fn strings(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    let settings = settings.iter();
    settings
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Three nodes, and no limits for the one address from which all load comes.
fn plan() -> Plan {
    Plan {
        server: server::program().to_owned(),
        s3: Some(settings::program("S3S_FS", &["s3s-fs"])),
        nodes: 3,
        port: 0,
        settings: strings(&SETTINGS),
        config: None,
        relayed: false,
    }
}

fn start_planned(plan: &Plan) -> Cluster {
    match Cluster::start(plan, &|_| {}) {
        Ok(cluster) => cluster,
        Err(error) => panic!("the cluster does not start: {error:#}"),
    }
}

/// Returns the address of each node, under the platform's one origin, and that of the balancer.
#[must_use]
pub fn sites(cluster: &Cluster) -> Vec<Site> {
    let balancer = cluster.balancer.address;
    let nodes = cluster.nodes.iter().map(|node| node.address);
    let all = nodes.chain([balancer]);
    all.map(|address| site(cluster, address)).collect()
}

/// Returns an address of one node, or of the balancer, under the platform's one origin.
#[must_use]
pub fn site(cluster: &Cluster, address: SocketAddr) -> Site {
    let port = cluster.balancer.address.port();
    Site {
        origin: format!("http://platform.localhost:{port}"),
        address,
    }
}

/// Returns a visitor who comes through the balancer.
#[must_use]
pub fn visitor(cluster: &Cluster) -> Visitor {
    let address = cluster.balancer.address;
    Visitor::who_reconnects(address, address.port())
}

/// A request that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// When it began, since the load began.
    pub began: Duration,
    /// How long it took.
    pub took: Duration,
    /// What happened, for people.
    pub what: String,
}

/// What the load has seen so far.
#[derive(Debug, Default)]
pub struct Seen {
    /// The guests whose cookie was acknowledged.
    guests: Mutex<Vec<Minted>>,
    failures: Mutex<Vec<Failure>>,
    /// Acknowledged cookies that became another player.
    strangers: AtomicUsize,
    passed: AtomicUsize,
    /// The time of each request.
    times: Mutex<Vec<Duration>>,
    stopped: AtomicBool,
}

impl Seen {
    /// Returns the guests whose cookie was acknowledged so far.
    #[must_use]
    pub fn guests(&self) -> Vec<Minted> {
        lock(&self.guests).clone()
    }

    /// Returns the requests that failed so far.
    #[must_use]
    pub fn failures(&self) -> Vec<Failure> {
        lock(&self.failures).clone()
    }

    /// Returns how many requests passed so far.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }

    /// Returns how many acknowledged cookies became another player.
    #[must_use]
    pub fn strangers(&self) -> usize {
        self.strangers.load(Ordering::SeqCst)
    }

    /// Waits until so many more requests have passed.
    ///
    /// # Panics
    /// Panics if they take too long.
    pub async fn until_more_passed(&self, more: usize) {
        let wanted = self.passed() + more;
        poll::until("the load to pass", async || {
            (self.passed() >= wanted).then_some(())
        })
        .await;
    }

    /// Returns the longest time that any request took.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.percentile(100)
    }

    /// Returns the time that so many of a hundred requests did not exceed.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut times = lock(&self.times).clone();
        times.sort_unstable();
        let place = (times.len() * percent).div_ceil(100).saturating_sub(1);
        times.get(place).copied().unwrap_or_default()
    }

    fn took(&self, time: Duration) {
        lock(&self.times).push(time);
    }

    fn failed(&self, began: Duration, took: Duration, what: String) {
        lock(&self.failures).push(Failure { began, took, what });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Load at a steady rate, which does not wait for responses.
#[derive(Debug)]
pub struct Load {
    /// What it has seen.
    pub seen: Arc<Seen>,
    task: tokio::task::JoinHandle<()>,
}

impl Load {
    /// Mints tokens `rate` times a second: every second time for a new guest, otherwise with a
    /// cookie that was acknowledged.
    #[must_use]
    pub fn of_guests(visitor: &Visitor, rate: u32) -> Self {
        let visitor = visitor.clone();
        Self::start(rate, move |seen, number, began| {
            mint(visitor.clone(), seen, number, began)
        })
    }

    /// Gets the path on the address `label` `rate` times a second.
    #[must_use]
    pub fn of_gets(visitor: &Visitor, label: &'static str, path: &'static str, rate: u32) -> Self {
        let visitor = visitor.clone();
        Self::start(rate, move |seen, _, began| {
            get(visitor.clone(), seen, label, path, began)
        })
    }

    /// Sends a heartbeat `rate` times a second: of one page of each of these players in turn.
    #[must_use]
    pub fn of_heartbeats(visitor: &Visitor, players: Vec<Minted>, rate: u32) -> Self {
        let visitor = visitor.clone();
        Self::start(rate, move |seen, number, began| {
            let page = number % players.len();
            let token = players[page].token.clone();
            heartbeat(visitor.clone(), seen, token, page, began)
        })
    }

    /// Starts a sign-in of somebody new `rate` times a second, at one of these sites.
    #[must_use]
    pub fn of_sign_ins(sites: Vec<Site>, rate: u32) -> Self {
        Self::start(rate, move |seen, number, began| {
            sign_in(sites[number % sites.len()].clone(), seen, began)
        })
    }

    fn start<F>(rate: u32, one: impl Fn(Arc<Seen>, usize, Duration) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let seen = Arc::new(Seen::default());
        let watched = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let start = Instant::now();
            let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate);
            let mut requests = JoinSet::new();
            let mut number = 0;
            while !watched.stopped.load(Ordering::SeqCst) {
                ticks.tick().await;
                requests.spawn(one(Arc::clone(&watched), number, start.elapsed()));
                number += 1;
                while requests.try_join_next().is_some() {}
            }
            requests.join_all().await;
        });
        Self { seen, task }
    }

    /// Ends it, and waits for the responses that are outstanding.
    ///
    /// # Panics
    /// Panics if a request did.
    pub async fn end(self) -> Arc<Seen> {
        self.seen.stopped.store(true, Ordering::SeqCst);
        self.task.await.expect("the load does not panic");
        self.seen
    }
}

async fn mint(visitor: Visitor, seen: Arc<Seen>, number: usize, began: Duration) {
    let start = Instant::now();
    let known = {
        let guests = lock(&seen.guests);
        // Another one each time, and none for every second request.
        let place = (number / 2 * 7_919).checked_rem(guests.len());
        place
            .filter(|_| number % 2 == 1)
            .map(|place| guests[place].clone())
    };
    let cookie = known.as_ref().map(|known| &*known.cookie);
    let minted = visitor.mint("demo", cookie).await;
    let took = start.elapsed();
    seen.took(took);
    match minted {
        Ok(minted) => {
            seen.passed.fetch_add(1, Ordering::SeqCst);
            match known {
                None => lock(&seen.guests).push(minted),
                Some(known) if known.claims.sub == minted.claims.sub => {}
                Some(_) => {
                    seen.strangers.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
        Err(NotMinted::Lost(error)) => seen.failed(began, took, format!("lost: {error}")),
        Err(NotMinted::Refused { status, body }) => {
            seen.failed(began, took, format!("{status}: {body}"));
        }
    }
}

async fn get(
    visitor: Visitor,
    seen: Arc<Seen>,
    label: &'static str,
    path: &'static str,
    began: Duration,
) {
    let start = Instant::now();
    let answer = visitor.request(Method::GET, label, path).send().await;
    let took = start.elapsed();
    seen.took(took);
    match answer {
        Ok(answer) if answer.status().is_success() => {
            seen.passed.fetch_add(1, Ordering::SeqCst);
        }
        Ok(answer) => seen.failed(began, took, answer.status().to_string()),
        Err(error) => seen.failed(began, took, format!("lost: {error}")),
    }
}

async fn heartbeat(visitor: Visitor, seen: Arc<Seen>, token: String, page: usize, began: Duration) {
    let start = Instant::now();
    let page = URL_SAFE_NO_PAD.encode((page as u128).to_be_bytes());
    let leaving = None;
    let request = visitor
        .request(Method::POST, GAME, paths::HEARTBEAT)
        .bearer_auth(token)
        .json(&Heartbeat { page, leaving });
    let answer = request.send().await;
    let took = start.elapsed();
    seen.took(took);
    match answer {
        Ok(answer) if answer.status() == 204 => {
            seen.passed.fetch_add(1, Ordering::SeqCst);
        }
        Ok(answer) => seen.failed(began, took, answer.status().to_string()),
        Err(error) => seen.failed(began, took, format!("lost: {error}")),
    }
}

async fn sign_in(site: Site, seen: Arc<Seen>, began: Duration) {
    let start = Instant::now();
    // A step that fails panics.
    let signed_in = tokio::spawn(async move {
        let mut person = Person::new(&site);
        let game = person.game();
        person.begin("demo", &game).await;
    });
    let result = signed_in.await;
    let took = start.elapsed();
    seen.took(took);
    match result {
        Ok(()) => {
            seen.passed.fetch_add(1, Ordering::SeqCst);
        }
        Err(error) => seen.failed(began, took, error.to_string()),
    }
}
