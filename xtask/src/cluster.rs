//! A platform of several nodes on this machine, until Ctrl-C.

use std::process::ExitCode;

use anyhow::{Context, Result};
use platform_cluster::{Cluster, Plan};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::workspace::Workspace;
use crate::{build, setup, terminal};

/// Sets up, builds the server with what several nodes need, starts everything, says what runs
/// where, and ends all of it at Ctrl-C.
pub(crate) fn run(
    workspace: &Workspace,
    release: bool,
    nodes: usize,
    port: u16,
) -> Result<ExitCode> {
    setup::run(workspace, setup::Purpose::Cluster)?;
    build::cluster(workspace, release)?;
    // From here on, so that Ctrl-C during the start ends what was started as well.
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("signals cannot be awaited")?;
    let plan = Plan {
        server: workspace.binary(release, "platform-server"),
        s3: Some(setup::Tool::S3sFs.bin(workspace)?.join("s3s-fs")),
        nodes,
        port,
        settings: Vec::new(),
        config: None,
        relayed: false,
        clocks: Vec::new(),
    };
    let cluster = Cluster::start(&plan, &terminal::note)?;
    terminal::result(&what_runs_where(&cluster));
    signals.forever().next();
    terminal::note("\nending everything");
    Ok(ExitCode::SUCCESS)
}

/// A line for each program, and how to look into it.
fn what_runs_where(cluster: &Cluster) -> String {
    let port = cluster.balancer.address.port();
    let mut lines = vec![
        format!("\nopen http://demo.platform.localhost:{port}/ (Ctrl-C ends everything)\n"),
        line(
            "haproxy",
            &cluster.balancer.address,
            "every request goes to any node",
        ),
    ];
    for node in &cluster.nodes {
        let ready = format!(
            "http://{}/readyz, process {}",
            node.operations,
            node.process.id()
        );
        lines.push(line(&node.name, &node.address, &ready));
    }
    let postgres = &cluster.postgres;
    for (name, server, role) in [
        (
            "postgres-primary",
            &postgres.primary,
            "a commit waits for the standby",
        ),
        (
            "postgres-standby",
            &postgres.standby,
            "takes over when it is promoted",
        ),
    ] {
        let address = format!("127.0.0.1:{}", server.port);
        let advice = format!("{role}, process {}", server.process.id());
        lines.push(line(name, &address, &advice));
    }
    lines.push(line("s3", &cluster.files.address, "the bucket is a folder"));
    let redis = cluster.redis.url();
    lines.push(line(
        "redis",
        &redis.trim_start_matches("redis://"),
        "keeps nothing on the disk",
    ));
    lines.push(format!(
        "\neach program's output: {}/<name>.log",
        cluster.folder().display()
    ));
    if let Some(node) = cluster.nodes.first() {
        let script = node.script.display();
        lines.push(format!("an operator's command: {script} admin list"));
    }
    lines.join("\n")
}

fn line(name: &str, address: &dyn std::fmt::Display, remark: &str) -> String {
    format!("  {name:18} {:22} {remark}", address.to_string())
}
