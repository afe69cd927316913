//! The Build page with games built by common tools: with an engine that cancels every press, and
//! bundled, so that only a source map knows the position of an error.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use platform_tests::browser::Stage;
use platform_tests::npm;
use platform_tests::platform::Platform;
use platform_tests::poll;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::build::{Scene, in_game, logged, play};

platform_tests::browser_tests![
    an_engine_s_game_gets_the_keyboard_on_the_first_click_and_its_errors_stand_where_the_source_has_them;
    in Chromium, because "the page reads maps by its own code, once it has an engine's stack":
    maps_inside_of_scripts_and_maps_with_sections_are_read_as_well,
    a_map_that_is_none_leaves_the_place_in_the_bundle,
];

/// A game of `tests/engines`, bundled and minified, and its source map.
struct Bundle {
    page: String,
    script: String,
    map: String,
}

impl Bundle {
    async fn of(engine: &str) -> Self {
        let folder = npm::games().await.join(engine);
        let read = |name| std::fs::read_to_string(folder.join(name)).unwrap();
        Self {
            page: read("index.html"),
            script: read("game.js"),
            map: read("game.js.map"),
        }
    }

    /// Returns the script without its last comment, which names the map.
    fn bare(&self) -> &str {
        let (script, name) = self.script.rsplit_once("//# sourceMappingURL=").unwrap();
        assert_eq!(name.trim(), "game.js.map");
        script
    }
}

/// Returns the position of `part` in `tests/engines/src/record.js`: `src/record.js:<line>:`.
fn source_of(part: &str) -> String {
    let source = include_str!("../../engines/src/record.js");
    let lines: Vec<_> = source.lines().map(|line| line.contains(part)).collect();
    assert_eq!(lines.iter().filter(|has| **has).count(), 1, "{part:?}");
    let line = lines.iter().position(|has| *has).unwrap() + 1;
    format!("src/record.js:{line}:")
}

/// Types keys to the focused element.
async fn press(stage: &Stage, keys: &str) {
    let chain = stage.browser().session.action_chain().send_keys(keys);
    chain.perform().await.unwrap();
}

/// Waits until the newest entry contains `part` with the position `wanted`.
async fn place_of(stage: &Stage, part: &str, wanted: &str) -> Value {
    let script = "const entry = [...document.querySelectorAll('.entry')].find(entry =>
            entry.querySelector('.text').textContent.includes(arguments[0]));
        entry?.scrollIntoView({ block: 'nearest' });
        const place = entry?.querySelector('summary .place');
        return place ? [place.textContent, place.title] : null";
    poll::until(&format!("{part:?} is at {wanted}"), async || {
        let place = stage.look(script, vec![json!(part)]).await;
        place[0].as_str()?.starts_with(wanted).then_some(place)
    })
    .await
}

/// Waits until the game of `tests/engines` runs in the frame.
async fn plays(stage: &Stage) {
    poll::until("the game runs", async || {
        let frames = in_game(stage, "return globalThis.game?.work.length ?? 0").await;
        (frames.as_u64()? > 5).then_some(())
    })
    .await;
}

async fn an_engine_s_game_gets_the_keyboard_on_the_first_click_and_its_errors_stand_where_the_source_has_them(
    stage: Stage,
) {
    for part in ["throws later", "throws in its update loop"] {
        stage.tolerate_log(part);
    }
    let Bundle { page, script, map } = Bundle::of("phaser").await;
    let files = [
        ("index.html", page.as_str()),
        ("game.js", script.as_str()),
        ("game.js.map", map.as_str()),
    ];
    let _scene = Scene::open_on(Platform::start(&[]).await, &stage, &files).await;
    plays(&stage).await;
    let cancels = "window.cancelled = [];
        addEventListener('mousedown', event => cancelled.push(event.defaultPrevented))";
    play(&stage, cancels).await;
    stage.click("iframe").await;
    press(&stage, "wl").await;
    let seen = poll::until("the keys", async || {
        let seen = in_game(&stage, "return [game.keys, cancelled]").await;
        (seen[0].as_array()?.len() >= 2).then_some(seen)
    })
    .await;
    assert_eq!(seen, json!([["w", "l"], [true]]));
    logged(&stage, "phaser logs a line").await;

    let wanted = source_of("throws later");
    let mut taken = Vec::new();
    for number in 1..=12 {
        let began = Instant::now();
        press(&stage, "t").await;
        let part = format!("phaser throws later: {number}");
        let place = place_of(&stage, &part, &wanted).await;
        taken.push(began.elapsed());
        assert!(
            place[1].as_str().unwrap().starts_with("game.js:"),
            "{place}"
        );
    }
    println!("with its source's line, an error is on the page after {taken:?}");
    taken.sort();
    assert!(taken[6] < Duration::from_secs(1), "{taken:?}");

    // The error in its loop comes last, since it stops the engine.
    press(&stage, "e").await;
    let wanted = source_of("throws in its update loop");
    place_of(&stage, "phaser throws in its update loop", &wanted).await;
    frames_name_sources(&stage, &wanted).await;
}

/// Asserts that the stack of the newest entry leads from `first` into the engine's sources.
async fn frames_name_sources(stage: &Stage, first: &str) {
    let open = "document.querySelector('.entry summary').click()";
    stage.look(open, vec![]).await;
    poll::until("the frames name sources", async || {
        let frames = "return [...document.querySelectorAll('.frames .place')].map(place => place.textContent)";
        let frames: Vec<String> = serde_json::from_value(stage.look(frames, vec![]).await).ok()?;
        let mut own = frames.iter().filter(|frame| !frame.contains("/__platform/"));
        let begins = own.next()?.starts_with(first) && own.next()?.starts_with("src/phaser.js:");
        (begins && own.all(|frame| frame.starts_with("node_modules/phaser/"))).then_some(())
    })
    .await;
}

/// Deploys `files` and throws an error; waits until it is shown at `wanted`.
async fn deployed_anew(scene: &Scene, stage: &Stage, files: &[(&str, &str)], wanted: &str) {
    let listed = "return document.querySelectorAll('#deployments li').length";
    let before = stage.look(listed, vec![]).await;
    scene.owner.deploy("game", "dev", files).await;
    poll::until("another deployment is listed", async || {
        (stage.look(listed, vec![]).await != before).then_some(())
    })
    .await;
    plays(stage).await;
    stage.press("Clear").await;
    stage.click("iframe").await;
    press(stage, "t").await;
    place_of(stage, "pixi throws later", wanted).await;
}

async fn maps_inside_of_scripts_and_maps_with_sections_are_read_as_well(stage: Stage) {
    stage.tolerate_log("throws later");
    let bundle = Bundle::of("pixi").await;
    let page = ("index.html", bundle.page.as_str());
    // As bundlers embed a map in the script.
    let encoded = STANDARD.encode(&bundle.map);
    let inline = format!(
        "{}//# sourceMappingURL=data:application/json;charset=utf-8;base64,{encoded}\n",
        bundle.bare()
    );
    // As tools that concatenate scripts do: with two lines of another script before it.
    let joined = format!("var before = 1;\nvar after = 2;{}", bundle.script);
    let nothing = json!({ "version": 3, "sources": [], "names": [], "mappings": "" });
    let map: Value = serde_json::from_str(&bundle.map).unwrap();
    let sections = json!({ "version": 3, "sections": [
        { "offset": { "line": 0, "column": 0 }, "map": nothing },
        { "offset": { "line": 1, "column": 14 }, "map": map },
    ] });
    let sections = sections.to_string();

    let platform = Platform::start(&[]).await;
    let scene = Scene::open_on(platform, &stage, &[page, ("game.js", "0")]).await;
    let wanted = source_of("throws later");
    deployed_anew(&scene, &stage, &[page, ("game.js", &inline)], &wanted).await;
    let files = [page, ("game.js", &joined), ("game.js.map", &sections)];
    deployed_anew(&scene, &stage, &files, &wanted).await;
}

async fn a_map_that_is_none_leaves_the_place_in_the_bundle(stage: Stage) {
    // Firefox reports a read that ends with its page.
    for part in ["throws later", "404", "CORS request did not succeed"] {
        stage.tolerate_log(part);
    }
    let bundle = Bundle::of("pixi").await;
    let page = ("index.html", bundle.page.as_str());
    let platform = Platform::start(&[]).await;
    let scene = Scene::open_on(platform, &stage, &[page, ("game.js", "0")]).await;
    for map in [
        "<!doctype html>",
        r#"{"version":3,"sections":7}"#,
        r#"{"version":3,"mappings":"!!!!,????;\u0000","sources":null}"#,
    ] {
        let files = [
            page,
            ("game.js", bundle.script.as_str()),
            ("game.js.map", map),
        ];
        deployed_anew(&scene, &stage, &files, "game.js:").await;
    }
    let elsewhere = format!(
        "{}//# sourceMappingURL=https://elsewhere.example/game.js.map\n",
        bundle.bare()
    );
    deployed_anew(&scene, &stage, &[page, ("game.js", &elsewhere)], "game.js:").await;
}
