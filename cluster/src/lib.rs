//! A platform of several nodes on this machine, made of real programs: a PostgreSQL primary with a
//! synchronous standby, Redis, an S3 server, the nodes, and haproxy before them. `cargo xtask cluster` runs one
//! for a person, and tests run one to break parts of it.
//!
//! Everything lies in one temporary folder and ends with the [`Cluster`], however its process ends.

mod balancer;
mod clock;
mod files;
mod node;
mod poll;
mod postgres;
mod process;
mod redis;
mod relay;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use platform_test_ports::ReservedPort;
use tempfile::TempDir;

pub use self::balancer::Balancer;
pub use self::files::Files;
pub use self::node::Node;
pub use self::postgres::{Postgres, PostgresPair};
pub use self::process::Process;
pub use self::redis::Redis;
pub use self::relay::Relay;

/// What a cluster is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program `platform-server`, built with the feature `cluster`.
    pub server: PathBuf,
    /// The program `s3s-fs`; `None` if it is on the `PATH`.
    pub s3: Option<PathBuf>,
    /// How many nodes there are.
    pub nodes: usize,
    /// The port of the balancer, under `localhost`; 0 for a free one.
    pub port: u16,
    /// Environment variables for every node, such as `PLATFORM_LOG`. They win over the cluster's
    /// own.
    pub settings: Vec<(String, String)>,
    /// The settings file of every node, for what no environment variable sets.
    pub config: Option<String>,
    /// Whether each node reaches PostgreSQL through relays that can fall silent.
    pub relayed: bool,
    /// By how many seconds the clock of each node is ahead; negative if it is behind. Nodes after the
    /// last of these have the machine's clock.
    pub clocks: Vec<i32>,
}

/// A running cluster. Dropping it ends its programs and removes its folder.
#[derive(Debug)]
pub struct Cluster {
    /// The nodes. They come first, so that they end before what they use.
    pub nodes: Vec<Node>,
    /// The way in.
    pub balancer: Balancer,
    /// The counters, limits and hints that nodes share.
    pub redis: Redis,
    /// The deployed files.
    pub files: Files,
    /// The databases.
    pub postgres: PostgresPair,
    folder: TempDir,
    /// That of the balancer, if the plan names none.
    _port: Option<ReservedPort>,
}

impl Cluster {
    /// Starts every part, and waits until the balancer answers and each node is ready. `tell` is
    /// given a sentence about each step.
    ///
    /// The programs end with the thread that starts them (`PR_SET_PDEATHSIG`), so call this, and
    /// whatever restarts a part, on a thread that lives as long as the cluster.
    ///
    /// # Errors
    /// A program is missing, does not start, or is not ready within a minute. The error says which
    /// one, and shows the end of its output.
    pub fn start(plan: &Plan, tell: &dyn Fn(&str)) -> Result<Self> {
        let folder = temporary_folder()?;
        tell("starting PostgreSQL: a primary and its synchronous standby");
        let postgres = PostgresPair::start(folder.path())?;
        tell("starting Redis");
        let redis = Redis::start(folder.path())?;
        tell("starting an S3 server");
        let files = Files::start(folder.path(), plan.s3.as_deref())?;
        let reserved = match plan.port {
            0 => Some(reserve_port()?),
            _ => None,
        };
        let port = reserved.as_ref().map_or(plan.port, ReservedPort::number);
        let config = plan.config.as_ref().map(|text| {
            let file = folder.path().join("platform.toml");
            std::fs::write(&file, text).map(|()| file)
        });
        let shared = node::Shared {
            server: &plan.server,
            folder: folder.path(),
            origin: format!("http://platform.localhost:{port}"),
            postgres: &postgres,
            relayed: plan.relayed,
            redis_url: redis.url(),
            key_secret: random_secret()?,
            files: files.settings(),
            settings: &plan.settings,
            clocks: &plan.clocks,
            config: config.transpose().context("no settings file")?,
        };
        tell(&format!("starting {} nodes", plan.nodes));
        // Together, as after a power cut: the first start also brings the schema up to date.
        let nodes = (1..=plan.nodes).map(|number| Node::start(&shared, number));
        let mut nodes = nodes.collect::<Result<Vec<_>>>()?;
        for node in &mut nodes {
            node.wait_until_ready()?;
        }
        tell("starting haproxy before them");
        let balancer = Balancer::start(folder.path(), port, &nodes)?;
        Ok(Self {
            nodes,
            balancer,
            redis,
            files,
            postgres,
            folder,
            _port: reserved,
        })
    }

    /// The folder of everything, with the output of each program in `<name>.log`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// A folder that the user of PostgreSQL can enter as well.
fn temporary_folder() -> Result<TempDir> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::with_prefix("platform-cluster-").context("no temporary folder")?;
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).context("a temporary folder stays closed")?;
    Ok(folder)
}

/// A port for a program, which keeps it when it is started again.
fn reserve_port() -> Result<ReservedPort> {
    ReservedPort::take().context("no port can be reserved")
}

/// 32 random bytes in hex, for `PLATFORM_KEY_SECRET`, which all nodes share.
fn random_secret() -> Result<String> {
    use std::fmt::Write as _;
    use std::io::Read as _;
    let mut bytes = [0; 32];
    let mut source = std::fs::File::open("/dev/urandom").context("no source of randomness")?;
    source.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing into a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    }))
}
