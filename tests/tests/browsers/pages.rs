//! Every page of the platform, in every state that a player can bring about: accessible, and
//! without scripts.

use platform_tests::accessibility::Look;
use platform_tests::browser::{Engine, Stage};
use platform_tests::sign_in::Way;
use platform_tests::world::World;
use serde_json::json;

use crate::identity::player;
use crate::profile::{NAME, SAVE, SIGN_OUT_OTHERS};

platform_tests::browser_tests![
    in Chromium, because "axe reads the same elements in every engine":
    no_page_has_a_barrier_or_a_script,
];

/// Everything that could run in a page: scripts, event handler attributes, `javascript:` addresses;
/// and styles other than the stylesheet.
const ACTIVE: &str = "
    const found = [...document.scripts].map(script => script.outerHTML);
    for (const element of document.querySelectorAll('*')) {
        for (const { name, value } of element.attributes) {
            if (/^on/.test(name) || /^\\s*(javascript|data):/i.test(value) || name === 'style') {
                found.push(`${element.localName} ${name}=${value}`);
            }
        }
        if (element.localName === 'style') found.push(element.outerHTML);
    }
    return found";

/// Checks the displayed page in every display mode.
pub(crate) async fn examine(stage: &Stage, what: &str) {
    // The tests' proxy adds its own script to WebKit's pages.
    if stage.engine() != Engine::WebKit {
        let active = stage.look(ACTIVE, vec![]).await;
        assert_eq!(active, json!([]), "{what} works without scripts");
    }
    for look in Look::of(stage.engine()) {
        stage.show_as(*look).await;
        let barriers = stage.barriers().await;
        assert!(
            barriers.is_empty(),
            "{what}, {look:?}:\n{}",
            barriers.join("\n")
        );
    }
    stage.show_plainly().await;
}

async fn no_page_has_a_barrier_or_a_script(stage: Stage) {
    let way = Way::BuiltIn;
    let world = way.world().await;
    let demo = world.url("demo", "/?a=1#b");
    for (label, path) in [
        ("auth", "/problems/session-expired"),
        ("auth", "/problems/account-suspended"),
        ("auth", "/problems/invalid-redirect"),
        ("auth", "/problems/internal"),
        ("auth", "/nothing-here"),
        ("auth", "/login?redirect=http://evil.example/"),
        ("nobody", "/"),
    ] {
        stage.open(&world.url(label, path)).await;
        examine(&stage, path).await;
    }
    for (path, what) in [
        ("/cli", "the command line, without programs"),
        ("/docs", "the documents"),
        ("/docs?q=token", "what was found in the documents"),
        ("/docs/deploying", "a document"),
    ] {
        let address = world.url("demo", path).replace("demo.", "");
        stage.open(&address).await;
        examine(&stage, what).await;
    }
    sign_in_examined(&stage, &world, way, &demo).await;
    rename_examined(&stage, &world, &demo).await;
    let account = player(&stage).await;
    world
        .suspend(&account.sub, "You sold other players' lights.")
        .await;
    let login = stage.run("return platform.loginUrl()").await;
    stage.open(login.as_str().unwrap()).await;
    way.sign_in_again(&stage, "ada").await;
    stage.says("You sold other players' lights.").await;
    examine(&stage, "the refusal of a suspended player").await;
}

/// From guest to account, checking each page on the way.
async fn sign_in_examined(stage: &Stage, world: &World, way: Way, demo: &str) {
    for problem in [
        "cancelled",
        "failed",
        "provider-unavailable",
        "expired",
        "other-browser",
    ] {
        let page = world.url("auth", &format!("/login?problem={problem}"));
        stage.open(&page).await;
        assert!(stage.status().await.ends_with('.'), "{problem}");
        examine(stage, problem).await;
    }
    stage.open(demo).await;
    let guest = player(stage).await;
    stage.press(&guest.username).await;
    stage.says("keep your progress").await;
    examine(stage, "a guest's profile").await;
    stage.press("Back to Firefly").await;
    stage.press("Sign in").await;
    stage.says("Firefly").await;
    examine(stage, "the sign-in page").await;
    way.choose(stage).await;
    stage.field("Name").await;
    examine(stage, "the demo provider's page").await;
    stage.fill("Name", " ").await;
    stage.press("Sign in").await;
    stage.status().await;
    examine(stage, "the demo provider's page with a name that is none").await;
    stage.fill("Name", "ada").await;
    stage.press("Sign in").await;
    stage.arrives_at(demo).await;
    // A browser that has lost its cookies adds another signed-in session.
    stage.browser().renew().await;
    stage.open(demo).await;
    stage.press("Sign in").await;
    way.sign_in(stage, "ada").await;
    stage.arrives_at(demo).await;
    let login = stage.run("return platform.loginUrl()").await;
    stage.open(login.as_str().unwrap()).await;
    stage.says("You are signed in").await;
    examine(stage, "the sign-in page of somebody who is signed in").await;
    stage.open(demo).await;
}

/// The profile of an account, in each of its states.
async fn rename_examined(stage: &Stage, world: &World, demo: &str) {
    let account = player(stage).await;
    stage.press(&account.username).await;
    examine(stage, "an account's profile").await;
    stage.fill(NAME, "no").await;
    stage.press(SAVE).await;
    stage.says("3").await;
    examine(stage, "a name that is too short").await;
    stage.fill(NAME, "ada-of-the-pages").await;
    stage.press(SAVE).await;
    stage.status().await;
    examine(stage, "a name that is saved").await;
    world.pass_reading();
    stage.press(SIGN_OUT_OTHERS).await;
    stage.arrives_with("saved=sign-out-others").await;
    stage.status().await;
    examine(stage, "others signed out").await;
    stage.press("Back to Firefly").await;
    stage.arrives_at(demo).await;
}
