//! A suspension reaches the players of open pages, and can be lifted.

use platform_tests::browser::Stage;
use platform_tests::poll;
use platform_tests::sign_in::Way;
use platform_tests::world::PageBuilder;
use serde_json::json;
use thirtyfour::By;

use crate::identity::player;

platform_tests::browser_tests![
    a_player_who_is_suspended_while_playing_is_told_so_within_a_minute;
    in Chromium, because "what is told is the server's and the demo's own":
    the_demo_tells_a_suspended_player_why_and_plays_again_when_it_is_lifted,
];

/// The operator's reason.
const REASON: &str = "You sold other players' lights. Write to help@platform.localhost.";

/// Returns the result of a call.
const CALL: &str = "
    try { return (await platform.fetch('/api/any')).status } catch (error) {
        return [error.is('account-suspended'), error.status, error.message] }";

async fn a_player_who_is_suspended_while_playing_is_told_so_within_a_minute(stage: Stage) {
    let way = Way::BuiltIn;
    let world = way.world().await;
    let game = world.publish(PageBuilder::new().clock()).await;
    stage.open(&world.url("demo", "/")).await;
    stage.press("Sign in").await;
    way.sign_in(&stage, "mallory").await;
    stage.arrives_at(&world.url("demo", "/")).await;
    stage.open(&game).await;
    let account = player(&stage).await;
    stage.run("await pass(6)").await;
    world.beats_reach(1).await;
    assert_eq!(stage.run(CALL).await, json!(200));

    world.suspend(&account.sub, REASON).await;
    // The page's own token is valid for a quarter of an hour; the next heartbeat, within half a
    // minute, tells the page.
    stage.run("await pass(31)").await;
    let told = json!([true, 403, REASON]);
    poll::until("the page knows", async || {
        (stage.run(CALL).await == told).then_some(())
    })
    .await;
    let calls = world.backend.calls("/api/any").len();
    let asked = world.gateway.token_requests();
    for _ in 0..3 {
        assert_eq!(stage.run(CALL).await, told);
    }
    assert_eq!(
        world.gateway.token_requests(),
        asked + 3,
        "a call asks once, and nothing asks by itself"
    );
    assert_eq!(world.backend.calls("/api/any").len(), calls);
    // A page that is left alone sends no more requests than it would have sent heartbeats.
    stage.run("await pass(120)").await;
    stage.run("await (await fetch('/?later')).text()").await;
    let alone = world.gateway.token_requests() - asked - 3;
    assert!(alone <= 4, "{alone} token requests in two minutes");

    world.lift_suspension(&account.sub).await;
    stage.reload().await;
    assert_eq!(stage.run(CALL).await, json!(200));
    let back = player(&stage).await;
    assert_eq!((&back.sub, back.is_anon), (&account.sub, false));
}

async fn the_demo_tells_a_suspended_player_why_and_plays_again_when_it_is_lifted(stage: Stage) {
    let way = Way::BuiltIn;
    let world = way.world().await;
    let game = world.url("demo", "/?a=1#b");
    stage.open(&game).await;
    stage.press("Sign in").await;
    way.sign_in(&stage, "mallory").await;
    stage.arrives_at(&game).await;
    let account = player(&stage).await;
    world.suspend(&account.sub, REASON).await;

    let asked = world.gateway.token_requests();
    stage.reload().await;
    stage.says("You cannot play").await;
    stage.says(REASON).await;
    let session = &stage.browser().session;
    for id in ["play", "sign-in"] {
        let shown = session.find(By::Id(id)).await.unwrap().is_displayed().await;
        assert!(!shown.unwrap(), "#{id} leads nowhere now");
    }
    stage
        .run("dispatchEvent(new Event('online')); await (await fetch('/?later')).text()")
        .await;
    assert_eq!(world.gateway.token_requests(), asked + 1);

    // Signing in again does not get around it, and shows the reason as well.
    stage
        .open(&world.url("auth", &format!("/login?redirect={}", encoded(&game))))
        .await;
    way.sign_in_again(&stage, "mallory").await;
    stage.says(REASON).await;
    stage.arrives_below(&world.url("auth", "/callback/")).await;

    world.lift_suspension(&account.sub).await;
    stage.open(&game).await;
    let back = player(&stage).await;
    assert_eq!((&back.sub, back.is_anon), (&account.sub, false));
    stage.control("Play").await;
}

/// Returns `address` as it is written in a query.
fn encoded(address: &str) -> String {
    address.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
