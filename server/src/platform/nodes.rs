//! This node among those that share its store: what it says about itself, which changes it has
//! applied, waiting for the others, and the work that only one of them does.
//!
//! A store that only one server uses needs none of this: nothing is reported, nobody waits, and
//! every lease is held.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use crate::clock::{CLOCK_LIMIT, Clock, Millis};
use crate::domain::errors::chain;
use crate::domain::node::{LEASE_MILLIS, Node, NodeReport, STARTING};
use crate::entropy::Entropy;
use crate::platform::calendar::Calendar;
use crate::platform::hints::Hints;
use crate::platform::jobs::{Job, JobError, Leases, Schedule};
use crate::platform::shared_limits::LiveNodes;
use crate::store::{Store, StoreError};

/// How often a node reports.
const REPORT: Duration = Duration::from_secs(1);
/// How often leases are renewed.
const RENEW: Duration = Duration::from_secs(4);
/// How long the answer to a change waits for other nodes.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it looks whether they have applied the change.
const LOOK: Duration = Duration::from_millis(50);
/// How often work under a lease makes sure of it.
const CHECK: Duration = Duration::from_secs(1);
/// A lease is given up so long before it ends by the store's clock.
const MARGIN: Duration = Duration::from_secs(3);
/// An answer that took longer says nothing about the difference of two clocks.
const SLOW: Duration = Duration::from_secs(1);
/// How often a node that joins asks for the time at most, until an answer was fast enough.
const COMPARISONS: usize = 5;
/// A clock that is further off is named as a fault.
const CLOCK_WARNING: Millis = 1_000;

/// A part of the platform that can fail, as `/readyz` and the administration name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub enum Component {
    /// Certificates of the console, of the auth service or of all games together have not been obtained from
    /// the ACME server, or have ended: browsers refuse these pages.
    Certificates,
    /// The clock is not the store's: more than 30 s off, or more than 1 s if only degraded. Or it has
    /// jumped ahead, so that nothing is removed because of its age.
    Clock,
    /// The store does not answer.
    Database,
    /// The node is about to stop.
    Draining,
    /// The signing keys have not been read for ten minutes.
    Keys,
    /// Redis does not answer: the number of current players is not known, and rate limits are those
    /// of each node.
    Redis,
    /// The bucket of deployed files does not answer: files that this node has cached are served,
    /// others are not, and nothing can be deployed.
    S3,
}

impl From<Component> for &'static str {
    fn from(component: Component) -> Self {
        match component {
            Component::Certificates => "certificates",
            Component::Clock => "clock",
            Component::Database => "database",
            Component::Draining => "draining",
            Component::Keys => "keys",
            Component::Redis => "redis",
            Component::S3 => "s3",
        }
    }
}

/// A comparison of a node's clock with the store's.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    /// How far the node's clock was ahead.
    offset: Millis,
    /// The node's time then.
    at: Millis,
    /// The same moment on the clock that nobody sets.
    moment: Instant,
}

/// This node.
#[derive(Debug)]
pub struct Nodes {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    calendar: Calendar,
    /// What the node says about itself and does not change.
    about: NodeReport,
    /// The newest version that the node has applied.
    applied: AtomicI64,
    /// Whether the other nodes do not wait for this one yet.
    is_starting: AtomicBool,
    /// Notified when there is more to report than that the node lives.
    news: Notify,
    /// The last comparison of this node's clock with the store's.
    compared: Mutex<Option<Comparison>>,
    /// Whether the store's writes waited for a standby at the last report.
    standby: Mutex<Option<bool>>,
    /// How far the clocks of live nodes are apart.
    clocks_apart: AtomicI64,
    /// Hurries the other nodes, if the settings name something that can.
    hints: OnceLock<Arc<dyn Hints>>,
    /// How many nodes are live.
    live: Arc<LiveNodes>,
    /// What works less well, apart from the clock and certificates.
    faults: Mutex<Vec<Component>>,
    /// Whether certificates are missing that every platform needs.
    lacks_certificates: AtomicBool,
    /// Until when this node has each of its leases.
    held: Mutex<HashMap<String, Instant>>,
}

impl Nodes {
    /// Makes this node known to the others, before it reads what it will keep in memory. They do not wait
    /// for it until [`Nodes::begin`]: nodes that start at the same time would wait for each other.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn join(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        entropy: &dyn Entropy,
        listening: SocketAddr,
        settings: &BTreeMap<String, String>,
    ) -> Result<Self, StoreError> {
        let about = NodeReport {
            id: entropy.uuid_v4(),
            address: address(listening),
            binary: env!("CARGO_PKG_VERSION").to_owned(),
            settings: serde_json::json!(settings).to_string(),
            applied: 0,
            clock_offset: None,
            degraded: Vec::new(),
        };
        let nodes = Self {
            about,
            applied: AtomicI64::new(0),
            is_starting: AtomicBool::new(store.is_shared()),
            news: Notify::new(),
            compared: Mutex::default(),
            standby: Mutex::default(),
            clocks_apart: AtomicI64::new(0),
            hints: OnceLock::new(),
            live: Arc::default(),
            faults: Mutex::default(),
            lacks_certificates: AtomicBool::new(false),
            held: Mutex::default(),
            calendar: Calendar::new(Arc::clone(&clock)),
            store,
            clock,
        };
        let newest = if nodes.store.is_shared() {
            // The first fast answer says how far this node's clock is off, and the last report tells
            // the others.
            for _ in 1..COMPARISONS {
                nodes.report().await?;
                if nodes.clock_offset().is_some() {
                    break;
                }
            }
            let newest = nodes.report().await?;
            nodes.warn_of_unfit_clock();
            nodes.look_at_all().await?;
            newest
        } else {
            nodes.store.newest_change().await?
        };
        nodes.applied.store(newest, Ordering::SeqCst);
        Ok(nodes)
    }

    /// From now on the other nodes wait for this one with what they change. What they have changed since
    /// [`Nodes::join`] is still to be applied.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn begin(&self) -> Result<(), StoreError> {
        if self.is_starting.swap(false, Ordering::SeqCst) {
            self.report().await?;
        }
        Ok(())
    }

    /// Returns this node's id.
    #[must_use]
    pub const fn id(&self) -> Uuid {
        self.about.id
    }

    /// Returns the newest version that this node has applied.
    #[must_use]
    pub fn applied(&self) -> i64 {
        self.applied.load(Ordering::SeqCst)
    }

    /// Records that this node has applied all changes up to `version`.
    pub fn apply(&self, version: i64) {
        if self.applied.fetch_max(version, Ordering::SeqCst) < version {
            self.news.notify_one();
        }
    }

    /// Returns how far this node's clock is ahead of the store's; `None` if that is not known,
    /// or the store uses the same clock.
    #[must_use]
    pub fn clock_offset(&self) -> Option<Millis> {
        self.compared().map(|compared| compared.offset)
    }

    fn compared(&self) -> Option<Comparison> {
        *self.compared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this node may act on its clock: it is known to differ from the store's by no
    /// more than [`CLOCK_LIMIT`]. By a clock that is far off, a node would take keys, sessions and
    /// files for older than they are, and remove what others need. A clock that was set since it was
    /// last compared is noticed at once.
    #[must_use]
    pub fn has_fit_clock(&self) -> bool {
        let Some(compared) = self.compared() else {
            return !self.store.is_shared();
        };
        let passed = Millis::try_from(compared.moment.elapsed().as_millis());
        let expected = compared.at.saturating_add(passed.unwrap_or(Millis::MAX));
        let set_by = self.clock.now().saturating_sub(expected);
        is_fit(compared.offset) && is_fit(compared.offset.saturating_add(set_by))
    }

    /// Returns whether data may be removed because it is old by this node's clock: not for a day after the
    /// clock has jumped ahead.
    #[must_use]
    pub fn may_remove_by_age(&self) -> bool {
        !self.calendar.is_doubtful()
    }

    /// Returns what compares the time of day with the time that has passed.
    #[must_use]
    pub const fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    fn warn_of_unfit_clock(&self) {
        if !self.has_fit_clock() {
            tracing::error!(
                offset = self.clock_offset(),
                "this node's clock is not the database's: until they differ by less than 30 s, the \
                 node is not ready, and changes nothing by its clock; let NTP set the clock"
            );
        }
    }

    /// Returns what this node says about itself now.
    #[must_use]
    pub fn about(&self) -> NodeReport {
        let degraded = self.degraded(self.faults().clone());
        let degraded = degraded.into_iter().map(<&str>::from);
        let is_starting = self.is_starting.load(Ordering::SeqCst);
        NodeReport {
            applied: if is_starting {
                STARTING
            } else {
                self.applied()
            },
            clock_offset: self.clock_offset(),
            degraded: degraded.map(str::to_owned).collect(),
            ..self.about.clone()
        }
    }

    /// From now on hints hurry the nodes. Only the first ones count.
    pub fn hurry_by(&self, hints: Arc<dyn Hints>) {
        let _ = self.hints.set(hints);
    }

    /// Returns when a node has told of a change.
    pub async fn told_of_change(&self) {
        match self.hints.get() {
            Some(hints) => hints.told().await,
            None => std::future::pending().await,
        }
    }

    /// Returns the number of live nodes, which is counted every second.
    #[must_use]
    pub fn live(&self) -> Arc<LiveNodes> {
        Arc::clone(&self.live)
    }

    /// Returns how far the clocks of live nodes are apart, which is looked at every second: a time
    /// that one node wrote is compared with one of another node.
    #[must_use]
    pub fn clocks_apart(&self) -> Millis {
        self.clocks_apart.load(Ordering::Relaxed)
    }

    /// Counts the live nodes and compares their clocks. A node whose clock is far off is not ready,
    /// so nobody compares its times.
    async fn look_at_all(&self) -> Result<(), StoreError> {
        let nodes = self.store.list_nodes().await?;
        let live = || nodes.iter().filter(|node| node.is_live());
        self.live.set(live().count());
        let offsets =
            || live().filter_map(|node| node.report.clock_offset.filter(|offset| is_fit(*offset)));
        let (first, last) = (offsets().min(), offsets().max());
        let apart = first.zip(last).map_or(0, |(first, last)| last - first);
        self.clocks_apart.store(apart, Ordering::Relaxed);
        Ok(())
    }

    /// Returns what works less well on this node if apart from the clock and certificates that is `faults`.
    #[must_use]
    pub fn degraded(&self, faults: Vec<Component>) -> Vec<Component> {
        let is_off = |offset: Millis| offset.abs() > CLOCK_WARNING;
        let clock = self.clock_offset().is_some_and(is_off) || !self.may_remove_by_age();
        let lacks_certificates = self.lacks_certificates.load(Ordering::Relaxed);
        let certificates = lacks_certificates.then_some(Component::Certificates);
        let clock = clock.then_some(Component::Clock);
        let own = certificates.into_iter().chain(clock);
        own.chain(faults).collect()
    }

    /// Records whether certificates are missing that every platform needs.
    pub fn lack_certificates(&self, are_missing: bool) {
        self.lacks_certificates
            .store(are_missing, Ordering::Relaxed);
    }

    /// Records what works less well from now on, apart from the clock and certificates.
    pub fn set_faults(&self, faults: Vec<Component>) {
        *self.faults() = faults;
    }

    fn faults(&self) -> MutexGuard<'_, Vec<Component>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that this node lives and what it has applied, and compares the clocks. Returns the
    /// newest version.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn report(&self) -> Result<i64, StoreError> {
        let (now, sent) = (self.clock.now(), Instant::now());
        let reported = self.store.report_node(&self.about()).await?;
        let took = sent.elapsed();
        self.note_standby(reported.waits_for_standby);
        if took < SLOW {
            let half = Millis::try_from(took.as_millis() / 2).unwrap_or(0);
            let offset = now.saturating_add(half).saturating_sub(reported.at);
            let compared = Comparison {
                offset,
                at: now,
                moment: sent,
            };
            let mut last = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
            *last = Some(compared);
        }
        Ok(reported.newest)
    }

    /// Returns whether the store acknowledges a write only once another machine has it; `None` if it
    /// has no such setting.
    #[must_use]
    pub fn waits_for_standby(&self) -> Option<bool> {
        *self.standby()
    }

    fn standby(&self) -> MutexGuard<'_, Option<bool>> {
        self.standby.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whenever it changes whether acknowledged writes are on one machine alone: a standby that
    /// was promoted has its own settings. Without a session that was acknowledged, a browser becomes
    /// a new guest.
    fn note_standby(&self, waits: Option<bool>) {
        let before = std::mem::replace(&mut *self.standby(), waits);
        match waits {
            _ if before == waits => {}
            Some(false) => tracing::warn!(
                "PostgreSQL does not wait for a standby (synchronous_standby_names is empty on the \
                 primary): if its machine is lost, the last players are lost with it, unless the \
                 database is replicated in another way; see docs/several-nodes.md"
            ),
            Some(true) if before.is_some() => {
                tracing::info!("PostgreSQL waits for a standby again");
            }
            _ => {}
        }
    }

    /// Waits until every live node has applied what was changed before this call, for two seconds
    /// at most: a node that takes longer is about to count as gone. This node has applied it
    /// already, because whoever changes something applies it here first.
    pub async fn settle(&self) {
        if !self.store.is_shared() {
            return;
        }
        if let Some(hints) = self.hints.get() {
            // Nobody waits for a hint: without it, the other nodes look a little later.
            let hints = Arc::clone(hints);
            tokio::spawn(async move { hints.tell().await });
        }
        match tokio::time::timeout(PATIENCE, self.all_applied()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let error = chain(&error);
                tracing::warn!(
                    error,
                    "it is not known whether other nodes applied a change"
                );
            }
            Err(_) => tracing::warn!("another node did not apply a change in time"),
        }
    }

    async fn all_applied(&self) -> Result<(), StoreError> {
        let newest = self.store.newest_change().await?;
        let mut looks = tokio::time::interval(LOOK);
        loop {
            looks.tick().await;
            let nodes = self.store.list_nodes().await?;
            let is_behind = |node: &Node| {
                node.is_live() && node.report.id != self.id() && node.report.applied < newest
            };
            if !nodes.iter().any(is_behind) {
                return Ok(());
            }
        }
    }

    /// Says that this node stops, which frees its leases. Nobody waits for it any more.
    pub async fn leave(&self) {
        if !self.store.is_shared() {
            return;
        }
        if let Err(error) = self.store.remove_node(self.id()).await {
            let error = chain(&error);
            tracing::warn!(error, "the other nodes were not told of the stop");
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renews the leases. A lease that somebody else has taken meanwhile is lost.
    async fn renew(&self) -> Result<(), StoreError> {
        let before: Vec<String> = self.held().keys().cloned().collect();
        if before.is_empty() {
            return Ok(());
        }
        if !self.has_fit_clock() {
            // The leases end by the store's clock, and another node takes them.
            self.held().clear();
            return Ok(());
        }
        let until = Instant::now() + LEASE;
        let names = self.store.renew_leases(self.id(), LEASE_MILLIS).await?;
        let mut held = self.held();
        for name in before {
            if names.contains(&name) {
                held.insert(name, until);
            } else {
                held.remove(&name);
            }
        }
        Ok(())
    }
}

/// How long a lease surely lasts after it was asked for.
const LEASE: Duration = Duration::from_millis(LEASE_MILLIS.unsigned_abs()).saturating_sub(MARGIN);

#[async_trait]
impl Leases for Nodes {
    async fn take(&self, name: &'static str) -> bool {
        if !self.store.is_shared() {
            return true;
        }
        if !self.has_fit_clock() {
            self.held().remove(name);
            return false;
        }
        let until = Instant::now() + LEASE;
        let taken = self.store.take_lease(name, self.id(), LEASE_MILLIS).await;
        let is_held = taken.unwrap_or_else(|error| {
            let error = chain(&error);
            tracing::warn!(job = name, error, "it is not known which node does the job");
            false
        });
        if is_held {
            self.held().insert(name.to_owned(), until);
        } else {
            self.held().remove(name);
        }
        is_held
    }

    async fn lost(&self, name: &'static str) {
        if !self.store.is_shared() {
            return std::future::pending().await;
        }
        let mut checks = tokio::time::interval(CHECK);
        loop {
            checks.tick().await;
            let until = self.held().get(name).copied();
            if until.is_none_or(|until| until <= Instant::now()) {
                return;
            }
        }
    }
}

/// The job that reports every second and renews the leases.
#[derive(Debug)]
pub struct ReportNode {
    nodes: Arc<Nodes>,
    renewed: Instant,
}

impl ReportNode {
    /// Creates the job.
    #[must_use]
    pub fn new(nodes: Arc<Nodes>) -> Self {
        let renewed = Instant::now();
        Self { nodes, renewed }
    }
}

#[async_trait]
impl Job for ReportNode {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("report-node", REPORT)
    }

    async fn woken(&self) {
        self.nodes.news.notified().await;
    }

    async fn run(&mut self) -> Result<(), JobError> {
        if !self.nodes.store.is_shared() {
            return Ok(());
        }
        let reported = self.nodes.report().await.map(drop);
        let reported = reported.map_err(JobError::because("the node could not report"));
        let looked = self.nodes.look_at_all().await;
        let looked = looked.map_err(JobError::because("the nodes could not be listed"));
        if self.renewed.elapsed() < RENEW {
            return JobError::join([reported, looked]);
        }
        let renewed = self.nodes.renew().await;
        if renewed.is_ok() {
            self.renewed = Instant::now();
        }
        let renewed = renewed.map_err(JobError::because("leases could not be renewed"));
        JobError::join([reported, looked, renewed])
    }
}

/// Returns whether a clock that is so far off the store's may be acted on.
const fn is_fit(offset: Millis) -> bool {
    offset.saturating_abs() <= CLOCK_LIMIT
}

/// Returns the address at which other machines reach a node that listens on `listening`. One that
/// listens on all addresses, or on the loopback address alone, is named after its machine.
fn address(listening: SocketAddr) -> String {
    let ip = listening.ip();
    if ip.is_unspecified() || ip.is_loopback() {
        format!("{}:{}", machine(), listening.port())
    } else {
        listening.to_string()
    }
}

/// Returns the name of this machine.
#[cfg(unix)]
fn machine() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn machine() -> String {
    "node".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::entropy::SystemEntropy;
    use crate::store::{SchemaPolicy, connect};

    #[tokio::test]
    async fn a_server_that_is_alone_says_nothing_and_waits_for_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/platform.db", folder.path().display());
        let store = connect(&url, SchemaPolicy::Upgrade).await.unwrap();
        let clock = Arc::new(ManualClock::new(0));
        let listening = "127.0.0.1:8787".parse().unwrap();
        let settings = BTreeMap::new();
        let nodes = Nodes::join(
            Arc::clone(&store),
            clock,
            &SystemEntropy,
            listening,
            &settings,
        );
        let nodes = Arc::new(nodes.await.unwrap());
        ReportNode::new(Arc::clone(&nodes)).run().await.unwrap();
        nodes.settle().await;
        assert!(nodes.take("sweep").await);
        assert_eq!(store.list_nodes().await.unwrap(), []);
        assert_eq!(store.list_leases().await.unwrap(), []);
        assert_eq!(nodes.clock_offset(), None);
        nodes.leave().await;
    }
}
