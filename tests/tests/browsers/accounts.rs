//! From guest to account and back, with the controls that a player uses.

use platform_server::domain::player::PlayerState;
use platform_tests::browser::Stage;
use platform_tests::identity_provider::{ExternalProvider, GoneProvider};
use platform_tests::poll;
use platform_tests::sign_in::Way;
use platform_tests::visitor::claims;
use platform_tests::world::World;
use reqwest::Method;
use serde_json::json;
use thirtyfour::By;

use crate::identity::player;

platform_tests::browser_tests![
    a_guest_signs_in_elsewhere_and_out_and_in_again_and_is_the_same_player,
    a_game_in_a_frame_is_come_back_to;
    in Chromium, because "what is tried is the server's and the pages' own":
    a_guest_signs_in_with_the_demo_and_out_and_in_again_and_is_the_same_player,
    a_sign_in_that_is_cancelled_changes_nothing_and_can_be_tried_again,
    a_provider_that_is_down_is_said_and_the_guest_plays_on,
    every_address_of_a_game_is_come_back_to,
    a_full_network_lets_in_whoever_signs_in,
];

/// An address of the demo with every part that an address can have.
const LEFT: &str = "/?a=1&b=%2F#frag";

/// Asserts that the demo game shows an account, with any name.
async fn shows_an_account(stage: &Stage) {
    stage.control("Sign out").await;
    let session = &stage.browser().session;
    for id in ["guest", "sign-in"] {
        let shown = session.find(By::Id(id)).await.unwrap().is_displayed().await;
        assert!(!shown.unwrap(), "#{id} is for guests");
    }
}

async fn a_guest_signs_in_elsewhere_and_out_and_in_again_and_is_the_same_player(stage: Stage) {
    sign_in_and_out_and_in_again(&stage, Way::Elsewhere).await;
}

async fn a_guest_signs_in_with_the_demo_and_out_and_in_again_and_is_the_same_player(stage: Stage) {
    sign_in_and_out_and_in_again(&stage, Way::BuiltIn).await;
}

async fn sign_in_and_out_and_in_again(stage: &Stage, way: Way) {
    let world = way.world().await;
    let left = world.url("demo", LEFT);
    stage.open(&left).await;
    let guest = player(stage).await;
    assert!(guest.is_anon);
    stage.press("Sign in").await;
    stage.arrives_below(&world.url("auth", "/login?")).await;
    stage.says("Firefly").await;
    way.sign_in(stage, "ada").await;
    stage.arrives_at(&left).await;
    let account = player(stage).await;
    assert_eq!((&account.sub, account.is_anon), (&guest.sub, false));
    let name = match way {
        Way::BuiltIn => "ada",
        Way::Elsewhere => &guest.username,
    };
    assert_eq!(account.username, name);
    shows_an_account(stage).await;

    // A sign-in here counts everywhere.
    for (label, audience) in [("dev-demo", "game:dev-demo"), ("demo", "game:demo")] {
        stage.open(&world.url(label, "/")).await;
        let there = player(stage).await;
        assert_eq!((&there.sub, there.is_anon), (&guest.sub, false));
        assert_eq!(there.aud, audience);
        shows_an_account(stage).await;
    }

    stage.press("Sign out").await;
    stage.says("guest").await;
    let second = player(stage).await;
    assert!(second.is_anon);
    assert_ne!(second.sub, guest.sub);
    let play = "const body = JSON.stringify({ score: 7 });
        const headers = { 'content-type': 'application/json' };
        return (await platform.fetch('/api/score', { method: 'POST', headers, body })).status";
    assert_eq!(stage.run(play).await, json!(200));
    let old = stage.run("return platform.getAccessToken()").await;

    stage.press("Sign in").await;
    stage.arrives_below(&world.url("auth", "/login?")).await;
    way.sign_in_again(stage, "ada").await;
    stage.arrives_at(&world.url("demo", "/")).await;
    let back = player(stage).await;
    assert_eq!((&back.sub, back.is_anon), (&guest.sub, false));
    assert_eq!(claims(old.as_str().unwrap()).sub, second.sub);
    let merged = world.find_player(&second.sub).await;
    assert!(
        matches!(merged.state, PlayerState::Merged { into, .. } if into.to_string() == guest.sub),
        "{merged:?}"
    );
    let kept = world.find_player(&guest.sub).await;
    assert!(matches!(kept.state, PlayerState::Account), "{kept:?}");
}

async fn a_sign_in_that_is_cancelled_changes_nothing_and_can_be_tried_again(stage: Stage) {
    for way in [Way::Elsewhere, Way::BuiltIn] {
        let world = way.world().await;
        let left = world.url("demo", LEFT);
        stage.open(&left).await;
        let guest = player(&stage).await;
        stage.press("Sign in").await;
        way.choose(&stage).await;
        stage.press("Cancel").await;
        stage.arrives_with("problem=cancelled").await;
        assert!(stage.status().await.ends_with('.'), "{way:?}");
        let untouched = world.find_player(&guest.sub).await;
        assert!(
            matches!(untouched.state, PlayerState::Guest),
            "{untouched:?}"
        );
        // The form is shown again, and leads to the same address as the first one would have.
        way.sign_in(&stage, "grace").await;
        stage.arrives_at(&left).await;
        let account = player(&stage).await;
        assert_eq!((account.sub, account.is_anon), (guest.sub, false));
        stage.browser().renew().await;
    }
}

async fn a_provider_that_is_down_is_said_and_the_guest_plays_on(stage: Stage) {
    let gone = GoneProvider::new();
    let world = World::start_with(async |config| {
        let auth = config.origin.as_ref().unwrap().auth_url();
        let elsewhere = ExternalProvider::shared().await.register(&auth).await;
        config.identity_providers = vec![gone.settings.clone(), elsewhere];
    })
    .await;
    let left = world.url("demo", LEFT);
    stage.open(&left).await;
    let guest = player(&stage).await;
    stage.press("Sign in").await;
    stage.press("Sign in with Gone").await;
    stage.arrives_with("problem=provider-unavailable").await;
    assert!(stage.status().await.ends_with('.'));
    // The guest continues to play, and the other provider still works.
    stage.open(&left).await;
    assert_eq!(player(&stage).await.sub, guest.sub);
    stage.press("Sign in").await;
    Way::Elsewhere.sign_in(&stage, "lin").await;
    stage.arrives_at(&left).await;
    let account = player(&stage).await;
    assert_eq!((account.sub, account.is_anon), (guest.sub, false));
}

async fn every_address_of_a_game_is_come_back_to(stage: Stage) {
    let way = Way::Elsewhere;
    let world = way.world().await;
    stage.open(&world.url("demo", "/")).await;
    stage.press("Sign in").await;
    way.sign_in(&stage, "noor").await;
    for address in [
        "/?a=1&b=%2F#frag",
        "/?a=%26&redirect=http://evil.example/&plus=a+b&percent=%25#/route?x=1&y=#2",
        "/?name=Zo%C3%AB&%E3%83%9A%E3%83%BC%E3%82%B8=1#%E2%9C%93",
        "/?'\"<>{}|^`~!$()*,;:@[]",
    ] {
        stage.open(&world.url("demo", address)).await;
        // In the browser's spelling, which may differ for some characters.
        let left = stage.run("return location.href").await;
        let left = left.as_str().unwrap();
        let login = stage.run("return platform.loginUrl()").await;
        stage.open(login.as_str().unwrap()).await;
        // A player who is signed in is asked again who they are.
        way.sign_in(&stage, "noor").await;
        stage.arrives_at(left).await;
    }
    // Another page than the current one.
    let login = stage
        .run("return platform.loginUrl('/index.html?level=\u{fc}#\u{2713}')")
        .await;
    stage.open(login.as_str().unwrap()).await;
    way.sign_in(&stage, "noor").await;
    let wanted = world.url("demo", "/index.html?level=%C3%BC#%E2%9C%93");
    stage.arrives_at(&wanted).await;
}

async fn a_game_in_a_frame_is_come_back_to(stage: Stage) {
    let way = Way::BuiltIn;
    let world = way.world().await;
    let game = world.url("demo", LEFT);
    let around = format!(
        "<!doctype html><title>Around</title><link rel=icon href=data:,><iframe id=game src=\"{}\"></iframe>",
        game.replace('&', "&amp;")
    );
    world
        .deploy("around", vec![("index.html".to_owned(), around.into())])
        .await;
    stage.open(&world.url("around", "/")).await;
    let session = &stage.browser().session;
    let frame = session.find(By::Id("game")).await.unwrap();
    frame.enter_frame().await.unwrap();
    let guest = player(&stage).await;
    let login = stage.run("return platform.loginUrl()").await;
    session.enter_default_frame().await.unwrap();
    stage.open(login.as_str().unwrap()).await;
    way.sign_in(&stage, "kim").await;
    stage.arrives_at(&game).await;
    let account = player(&stage).await;
    assert_eq!((account.sub, account.is_anon), (guest.sub, false));
}

async fn a_full_network_lets_in_whoever_signs_in(stage: Stage) {
    let world = World::start_with(async |config| config.guests_per_address = 1).await;
    let first = world.visitor().mint("demo", None).await.unwrap();
    // It counts once its cookie has come back.
    let back = world.visitor().mint("demo", Some(&first.cookie)).await;
    assert_eq!(back.unwrap().claims.sub, first.claims.sub);
    let left = world.url("demo", LEFT);
    stage.open(&left).await;
    stage.arrives_below(&world.url("auth", "/login?")).await;
    let refused = world.gateway.seen(&Method::POST, "/token");
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].status.unwrap().as_u16(), 429);
    Way::BuiltIn.sign_in(&stage, "sam").await;
    stage.arrives_at(&left).await;
    let account = player(&stage).await;
    assert!(!account.is_anon);
    assert_ne!(account.sub, first.claims.sub);
    poll::until("the game shows the player", async || {
        let name = stage
            .run("return document.getElementById('name').textContent")
            .await;
        (name == account.username.as_str()).then_some(())
    })
    .await;
    // An existing player is not refused.
    let again = world.visitor().mint("demo", Some(&first.cookie)).await;
    assert_eq!(again.unwrap().claims.sub, first.claims.sub);
}
