//! The console with the keyboard only, from signing in to rolling back a deploy and searching the
//! log: a person without a mouse can do all of it, and the focus is always visible.

use platform_tests::browser::Stage;
use platform_tests::owner::Owner;
use platform_tests::platform::Platform;
use platform_tests::poll;
use platform_tests::sign_in::Way;
use platform_tests::world::PageBuilder;
use serde_json::json;
use thirtyfour::Key;
use thirtyfour::prelude::TypingData;

use crate::build::{Scene, logged};
use crate::build_stream::record;

platform_tests::browser_tests![a_developer_without_a_mouse_gets_everywhere];

/// The maximum number of Tab presses from one end of a page to the other.
const STOPS: usize = 80;

async fn keys(stage: &Stage, keys: impl Into<TypingData>) {
    let chain = stage.browser().session.action_chain();
    chain.send_keys(keys).perform().await.unwrap();
}

/// Returns to the previous stop.
async fn back(stage: &Stage) {
    let chain = stage.browser().session.action_chain();
    let back = chain.key_down(Key::Shift).send_keys(Key::Tab);
    back.key_up(Key::Shift).perform().await.unwrap();
}

/// Presses Tab until the focused element has a name that begins with the words `name`. The focus
/// must be visible at each stop before it. What follows the last stop differs: some browsers start
/// again, others move to their own controls and stay there.
async fn reach(stage: &Stage, name: &str) {
    let mut passed = Vec::new();
    let is_it = |stop: &str| stop == name || stop.starts_with(&format!("{name} "));
    if stage.focused().await.is_some_and(|(stop, _)| is_it(&stop)) {
        return;
    }
    for _ in 0..STOPS {
        keys(stage, Key::Tab).await;
        // A frame has no name here.
        let Some((stop, is_seen)) = stage.focused().await.filter(|(stop, _)| !stop.is_empty())
        else {
            continue;
        };
        assert!(is_seen, "one does not see that {stop:?} has the keyboard");
        if is_it(&stop) {
            return;
        }
        passed.push(stop);
    }
    panic!("{name:?} is not reached by Tab, but these are: {passed:?}");
}

/// Moves to the element with this name, and presses it.
async fn enter(stage: &Stage, name: &str) {
    stage.control(name).await;
    reach(stage, name).await;
    keys(stage, Key::Enter).await;
}

/// Moves to the field with this label, and types into it.
async fn write(stage: &Stage, label: &str, text: &str) {
    stage.field(label).await;
    reach(stage, label).await;
    keys(stage, text).await;
}

/// Deploys two versions of the game, and waits until the page can roll back to the first.
async fn deploy_twice(stage: &Stage, scene: &Scene) {
    for name in ["one", "two"] {
        scene.platform.clock.advance(1_000);
        let page = PageBuilder::new()
            .after(&format!("<meta name={name}>"))
            .html();
        scene
            .owner
            .deploy("game", "dev", &[("index.html", &page)])
            .await;
    }
    let earlier = "return document.querySelector('#deployments button') !== null";
    poll::until("there is something to roll back to", async || {
        (stage.look(earlier, vec![]).await == true).then_some(())
    })
    .await;
}

async fn a_developer_without_a_mouse_gets_everywhere(stage: Stage) {
    let platform = Platform::start(&[]).await;
    let origin = platform.site.origin.clone();
    stage.open(&format!("{origin}/build")).await;
    enter(&stage, "Sign in").await;
    enter(&stage, "Sign in with Demo").await;
    Way::BuiltIn.go_on(&stage).await;
    write(&stage, "Name", "Ada").await;
    keys(&stage, Key::Enter).await;
    stage.arrives_at(&format!("{origin}/build")).await;
    write(&stage, "Slug", "game").await;
    keys(&stage, Key::Enter).await;
    stage
        .arrives_at(&format!("{origin}/projects/game?env=dev"))
        .await;
    enter(&stage, "Build page").await;
    stage.arrives_at(&format!("{origin}/build/game")).await;
    stage.says("Live").await;

    let owner = Owner::sign_in(&platform.site, "Ada").await;
    let scene = Scene { platform, owner };
    deploy_twice(&stage, &scene).await;
    let records = [record("info", "a word"), record("error", "a mishap")];
    scene.log(&records, None).await;
    logged(&stage, "a mishap").await;
    // Past the frame, which takes the keyboard focus and gives it back.
    enter(&stage, "Show errors only").await;
    let shown =
        "return [...document.querySelectorAll('.entry')].filter(entry => !entry.hidden).length";
    poll::until("the error alone is shown", async || {
        (stage.look(shown, vec![]).await == json!(1)).then_some(())
    })
    .await;

    reach(&stage, "Details").await;
    keys(&stage, Key::Enter).await;
    reach(&stage, "Roll back to the deployment of").await;
    keys(&stage, Key::Enter).await;
    stage.says("Roll back?").await;
    assert_eq!(stage.focused().await, Some(("Cancel".to_owned(), true)));
    keys(&stage, Key::Escape).await;
    poll::until("the question is closed", async || {
        let (name, _) = stage.focused().await?;
        name.starts_with("Roll back to the deployment of")
            .then_some(())
    })
    .await;
    keys(&stage, Key::Enter).await;
    stage.says("Roll back?").await;
    // The button appears after the reading time of the question.
    stage.control("Roll back").await;
    back(&stage).await;
    assert_eq!(stage.focused().await, Some(("Roll back".to_owned(), true)));
    keys(&stage, Key::Enter).await;
    stage.says("is shown now.").await;

    manages_a_project(&stage, &format!("{origin}/projects/game")).await;
}

/// The tabs of the project page.
async fn manages_a_project(stage: &Stage, page: &str) {
    stage.open(page).await;
    stage.says("Players this month").await;
    enter(stage, "Players").await;
    stage.arrives_at(&format!("{page}/players")).await;
    // One arrow key chooses another period, which the address keeps.
    reach(stage, "24 hours").await;
    keys(stage, Key::Right).await;
    stage
        .arrives_at(&format!("{page}/players?period=week"))
        .await;
    // The tabs are above. What follows the last stop differs.
    stage.reload().await;
    enter(stage, "Logs").await;
    stage.arrives_at(&format!("{page}/logs?period=week")).await;
    write(stage, "Text", "mishap").await;
    keys(stage, Key::Enter).await;
    stage.says("a mishap").await;
    stage.reload().await;
    enter(stage, "Settings").await;
    stage
        .arrives_at(&format!("{page}/settings?period=week"))
        .await;
    enter(stage, "Get a token").await;
    stage.says("A token of test-user-1").await;
}
