//! Several nodes behind a balancer, and load on them while parts of them are broken.

mod load;

use std::net::SocketAddr;

use platform_cluster::{Cluster, Plan};

pub use self::load::{Failure, Load, Outcome, Seen, heartbeat, told};
use crate::platform::Site;
use crate::visitor::Visitor;
use crate::{server, settings};

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

/// Starts one of nodes whose clocks are ahead by so many seconds. Call this on the thread of the test.
///
/// # Panics
/// Panics if it does not start.
#[must_use]
pub fn start_at(clocks: &[i32]) -> Cluster {
    start_planned(&Plan {
        nodes: clocks.len(),
        clocks: clocks.to_owned(),
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
        clocks: Vec::new(),
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

/// Returns a visitor who comes through the balancer and keeps connections open, as browsers do. If a
/// node dies, the balancer may close such a connection instead of responding.
#[must_use]
pub fn visitor_who_stays(cluster: &Cluster) -> Visitor {
    let address = cluster.balancer.address;
    Visitor::new(address, address.port())
}

/// Returns a visitor of each node, past the balancer.
#[must_use]
pub fn direct_visitors(cluster: &Cluster) -> Vec<Visitor> {
    let port = cluster.balancer.address.port();
    let nodes = cluster.nodes.iter();
    nodes.map(|node| Visitor::new(node.address, port)).collect()
}

/// Returns a visitor who comes through the balancer, with a connection for each request.
#[must_use]
pub fn visitor(cluster: &Cluster) -> Visitor {
    let address = cluster.balancer.address;
    Visitor::who_reconnects(address, address.port())
}
