//! The number of players, as charts, tables and numbers.

use platform_tests::browser::Stage;
use platform_tests::poll;
use serde_json::json;
use thirtyfour::By;

use super::{Scene, comes_to, texts};

platform_tests::browser_tests![
    players_are_there_as_pictures_and_as_tables;
    in Chromium, because "it is the page's own logic":
    one_player_is_told_as_one,
];

async fn players_are_there_as_pictures_and_as_tables(stage: Stage) {
    let scene = Scene::start().await;
    scene.deploy("prod").await;
    scene.play().await;
    scene.open(&stage, "players").await;
    stage.says("40 at most").await;
    stage.says("a standard error of 1.6").await;
    let drawn = "return ['playing', 'days', 'months'].map(id => document.getElementById(id))
        .map(image => image.naturalWidth > 200 && image.naturalHeight === 220 && image.alt.length > 20)";
    comes_to(&stage, drawn, json!([true, true, true])).await;
    let rows = "return document.querySelectorAll('#playing-rows tr').length";
    let number = stage.look(rows, vec![]).await.as_u64().unwrap();
    assert!((24..=25).contains(&number), "{number} rows of an hour");
    let today = texts(&stage, "#day-rows tr:first-child td").await;
    let today: u64 = today[0].as_str().unwrap().parse().unwrap();
    assert!((850..=950).contains(&today), "{today}");

    let picture = "return document.getElementById('playing').src";
    let before = stage.look(picture, vec![]).await;
    stage.click("input[value=hour]").await;
    stage.says("in the last hour").await;
    poll::until("another picture is drawn", async || {
        (stage.look(picture, vec![]).await != before).then_some(())
    })
    .await;
    let number = stage.look(rows, vec![]).await.as_u64().unwrap();
    assert!((12..=13).contains(&number), "{number} rows of five minutes");
    let plot = stage.browser().session.find(By::Id("plot")).await.unwrap();
    plot.scroll_into_view().await.unwrap();
    let chain = stage.browser().session.action_chain();
    let over = chain.move_to_element_center(&plot);
    over.perform().await.unwrap();
    poll::until("the place under the pointer is told", async || {
        let told = texts(&stage, "#readout").await;
        let told = told[0].as_str()?.to_owned();
        (told.contains("at most") && told.contains("on average")).then_some(())
    })
    .await;
    for range in ["week", "quarter"] {
        stage.click(&format!("input[value={range}]")).await;
        let days = if range == "week" { "7 days" } else { "90 days" };
        stage.says(&format!("on average in the last {days}")).await;
    }
}

async fn one_player_is_told_as_one(stage: Stage) {
    let scene = Scene::start().await;
    scene.deploy("prod").await;
    scene.play_alone().await;
    scene.open(&stage, "players").await;
    stage
        .says("1 at most and under 0.01 on average in the last 24 hours.")
        .await;
    comes_to(
        &stage,
        "return [...document.querySelectorAll('.numbers li')].map(number => number.textContent)",
        json!(["0 playing now", "1 player today", "1 player this month"]),
    )
    .await;
    scene.turn_to(&stage, "logs").await;
    stage.says("of 200 MiB; the oldest go first.").await;
}
