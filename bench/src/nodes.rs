//! What a node does per second: its store beside the bare database, with the same rows, and the node
//! itself beside a server on SQLite. PostgreSQL is a primary whose commits wait for a standby.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use platform_cluster::{Cluster, Plan};
use serde::{Deserialize, Serialize};
use serde_json::json;
use xtask::command::output;
use xtask::setup::Tool;
use xtask::terminal;
use xtask::workspace::Workspace;

use super::contenders::{self, Settings, UNLIMITED, load, token_script};
use super::figures::{Goal, goal};
use super::ingest::{self, RECORDS};
use super::process::Site;
use super::statistics::{Estimate, Limit, median, median_of};
use super::wrk::{self, Load, Sample, script};

/// Rounds; each round measures everything once. One before them warms up.
const ROUNDS: usize = 6;
/// The databases of the store and of the bare statements.
const DATABASES: [&str; 2] = ["rates", "bare"];

/// Everything that was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Nodes {
    /// The store in SQLite.
    pub(super) sqlite: Stores,
    /// The store in PostgreSQL.
    pub(super) postgres: Stores,
    /// Requests per second by kind.
    pub(super) requests: Vec<Requests>,
}

/// A store beside its database without the store.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Stores {
    /// Lookups of a session with its player.
    pub(super) lookups: Rate,
    /// New guests with their sessions.
    pub(super) guests: Rate,
    /// Frontend log records.
    pub(super) records: Rate,
}

/// The medians of the rounds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(from = "Printed")]
pub(super) struct Rate {
    /// Of the store, per second.
    pub(super) store: Estimate,
    /// Of the bare database, per second.
    pub(super) bare: Estimate,
    /// The store divided by the bare database.
    pub(super) ratio: Estimate,
}

/// The rates of every round, as the example prints them.
#[derive(Deserialize)]
struct Printed {
    store: Vec<f64>,
    bare: Vec<f64>,
}

impl From<Printed> for Rate {
    fn from(Printed { store, bare }: Printed) -> Self {
        let rounds: Vec<(&f64, &f64)> = store.iter().zip(&bare).collect();
        Self {
            store: median(&store),
            bare: median(&bare),
            ratio: median_of(&rounds, |(store, bare)| *store / *bare),
        }
    }
}

/// One kind of request.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Requests {
    /// The name for people.
    pub(super) name: &'static str,
    /// Of a server on SQLite, per second.
    pub(super) embedded: Estimate,
    /// Of a node on PostgreSQL and Redis, per second.
    pub(super) node: Estimate,
}

/// Measures all of it.
pub(super) fn measure(workspace: &Workspace, folder: &Path) -> Result<Nodes> {
    let plan = Plan {
        server: workspace.binary(true, "platform-server"),
        s3: Some(Tool::S3sFs.bin(workspace)?.join("s3s-fs")),
        nodes: 1,
        port: 0,
        settings: UNLIMITED
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        config: None,
        relayed: false,
        clocks: Vec::new(),
    };
    let cluster = Cluster::start(&plan, &|step| terminal::note(&format!("bench: {step}")))?;
    let primary = &cluster.postgres.primary;
    for name in DATABASES {
        primary.sql("postgres", &format!("CREATE DATABASE {name}"))?;
    }
    terminal::note("bench: the stores beside their databases");
    let postgres = stores(workspace, DATABASES.map(|name| cluster.postgres.url(name)))?;
    let sqlite = DATABASES.map(|name| format!("sqlite://{}/{name}.db", folder.display()));
    let sqlite = stores(workspace, sqlite)?;
    let mut nodes = Nodes {
        sqlite,
        postgres,
        requests: Vec::new(),
    };
    // A fault in what follows must not hide what was found so far.
    terminal::note(&nodes.markdown().join("\n"));
    nodes.requests = requests(workspace, folder, &cluster)?;
    Ok(nodes)
}

/// Runs the example that measures a store and its database, in turns.
fn stores(workspace: &Workspace, urls: [String; 2]) -> Result<Stores> {
    let mut rates = Command::new(workspace.binary(true, "examples/store_rates"));
    let found = output(rates.args(urls))?;
    serde_json::from_str(found.trim()).context("the rates of a store cannot be read")
}

/// Sends requests of each kind to the server on SQLite and to the node, in turns.
fn requests(workspace: &Workspace, folder: &Path, cluster: &Cluster) -> Result<Vec<Requests>> {
    let settings = Settings {
        unlimited: true,
        ..Settings::default()
    };
    let embedded = contenders::server(workspace, &folder.join("embedded"), settings)?;
    let node = cluster.nodes.first().context("there is no node")?;
    let origin = format!(
        "http://platform.localhost:{}",
        cluster.balancer.address.port()
    );
    let node = Site {
        address: node.address,
        origin,
    };
    let embedded = loads(folder, "embedded", &embedded)?.map(|load| (load, Vec::new()));
    let node = loads(folder, "node", &node)?.map(|load| (load, Vec::new()));
    let mut pairs: Vec<_> = embedded.into_iter().zip(node).collect();
    for round in 0..=ROUNDS {
        terminal::note(&format!("bench: a node, round {round} of {ROUNDS}"));
        for pair in &mut pairs {
            for (load, rates) in [&mut pair.0, &mut pair.1] {
                let Sample { per_second, .. } = wrk::run_on(load, connections(load))
                    .with_context(|| format!("{} failed", load.name))?;
                if round > 0 {
                    rates.push(per_second);
                }
            }
        }
    }
    let kinds = pairs.iter().map(|((load, embedded), (_, node))| {
        let each = if load.name == LOGS {
            RECORDS as f64
        } else {
            1.0
        };
        Requests {
            name: load.name,
            embedded: median(embedded).times(each),
            node: median(node).times(each),
        }
    });
    Ok(kinds.collect())
}

/// Parallel connections: fewer for logs than a game may have waiting log requests.
pub(super) fn connections(load: &Load) -> usize {
    if load.name == LOGS { 24 } else { 64 }
}

/// The name of the load whose requests have several records.
const LOGS: &str = "frontend log records, 50 a request";

/// The load of each kind.
pub(super) fn loads(folder: &Path, file: &str, server: &Site) -> Result<[Load; 4]> {
    let cookie = contenders::visit(server)?;
    let token = contenders::token(server, &cookie)?;
    let (demo, bearer) = (server.host("demo"), format!("Bearer {token}"));
    let headers = [
        ("Host", demo.as_str()),
        ("Content-Type", "application/json"),
        ("Authorization", bearer.as_str()),
    ];
    let page = "AAAAAAAAAAAAAAAAAAAAAA";
    let beat = json!({ "page": page }).to_string();
    let kind = |name, kind: &str, path, script: &str| {
        load(
            folder,
            name,
            server,
            &format!("{file}-{kind}"),
            path,
            script,
        )
    };
    Ok([
        kind(
            "`POST /token`, returning guest",
            "returning",
            "/token",
            &token_script(server, Some(&cookie)),
        )?,
        kind(
            "`POST /token`, new guest",
            "new",
            "/token",
            &token_script(server, None),
        )?,
        kind(
            "heartbeats, one token",
            "beats",
            "/__platform/heartbeat",
            &script(&headers, Some(&beat)),
        )?,
        kind(
            LOGS,
            "logs",
            "/__platform/logs",
            &script(&headers, Some(&ingest::records(page))),
        )?,
    ])
}

impl Nodes {
    /// The goals for the store in PostgreSQL.
    pub(super) fn goals(&self) -> [Goal; 3] {
        let least = || Limit::AtLeast(0.6);
        let Stores {
            lookups,
            guests,
            records,
        } = &self.postgres;
        [
            goal(
                "lookups of a session / PostgreSQL alone",
                lookups.ratio,
                least(),
                "×",
            ),
            goal("new guests / PostgreSQL alone", guests.ratio, least(), "×"),
            goal(
                "log records / PostgreSQL alone",
                records.ratio,
                least(),
                "×",
            ),
        ]
    }

    /// The figures as Markdown.
    pub(super) fn markdown(&self) -> Vec<String> {
        let mut lines = vec![
            String::new(),
            "| store, per second | SQLite | SQLite alone | | PostgreSQL | PostgreSQL alone | |"
                .into(),
            "|---|---:|---:|---:|---:|---:|---:|".into(),
        ];
        let kinds = [
            (
                "lookups of a session",
                &self.sqlite.lookups,
                &self.postgres.lookups,
            ),
            ("new guests", &self.sqlite.guests, &self.postgres.guests),
            (
                "frontend log records",
                &self.sqlite.records,
                &self.postgres.records,
            ),
        ];
        lines.extend(kinds.map(|(name, sqlite, postgres)| {
            let of = |rate: &Rate| {
                let (store, bare, ratio) =
                    (rate.store.cell(0), rate.bare.cell(0), rate.ratio.cell(2));
                format!("{store} | {bare} | {ratio}×")
            };
            format!("| {name} | {} | {} |", of(sqlite), of(postgres))
        }));
        lines.extend([
            String::new(),
            "| requests, per second | one server on SQLite | one node on PostgreSQL and Redis |"
                .into(),
            "|---|---:|---:|".into(),
        ]);
        lines.extend(self.requests.iter().map(|kind| {
            let (embedded, node) = (kind.embedded.cell(0), kind.node.cell(0));
            format!("| {} | {embedded} | {node} |", kind.name)
        }));
        lines
    }
}
