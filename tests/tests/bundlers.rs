//! File names created with the bundlers' own functions: players of a deployment still find its
//! files after the next one, whatever their hashes spell.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use platform_server::games::immutable_files::Lasting;
use platform_server::hosting::earlier_deployments::may_answer;
use platform_tests::deployer::{Deployer, archive};
use platform_tests::server::Server;
use platform_tests::{npm, settings};
use tempfile::TempDir;
use tokio::process::Command;

/// Number of names of each kind.
const NAMES: usize = 10_000;
/// The number of each kind that are requested from a server.
const ASKED: usize = 40;

/// Returns the paths for each tool.
async fn names() -> BTreeMap<String, Vec<String>> {
    let folder = npm::packages("bundlers").await;
    let made = Command::new(settings::program("NODE", &["node"]))
        .args(["names.mjs", &NAMES.to_string()])
        .current_dir(folder)
        .stderr(Stdio::inherit())
        .output()
        .await
        .unwrap();
    assert!(made.status.success(), "{}", made.status);
    serde_json::from_slice(&made.stdout).unwrap()
}

#[tokio::test]
async fn every_name_of_every_bundler_is_found_after_the_next_deploy() {
    let names = names().await;
    assert_eq!(names.len(), 12);
    for (kind, paths) in &names {
        assert!(paths.len() >= NAMES * 9 / 10, "{kind}: {}", paths.len());
        let lost: Vec<_> = paths.iter().filter(|path| !may_answer(path)).collect();
        assert!(
            lost.is_empty(),
            "{kind} loses {}: {:?}",
            lost.len(),
            &lost[..1]
        );
    }

    let data = TempDir::with_prefix("platform-tests-").unwrap();
    let server = Server::start(data.path()).await;
    let owner = Deployer::new(&server).await;
    let asked: BTreeSet<&String> = names
        .values()
        .flat_map(|paths| paths.iter().take(ASKED))
        .collect();
    let page = ("index.html".to_owned(), b"page".to_vec());
    let mut files: Vec<_> = asked
        .iter()
        .map(|path| ((*path).clone(), path.as_bytes().to_vec()))
        .collect();
    files.push(page.clone());
    assert_eq!(
        owner.deploy(archive(&files)).send().await.unwrap().status(),
        201
    );
    assert_eq!(
        owner
            .deploy(archive(&[page]))
            .send()
            .await
            .unwrap()
            .status(),
        201
    );
    for path in asked {
        let (status, content) = owner.file(path).await;
        assert_eq!(
            (status, content.as_slice()),
            (200, path.as_bytes()),
            "{path}"
        );
    }
}

/// How much of a build is cached permanently, if it only has a page and a style: at least this
/// percentage.
#[tokio::test]
async fn nearly_every_script_of_every_bundler_is_kept_for_ever() {
    let names = names().await;
    for (kind, least) in [
        ("rollup chunks", 95),
        ("rollup pictures", 55),
        ("webpack", 99),
        ("webpack of eight", 90),
        ("parcel", 90),
        ("trunk", 99),
        ("unity", 99),
        ("esbuild", 70),
    ] {
        let paths = &names[kind];
        let kept = paths.iter().filter(|path| {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let slash = if folder.is_empty() { "" } else { "/" };
            let build = [
                (*path).clone(),
                "index.html".to_owned(),
                format!("{folder}{slash}logo.svg"),
            ];
            Lasting::of(build.iter(), &std::collections::HashSet::new()).has(path)
        });
        let share = kept.count() * 100 / paths.len();
        assert!(share >= least, "{kind}: {share} in a hundred");
    }
}
