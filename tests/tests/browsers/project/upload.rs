//! Deploying from the project page: a zip that is chosen, a folder that is dropped, and what is
//! refused, with the words of the command line.

use std::io::{Cursor, Write as _};
use std::path::Path;

use platform_server::domain::administration::Granted;
use platform_server::domain::audit::Actor;
use platform_tests::browser::Stage;
use platform_tests::owner::Owner;
use platform_tests::sign_in::Way;
use platform_tests::terminal::Terminal;
use platform_tests::visitor::claims;
use platform_tests::world::PageBuilder;
use serde_json::{Value, json};
use thirtyfour::By;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::{Scene, comes_to, texts};
use crate::build::examine;

platform_tests::browser_tests![
    a_zip_is_looked_at_deployed_and_played,
    what_cannot_be_deployed_is_refused_with_the_words_of_the_command_line;
    in Chromium, because "it is the page's own logic":
    a_deploy_that_needs_a_fresh_sign_in_leads_to_one_and_back;
    in Chromium, because "only its driver can drop a folder, and be offline":
    a_dropped_folder_is_deployed_after_a_failure_without_being_dropped_again,
];

/// Returns a zip of these files.
fn zip(files: &[(&str, &str)], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, text) in files {
        zip.start_file(*name, options).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Chooses a file in the page, as its file dialog does.
async fn choose(stage: &Stage, path: &Path) {
    let session = &stage.browser().session;
    let input = session.find(By::Css("#upload-zip-input")).await.unwrap();
    input.send_keys(path.to_str().unwrap()).await.unwrap();
}

/// A page of a game whose script says what it is.
fn page(script: &str) -> String {
    let tag = format!("<script defer src=\"{script}\"></script>");
    PageBuilder::new()
        .before("")
        .html()
        .replace("</head>", &format!("{tag}</head>"))
}

/// Opens the overview of the project, in which nothing is deployed, for dev.
async fn begin(stage: &Stage) -> Scene {
    let scene = Scene::start().await;
    scene.open(stage, "").await;
    stage.click("#env-dev").await;
    stage.says("Nothing is deployed to dev yet").await;
    stage.says("Drop the folder of the built game here").await;
    scene
}

/// The game at its dev address runs the script that was deployed, and has a player.
async fn plays(stage: &Stage, scene: &Scene) {
    stage.open(&scene.platform.site.url("dev-game", "/")).await;
    comes_to(stage, "return window.name", json!("rings")).await;
    let player = stage.run("return platform.player()").await;
    assert!(player["id"].is_string(), "{player}");
}

async fn a_zip_is_looked_at_deployed_and_played(stage: Stage) {
    let scene = begin(&stage).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my-game.zip");
    let page = page("assets/main.js");
    let filler = "// A line that is there many times.\n".repeat(9_000);
    let script = format!("window.name = 'rings';\n{filler}");
    let files = [
        ("game/index.html", page.as_str()),
        ("game/assets/main.js", &script),
        ("game/.git/config", "[core]"),
        ("__MACOSX/game/._index.html", "x"),
    ];
    std::fs::write(&path, zip(&files, CompressionMethod::Deflated)).unwrap();
    choose(&stage, &path).await;
    stage.says("game: 2 files, 32").await;
    let focused = "return document.activeElement.textContent";
    comes_to(&stage, focused, json!("Deploy to dev")).await;
    stage.fill("What is new (optional)", "First rings").await;
    stage.press("Deploy to dev").await;
    stage.says("to dev. Open the game").await;
    comes_to(&stage, focused, json!("Open the game")).await;
    stage.says("First rings").await;
    let now = scene.environment("dev").await;
    assert_eq!(now["deployment"]["files"], 2, "{now}");
    assert_eq!(now["deployment"]["message"], "First rings");
    plays(&stage, &scene).await;

    // A zip without compression is one, too; and it can be cancelled.
    scene.open_again(&stage, "deployments?env=dev").await;
    std::fs::write(&path, zip(&files[..2], CompressionMethod::Stored)).unwrap();
    choose(&stage, &path).await;
    stage.says("game: 2 files").await;
    stage.press("Cancel").await;
    stage.says("Nothing was deployed.").await;
    choose(&stage, &path).await;
    stage.says("game: 2 files").await;
    stage.press("Deploy to dev").await;
    stage.says("to dev. Open the game").await;
    let now = scene.environment("dev").await;
    assert_eq!(now["deployments"].as_array().unwrap().len(), 2);
}

/// Broken and hostile zips are refused with what is wrong with them.
async fn refuses_broken_zips(stage: &Stage, path: &Path, index: &str) {
    // Firefox tells of a stream that its reader fails.
    stage.tolerate_log("Failed to read data from the ReadableStream");
    let good = zip(&[("index.html", index)], CompressionMethod::Deflated);
    let mut damaged = good.clone();
    damaged[45] ^= 0xff;
    for (bytes, expected) in [
        (
            &b"no zip at all"[..],
            "game.zip is not a zip file, or it is cut off",
        ),
        (
            &good[..good.len() - 4],
            "game.zip is not a zip file, or it is cut off",
        ),
        (
            &damaged,
            "index.html is damaged in game.zip: make the zip again",
        ),
        (
            &zip(&[("../index.html", index)], CompressionMethod::Stored),
            "cannot be deployed: its name has a segment . or ..",
        ),
        (
            &zip(
                &[("index.html", index), ("a\\b", "")],
                CompressionMethod::Stored,
            ),
            "game/a\\b cannot be deployed: its name has a backslash.",
        ),
    ] {
        std::fs::write(path, bytes).unwrap();
        choose(stage, path).await;
        stage.says(expected).await;
    }
}

async fn a_deploy_that_needs_a_fresh_sign_in_leads_to_one_and_back(stage: Stage) {
    for status in ["401", "403"] {
        stage.tolerate_log(status);
    }
    let scene = Scene::start().await;
    // An administrator deploys to the project of somebody else.
    let eve = Owner::sign_in(&scene.platform.site, "Eve").await;
    let admin = claims(&eve.token).sub.parse().unwrap();
    let (store, now) = (scene.platform.store(), scene.now());
    let granted = store.grant_admin(admin, Actor::Operator.into(), now);
    assert_eq!(granted.await.unwrap(), Granted::Done);
    let tab = scene.tab("deployments?env=dev");
    stage.open(&tab).await;
    stage.press("Sign in").await;
    Way::BuiltIn.sign_in(&stage, "Eve").await;
    stage.arrives_at(&tab).await;
    stage.says("Drop the folder of the built game here").await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("game.zip");
    let files = [
        ("index.html", &*page("main.js")),
        ("main.js", "window.name = 'rings';"),
    ];
    std::fs::write(&path, zip(&files, CompressionMethod::Stored)).unwrap();
    choose(&stage, &path).await;
    stage.says("game: 2 files").await;
    // Nothing but the deploy asks from here on.
    let quiet = "const ask = window.fetch;
        window.fetch = (url, init) => String(url).endsWith('/token')
            ? ask(url, init) : new Promise(() => {});";
    stage.look(quiet, vec![]).await;
    scene.platform.clock.advance(16 * 60 * 1_000);
    stage.press("Deploy to dev").await;
    stage
        .says("Administration needs a sign-in within the last 15 minutes.")
        .await;
    stage.press("Sign in again").await;
    Way::BuiltIn.sign_in(&stage, "Eve").await;
    stage.arrives_at(&tab).await;
    stage.says("Drop the folder of the built game here").await;
    choose(&stage, &path).await;
    stage.press("Deploy to dev").await;
    stage.says("to dev. Open the game").await;
}

async fn what_cannot_be_deployed_is_refused_with_the_words_of_the_command_line(stage: Stage) {
    let scene = begin(&stage).await;
    let terminal = Terminal::of(&scene.platform.site);
    let path = terminal.path("game.zip");
    let index = "<!doctype html><title>Rings</title>";
    let refused: [&[(&str, &str)]; 3] = [
        &[("dist/main.js", "")],
        &[("dist/index.html", index), ("dist/__platform/a.js", "")],
        &[("dist/package.json", "{}"), ("dist/dist/index.html", index)],
    ];
    for files in refused {
        let _ = std::fs::remove_dir_all(terminal.path("dist"));
        for (name, text) in files {
            terminal.write(name, text);
        }
        let said = terminal.run(&["check", "dist"]).await.ended_with(1).stderr;
        // The command line names the folder with its path, except as it was given.
        let expected = said.trim_start_matches("error: ").lines().next().unwrap();
        let home = format!("{}/", terminal.path("").canonicalize().unwrap().display());
        let expected = expected.replace(&home, "");
        std::fs::write(&path, zip(files, CompressionMethod::Deflated)).unwrap();
        choose(&stage, &path).await;
        let shown = "return document.getElementById('upload-problem').textContent";
        comes_to(&stage, shown, json!(expected)).await;
    }

    refuses_broken_zips(&stage, &path, index).await;

    // What is advised before a deploy is the same, too.
    let files = [
        (
            "dist/index.html",
            "<script type=module src=/src/main.ts></script>",
        ),
        ("dist/secrets.env", "KEY=1"),
    ];
    for (name, text) in files {
        terminal.write(name, text);
    }
    let _ = std::fs::remove_dir_all(terminal.path("dist/__platform"));
    let _ = std::fs::remove_dir_all(terminal.path("dist/dist"));
    let _ = std::fs::remove_file(terminal.path("dist/package.json"));
    let advised = terminal.run(&["check", "dist"]).await.ended_with(0).stdout;
    let expected: Vec<String> = advised
        .lines()
        .map(|line| {
            let (code, message) = line.split_once(": ").unwrap();
            format!("{message} {code}")
        })
        .collect();
    assert_eq!(expected.len(), 3, "{advised}");
    std::fs::write(&path, zip(&files, CompressionMethod::Deflated)).unwrap();
    choose(&stage, &path).await;
    stage.says("dist: 2 files").await;
    assert_eq!(texts(&stage, "#upload-advice li").await, json!(expected));
    let now = scene.environment("dev").await;
    assert_eq!(now["deployment"], Value::Null, "nothing was sent");
    examine(&stage, "the advice before a deploy").await;
}

/// Drops a folder onto the page.
async fn drop_folder(stage: &Stage, folder: &Path) {
    let middle = "const target = document.getElementById('upload-target');
        target.scrollIntoView({ block: 'center' });
        const { x, y, width, height } = target.getBoundingClientRect();
        return [x + width / 2, y + height / 2]";
    let middle = stage.look(middle, vec![]).await;
    let tools = stage.browser().session.cdp();
    for kind in ["dragEnter", "dragOver", "drop"] {
        let event = json!({
            "type": kind, "x": middle[0], "y": middle[1],
            "data": { "items": [], "files": [folder], "dragOperationsMask": 1 },
        });
        tools
            .send_raw("Input.dispatchDragEvent", event)
            .await
            .unwrap();
    }
}

async fn a_dropped_folder_is_deployed_after_a_failure_without_being_dropped_again(stage: Stage) {
    let scene = begin(&stage).await;
    examine(&stage, "before the first deploy").await;
    let terminal = Terminal::of(&scene.platform.site);
    terminal.write("dist/index.html", &page("assets/main.js"));
    terminal.write("dist/assets/main.js", "window.name = 'rings';");
    terminal.write("dist/node_modules/a/index.js", "");
    terminal.write("dist/platform.toml", "project = 'game'");
    drop_folder(&stage, &terminal.path("dist")).await;
    stage.says("dist: 2 files").await;
    stage.says("it has node_modules").await;

    stage.tolerate_log("ERR_INTERNET_DISCONNECTED");
    let offline = async |offline: bool| {
        let tools = stage.browser().session.cdp();
        let conditions = json!({
            "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1,
        });
        tools.send_raw("Network.enable", json!({})).await.unwrap();
        let method = "Network.emulateNetworkConditions";
        tools.send_raw(method, conditions).await.unwrap();
    };
    offline(true).await;
    stage.press("Deploy to dev").await;
    stage.says("The platform does not answer.").await;
    stage.says("dist: 2 files").await;
    offline(false).await;
    comes_to(&stage, "return navigator.onLine", json!(true)).await;
    stage.press("Try again: deploy to dev").await;
    stage.says("to dev. Open the game").await;
    plays(&stage, &scene).await;
}
