//! Files that no deployment has are removed from the bucket after a day, and never one that another
//! node is deploying.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use platform_protocol::names::Environment;
use platform_server::clock::{Clock as _, ManualClock};
use platform_server::config::Config;
use platform_server::domain::audit::Actor;
use platform_server::domain::project::{Deployment, Made, Project};
use platform_server::entropy::{Entropy, SystemEntropy};
use platform_server::games::files::FileStore;
use platform_server::platform::disk::SystemDisk;
use platform_server::store::{SchemaPolicy, Store, connect};
use platform_test_postgres::TestDatabase;

use super::server::Bucket;
use crate::support::NOW;

/// A day and an hour, in milliseconds.
const A_DAY: i64 = 25 * 3_600 * 1_000;
/// How often one node sweeps while the other one deploys, unless `TESTS_ROUNDS` has another number.
const ROUNDS: usize = 60;

#[expect(
    clippy::disallowed_methods,
    reason = "how long a test takes is no setting of the platform's"
)]
fn rounds() -> usize {
    std::env::var("TESTS_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap())
}

/// What a node has of its own: connections, and a cache.
struct Node {
    store: Arc<dyn Store>,
    files: FileStore,
    _folder: tempfile::TempDir,
}

impl Node {
    async fn start(database: &TestDatabase, bucket: &Bucket, clock: &Arc<ManualClock>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            data: folder.path().to_owned(),
            s3: Some(bucket.settings()),
            ..Config::default()
        };
        let (clock, disk) = (Arc::clone(clock) as _, Arc::new(SystemDisk) as _);
        Self {
            store: connect(&database.url(), SchemaPolicy::Upgrade)
                .await
                .unwrap(),
            files: FileStore::open(&config, &clock, &disk).await.unwrap(),
            _folder: folder,
        }
    }

    /// Deploys these contents as `Deployments` does.
    async fn deploy(&self, contents: &[&str], clock: &ManualClock) -> Deployment {
        let mut files = BTreeMap::new();
        for content in contents {
            let folder = tempfile::tempdir().unwrap();
            let from = folder.path().join("file");
            std::fs::write(&from, content).unwrap();
            // The name, as staging finds it out.
            let local = FileStore::local(&folder.path().join("local")).unwrap();
            let bytes = Bytes::copy_from_slice(content.as_bytes());
            let entry = local.put(bytes).await.unwrap();
            let names = vec![entry.sha256.clone()];
            let _guard = self.files.keep(&*self.store, names).await.unwrap();
            self.files.put_file(&from, &entry).await.unwrap();
            files.insert((*content).to_owned(), entry);
        }
        let entropy: &dyn Entropy = &SystemEntropy;
        let deployment = Deployment {
            id: entropy.uuid_v4(),
            slug: "game".into(),
            environment: Environment::Prod,
            files,
            created_at: clock.now(),
            made: Made::default(),
            inspection: None,
        };
        let added = self
            .store
            .add_deployment(deployment.clone(), Actor::Own.into());
        added.await.unwrap();
        deployment
    }

    /// Removes all deployments but the current one.
    async fn forget_earlier(&self) {
        let swept = self.store.sweep_deployments("game", Environment::Prod, 0);
        swept.await.unwrap();
    }
}

async fn two_nodes(bucket: &Bucket) -> (TestDatabase, Arc<ManualClock>, [Node; 2]) {
    let (database, clock) = (TestDatabase::new(), Arc::new(ManualClock::new(NOW)));
    let nodes = [
        Node::start(&database, bucket, &clock).await,
        Node::start(&database, bucket, &clock).await,
    ];
    let project = Project {
        slug: "game".into(),
        owner: None,
        created_at: NOW,
    };
    nodes[0].store.add_project(project).await.unwrap();
    (database, clock, nodes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unused_file_goes_after_a_day() {
    let bucket = Bucket::start().await;
    let (_database, clock, [one, other]) = two_nodes(&bucket).await;
    let old = one.deploy(&["a", "b"], &clock).await;
    clock.advance(1_000);
    one.deploy(&["b", "c"], &clock).await;
    one.forget_earlier().await;
    let sweep = async |node: &Node| node.files.sweep(&*node.store).await.unwrap();
    assert_eq!(sweep(&other).await, 0);
    assert_eq!(one.files.list().await.unwrap().len(), 3);
    clock.advance(A_DAY);
    assert_eq!(sweep(&other).await, 1);
    assert_eq!(sweep(&one).await, 0);
    assert!(!bucket.object(&old.files["a"].sha256).exists());
    assert_eq!(one.files.list().await.unwrap().len(), 2);

    // Nothing is forgotten that could not be removed.
    one.deploy(&["d"], &clock).await;
    one.forget_earlier().await;
    clock.advance(A_DAY);
    bucket.kill();
    assert!(other.files.sweep(&*other.store).await.is_err());
    bucket.run();
    let swept = async {
        loop {
            if let Ok(swept) = other.files.sweep(&*other.store).await {
                return swept;
            }
        }
    };
    assert_eq!(swept.await, 2);
}

/// Lets as much time pass as so many reads take.
async fn wait(node: &Node, reads: usize) {
    for _ in 0..reads {
        node.store.find_project("game").await.unwrap();
    }
}

/// A deploys a file again that was unused for a day, while B sweeps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster_the_sweep_of_a_node_takes_no_file_that_another_one_deploys() {
    let rounds = rounds();
    let bucket = Bucket::start().await;
    let (_database, clock, [one, other]) = two_nodes(&bucket).await;
    let mut removed = 0;
    for round in 0..rounds {
        one.deploy(&["x", "y"], &clock).await;
        clock.advance(1);
        one.deploy(&["kept"], &clock).await;
        one.forget_earlier().await;
        clock.advance(A_DAY);
        // Each of them begins a little after the other in every second round.
        let (deploy_later, sweep_later) = if round % 2 == 0 {
            (round % 12, 0)
        } else {
            (0, 2 * (round % 12))
        };
        let deploying = async {
            wait(&one, deploy_later).await;
            one.deploy(&["x", "y"], &clock).await
        };
        let sweeping = async {
            wait(&other, sweep_later).await;
            other.files.sweep(&*other.store).await
        };
        let (deployed, swept) = tokio::join!(deploying, sweeping);
        removed += swept.unwrap();
        for entry in deployed.files.values() {
            let object = bucket.object(&entry.sha256);
            assert!(object.exists(), "round {round}: a file is missing");
        }
        clock.advance(1);
    }
    assert!(removed > 0, "the sweep was never first");
    assert!(removed < rounds * 2, "the deploy was never first");
    println!(
        "{rounds} rounds, the sweep was first for {removed} of {} files",
        rounds * 2
    );
}
