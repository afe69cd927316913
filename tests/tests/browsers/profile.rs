//! The profile page: the player's name, and their other browsers.

use platform_tests::browser::Stage;
use platform_tests::poll;
use platform_tests::sign_in::Way;
use platform_tests::visitor::claims;
use platform_tests::world::{PageBuilder, World};
use serde_json::{Value, json};

use crate::identity::player;

platform_tests::browser_tests![
    in Chromium, because "a form without scripts is sent alike everywhere":
    a_name_changed_on_the_profile_page_is_in_the_next_token,
    a_name_that_cannot_be_had_is_explained_and_what_was_typed_is_kept,
    signing_out_everywhere_else_ends_the_session_of_another_browser_and_not_ones_own,
];

/// The label of the name's field.
pub(crate) const NAME: &str = "Username";
/// The button that changes the name.
pub(crate) const SAVE: &str = "Save name";
/// The button that ends the sessions of other browsers.
pub(crate) const SIGN_OUT_OTHERS: &str = "Sign out everywhere else";

/// The address at which the demo game was left.
const LEFT: &str = "/?a=1&b=%2F#frag";

/// Returns the content of the name's field.
async fn typed(stage: &Stage) -> String {
    let value = stage.field(NAME).await.prop("value").await.unwrap();
    value.unwrap_or_default()
}

async fn a_name_changed_on_the_profile_page_is_in_the_next_token(stage: Stage) {
    let way = Way::BuiltIn;
    let world = way.world().await;
    let left = world.url("demo", LEFT);
    stage.open(&left).await;
    let guest = player(&stage).await;
    stage.press("Sign in").await;
    way.sign_in(&stage, "ada").await;
    stage.arrives_at(&left).await;

    // The demo provider's page asks for a name, which is the account's first one.
    stage.press("ada").await;
    stage.arrives_below(&world.url("auth", "/profile?")).await;
    assert_eq!(typed(&stage).await, "ada");
    stage.fill(NAME, "Åda-Lovelace_1815").await;
    stage.press(SAVE).await;
    stage.arrives_with("saved=rename").await;
    assert!(stage.status().await.ends_with('.'));
    assert_eq!(typed(&stage).await, "Åda-Lovelace_1815");
    stage.press("Back to Firefly").await;
    stage.arrives_at(&left).await;
    let renamed = player(&stage).await;
    assert_eq!(renamed.username, "Åda-Lovelace_1815");
    assert_eq!((&renamed.sub, renamed.is_anon), (&guest.sub, false));
    // The game shows it, and its backend receives it.
    stage.says("Åda-Lovelace_1815").await;
    let me = stage
        .run("return (await platform.fetch('/api/me')).json()")
        .await;
    assert_eq!(me["username"], "Åda-Lovelace_1815");
    let here = stage.run("return platform.player()").await;
    let expected = json!({ "id": guest.sub, "username": "Åda-Lovelace_1815", "isGuest": false });
    assert_eq!(here, expected);
}

async fn a_name_that_cannot_be_had_is_explained_and_what_was_typed_is_kept(stage: Stage) {
    let way = Way::BuiltIn;
    let world = way.world().await;
    let other = world.visitor().mint("demo", None).await.unwrap();
    let taken = other.claims.username.to_uppercase();
    stage.open(&world.url("demo", LEFT)).await;
    let guest = player(&stage).await;
    // A guest can change its name as well.
    stage.press(&guest.username).await;
    stage.arrives_below(&world.url("auth", "/profile?")).await;
    for wrong in [taken.as_str(), "no", "white space", "Adа-with-a-Cyrillic"] {
        stage.fill(NAME, wrong).await;
        stage.press(SAVE).await;
        let said = poll::until("the page says what is wrong", async || {
            let script = "const field = document.querySelector('[aria-invalid=true]');
                return field && document.getElementById(field.getAttribute('aria-describedby').split(' ')[0])?.innerText";
            let said = stage.look(script, vec![]).await;
            (typed(&stage).await == wrong).then_some(())?;
            said.as_str().map(str::to_owned)
        })
        .await;
        assert!(said.ends_with('.'), "{wrong:?}: {said:?}");
        assert_eq!(world.find_player(&guest.sub).await.username, guest.username);
    }
    stage.fill(NAME, "grace-hopper").await;
    stage.press(SAVE).await;
    stage.press("Back to Firefly").await;
    stage.arrives_at(&world.url("demo", LEFT)).await;
    let renamed = player(&stage).await;
    assert_eq!(renamed.username, "grace-hopper");
    assert_eq!((&renamed.sub, renamed.is_anon), (&guest.sub, true));
}

/// Requests a token in every possible way; returns each result.
const ASK: &str = "
    const ends = async call => {
        try { await call(); return 'an answer' } catch (error) { return error.is?.('session-expired') ? 'session-expired' : String(error) }
    };
    const calls = [
        () => platform.getAccessToken({ forceRefresh: true }),
        () => platform.getAccessToken(),
        () => platform.fetch('/api/any'),
        () => platform.getAccessToken({ forceRefresh: true }),
    ];
    const answers = [];
    for (const call of calls) answers.push(await ends(call));
    return answers";

async fn signing_out_everywhere_else_ends_the_session_of_another_browser_and_not_ones_own(
    stage: Stage,
) {
    let way = Way::BuiltIn;
    let world = way.world().await;
    let game = world.publish(PageBuilder::new()).await;
    let demo = world.url("demo", LEFT);
    stage.open(&demo).await;
    let guest = player(&stage).await;
    stage.press("Sign in").await;
    way.sign_in(&stage, "ada").await;
    stage.arrives_at(&demo).await;
    stage.open(&game).await;
    assert_eq!(player(&stage).await.sub, guest.sub);

    let other = stage.beside().await;
    sign_in_and_end_the_others(&other, &world, &guest.sub).await;

    let before = world.gateway.token_requests();
    let calls_before = world.backend.calls("/api/any").len();
    let ended = json!(vec!["session-expired"; 4]);
    assert_eq!(stage.run(ASK).await, ended);
    // On a slow machine a heartbeat may have told the page already.
    let asked = world.gateway.token_requests();
    assert!(asked <= before + 1, "{before}, then {asked}");
    assert_eq!(stage.run(ASK).await, ended);
    assert_eq!(
        world.gateway.token_requests(),
        asked,
        "nothing is asked after the session has ended"
    );
    assert_eq!(world.backend.calls("/api/any").len(), calls_before);
    // After a reload it requests one again, and no guest replaces the account.
    stage.reload().await;
    assert_eq!(stage.run(ASK).await, ended);
    assert_eq!(world.gateway.token_requests(), asked + 1);

    // The demo game opens the sign-in page on its own, and is opened again from there.
    stage.open(&demo).await;
    stage.arrives_below(&world.url("auth", "/login?")).await;
    way.sign_in_again(&stage, "ada").await;
    stage.arrives_at(&demo).await;
    let back = player(&stage).await;
    assert_eq!((&back.sub, back.is_anon), (&guest.sub, false));
    // The browser that ended the others still has its session.
    let forced: Value = other
        .run("return platform.getAccessToken({ forceRefresh: true })")
        .await;
    assert_eq!(claims(forced.as_str().unwrap()).sub, guest.sub);
    other.close().await;
}

/// Signs in as the player `sub` in another browser, and ends every session except that one.
async fn sign_in_and_end_the_others(other: &Stage, world: &World, sub: &str) {
    let way = Way::BuiltIn;
    let demo = world.url("demo", LEFT);
    other.open(&demo).await;
    other.press("Sign in").await;
    way.sign_in(other, "ada").await;
    other.arrives_at(&demo).await;
    let same = player(other).await;
    assert_eq!(same.sub, sub);
    other.press(&same.username).await;
    other.says(SIGN_OUT_OTHERS).await;
    world.pass_reading();
    other.press(SIGN_OUT_OTHERS).await;
    other.arrives_with("saved=sign-out-others").await;
    other.press("Back to Firefly").await;
    other.arrives_at(&demo).await;
    // Its token request has got a response before anybody counts them.
    assert_eq!(player(other).await.sub, sub);
}
