//! Keyboard focus: a game in a frame gets it on the first press, and nothing else changes.

use axum::body::Bytes;
use platform_tests::browser::{Engine, Stage};
use platform_tests::world::{PageBuilder, World};
use serde_json::json;
use thirtyfour::By;

platform_tests::browser_tests![
    a_press_that_the_game_cancels_gives_the_frame_the_keyboard,
    an_input_in_the_game_keeps_the_keyboard_while_it_is_typed_in,
    taking_the_keyboard_scrolls_neither_page,
    a_game_that_is_not_framed_keeps_its_focus_where_it_is,
];

/// A game that cancels every press, is larger than its frame, and has input fields.
const GAME: &str = r#"<style>body { margin: 0; height: 3000px } #board { height: 100px; background: #468 }</style>
    <script>
        window.keys = [];
        window.presses = [];
        addEventListener('pointerdown', event => presses.push(event.target.id), true);
        for (const type of ['pointerdown', 'mousedown', 'touchstart'])
            addEventListener(type, event => { if (event.target.id === 'board') { event.preventDefault(); event.stopImmediatePropagation(); } }, { capture: false, passive: false });
        addEventListener('keydown', event => { if (event.target === document.body) keys.push(event.key) });
        addEventListener('DOMContentLoaded', () => document.body.innerHTML =
            '<div id="board"></div><input id="name"><textarea id="chat"></textarea><div id="note" contenteditable>note</div><select id="list"><option>a</select>');
    </script>"#;

/// The page around it, scrolled a little.
const AROUND: &str = r#"<!doctype html><title>Around</title><link rel="icon" href="data:,"><body style="height:5000px;margin:0">
    <input id="elsewhere" autofocus><div style="height:150px"></div>
    <iframe id="game" style="width:600px;height:300px" src="{{game}}"></iframe>
    <script>window.outer = []; addEventListener('keydown', event => outer.push(event.key))</script>"#;

async fn open(stage: &Stage) -> World {
    let world = World::start().await;
    let game = world.publish(PageBuilder::new().before(GAME)).await;
    let around = AROUND.replace("{{game}}", &game);
    world
        .deploy(
            "around",
            vec![("index.html".to_owned(), Bytes::from(around))],
        )
        .await;
    stage.open(&world.url("around", "/")).await;
    world
}

/// Clicks on the element `id` of the game.
async fn click(stage: &Stage, id: &str) {
    let session = &stage.browser().session;
    session.enter_default_frame().await.unwrap();
    let frame = session.find(By::Id("game")).await.unwrap();
    frame.enter_frame().await.unwrap();
    let element = session.find(By::Id(id)).await.unwrap();
    let click = session
        .action_chain()
        .move_to_element_center(&element)
        .click();
    click.perform().await.unwrap();
}

async fn type_in(stage: &Stage, keys: &str) {
    let chain = stage.browser().session.action_chain().send_keys(keys);
    chain.perform().await.unwrap();
}

async fn a_press_that_the_game_cancels_gives_the_frame_the_keyboard(stage: Stage) {
    let _world = open(&stage).await;
    click(&stage, "board").await;
    let session = &stage.browser().session;
    session.enter_default_frame().await.unwrap();
    type_in(&stage, "abc").await;
    assert_eq!(stage.look("return outer", vec![]).await, json!([]));
    let frame = session.find(By::Id("game")).await.unwrap();
    frame.enter_frame().await.unwrap();
    assert_eq!(
        stage.look("return keys", vec![]).await,
        json!(["a", "b", "c"])
    );
    session.enter_default_frame().await.unwrap();
    // The page around it can take the focus back.
    let field = session.find(By::Id("elsewhere")).await.unwrap();
    session
        .action_chain()
        .move_to_element_center(&field)
        .click()
        .perform()
        .await
        .unwrap();
    type_in(&stage, "x").await;
    assert_eq!(stage.look("return outer", vec![]).await, json!(["x"]));
}

async fn an_input_in_the_game_keeps_the_keyboard_while_it_is_typed_in(stage: Stage) {
    let _world = open(&stage).await;
    for id in ["name", "chat", "note"] {
        click(&stage, id).await;
        type_in(&stage, "ab").await;
        // A press on the board that the game cancels does not take the focus away.
        click(&stage, "board").await;
        type_in(&stage, "c").await;
        let text = stage
            .look(
                "const at = document.activeElement; return [at.id, at.value ?? at.textContent]",
                vec![],
            )
            .await;
        assert_eq!(text[0], json!(id));
        assert!(text[1].as_str().unwrap().contains("abc"), "{text}");
    }
    assert_eq!(stage.look("return keys", vec![]).await, json!([]));
}

async fn taking_the_keyboard_scrolls_neither_page(stage: Stage) {
    let _world = open(&stage).await;
    let session = &stage.browser().session;
    // WebKit's driver misses elements of frames in a scrolled page.
    let down = if stage.engine() == Engine::WebKit {
        0
    } else {
        120
    };
    let scroll = format!("scrollTo(0, {down}); return [scrollX, scrollY]");
    let before = stage.look(&scroll, vec![]).await;
    assert_eq!(before, json!([0, down]));
    let frame = session.find(By::Id("game")).await.unwrap();
    frame.enter_frame().await.unwrap();
    stage.look("scrollTo(0, 40)", vec![]).await;
    session.enter_default_frame().await.unwrap();
    let frame = session.find(By::Id("game")).await.unwrap();
    // The part of the board that is visible at the top.
    let press = session
        .action_chain()
        .move_to_element_with_offset(&frame, 0, -120)
        .click();
    press.perform().await.unwrap();
    frame.clone().enter_frame().await.unwrap();
    assert_eq!(stage.look("return presses", vec![]).await, json!(["board"]));
    session.enter_default_frame().await.unwrap();
    type_in(&stage, "z").await;
    assert_eq!(
        stage
            .look("return [[scrollX, scrollY], outer]", vec![])
            .await,
        json!([before, []])
    );
    let frame = session.find(By::Id("game")).await.unwrap();
    frame.enter_frame().await.unwrap();
    assert_eq!(
        stage.look("return [scrollY, keys]", vec![]).await,
        json!([40, ["z"]])
    );
}

async fn a_game_that_is_not_framed_keeps_its_focus_where_it_is(stage: Stage) {
    let world = World::start().await;
    let count = "<script>
        window.focused = 0;
        const native = window.focus.bind(window);
        window.focus = () => { focused++; native(); };
    </script>";
    stage
        .open(
            &world
                .publish(PageBuilder::new().before(count).before(GAME))
                .await,
        )
        .await;
    let session = &stage.browser().session;
    let board = session.find(By::Id("board")).await.unwrap();
    session
        .action_chain()
        .move_to_element_center(&board)
        .click()
        .perform()
        .await
        .unwrap();
    type_in(&stage, "k").await;
    assert_eq!(
        stage.look("return [focused, keys]", vec![]).await,
        json!([0, ["k"]])
    );
}
