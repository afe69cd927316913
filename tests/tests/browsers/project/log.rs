//! Errors by deployment, and the search for records.

use platform_protocol::log::{LogLevel, LogSource};
use platform_server::domain::counting::{HOUR, MINUTE};
use platform_tests::browser::Stage;
use platform_tests::poll;
use serde_json::json;
use uuid::Uuid;

use super::{PLAYER, Scene, comes_to, entry, texts};
use crate::build::{choose, entries, logged};

platform_tests::browser_tests![
    in Chromium, because "it is the page's own logic":
    errors_are_counted_and_the_log_is_searched_by_the_page,
    a_search_that_runs_backwards_is_refused_in_words,
    a_record_names_its_deployment_and_a_clean_one_is_told_too,
];

async fn errors_are_counted_and_the_log_is_searched_by_the_page(stage: Stage) {
    let scene = Scene::start().await;
    let first = scene.deploy("prod").await;
    let mut broken = entry("the ship is gone", LogLevel::Error);
    broken.count = 41;
    broken.source = LogSource::Error;
    let warning = entry("low on fuel", LogLevel::Warn);
    scene
        .log(first, 30 * HOUR, vec![broken.clone(), warning])
        .await;
    let second = scene.deploy("prod").await;
    broken.count = 2;
    scene.log(second, 2 * HOUR, vec![broken]).await;
    // Records keep their order of arrival.
    for ago in (0..4).rev() {
        let many = (0..30).map(|round| entry(&format!("round {ago}.{round}"), LogLevel::Info));
        scene.log(second, ago * MINUTE, many.collect()).await;
    }
    scene.open(&stage, "errors").await;
    comes_to(
        &stage,
        "return [...document.querySelectorAll('#error-rows tr')].map(row => [...row.cells].slice(1, 3).map(cell => cell.textContent))",
        json!([["2", "0"]]),
    )
    .await;
    stage.click("input[value=week]").await;
    comes_to(
        &stage,
        "return [...document.querySelectorAll('#error-rows tr')].map(row => [...row.cells].slice(1, 3).map(cell => cell.textContent))",
        json!([["2", "0"], ["41", "1"]]),
    )
    .await;

    scene.turn_to(&stage, "logs").await;
    let number = "return document.querySelectorAll('.entry').length";
    comes_to(&stage, number, json!(50)).await;
    logged(&stage, "round 0.29").await;
    stage.press("Older").await;
    logged(&stage, "round 2.19").await;
    stage.press("Older").await;
    logged(&stage, "the ship is gone").await;
    stage.says("page 3").await;
    stage.says("There are no older ones").await;
    stage.press("Newer").await;
    stage.says("page 2").await;

    stage.fill("Text", "SHIP").await;
    stage.press("Search").await;
    comes_to(&stage, number, json!(2)).await;
    choose(&stage, "time", "24").await;
    stage.press("Search").await;
    comes_to(&stage, number, json!(1)).await;
    choose(&stage, "time", "").await;
    stage.fill("Text", "").await;
    choose(&stage, "level", "warn").await;
    choose(&stage, "source", "console").await;
    stage.press("Search").await;
    logged(&stage, "low on fuel").await;
    assert_eq!(entries(&stage).await.as_array().map(Vec::len), Some(1));
    stage.tolerate_log("400");
    stage.fill("Player’s id", "ada").await;
    stage.press("Search").await;
    stage.says("A player's id must be a UUID").await;
    stage.fill("Player’s id", &PLAYER.to_string()).await;
    stage.press("Search").await;
    stage.says("1 record, page 1").await;
    stage
        .fill("Player’s id", &Uuid::from_u128(1).to_string())
        .await;
    stage.press("Search").await;
    stage.says("No record is like this.").await;
}

async fn a_search_that_runs_backwards_is_refused_in_words(stage: Stage) {
    let scene = Scene::start().await;
    let deployment = scene.deploy("prod").await;
    let record = entry("low on fuel", LogLevel::Warn);
    scene.log(deployment, MINUTE, vec![record]).await;
    scene.open(&stage, "logs").await;
    choose(&stage, "time", "between").await;
    let times = "document.getElementById('from').value = '2026-11-21T12:00';
        document.getElementById('to').value = '2026-11-21T11:00'";
    stage.look(times, vec![]).await;
    stage.press("Search").await;
    stage.says("From is not before To").await;
    let wrong = "return [document.activeElement.id, document.getElementById('from').ariaInvalid]";
    assert_eq!(stage.look(wrong, vec![]).await, json!(["from", "true"]));
    // The same input is invalid in the other environment, and nothing of this one stays.
    stage.click("#env-dev").await;
    let left =
        "return ['records', 'search-state'].map(id => document.getElementById(id).textContent)
        .concat(['older', 'newer'].map(id => document.getElementById(id).disabled))";
    comes_to(&stage, left, json!(["", "", true, true])).await;
    stage.says("From is not before To").await;
    stage.click("#env-prod").await;
    choose(&stage, "time", "").await;
    stage.press("Search").await;
    logged(&stage, "low on fuel").await;
    comes_to(
        &stage,
        "return [document.getElementById('search-error').textContent, document.getElementById('from').ariaInvalid]",
        json!(["", null]),
    )
    .await;
}

async fn a_record_names_its_deployment_and_a_clean_one_is_told_too(stage: Stage) {
    let scene = Scene::start().await;
    let first = scene.deploy("prod").await;
    let record = entry("the ship is gone", LogLevel::Error);
    scene.log(first, MINUTE, vec![record]).await;
    scene.deploy("prod").await;
    scene.open(&stage, "logs").await;
    logged(&stage, "the ship is gone").await;
    let open = "document.querySelector('.entry summary').click()";
    stage.look(open, vec![]).await;
    let told = "return [...document.querySelectorAll('.entry dt')].find(term => term.textContent === 'Deployment')
        ?.nextElementSibling.querySelector('time').textContent ?? null";
    poll::until("the record names its deployment", async || {
        stage.look(told, vec![]).await.is_string().then_some(())
    })
    .await;
    let told = stage.look(told, vec![]).await;
    scene.turn_to(&stage, "deployments").await;
    let listed = texts(&stage, "#deployments li:last-child time").await;
    assert_eq!(listed, json!([told]));
    scene.turn_to(&stage, "errors").await;
    comes_to(
        &stage,
        "return [...document.querySelectorAll('#error-rows tr')].map(row => [...row.cells].slice(1, 3).map(cell => cell.textContent))",
        json!([["0", "0"], ["1", "0"]]),
    )
    .await;
    let current = texts(&stage, "#error-rows tr:first-child .now").await;
    assert_eq!(current, json!(["Shown now"]));
}
