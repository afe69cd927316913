//! What the demo game does without a token: each case of what games should do then.

use platform_tests::browser::Stage;
use platform_tests::gateway::Fault;
use platform_tests::poll;
use platform_tests::world::World;
use reqwest::Method;
use serde_json::json;
use thirtyfour::By;

platform_tests::browser_tests![
    a_game_without_an_answer_is_played_offline_until_the_connection_is_back;
    in Chromium, because "it is the demo's own logic":
    a_session_that_ended_and_a_full_network_lead_to_the_sign_in_page,
    a_suspended_player_is_told_so_and_neither_retried_nor_sent_to_sign_in,
    a_plain_429_is_asked_again_after_a_moment,
];

/// The page on which the game was opened: the return address must lead there.
const LEFT: &str = "/?a=1&b=%2F#frag";

/// The same as it is written in a query.
const LEFT_IN_A_QUERY: &str = "%2F%3Fa%3D1%26b%3D%252F%23frag";

async fn a_session_that_ended_and_a_full_network_lead_to_the_sign_in_page(stage: Stage) {
    for (status, slug) in [(401, "session-expired"), (429, "guest-limit-reached")] {
        let world = World::start().await;
        world.refuse_tokens_of("demo", status, slug, "A sentence.", 1);
        stage.open(&world.url("demo", LEFT)).await;
        let there = stage.arrives_below(&world.url("auth", "/login?")).await;
        let (_, redirect) = there.split_once("?redirect=").expect("a way back");
        let origin = world
            .url("demo", "")
            .replace(':', "%3A")
            .replace('/', "%2F");
        assert_eq!(redirect, format!("{origin}{LEFT_IN_A_QUERY}"), "{slug}");
        assert_eq!(world.gateway.token_requests(), 1, "{slug}");
    }
}

async fn a_suspended_player_is_told_so_and_neither_retried_nor_sent_to_sign_in(stage: Stage) {
    let world = World::start().await;
    let reason = "You are suspended for cheating in round 7.";
    world.refuse_tokens_of("demo", 403, "account-suspended", reason, 1);
    let game = world.url("demo", LEFT);
    stage.open(&game).await;
    stage.says("You cannot play").await;
    stage.says(reason).await;
    let session = &stage.browser().session;
    for id in ["play", "pause", "board", "sign-in"] {
        let shown = session.find(By::Id(id)).await.unwrap().is_displayed().await;
        assert!(!shown.unwrap(), "#{id} has nothing to offer now");
    }
    // Nothing else makes the game check again now. A request of the page's own arrives after any
    // that it could have caused.
    stage
        .run(
            "dispatchEvent(new Event('online'));
            dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }));
            dispatchEvent(new KeyboardEvent('keydown', { code: 'Enter' }));
            await (await fetch('/?later')).text()",
        )
        .await;
    assert_eq!(world.gateway.token_requests(), 1);
    assert_eq!(session.current_url().await.unwrap().as_str(), game);
}

async fn a_game_without_an_answer_is_played_offline_until_the_connection_is_back(stage: Stage) {
    let world = World::start().await;
    // Firefox reports it with its own message, since it sees no cross-origin response.
    stage.tolerate_log("CORS request did not succeed");
    world
        .gateway
        .spoil(Method::POST, "/token", Fault::Drop, usize::MAX);
    stage.open(&world.url("demo", "/")).await;
    stage.says("Playing offline").await;
    stage.press("Play").await;
    poll::until("the game runs", async || {
        let hidden = stage
            .run("return document.getElementById('card').hidden")
            .await;
        (hidden == json!(true)).then_some(())
    })
    .await;
    world.gateway.heal();
    // The failure is shared for a second; then the next request gets a token.
    poll::until("the game knows its player", async || {
        let known = stage
            .run(
                "dispatchEvent(new Event('online'));
                const name = document.getElementById('name');
                return !name.hidden && name.textContent.length > 2",
            )
            .await;
        (known == json!(true)).then_some(())
    })
    .await;
}

async fn a_plain_429_is_asked_again_after_a_moment(stage: Stage) {
    let world = World::start().await;
    let headers = vec![
        ("content-type", "text/plain".to_owned()),
        ("retry-after", "1".to_owned()),
        ("access-control-allow-origin", world.url("demo", "")),
        ("access-control-allow-credentials", "true".to_owned()),
    ];
    let answer = Fault::Answer {
        status: 429,
        headers,
        body: b"Too many requests\n".to_vec(),
    };
    world.gateway.spoil(Method::POST, "/token", answer, 1);
    stage.open(&world.url("demo", "/")).await;
    poll::until("the game knows its player", async || {
        let name = stage
            .run("return document.getElementById('name').textContent")
            .await;
        (!name.as_str()?.is_empty()).then_some(())
    })
    .await;
    let requests = world.gateway.seen(&Method::POST, "/token");
    let statuses: Vec<u16> = requests
        .iter()
        .filter_map(|request| request.status.map(|status| status.as_u16()))
        .collect();
    assert_eq!(statuses, [429, 200]);
}
