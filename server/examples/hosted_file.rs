//! The platform with one game that has a file of 20 kB with its brotli variant, and one of 1 MB.
//! `cargo xtask bench` compares hosting with nginx.
//!
//! `hosted_file <folder>`: the folder is for the data; the files `file.js`, `file.js.br` and
//! `large.bin` are also written there, for the other servers.

#![expect(
    clippy::print_stdout,
    reason = "the ready line, as the server prints it"
)]

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use platform_protocol::names::Environment;
use platform_server::app::start::start;
use platform_server::clock::{Clock as _, SystemClock};
use platform_server::config::Config;
use platform_server::domain::project::Project;
use platform_server::entropy::{Entropy as _, SystemEntropy};
use platform_server::projects::deploy::Target;

/// The size of the file in bytes.
const SIZE: usize = 20_000;
/// The size of the large file in bytes.
const LARGE: usize = 1_000_000;
/// The project.
const SLUG: &str = "bench";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("name a folder")?);
    let plain = script();
    let mut brotli = Vec::new();
    brotli::CompressorWriter::new(&mut brotli, 4_096, 11, 22).write_all(plain.as_bytes())?;
    std::fs::write(folder.join("file.js"), &plain)?;
    std::fs::write(folder.join("file.js.br"), &brotli)?;
    let mut large = vec![0; LARGE];
    SystemEntropy.fill(&mut large);
    std::fs::write(folder.join("large.bin"), &large)?;

    let config = Config {
        listen: ([127, 0, 0, 1], 0).into(),
        data: folder.join("data"),
        demo: false,
        ..Config::default()
    };
    std::fs::create_dir_all(&config.data)?;
    let running = start(config, Arc::new(SystemClock), Arc::new(SystemEntropy)).await?;
    let state = &running.state;
    let project = Project {
        slug: SLUG.into(),
        owner: None,
        created_at: SystemClock.now(),
    };
    state.platform.store.add_project(project).await?;
    let files = [
        (
            "index.html".to_owned(),
            Bytes::from_static(b"<!doctype html>"),
        ),
        ("file.js".to_owned(), Bytes::from(plain)),
        ("file.js.br".to_owned(), Bytes::from(brotli)),
        ("large.bin".to_owned(), Bytes::from(large)),
    ];
    let target = Target::of_platform(SLUG, Environment::Prod);
    let deployments = &state.projects.deployments;
    deployments.deploy_contents(files.into(), &target).await?;
    println!(
        "hosted_file ready on {} (listening on {})",
        running.origin, running.address
    );
    std::future::pending::<()>().await;
    Ok(())
}

/// Returns text that compresses like scripts.
fn script() -> String {
    let mut text = String::with_capacity(SIZE + 100);
    let mut number = 1_u32;
    while text.len() < SIZE {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (one, two) = (number >> 8, number >> 20);
        text.push_str(&format!(
            "function step{one}(x) {{ return x * {two} + {one} }}\n"
        ));
    }
    text.truncate(SIZE);
    text
}
