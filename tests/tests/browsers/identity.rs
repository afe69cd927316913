//! The player is the same one everywhere, until they sign out.

use platform_protocol::claims::GameTokenClaims;
use platform_tests::browser::Stage;
use platform_tests::poll;
use platform_tests::sign_in::Way;
use platform_tests::visitor::claims;
use platform_tests::world::{PageBuilder, World};
use serde_json::json;
use thirtyfour::By;

platform_tests::browser_tests![
    the_demo_knows_a_first_visitor_as_a_guest_and_knows_them_again,
    a_page_without_a_backend_knows_who_plays,
    the_demo_game_shows_who_plays_and_can_be_played,
    two_first_requests_at_once_leave_a_cookie_that_works,
    the_other_environment_has_the_same_player_and_another_audience,
    a_token_of_one_environment_is_refused_by_the_other,
    signing_out_clears_the_cookie_and_the_next_load_is_a_new_guest,
    going_back_restores_a_page_that_plays_on,
    a_page_restored_after_signing_out_is_the_new_guest,
    an_expired_session_is_final_until_the_page_is_loaded_again,
    signing_out_in_one_tab_tells_every_tab_of_the_game_at_once,
    a_tab_of_another_game_notices_a_sign_out_when_the_player_comes_back,
];

/// Counts the events about a changed player that a game gets.
const TOLD: &str = "<script>window.told = 0; addEventListener('platform:playerchange', () => { told += 1 })</script>";

/// Waits until the page got the event about a changed player.
async fn is_told(stage: &Stage) {
    poll::until("the game is told", async || {
        (stage.run("return told").await == json!(1)).then_some(())
    })
    .await;
}

/// The claims of the page's token.
pub(crate) async fn player(stage: &Stage) -> GameTokenClaims {
    let token = stage.run("return platform.getAccessToken()").await;
    claims(token.as_str().expect("a token is text"))
}

async fn the_demo_knows_a_first_visitor_as_a_guest_and_knows_them_again(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.url("demo", "/")).await;
    let me = stage
        .run("return (await platform.fetch('/api/me')).json()")
        .await;
    let claims = player(&stage).await;
    assert_eq!(
        me,
        json!({ "sub": claims.sub, "username": claims.username, "is_anon": true })
    );
    assert!(claims.is_anon);
    assert_eq!(claims.aud, "game:demo");
    assert_eq!(claims.iss, world.url("auth", ""));
    stage.reload().await;
    assert_eq!(
        stage
            .run("return (await platform.fetch('/api/me')).json()")
            .await,
        me
    );
}

async fn a_page_without_a_backend_knows_who_plays(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.publish(PageBuilder::new()).await).await;
    let ask = "const player = await platform.player(); return [player, Object.isFrozen(player)]";
    let answer = stage.run(ask).await;
    let claims = player(&stage).await;
    let expected = json!({ "id": claims.sub, "username": claims.username, "isGuest": true });
    assert_eq!(answer, json!([expected, true]));
}

async fn the_demo_game_shows_who_plays_and_can_be_played(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.url("demo", "/")).await;
    let name = player(&stage).await.username;
    let find = "return [document.querySelector('#name').textContent, document.querySelector('#place').textContent]";
    poll::until("the page shows the player and the scores", async || {
        let shown = stage.run(find).await;
        let loaded = shown[1]
            .as_str()
            .is_some_and(|place| !place.starts_with("Loading"));
        (shown[0] == name.as_str() && loaded).then_some(())
    })
    .await;
    let session = &stage.browser().session;
    session
        .find(By::Id("play"))
        .await
        .unwrap()
        .click()
        .await
        .unwrap();
    poll::until("the game runs", async || {
        let card = session.find(By::Id("card")).await.unwrap();
        (!card.is_displayed().await.unwrap()).then_some(())
    })
    .await;
}

async fn two_first_requests_at_once_leave_a_cookie_that_works(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.publish(PageBuilder::new()).await).await;
    let ask = format!(
        "const ask = async () => (await (await fetch('{}', {{ method: 'POST', credentials: 'include' }})).json()).access_token;
        return Promise.all([ask(), ask(), ask()])",
        world.url("auth", "/token")
    );
    let tokens: Vec<String> = serde_json::from_value(stage.run(&ask).await).unwrap();
    let kept = player(&stage).await;
    assert!(
        tokens.iter().any(|token| claims(token).sub == kept.sub),
        "the cookie is of one of them"
    );
    stage.reload().await;
    assert_eq!(player(&stage).await.sub, kept.sub);
}

async fn the_other_environment_has_the_same_player_and_another_audience(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.url("demo", "/")).await;
    let prod = player(&stage).await;
    stage.open(&world.url("dev-demo", "/")).await;
    let dev = player(&stage).await;
    assert_eq!(dev.sub, prod.sub);
    assert_eq!(dev.username, prod.username);
    assert_eq!(
        (prod.aud.as_str(), dev.aud.as_str()),
        ("game:demo", "game:dev-demo")
    );
    assert_ne!(dev.jti, prod.jti);
    let me = stage
        .run("return (await platform.fetch('/api/me')).json()")
        .await;
    assert_eq!(me["sub"], dev.sub);
}

async fn a_token_of_one_environment_is_refused_by_the_other(stage: Stage) {
    let world = World::start().await;
    for (here, there) in [("demo", "dev-demo"), ("dev-demo", "demo")] {
        stage.open(&world.url(here, "/")).await;
        let token = stage.run("return platform.getAccessToken()").await;
        stage.open(&world.url(there, "/")).await;
        let body = format!(
            "const own = await platform.getAccessToken();
            const call = async token => (await fetch('/api/me', {{ headers: {{ Authorization: `Bearer ${{token}}` }} }})).status;
            return [await call({token}), await call(own)]"
        );
        assert_eq!(
            stage.run(&body).await,
            json!([401, 200]),
            "from {here} to {there}"
        );
    }
}

async fn signing_out_clears_the_cookie_and_the_next_load_is_a_new_guest(stage: Stage) {
    let world = World::start().await;
    let page = PageBuilder::new().file("after.html", &PageBuilder::new().html());
    stage.open(&world.publish(page).await).await;
    let first = player(&stage).await;
    stage.run("void platform.signOut('/after.html')").await;
    stage.arrives_at(&world.url("arena", "/after.html")).await;
    // The session's cookie is gone; the other one leads back to the guest.
    assert_eq!(stage.cookies().await, 1);
    let second = player(&stage).await;
    assert_ne!(second.sub, first.sub);
    assert!(second.is_anon);
    // By default it leads to the start page.
    stage.run("void platform.signOut()").await;
    stage.arrives_at(&world.url("arena", "/")).await;
    let third = player(&stage).await;
    assert_ne!(third.sub, second.sub);
    assert_ne!(third.sub, first.sub);
}

/// Loads `page` and leaves it for another page of the same game.
async fn leave(stage: &Stage, world: &World) -> GameTokenClaims {
    let page = PageBuilder::new()
        .before("<script>addEventListener('pageshow', event => { window.persisted = event.persisted })</script>")
        .file("other.html", &PageBuilder::new().html());
    stage.open(&world.publish(page).await).await;
    let player = player(stage).await;
    stage.open(&world.url("arena", "/other.html")).await;
    player
}

async fn going_back_restores_a_page_that_plays_on(stage: Stage) {
    let world = World::start().await;
    let before = leave(&stage, &world).await;
    stage.browser().session.back().await.unwrap();
    stage.arrives_at(&world.url("arena", "/")).await;
    let answer = stage
        .run("return (await platform.fetch('/api/back')).status")
        .await;
    assert_eq!(answer, json!(200));
    assert_eq!(player(&stage).await.sub, before.sub);
    println!(
        "restored from the cache: {}",
        stage.run("return window.persisted").await
    );
    stage.browser().session.forward().await.unwrap();
    stage.arrives_at(&world.url("arena", "/other.html")).await;
    assert_eq!(player(&stage).await.sub, before.sub);
}

async fn a_page_restored_after_signing_out_is_the_new_guest(stage: Stage) {
    let world = World::start().await;
    let before = leave(&stage, &world).await;
    stage
        .run("void platform.signOut('/other.html?signed-out')")
        .await;
    stage
        .arrives_at(&world.url("arena", "/other.html?signed-out"))
        .await;
    let after = player(&stage).await;
    assert_ne!(after.sub, before.sub);
    stage.run("void history.go(-2)").await;
    stage.arrives_at(&world.url("arena", "/")).await;
    assert_eq!(player(&stage).await.sub, after.sub);
}

async fn signing_out_in_one_tab_tells_every_tab_of_the_game_at_once(stage: Stage) {
    let way = Way::BuiltIn;
    let world = way.world().await;
    let game = world.publish(PageBuilder::new().before(TOLD)).await;
    stage.open(&world.url("demo", "/")).await;
    stage.press("Sign in").await;
    way.sign_in(&stage, "ada").await;
    stage.arrives_at(&world.url("demo", "/")).await;
    stage.open(&game).await;
    let account = player(&stage).await;
    assert!(!account.is_anon);
    let session = &stage.browser().session;
    let first = session.window().await.unwrap();
    let second = session.new_tab().await.unwrap();
    session.switch_to_window(second.clone()).await.unwrap();
    stage.open(&game).await;
    assert_eq!(player(&stage).await.sub, account.sub);

    session.switch_to_window(first).await.unwrap();
    stage.run("void platform.signOut('/?out')").await;
    stage.arrives_at(&world.url("arena", "/?out")).await;
    let guest = player(&stage).await;
    assert!(guest.is_anon);
    session.switch_to_window(second).await.unwrap();
    is_told(&stage).await;
    assert_eq!(player(&stage).await.sub, guest.sub, "the token was dropped");
    assert_eq!(stage.run("return told").await, json!(1), "it is told once");
}

async fn a_tab_of_another_game_notices_a_sign_out_when_the_player_comes_back(stage: Stage) {
    let world = World::start().await;
    let page = PageBuilder::new().before(TOLD).clock();
    stage.open(&world.publish(page).await).await;
    let before = player(&stage).await;
    let session = &stage.browser().session;
    let first = session.window().await.unwrap();
    let second = session.new_tab().await.unwrap();
    session.switch_to_window(second).await.unwrap();
    stage.open(&world.url("demo", "/")).await;
    assert_eq!(player(&stage).await.sub, before.sub);
    stage.run("void platform.signOut('/?out')").await;
    stage.arrives_at(&world.url("demo", "/?out")).await;
    let guest = player(&stage).await;
    assert_ne!(guest.sub, before.sub);

    session.switch_to_window(first).await.unwrap();
    // A driver's window cannot be left like a person's, so the events are simulated.
    stage
        .run("await pass(11); dispatchEvent(new Event('focus'))")
        .await;
    is_told(&stage).await;
    let asked = world.gateway.token_requests();
    assert_eq!(player(&stage).await.sub, guest.sub);
    stage.run("dispatchEvent(new Event('focus'))").await;
    assert_eq!(player(&stage).await.sub, guest.sub);
    assert_eq!(
        world.gateway.token_requests(),
        asked,
        "a token that is new is not doubted"
    );
}

async fn an_expired_session_is_final_until_the_page_is_loaded_again(stage: Stage) {
    let world = World::start().await;
    let page = world.publish(PageBuilder::new()).await;
    world.refuse_tokens(
        401,
        "session-expired",
        "Your session has ended. Please sign in again.",
        1,
    );
    stage.open(&page).await;
    for call in [
        "getAccessToken()",
        "fetch('/api/any')",
        "getAccessToken({ forceRefresh: true })",
        "player()",
        "getAccessToken()",
    ] {
        let body = format!(
            "try {{ await platform.{call} }} catch (error) {{
                return [error.is('session-expired'), error.status, error.message]
            }}"
        );
        let expected = json!([true, 401, "Your session has ended. Please sign in again."]);
        assert_eq!(stage.run(&body).await, expected, "{call}");
    }
    assert_eq!(
        world.gateway.token_requests(),
        1,
        "nothing is asked after the session has ended"
    );
    assert!(
        world.backend.calls("/api/any").is_empty(),
        "no call leaves without a token"
    );
    stage.reload().await;
    assert!(player(&stage).await.is_anon);
    assert_eq!(world.gateway.token_requests(), 2);
}
