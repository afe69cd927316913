//! Clicks that were meant for another page: a game navigates away between the two clicks of a
//! double click, and the second click hits the platform's page.

use platform_tests::browser::Stage;
use platform_tests::owner::Owner;
use platform_tests::platform::Platform;
use platform_tests::poll;
use platform_tests::sign_in::Way;
use platform_tests::world::{PageBuilder, World};
use reqwest::Method;
use serde_json::{Value, json};
use thirtyfour::Key;

use crate::devices::{begin, poll as ask_for_tokens};
use crate::identity::player;

platform_tests::browser_tests![
    a_double_click_in_a_game_lets_no_device_in,
    a_double_click_in_a_game_reads_of_the_sign_in_before_the_provider_is_asked,
    what_acts_by_one_press_on_the_console_waits_until_it_could_be_read,
];

/// Returns where to press a button whose text ends with this: its centre, or the centre of the
/// window, or above it where there is no link, if there is no such button.
const MIDDLE: &str = "
    const button = [...document.querySelectorAll('button')].find(one => one.textContent.endsWith(arguments[0]));
    if (!button) {
        const x = Math.round(innerWidth / 2);
        let y = Math.round(innerHeight / 2);
        while (y > 0 && document.elementFromPoint(x, y)?.closest('a')) y -= 1;
        return [x, y];
    }
    button.scrollIntoView({ block: 'center', behavior: 'instant' });
    const { x, y, width, height } = button.getBoundingClientRect();
    return [Math.round(x + width / 2), Math.round(y + height / 2)]";

/// Returns this for the open page.
async fn middle(stage: &Stage, name: &str) -> (i64, i64) {
    let place = stage.look(MIDDLE, vec![json!(name)]).await;
    (place[0].as_i64().unwrap(), place[1].as_i64().unwrap())
}

/// The page on which the built-in provider asks for a name.
const AUTHORIZE: &str = "/demo-provider/authorize";
/// The target of the form on the sign-in page.
const LOGIN_WITH_DEMO: &str = "/login/demo";

/// A game that navigates to `address` as soon as a mouse button goes down.
async fn game_that_leads_to(world: &World, address: &str) -> String {
    let address = Value::from(address);
    let script = format!(
        "<script>addEventListener('mousedown', () => {{ location.href = {address} }})</script>"
    );
    world.publish(PageBuilder::new().after(&script)).await
}

async fn a_double_click_in_a_game_lets_no_device_in(stage: Stage) {
    let way = Way::BuiltIn;
    let world = way.world().await;
    let demo = world.url("demo", "/");
    stage.open(&demo).await;
    stage.press("Sign in").await;
    way.sign_in(&stage, "ada").await;
    stage.arrives_at(&demo).await;
    assert!(!player(&stage).await.is_anon);

    // The attacker's own device waits for its code to be approved.
    let begun = begin(&world).await;
    let complete = begun["verification_uri_complete"].as_str().unwrap();
    let game = game_that_leads_to(&world, complete).await;
    for _ in 0..2 {
        stage.open(&game).await;
        let session = &stage.browser().session;
        let press = session.action_chain().move_to(200, 200).click();
        press.perform().await.unwrap();
        stage.arrives_at(complete).await;
        // As fast as a browser allows, at the position where the attacker expects the button.
        let (x, y) = middle(&stage, "Approve").await;
        let press = session.action_chain().move_to(x, y).click();
        press.perform().await.unwrap();
        stage.says("Sign in a device").await;
        stage.says("brought a code, which was left out").await;
        let typed = stage.field("Code").await.prop("value").await.unwrap();
        assert_eq!(typed.as_deref(), Some(""));
        let (_, answer) = ask_for_tokens(&world, &begun).await;
        assert_ne!(answer["token_type"], "Bearer", "the device was let in");
    }
    // A person who opens the address themselves gets the buttons after the reading time.
    stage.open("about:blank").await;
    stage.open(complete).await;
    stage.says("Only if you started this yourself").await;
    let (x, y) = middle(&stage, "Approve").await;
    let session = &stage.browser().session;
    let press = session.action_chain().move_to(x, y).click();
    press.perform().await.unwrap();
    stage.control("Approve").await;
    assert_eq!(
        ask_for_tokens(&world, &begun).await.1["token_type"],
        Value::Null
    );
    world.pass_reading();
    stage.press("Approve").await;
    stage.says("The device is signed in").await;
}

/// Returns the browser's address, and the link at a position of its page.
const LINK_AT: &str = "
    const link = document.elementFromPoint(...arguments)?.closest('a, button');
    return [location.pathname, link?.textContent ?? null]";

async fn a_double_click_in_a_game_reads_of_the_sign_in_before_the_provider_is_asked(stage: Stage) {
    let world = Way::BuiltIn.world().await;
    let home = world.url("demo", "/");
    stage.open(&home).await;
    let guest = player(&stage).await;
    let login = stage.run("return platform.loginUrl()").await;
    let login = login.as_str().unwrap().to_owned();
    let game = game_that_leads_to(&world, &login).await;
    let session = &stage.browser().session;
    let asked = || world.gateway.seen(&Method::GET, AUTHORIZE).len();
    for cancels in [true, false] {
        let before = asked();
        stage.open(&game).await;
        let press = session.action_chain().move_to(200, 200).click();
        press.perform().await.unwrap();
        stage.arrives_at(&login).await;
        let (x, y) = middle(&stage, "Sign in with Demo").await;
        let press = session.action_chain().move_to(x, y).click();
        press.perform().await.unwrap();
        stage
            .says("perhaps by a click that was meant for another page")
            .await;
        assert_eq!(
            asked(),
            before,
            "the provider was asked before the page said so"
        );
        // More clicks at the same position hit nothing.
        let there = stage.look(LINK_AT, vec![json!(x), json!(y)]).await;
        if there[0] == LOGIN_WITH_DEMO {
            assert_eq!(there[1], Value::Null, "a third click would be on a link");
        }
        if cancels {
            let cancel = stage.control("Cancel, and go back").await;
            let enter = Key::Enter.value().to_string();
            cancel.send_keys(enter).await.unwrap();
            stage.arrives_at(&home).await;
            let now = player(&stage).await;
            assert_eq!((now.sub, now.is_anon), (guest.sub.clone(), true));
        } else {
            // It continues on its own.
            stage.arrives_below(&world.url("auth", AUTHORIZE)).await;
        }
    }
    let pressed = world.gateway.seen(&Method::POST, LOGIN_WITH_DEMO);
    let statuses: Vec<_> = pressed.iter().filter_map(|seen| seen.status).collect();
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");

    // A person who has read the page is forwarded at once.
    stage.open(&home).await;
    stage.press("Sign in").await;
    stage.control("Sign in with Demo").await;
    world.pass_reading();
    stage.press("Sign in with Demo").await;
    stage.arrives_below(&world.url("auth", AUTHORIZE)).await;
    let pressed = world.gateway.seen(&Method::POST, LOGIN_WITH_DEMO);
    let last = pressed.last().and_then(|seen| seen.status);
    assert_eq!(last.map(|status| status.as_u16()), Some(303));
}

async fn what_acts_by_one_press_on_the_console_waits_until_it_could_be_read(stage: Stage) {
    let platform = Platform::start(&[]).await;
    let owner = Owner::sign_in(&platform.site, "Ada").await;
    owner.create("game").await;
    let page = PageBuilder::new().html();
    for _ in 0..2 {
        owner.deploy("game", "prod", &[("index.html", &page)]).await;
    }
    let project = format!("{}/projects/game", platform.site.origin);
    let address = format!("{project}/deployments");
    stage.open(&address).await;
    stage.press("Sign in").await;
    Way::BuiltIn.sign_in(&stage, "Ada").await;
    stage.arrives_at(&address).await;
    let listed = "return document.querySelectorAll('#deployments button').length";
    poll::until("the deployments are listed", async || {
        (stage.look(listed, vec![]).await == 1).then_some(())
    })
    .await;
    // All of this in one task of the page, so that no time passes.
    let hurried = "
        document.querySelector('#deployments button').click();
        const yes = document.getElementById('rollback-yes');
        const isHeld = yes.disabled;
        yes.click();
        return [isHeld, document.getElementById('rollback').open]";
    let held = stage.look(hurried, vec![]).await;
    assert_eq!(held, json!([true, true]));
    // It appears on its own.
    stage.click("#rollback-yes").await;
    stage.says("is shown now.").await;

    stage.open(&format!("{project}/settings")).await;
    stage.says("Isolation").await;
    let hurried = "
        dispatchEvent(new Event('focus'));
        return ['backend-remove', 'isolation'].map((id) => document.getElementById(id).disabled)";
    assert_eq!(stage.look(hurried, vec![]).await, json!([true, true]));
    stage.click("#isolation").await;
    stage.says("The pages are isolated now.").await;
}
