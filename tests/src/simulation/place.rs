//! The platform that a crowd plays on: the server program alone, or several nodes.

use std::net::SocketAddr;

use platform_cluster::Cluster;
use tempfile::TempDir;

use super::Plan;
use super::processes;
use super::soak::Reading;
use crate::followers::UNLIMITED;
use crate::hostile_provider::HostileProvider;
use crate::owner::Owner;
use crate::person::Person;
use crate::platform::Site;
use crate::server::Server;
use crate::{nodes, racing};

/// The name of this program in tables.
pub(super) const CROWD: &str = "this crowd";

/// What each program has used, in the order of a table.
pub(super) type Used = Vec<(String, f64)>;

/// A running platform.
#[derive(Debug)]
pub enum Place {
    /// One server on SQLite.
    One {
        /// The server.
        server: Server,
        /// Its folder.
        data: TempDir,
    },
    /// Several nodes behind a balancer, and the provider by which the owner of the games signs in:
    /// the built-in provider of each node knows only its own sign-ins.
    Several(Box<Cluster>, HostileProvider),
}

impl Place {
    /// Starts one without limits per address, since all players come from this one. Call this on a
    /// thread that lives as long as the platform.
    ///
    /// # Panics
    /// Panics if it does not start.
    pub async fn start(plan: &Plan) -> Self {
        let beat = plan.beat.to_string();
        let own = [
            ("PLATFORM_PROJECTS_PER_ACCOUNT", "1000"),
            ("PLATFORM_LOG_QUOTA_MIB", "4096"),
            ("PLATFORM_HEARTBEAT_SECONDS", &*beat),
            ("PLATFORM_LOG", "warn"),
        ];
        let settings = [&own[..], &UNLIMITED].concat();
        if plan.nodes == 1 {
            let data = TempDir::with_prefix("platform-simulation-").expect("a folder");
            let server = Server::start_set(data.path(), "", &settings).await;
            return Self::One { server, data };
        }
        let provider = HostileProvider::start().await;
        let config = Some(racing::settings_for(&provider));
        let cluster = nodes::start_of(plan.nodes, &settings, config);
        Self::Several(Box::new(cluster), provider)
    }

    /// Where players come.
    #[must_use]
    pub fn site(&self) -> Site {
        match self {
            Self::One { server, .. } => Site::from(server),
            Self::Several(cluster, _) => nodes::site(cluster, cluster.balancer.address),
        }
    }

    /// Signs the owner of the games in.
    pub(super) async fn owner(&self) -> Owner {
        let site = self.site();
        match self {
            Self::One { .. } => Owner::sign_in(&site, "the maker").await,
            Self::Several(..) => {
                let mut person = Person::new(&site);
                person.sign_in(racing::PROVIDER, "the maker").await;
                Owner::of(&mut person, &site).await
            }
        }
    }

    /// Each address that shows how many players play.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Self::One { server, .. } => vec![server.address],
            Self::Several(cluster, _) => cluster.nodes.iter().map(|node| node.address).collect(),
        }
    }

    /// Each process of the server.
    fn servers(&self) -> Vec<u32> {
        match self {
            Self::One { server, .. } => vec![server.id()],
            Self::Several(cluster, _) => {
                let nodes = cluster.nodes.iter();
                nodes.map(|node| node.process.id()).collect()
            }
        }
    }

    /// What its servers have gathered by now.
    pub(super) fn reading(&self) -> Reading {
        let mut reading = Reading::default();
        for id in self.servers() {
            reading.memory += processes::memory(id);
            reading.files += processes::files(id) as f64;
        }
        if let Self::One { data, .. } = self {
            let files = std::fs::read_dir(data.path())
                .into_iter()
                .flatten()
                .flatten();
            let logs = files.filter(|file| file.file_name().to_string_lossy().ends_with("-wal"));
            let bytes: u64 = logs.flat_map(|log| log.metadata()).map(|of| of.len()).sum();
            reading.log = bytes as f64 / f64::from(1 << 20);
        }
        reading
    }

    /// Each of its programs with its process id, and this one.
    fn programs(&self) -> Vec<(String, u32)> {
        let mut programs = match self {
            Self::One { server, .. } => vec![("platform-server".to_owned(), server.id())],
            Self::Several(cluster, _) => several(cluster),
        };
        programs.push((CROWD.to_owned(), std::process::id()));
        programs
    }

    /// The processor time that each of its programs has used so far, in seconds.
    pub(super) fn processors(&self) -> Used {
        let programs = self.programs().into_iter();
        programs
            .map(|(name, id)| (name, processes::processor(id)))
            .collect()
    }

    /// The memory that each of its programs uses now, in MiB.
    pub(super) fn memories(&self) -> Used {
        let programs = self.programs().into_iter();
        programs
            .map(|(name, id)| (name, processes::memory(id)))
            .collect()
    }
}

fn several(cluster: &Cluster) -> Vec<(String, u32)> {
    let nodes = cluster.nodes.iter();
    let mut programs: Vec<_> = nodes
        .map(|node| (node.name.clone(), node.process.id()))
        .collect();
    let postgres = &cluster.postgres;
    for (name, process) in [
        ("postgres-primary", &postgres.primary.process),
        ("postgres-standby", &postgres.standby.process),
        ("redis", &cluster.redis.process),
        ("s3", &cluster.files.process),
        ("haproxy", &cluster.balancer.process),
    ] {
        programs.push((name.to_owned(), process.id()));
    }
    programs
}
