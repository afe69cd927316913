//! Whether this node can serve visitors, and what it lacks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::auth::keys::KeyRing;
use crate::clock::{Clock, Millis};
use crate::domain::errors::chain;
use crate::games;
use crate::games::files::FileStore;
use crate::games::live::Presence;
use crate::platform::nodes::{Component, Nodes};
use crate::store::Store;

/// How long the store may take to answer. A store that lost its network does not
/// refuse, it is silent.
const STORE_ANSWERS: Duration = Duration::from_secs(2);
/// How long one answer of the store counts for everybody who asks.
const SHARED: Duration = Duration::from_millis(500);
/// Keys that were read longer ago than this may lack one that other nodes sign with,
/// or hold one that was revoked.
const KEYS_ARE_OLD: Millis = 10 * 60 * 1_000;

/// What `/readyz` answers.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether visitors can be sent to this node.
    pub ready: bool,
    /// Why they cannot; absent if they can.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<Component>,
    /// What works less well; absent if the node is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degraded: Option<Vec<Component>>,
}

/// Looks at what this node needs to serve visitors.
#[derive(Debug)]
pub struct Readiness {
    store: Arc<dyn Store>,
    keys: Arc<KeyRing>,
    files: Arc<FileStore>,
    presence: Arc<dyn Presence>,
    clock: Arc<dyn Clock>,
    nodes: Arc<Nodes>,
    draining: AtomicBool,
    answered: Shared,
}

/// A result that all who ask within a moment share. So requests to the listener do not become as
/// many queries.
#[derive(Debug, Default)]
struct Shared(Mutex<Option<(Instant, bool)>>);

impl Shared {
    /// Returns the last result, or asks again if it is too old.
    async fn or_ask(&self, ask: impl Future<Output = bool>) -> bool {
        // Whoever comes meanwhile waits for this answer.
        let mut last = self.0.lock().await;
        if let Some((_, answer)) = last.filter(|(at, _)| at.elapsed() < SHARED) {
            return answer;
        }
        let answer = ask.await;
        *last = Some((Instant::now(), answer));
        answer
    }
}

impl Readiness {
    /// A node that is not about to stop.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        keys: Arc<KeyRing>,
        files: Arc<FileStore>,
        presence: Arc<dyn Presence>,
        clock: Arc<dyn Clock>,
        nodes: Arc<Nodes>,
    ) -> Self {
        Self {
            store,
            keys,
            files,
            presence,
            clock,
            nodes,
            draining: AtomicBool::new(false),
            answered: Shared::default(),
        }
    }

    /// From now on the node is not ready, because it is about to stop.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Returns what works less well.
    fn degraded(&self) -> Vec<Component> {
        let faults = games::faults(&self.files, &*self.presence);
        self.nodes.degraded(faults)
    }

    /// Looks at everything now, except that the store is asked twice a second at most.
    pub async fn report(&self) -> Report {
        let mut because = Vec::new();
        if self.draining.load(Ordering::Relaxed) {
            because.push(Component::Draining);
        }
        if !self.answered.or_ask(self.store_answers()).await {
            because.push(Component::Database);
        }
        if self.clock.now() - self.keys.read_at() > KEYS_ARE_OLD {
            because.push(Component::Keys);
        }
        if !self.nodes.has_fit_clock() {
            because.push(Component::Clock);
        }
        let ready = because.is_empty();
        Report {
            ready,
            because,
            degraded: ready.then(|| self.degraded()),
        }
    }

    async fn store_answers(&self) -> bool {
        match tokio::time::timeout(STORE_ANSWERS, self.store.list_keys()).await {
            Ok(Ok(_keys)) => true,
            Ok(Err(error)) => {
                tracing::warn!(error = chain(&error), "not ready: the store failed");
                false
            }
            Err(_) => {
                tracing::warn!(limit = ?STORE_ANSWERS, "not ready: the store did not answer");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::auth::keys::KeySecrets;
    use crate::clock::ManualClock;
    use crate::entropy::SystemEntropy;
    use crate::games::live::MemoryPresence;
    use crate::store::{SchemaPolicy, connect};

    /// A node that has just read its keys, with nothing in the background.
    struct Node {
        _directory: tempfile::TempDir,
        store: Arc<dyn Store>,
        keys: Arc<KeyRing>,
        clock: Arc<ManualClock>,
        nodes: Arc<Nodes>,
        readiness: Readiness,
    }

    async fn node() -> Node {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/platform.db", directory.path().display());
        let store = connect(&url, SchemaPolicy::Upgrade).await.unwrap();
        let clock = Arc::new(ManualClock::new(1_800_000_000_000));
        let secrets = KeySecrets {
            present: None,
            former: None,
        };
        let entropy = Arc::new(SystemEntropy);
        let keys = KeyRing::open(store.clone(), clock.clone(), entropy, 900, secrets);
        let keys = keys.await.unwrap();
        let listening = "127.0.0.1:8787".parse().unwrap();
        let settings = BTreeMap::new();
        let nodes = Nodes::join(
            store.clone(),
            clock.clone(),
            &SystemEntropy,
            listening,
            &settings,
        );
        let nodes = Arc::new(nodes.await.unwrap());
        let files = FileStore::local(&directory.path().join("files")).unwrap();
        Node {
            _directory: directory,
            readiness: Readiness::new(
                store.clone(),
                keys.clone(),
                Arc::new(files),
                Arc::new(MemoryPresence::new()),
                clock.clone(),
                nodes.clone(),
            ),
            nodes,
            store,
            keys,
            clock,
        }
    }

    #[tokio::test]
    async fn a_node_that_has_not_read_its_keys_for_ten_minutes_is_not_ready() {
        let node = node().await;
        node.clock.advance(KEYS_ARE_OLD);
        assert!(node.readiness.report().await.ready);
        node.clock.advance(1);
        let report = node.readiness.report().await;
        assert_eq!((report.ready, report.degraded), (false, None));
        assert_eq!(report.because, [Component::Keys]);
        node.keys.refresh().await.unwrap();
        assert!(node.readiness.report().await.ready);
    }

    fn ready(degraded: &[Component]) -> Report {
        Report {
            ready: true,
            because: Vec::new(),
            degraded: Some(degraded.to_vec()),
        }
    }

    #[tokio::test]
    async fn a_node_whose_clock_is_off_is_degraded_and_later_not_ready() {
        let node = node().await;
        node.nodes.report().await.unwrap();
        node.clock.advance(-node.nodes.clock_offset().unwrap());
        let (fine, warned): (Report, Report) = (ready(&[]), ready(&[Component::Clock]));
        let not_ready = Report {
            ready: false,
            because: vec![Component::Clock],
            degraded: None,
        };
        for (ahead, expected) in [(0, fine), (10_000, warned), (40_000, not_ready)] {
            node.clock.advance(ahead);
            node.nodes.report().await.unwrap();
            node.keys.refresh().await.unwrap();
            assert_eq!(node.readiness.report().await, expected, "{ahead}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_at_the_same_time_share_one_answer_for_half_a_second() {
        let (shared, asked) = (Shared::default(), AtomicUsize::new(0));
        let (shared, counted) = (&shared, &asked);
        let ask = |answer: bool| {
            shared.or_ask(async move {
                tokio::task::yield_now().await;
                counted.fetch_add(1, Ordering::SeqCst);
                answer
            })
        };
        let all = futures_util::future::join_all((0..100).map(|_| ask(true))).await;
        assert_eq!(all, [true; 100]);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        tokio::time::advance(SHARED - Duration::from_millis(1)).await;
        assert!(ask(false).await, "the answer before still counts");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!ask(false).await);
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_node_whose_store_does_not_answer_is_not_ready() {
        let node = node().await;
        node.store.close().await.unwrap();
        let report = node.readiness.report().await;
        assert_eq!(report.because, [Component::Database]);
    }
}
