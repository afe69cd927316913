//! Current and kept deployments are complete, whatever happens concurrently.

use std::io::{Read as _, Write as _};

use bytes::Bytes;
use platform_protocol::names::Environment;
use platform_server::domain::audit::Actor;
use platform_server::games::files::{FileError, FileStore};
use platform_server::projects::deploy::{self, Target};
use platform_server::store::Store;

use super::World;
use crate::caller::{archive, gzip};
use crate::support::{NOW, TestApp, send};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_deploys_at_once_one_is_shown_whole() {
    let app = TestApp::start().await;
    let world = World::new(&app).await;
    let site = |mark: &str| {
        let files: Vec<(String, String)> = (0..40)
            .map(|index| (format!("{index}.txt"), format!("{mark}{index}")))
            .chain([("index.html".to_owned(), mark.to_owned())])
            .collect();
        let files: Vec<(&str, &[u8])> = files
            .iter()
            .map(|(path, content)| (path.as_str(), content.as_bytes()))
            .collect();
        archive(&files)
    };
    for round in 0..5 {
        app.clock.advance(10_000);
        let (one, other) = (format!("one{round}"), format!("other{round}"));
        let (first, second) = tokio::join!(
            world.owner.deploy("prod", site(&one)),
            world.owner.deploy("prod", site(&other)),
        );
        assert_eq!((first.status.as_u16(), second.status.as_u16()), (201, 201));
        let mark = world.page().await;
        assert!(mark == one || mark == other, "{mark}");
        for index in 0..40 {
            let file = send(app.get("game", &format!("/{index}.txt"))).await;
            assert_eq!(file.text(), format!("{mark}{index}"));
        }
    }
}

fn unpacked(coding: Option<&str>, body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match coding {
        Some("gzip") => flate2::read::GzDecoder::new(body).read_to_end(&mut plain),
        Some("br") => brotli::Decompressor::new(body, 4_096).read_to_end(&mut plain),
        None => return body.to_vec(),
        Some(other) => panic!("a coding nobody asked for: {other}"),
    }
    .unwrap();
    plain
}

#[tokio::test]
async fn a_page_that_is_played_goes_on_loading_its_own_files() {
    const SCRIPT: &str = "main.3f2a9c1b.js";
    let app = TestApp::start().await;
    let world = World::new(&app).await;
    let script = "play();".repeat(200);
    let zipped = gzip(script.as_bytes());
    let mut squeezed = Vec::new();
    brotli::CompressorWriter::new(&mut squeezed, 4_096, 5, 20)
        .write_all(script.as_bytes())
        .unwrap();
    let (gz, br) = (format!("{SCRIPT}.gz"), format!("{SCRIPT}.br"));
    world
        .deploy(&[
            ("index.html", b"old page"),
            (SCRIPT, script.as_bytes()),
            (&gz, &zipped),
            (&br, &squeezed),
        ])
        .await;
    for later in 0..3 {
        let page = format!("new page {later}");
        world
            .deploy(&[("index.html", page.as_bytes()), ("404.html", b"nothing")])
            .await;
        for accepted in ["identity", "gzip", "br", "gzip, br"] {
            let path = format!("/{SCRIPT}");
            let request = app.get("game", &path).header("accept-encoding", accepted);
            let answer = send(request).await;
            assert_eq!(answer.status, 200, "{accepted}");
            let plain = unpacked(answer.header("content-encoding"), &answer.body);
            assert_eq!(plain, script.as_bytes(), "{accepted}");
            let kind = answer.header("content-type").unwrap();
            assert!(kind.starts_with("text/javascript"), "{kind}");
        }
        let part = app
            .get("game", &format!("/{SCRIPT}"))
            .header("range", "bytes=0-3");
        let part = send(part).await;
        assert_eq!((part.status.as_u16(), part.text()), (206, "play"));
        // A name without a hash refers to the current file.
        assert_eq!(world.page().await, page);
    }
}

/// After a sweep, ten deployments and the current one exist with all of their files.
async fn what_is_kept_is_whole(store: &dyn Store, files: &FileStore) {
    deploy::sweep(store, files).await.unwrap();
    let kept = store
        .list_deployments("game", Environment::Prod)
        .await
        .unwrap();
    assert!((10..=11).contains(&kept.len()), "{}", kept.len());
    for kept in kept {
        let kept = store.find_deployment(kept.id).await.unwrap().unwrap();
        for entry in kept.files.values() {
            files.read(entry, "game").await.unwrap();
        }
    }
}

/// Deploys, roll-backs and sweeps run concurrently.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_sweep_takes_no_file_that_a_deployment_has() {
    const DEPLOYS: u32 = 50;
    let app = TestApp::start().await;
    World::new(&app).await;
    let state = &app.running.state;
    let (store, files) = (&*state.platform.store, &*state.games.files);
    let deployments = &state.projects.deployments;
    let target = Target::of_platform("game", Environment::Prod);
    // Deployments share files with some earlier and later ones, so that a sweep finds files that
    // are about to be used again.
    let deploying = async |who: u32| {
        for number in 0..DEPLOYS {
            let content = [
                ("index.html".to_owned(), format!("page {who} {number}")),
                ("shared.txt".to_owned(), format!("shared {}", number % 13)),
                ("own.txt".to_owned(), format!("own {}", number % 3)),
            ];
            let content = content.map(|(path, text)| (path, Bytes::from(text)));
            let published = deployments.deploy_contents(content.to_vec(), &target);
            published.await.unwrap();
        }
    };
    let done = std::sync::atomic::AtomicBool::new(false);
    let is_done = || done.load(std::sync::atomic::Ordering::SeqCst);
    let sweeping = async {
        while !is_done() {
            deploy::sweep(store, files).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let rolling_back = async {
        while !is_done() {
            let kept = store.list_deployments("game", Environment::Prod);
            if let Some(oldest) = kept.await.unwrap().last() {
                // It may have been swept in between; then nothing happens.
                let by = Actor::Own.into();
                let set =
                    store.set_current_deployment("game", Environment::Prod, oldest.id, by, NOW);
                let _ = set.await;
            }
            tokio::task::yield_now().await;
        }
    };
    let looking = async {
        let mut looks = 0;
        while !is_done() {
            for kept in store
                .list_deployments("game", Environment::Prod)
                .await
                .unwrap()
            {
                looks += 1;
                let Some(kept) = store.find_deployment(kept.id).await.unwrap() else {
                    continue;
                };
                for entry in kept.files.values() {
                    if let Err(FileError::Missing(name)) = files.read(entry, "game").await {
                        let still = store.find_deployment(kept.id).await.unwrap();
                        assert!(still.is_none(), "{name} of a kept deployment was removed");
                    }
                }
            }
            tokio::task::yield_now().await;
        }
        looks
    };
    let all_deploys = async {
        tokio::join!(deploying(1), deploying(2), deploying(3));
        done.store(true, std::sync::atomic::Ordering::SeqCst);
    };
    let ((), (), (), looks) = tokio::join!(all_deploys, sweeping, rolling_back, looking);
    assert!(looks > 50, "{looks}");
    what_is_kept_is_whole(store, files).await;
}
