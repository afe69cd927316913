//! Games with third-party engines, in a frame of another site's page: they get the keyboard focus
//! on the first click, and their logs arrive.

use axum::body::Bytes;
use platform_protocol::log::{LogLevel, LogSource};
use platform_tests::browser::{Engine, Stage};
use platform_tests::npm;
use platform_tests::poll;
use platform_tests::world::World;
use serde_json::json;
use thirtyfour::By;

platform_tests::browser_tests![
    phaser_in_a_frame_gets_the_keyboard_on_the_first_click_and_its_log_arrives,
    pixi_in_a_frame_gets_the_keyboard_on_the_first_click_and_its_log_arrives,
    excalibur_in_a_frame_gets_the_keyboard_on_the_first_click_and_its_log_arrives,
    without_the_runtime_a_click_leaves_the_keyboard_outside,
];

/// The page around the games, which has another origin.
const FRAME: &str = include_str!("../../engines/frame.html");

/// The tag as it is written in each game's page.
const TAG: &str = r#"<script defer src="/__platform/runtime.js"></script>"#;

/// Publishes the game with `engine`, with `tag` instead of the runtime's tag, and opens the page
/// around it. The session is in the frame then.
async fn open(stage: &Stage, engine: &str, tag: &str) -> World {
    let world = World::start().await;
    let game = npm::games().await.join(engine);
    let page = std::fs::read_to_string(game.join("index.html")).unwrap();
    assert!(page.contains(TAG));
    let files = vec![
        ("index.html".to_owned(), Bytes::from(page.replace(TAG, tag))),
        (
            "game.js".to_owned(),
            Bytes::from(std::fs::read(game.join("game.js")).unwrap()),
        ),
    ];
    world.deploy(engine, files).await;
    let around = FRAME.replace("{{game}}", &world.url(engine, "/"));
    world
        .deploy(
            "around",
            vec![("index.html".to_owned(), Bytes::from(around))],
        )
        .await;
    stage.open(&world.url("around", "/")).await;
    enter(stage).await;
    poll::until("the game runs", async || {
        let frames = stage
            .look("return globalThis.game?.work.length ?? 0", vec![])
            .await;
        (frames.as_u64()? > 5).then_some(())
    })
    .await;
    world
}

/// Switches the session to the frame.
async fn enter(stage: &Stage) {
    let session = &stage.browser().session;
    session.enter_default_frame().await.unwrap();
    let frame = session.find(By::Id("game")).await.unwrap();
    frame.enter_frame().await.unwrap();
}

/// Clicks on the centre of the game and then types `keys`, with the browser's own mouse and
/// keyboard, from the page around it.
async fn click_and_type(stage: &Stage, keys: &str) {
    let session = &stage.browser().session;
    session.enter_default_frame().await.unwrap();
    let frame = session.find(By::Id("game")).await.unwrap();
    let click = session
        .action_chain()
        .move_to_element_center(&frame)
        .click();
    click.perform().await.unwrap();
    session
        .action_chain()
        .send_keys(keys)
        .perform()
        .await
        .unwrap();
}

async fn play(stage: Stage, engine: &str) {
    // One engine also warns about features that headless browsers lack, and about its frame.
    for part in ["rejects a promise", "throws in its update loop", "[Warn]"] {
        stage.tolerate_log(part);
    }
    let world = open(&stage, engine, TAG).await;
    let session = &stage.browser().session;
    session.enter_default_frame().await.unwrap();
    let outside = stage.look("return document.activeElement.id", vec![]).await;
    assert_eq!(
        outside,
        json!("elsewhere"),
        "the page around has the keyboard"
    );
    let scrolled = stage.look("return [scrollX, scrollY]", vec![]).await;

    click_and_type(&stage, "wlr").await;
    assert_eq!(stage.look("return outer.keys", vec![]).await, json!([]));
    assert_eq!(
        stage.look("return [scrollX, scrollY]", vec![]).await,
        scrolled
    );
    enter(&stage).await;
    let keys = poll::until("the keys", async || {
        let keys = stage.look("return game.keys", vec![]).await;
        (keys.as_array()?.len() >= 3).then_some(keys)
    })
    .await;
    assert_eq!(keys, json!(["w", "l", "r"]));

    // The error comes last, since it may stop an engine.
    session
        .action_chain()
        .send_keys("e")
        .perform()
        .await
        .unwrap();
    poll::until("the error", async || {
        let said = stage.log();
        said.iter()
            .any(|entry| entry.text.contains("throws in its update loop"))
            .then_some(())
    })
    .await;
    // The page around the game is closed, and so is the game.
    session.enter_default_frame().await.unwrap();
    stage.open("about:blank").await;

    let hello = world.record(&format!("{engine} says hello")).await;
    assert_eq!(
        (hello.source, hello.level),
        (LogSource::Console, LogLevel::Info)
    );
    let line = world.record(&format!("{engine} logs a line")).await;
    assert_eq!(
        (line.source, line.level),
        (LogSource::Console, LogLevel::Info)
    );
    let rejection = world.record(&format!("{engine} rejects a promise")).await;
    assert_eq!(rejection.source, LogSource::UnhandledRejection);
    assert!(rejection.stack.unwrap().contains("game.js"));
    let error = world
        .record(&format!("{engine} throws in its update loop"))
        .await;
    // This engine catches errors of its update loop, and logs them.
    let source = if engine == "excalibur" {
        LogSource::Console
    } else {
        LogSource::Error
    };
    assert_eq!((error.source, error.level), (source, LogLevel::Error));
}

async fn phaser_in_a_frame_gets_the_keyboard_on_the_first_click_and_its_log_arrives(stage: Stage) {
    play(stage, "phaser").await;
}

async fn pixi_in_a_frame_gets_the_keyboard_on_the_first_click_and_its_log_arrives(stage: Stage) {
    play(stage, "pixi").await;
}

async fn excalibur_in_a_frame_gets_the_keyboard_on_the_first_click_and_its_log_arrives(
    stage: Stage,
) {
    play(stage, "excalibur").await;
}

/// What the runtime fixes; without this, these tests would prove nothing. WebKit gives the frame
/// the keyboard focus on its own.
async fn without_the_runtime_a_click_leaves_the_keyboard_outside(stage: Stage) {
    let mends_itself = stage.engine() == Engine::WebKit;
    let (outside, inside) = if mends_itself {
        (json!([]), json!(["w"]))
    } else {
        (json!(["w"]), json!([]))
    };
    for engine in ["phaser", "pixi"] {
        let _world = open(&stage, engine, "").await;
        click_and_type(&stage, "w").await;
        poll::until("the key", async || {
            let session = &stage.browser().session;
            session.enter_default_frame().await.unwrap();
            let seen_outside = stage.look("return outer.keys", vec![]).await;
            enter(&stage).await;
            let seen_inside = stage.look("return game.keys", vec![]).await;
            (seen_outside == outside && seen_inside == inside).then_some(())
        })
        .await;
        let session = &stage.browser().session;
        session.enter_default_frame().await.unwrap();
    }
}
