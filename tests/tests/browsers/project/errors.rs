//! Groups of errors: the list, the page of one, and what a developer decides.

use platform_protocol::log::{LogLevel, LogSource};
use platform_server::domain::counting::MINUTE;
use platform_server::domain::log::LogEntry;
use platform_tests::browser::Stage;
use platform_tests::poll;
use serde_json::json;

use super::{Scene, comes_to, entry, is_open};
use crate::build::choose;

platform_tests::browser_tests![
    in Chromium, because "it is the page's own logic":
    a_group_of_errors_is_found_read_and_resolved,
];

/// An error in a script of the game, which has no map.
pub(super) fn crash(message: &str, game: &str, line: u32) -> LogEntry {
    let mut crash = entry(&format!("Uncaught TypeError: {message}"), LogLevel::Error);
    crash.source = LogSource::Error;
    let place = format!("{game}/index.html:{line}:1");
    crash.stack = Some(format!("TypeError: {message}\n    at lose ({place})"));
    crash
}

/// Waits until every error that was logged is in a group.
pub(super) async fn are_grouped(scene: &Scene) {
    poll::until("they are grouped", async || {
        let waiting = scene.platform.store().list_ungrouped(1).await.unwrap();
        waiting.is_empty().then_some(())
    })
    .await;
}

async fn a_group_of_errors_is_found_read_and_resolved(stage: Stage) {
    let scene = Scene::start().await;
    let deployment = scene.deploy("prod").await;
    let game = scene.environment("prod").await["url"]
        .as_str()
        .unwrap()
        .to_owned();
    let hostile = "<img src=x onerror=alert(1)> \u{202e}";
    scene
        .log(
            deployment,
            MINUTE,
            vec![
                crash("the ship is gone", &game, 1),
                crash("the ship is lost", &game, 1),
                entry(hostile, LogLevel::Error),
            ],
        )
        .await;
    are_grouped(&scene).await;
    scene.open(&stage, "errors").await;
    let titles =
        "return [...document.querySelectorAll('#groups .fault')].map(one => one.textContent)";
    stage.says("TypeError the ship is lost").await;
    stage.says("<img src=x onerror=alert(1)> ‹U+202E›").await;
    stage.fill("Text", "SHIP").await;
    comes_to(&stage, titles, json!(["TypeError the ship is lost"])).await;
    stage.click("#groups a").await;
    is_open(&stage).await;
    stage.says("index.html:1:1").await;
    let numbers = "return [...document.querySelectorAll('#group-numbers dd')].slice(0, 2).map(one => one.textContent)";
    comes_to(&stage, numbers, json!(["2", "1"])).await;
    let records = "return document.querySelectorAll('#group-records .entry').length";
    comes_to(&stage, records, json!(2)).await;
    let line = "return document.querySelector('#group-excerpt .at-fault') !== null";
    comes_to(&stage, line, json!(true)).await;
    stage.press("Resolve").await;
    stage.says("Resolved").await;
    stage.says("it is open again within seconds").await;
    let deployment = scene.deploy("prod").await;
    scene
        .log(deployment, 0, vec![crash("the ship is lost", &game, 1)])
        .await;
    are_grouped(&scene).await;
    // Somebody comes back from the tab with the game.
    let back = "document.dispatchEvent(new Event('visibilitychange'))";
    stage.look(back, vec![]).await;
    stage.says("Came back").await;
    stage.press("Resolve").await;
    stage.says("Resolved").await;
    let buttons = "return ['resolved', 'ignored', 'open'].map(state => document.getElementById(`group-${state}`).hidden)";
    comes_to(&stage, buttons, json!([true, false, false])).await;
    stage.tolerate_log("404");
    stage.click("#env-dev").await;
    stage.says("This environment has no such error").await;
    stage.click("#env-prod").await;
    stage.says("the ship is lost").await;

    scene.turn_to(&stage, "errors").await;
    let open = json!(["<img src=x onerror=alert(1)> ‹U+202E›"]);
    comes_to(&stage, titles, open).await;
    choose(&stage, "group-state", "resolved").await;
    comes_to(&stage, titles, json!(["TypeError the ship is lost"])).await;
    stage.click("#groups a").await;
    is_open(&stage).await;
    stage.press("Delete…").await;
    stage.click("#error-removal-yes").await;
    stage.says("This environment has no such error").await;

    scene.turn_to(&stage, "errors").await;
    comes_to(
        &stage,
        titles,
        json!(["<img src=x onerror=alert(1)> ‹U+202E›"]),
    )
    .await;
    stage.press("Delete all of these…").await;
    stage.click("#error-removal-yes").await;
    stage.says("No open errors").await;
}
