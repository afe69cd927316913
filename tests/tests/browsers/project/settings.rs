//! The settings of an environment, and the tokens and variables that it provides.

use std::sync::Arc;

use platform_server::origin::PlatformOrigin;
use platform_tests::browser::Stage;
use platform_tests::gateway::{Fault, Gate, Gateway};
use platform_tests::platform::Platform;
use platform_tests::poll;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Scene, comes_to, texts};
use crate::build::choose;

platform_tests::browser_tests![
    in Chromium, because "it is the page's own logic":
    a_backend_is_refused_without_loss_then_saved_and_taken_away,
    who_may_show_the_game_in_a_frame_is_set_on_the_page,
    an_environment_that_does_not_come_is_not_taken_for_the_other_one,
    a_test_token_is_shown_and_hidden_again,
];

async fn a_backend_is_refused_without_loss_then_saved_and_taken_away(stage: Stage) {
    let scene = Scene::start().await;
    scene.deploy("dev").await;
    scene.open(&stage, "settings").await;
    // Nothing is in production, so dev is shown.
    comes_to(
        &stage,
        "return document.getElementById('env-dev').checked",
        json!(true),
    )
    .await;
    stage.tolerate_log("400");
    stage.press("Save").await;
    stage.says("A backend has an address").await;
    // An error appears at its field, with a correction.
    stage.fill("Address", "127.0.0.1:3000").await;
    stage.press("Save").await;
    stage.says("write http://127.0.0.1:3000.").await;
    let said = "return ['backend-url-error', 'backend-paths-error', 'backend-error']
        .map(id => document.getElementById(id).textContent !== '')";
    assert_eq!(stage.look(said, vec![]).await, json!([true, false, false]));
    stage.press("Use http://127.0.0.1:3000").await;
    stage.says("It does not respond yet").await;
    let set = scene.environment("dev").await;
    assert_eq!(set["backend"]["url"], "http://127.0.0.1:3000");
    let paths = "/api/\n/socket";
    stage.fill("Address", "http://127.0.0.1:3000/path").await;
    stage.fill("Paths, one a line", paths).await;
    stage.press("Save").await;
    stage.says("without a path").await;
    let typed =
        "return ['backend-url', 'backend-paths'].map(id => document.getElementById(id).value)";
    let kept = json!(["http://127.0.0.1:3000/path", paths]);
    assert_eq!(stage.look(typed, vec![]).await, kept);
    stage.fill("Address", "http://127.0.0.1:3000").await;
    stage.fill("Paths, one a line", "api").await;
    stage.press("Save").await;
    stage.says("A backend's path begins with a slash").await;
    assert_eq!(
        stage.look(typed, vec![]).await,
        json!(["http://127.0.0.1:3000", "api"])
    );
    stage.fill("Paths, one a line", paths).await;
    stage.press("Save").await;
    stage.says("The backend is saved.").await;
    stage
        .says("Requests under /api/ and /socket go to http://127.0.0.1:3000.")
        .await;
    let set = scene.environment("dev").await;
    assert_eq!(set["backend"]["paths"], json!(["/api/", "/socket"]));
    assert_eq!(scene.environment("prod").await["backend"], Value::Null);

    stage.click("#isolation").await;
    stage.says("The pages are isolated now.").await;
    assert_eq!(
        scene.environment("dev").await["cross_origin_isolated"],
        true
    );
    stage.click("#tracing").await;
    stage.says("Calls carry a trace from now on.").await;
    assert_eq!(scene.environment("dev").await["trace_requests"], true);
    stage.press("Take away").await;
    stage.says("The backend is taken away.").await;
    assert_eq!(scene.environment("dev").await["backend"], Value::Null);
    assert_eq!(
        stage.look(typed, vec![]).await,
        json!(["http://127.0.0.1:3000", paths])
    );
    stage.click("#env-prod").await;
    comes_to(&stage, typed, json!(["", "/api/"])).await;
    let switches = "return ['isolation', 'tracing'].map(id => document.getElementById(id).checked)";
    comes_to(&stage, switches, json!([false, false])).await;
    let audience = texts(&stage, "#variables code").await;
    assert!(
        audience.to_string().contains("AUTH_AUDIENCE=game:game\""),
        "{audience}"
    );
}

async fn who_may_show_the_game_in_a_frame_is_set_on_the_page(stage: Stage) {
    let scene = Scene::start().await;
    scene.deploy("dev").await;
    scene.open(&stage, "settings").await;
    let state = "return document.getElementById('frames-state').textContent";
    let every = json!("Every site may show the game in a frame.");
    comes_to(&stage, state, every).await;
    let choose_who = async |who: &str| {
        let chosen = "const select = document.getElementById('frames-who');
            select.value = arguments[0]; select.dispatchEvent(new Event('change'));";
        stage.look(chosen, vec![json!(who)]).await;
    };
    let ancestors = async || scene.environment("dev").await["frame_ancestors"].clone();
    choose_who("origins").await;
    stage.press("Save who may").await;
    stage.says("Name at least one site").await;
    stage.tolerate_log("400");
    stage.fill("Sites, one a line", "portal.example").await;
    stage.press("Save who may").await;
    stage.says("write https://portal.example.").await;
    assert_eq!(ancestors().await, json!("any"));
    stage
        .fill(
            "Sites, one a line",
            "https://Portal.example/\nhttps://b.example",
        )
        .await;
    stage.press("Save who may").await;
    stage.says("Saved: this is who may show").await;
    let two = json!(["https://portal.example", "https://b.example"]);
    assert_eq!(ancestors().await, two);
    // The page shows them in the platform's form.
    let typed = "return document.getElementById('frames-origins').value";
    let kept = json!("https://portal.example\nhttps://b.example");
    assert_eq!(stage.look(typed, vec![]).await, kept);
    choose_who("platform").await;
    stage.press("Save who may").await;
    let none = json!("No other site may show the game in a frame.");
    comes_to(&stage, state, none).await;
    assert_eq!(ancestors().await, json!("platform"));
    stage.click("#env-prod").await;
    let every = json!("Every site may show the game in a frame.");
    comes_to(&stage, state, every).await;
}

async fn an_environment_that_does_not_come_is_not_taken_for_the_other_one(stage: Stage) {
    let gateway = Gateway::listen().await;
    let origin = PlatformOrigin::local(gateway.port());
    let platform = Platform::start_with(&[], |config| config.origin = Some(origin)).await;
    gateway.lead_to(platform.site.address);
    let scene = Scene::start_on(platform).await;
    scene.deploy("prod").await;
    scene.open(&stage, "settings").await;
    stage.click("#env-dev").await;
    let of_dev = format!("{}?env=dev", scene.tab("settings"));
    stage.arrives_at(&of_dev).await;

    stage.tolerate_log("503");
    let production = "/api/projects/game/environments/prod";
    let refusal = Fault::Answer {
        status: 503,
        headers: vec![("content-type", "application/problem+json".to_owned())],
        body: br#"{"type":"/problems/unavailable","detail":"Come back later."}"#.to_vec(),
    };
    gateway.spoil(Method::GET, production, refusal, 1);
    stage.click("#env-prod").await;
    stage.says("Come back later.").await;
    let shown = "return document.querySelector('input[name=env]:checked').value";
    assert_eq!(stage.look(shown, vec![]).await, "dev");
    stage.arrives_at(&of_dev).await;
    stage.fill("Address", "http://127.0.0.1:3000").await;
    stage.press("Save").await;
    stage.says("The backend is saved.").await;
    let set = scene.environment("dev").await;
    assert_eq!(set["backend"]["url"], "http://127.0.0.1:3000");
    assert_eq!(scene.environment("prod").await["backend"], Value::Null);

    // Until the response arrives, no setting of either environment can be changed.
    let gate = Gate::closed();
    gateway.spoil(Method::GET, production, Fault::Hold(Arc::clone(&gate)), 1);
    stage.click("#env-prod").await;
    gate.reached_by(1).await;
    let state = "return [document.getElementById('backend').closest('section').inert,
        document.getElementById('backend-url').value]";
    let held = stage.look(state, vec![]).await;
    assert_eq!(held, json!([true, "http://127.0.0.1:3000"]));
    gate.open();
    comes_to(&stage, state, json!([false, ""])).await;
    assert_eq!(stage.look(shown, vec![]).await, "prod");
    stage
        .arrives_at(&format!("{}?env=prod", scene.tab("settings")))
        .await;
}

async fn a_test_token_is_shown_and_hidden_again(stage: Stage) {
    let scene = Scene::start().await;
    scene.deploy("dev").await;
    scene.open(&stage, "settings").await;
    choose(&stage, "token-player", "guest-7").await;
    stage.press("Get a token").await;
    stage.says("A token of test-guest-7, good until").await;
    let claims = "return JSON.parse(atob(document.getElementById('token-text').textContent
        .split('.')[1].replace(/-/g, '+').replace(/_/g, '/')))";
    let claims = stage.look(claims, vec![]).await;
    assert_eq!(claims["aud"], "game:dev-game");
    assert_eq!(claims["username"], "test-guest-7");
    stage.click("#token-copy").await;
    poll::until("the button says what it did", async || {
        let label = texts(&stage, "#token-copy").await;
        let label = label[0].as_str()?.to_owned();
        (label.starts_with("Copied") || label.starts_with("Selected")).then_some(())
    })
    .await;
    let told = texts(&stage, "#news").await;
    assert!(!told.to_string().contains("eyJ"), "{told}");
    stage.click("#token-forget").await;
    let left = "return [document.documentElement.outerHTML, ...Object.values(localStorage), ...Object.values(sessionStorage)].some(text => text.includes('eyJ'))";
    comes_to(&stage, left, json!(false)).await;
}
