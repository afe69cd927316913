//! Local development: test players on a game developer's own machine, with a dev server that only
//! implements the four paths.

use std::collections::BTreeSet;

use platform_tests::accessibility::Look;
use platform_tests::browser::Stage;
use platform_tests::dev_server::DevServer;
use platform_tests::poll;
use platform_tests::world::World;
use serde_json::json;
use thirtyfour::Key;

platform_tests::browser_tests![
    a_local_page_starts_as_test_guest_1_on_every_local_host,
    a_test_player_is_found_by_number_and_picked_with_enter,
    two_tabs_are_two_players_and_a_new_tab_is_test_guest_1,
    the_badge_is_reached_by_keyboard_and_covers_no_click_elsewhere,
    nothing_but_the_four_paths_is_requested,
    a_local_page_keeps_the_native_console_and_sends_nothing;
    in Chromium, because "it is the picker's own logic":
    each_of_the_twenty_test_players_can_be_picked,
    picking_returns_to_the_page_and_never_to_another_site,
    signing_out_returns_to_test_guest_1,
    a_dev_server_s_problem_is_shown_in_the_badge_and_the_picker,
    a_dev_server_without_the_token_path_is_told_what_has_it,
    a_deployed_game_has_no_badge_and_no_test_players,
    the_page_to_pick_a_test_player_on_has_no_barrier,
];

/// Starts a platform that provides the runtime, and a dev server. The platform must not receive any
/// request that happens on the dev server.
async fn start() -> (World, DevServer) {
    let world = World::start().await;
    let dev = DevServer::listen(world.runtime_js().await).await;
    (world, dev)
}

/// Returns the text of the badge, and the player that the backend sees.
const WHO: &str = "
    const badge = document.querySelector('platform-dev')?.shadowRoot;
    return [badge?.textContent.match(/DEV.*/)?.[0].trim(),
        (await (await platform.fetch('/api/me')).json()).username]";

/// Asserts that the page and its badge have the player `name`.
async fn demand(stage: &Stage, name: &str) {
    let who = stage.run(WHO).await;
    assert_eq!(who, json!([format!("DEV {name}"), name]));
}

/// Picks a player on the picker's page with a click.
async fn pick(stage: &Stage, name: &str) {
    stage
        .run(&format!(
            "[...document.querySelectorAll('button')].find(one => one.textContent == '{name}').click()"
        ))
        .await;
}

async fn a_local_page_starts_as_test_guest_1_on_every_local_host(stage: Stage) {
    let (world, dev) = start().await;
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        let page = dev.url(host, "/");
        stage.open(&page).await;
        demand(&stage, "test-guest-1").await;
        let login = stage
            .run("return [platform.loginUrl(), platform.profileUrl('/level')]")
            .await;
        let encoded = |url: String| {
            url.replace(':', "%3A")
                .replace('/', "%2F")
                .replace('[', "%5B")
                .replace(']', "%5D")
        };
        let expected = |path: &str| {
            format!(
                "{}?redirect={}",
                dev.url(host, "/__platform/login"),
                encoded(dev.url(host, path))
            )
        };
        assert_eq!(login, json!([expected("/"), expected("/level")]));
    }
    assert_eq!(world.gateway.count(), 0, "the platform is not asked");
    assert_eq!(stage.cookies().await, 0);
}

async fn each_of_the_twenty_test_players_can_be_picked(stage: Stage) {
    let (_world, dev) = start().await;
    let game = dev.url("localhost", "/");
    let mut seen = BTreeSet::new();
    stage.open(&game).await;
    let mut present = "test-guest-1".to_owned();
    for kind in ["guest", "user"] {
        for number in 1..=10 {
            let name = format!("test-{kind}-{number}");
            let login = stage.run("return platform.loginUrl()").await;
            stage.open(login.as_str().unwrap()).await;
            let shown = stage
                .run(
                    "const all = [...document.querySelectorAll('button')];
                    return [all.length, all.filter(one => one.matches('[aria-current=true]')).map(one => one.textContent)]",
                )
                .await;
            assert_eq!(
                shown,
                json!([20, [present]]),
                "the present player is marked"
            );
            pick(&stage, &name).await;
            stage.arrives_at(&game).await;
            demand(&stage, &name).await;
            seen.insert(name.clone());
            present = name;
        }
    }
    assert_eq!(seen.len(), 20);
}

/// Returns the names of the test players that are marked as the one whom Enter takes.
const TAKEN_BY_ENTER: &str = "return [...document.querySelectorAll('button')].filter(one => getComputedStyle(one, '::after').content.includes('↵')).map(one => one.textContent)";

async fn a_test_player_is_found_by_number_and_picked_with_enter(stage: Stage) {
    let (_world, dev) = start().await;
    let login = dev.url("localhost", "/__platform/login?redirect=%2Flevel");
    let visible = "return [...document.querySelectorAll('button')].filter(one => one.offsetParent).map(one => one.textContent)";
    for (text, found) in [
        ("1", vec!["test-user-1", "test-guest-1"]),
        (" 10 ", vec!["test-user-10", "test-guest-10"]),
        ("USER-7", vec!["test-user-7"]),
        ("nobody", vec![]),
        // This may be the Enter that opened this page and is still held down.
        ("", vec![]),
    ] {
        stage.open(&login).await;
        // The field has the focus from the start.
        if !text.is_empty() {
            let type_in = stage.browser().session.action_chain().send_keys(text);
            type_in.perform().await.unwrap();
            assert_eq!(stage.run(visible).await, json!(found), "{text:?}");
            let taken = stage.run(TAKEN_BY_ENTER).await;
            assert_eq!(taken, json!(found.first().into_iter().collect::<Vec<_>>()));
        }
        let enter = stage
            .browser()
            .session
            .action_chain()
            .send_keys(Key::Enter + "");
        enter.perform().await.unwrap();
        if let Some(first) = found.first() {
            stage.arrives_at(&dev.url("localhost", "/level")).await;
            demand(&stage, first).await;
        } else {
            assert_eq!(
                stage.run("return location.pathname").await,
                json!("/__platform/login")
            );
        }
    }
}

async fn the_page_to_pick_a_test_player_on_has_no_barrier(stage: Stage) {
    let (_world, dev) = start().await;
    stage.open(&dev.url("localhost", "/__platform/login")).await;
    for look in Look::of(stage.engine()) {
        stage.show_as(*look).await;
        let barriers = stage.barriers().await;
        assert!(barriers.is_empty(), "{look:?}:\n{}", barriers.join("\n"));
    }
    stage.show_plainly().await;
}

async fn two_tabs_are_two_players_and_a_new_tab_is_test_guest_1(stage: Stage) {
    let (_world, dev) = start().await;
    let game = dev.url("localhost", "/");
    let session = &stage.browser().session;
    stage
        .open(&dev.url("localhost", "/__platform/login?redirect=/"))
        .await;
    pick(&stage, "test-user-3").await;
    stage.arrives_at(&game).await;
    let first = session.window().await.unwrap();
    let second = session.new_tab().await.unwrap();
    session.switch_to_window(second.clone()).await.unwrap();
    stage.open(&game).await;
    demand(&stage, "test-guest-1").await;
    stage
        .open(&dev.url("localhost", "/__platform/login?redirect=/"))
        .await;
    pick(&stage, "test-guest-8").await;
    stage.arrives_at(&game).await;
    for _ in 0..2 {
        session.switch_to_window(first.clone()).await.unwrap();
        demand(&stage, "test-user-3").await;
        stage.reload().await;
        demand(&stage, "test-user-3").await;
        session.switch_to_window(second.clone()).await.unwrap();
        demand(&stage, "test-guest-8").await;
        stage.reload().await;
        demand(&stage, "test-guest-8").await;
    }
}

async fn picking_returns_to_the_page_and_never_to_another_site(stage: Stage) {
    let (world, dev) = start().await;
    let own = dev.url("localhost", "/level?world=2#door");
    stage.open(&own).await;
    let login = stage.run("return platform.loginUrl()").await;
    stage.open(login.as_str().unwrap()).await;
    pick(&stage, "test-user-1").await;
    stage.arrives_at(&own).await;
    let start = dev.url("localhost", "/");
    let foreign = [
        "https://example.com/".to_owned(),
        "//example.com/".to_owned(),
        r"\\example.com".to_owned(),
        "javascript:alert(1)".to_owned(),
        "data:text/html,x".to_owned(),
        dev.url("127.0.0.1", "/level"),
        start.replace("localhost", "user@example.com"),
        world.url("demo", "/"),
        "http://[".to_owned(),
        format!("blob:{start}0-0"),
        String::new(),
    ];
    for redirect in foreign {
        let mut login = reqwest::Url::parse(&dev.url("localhost", "/__platform/login")).unwrap();
        login.query_pairs_mut().append_pair("redirect", &redirect);
        stage.open(login.as_str()).await;
        pick(&stage, "test-user-2").await;
        stage.arrives_at(&start).await;
    }
}

async fn signing_out_returns_to_test_guest_1(stage: Stage) {
    let (_world, dev) = start().await;
    stage
        .open(&dev.url("127.0.0.1", "/__platform/login?redirect=/level"))
        .await;
    pick(&stage, "test-user-9").await;
    stage.arrives_at(&dev.url("127.0.0.1", "/level")).await;
    demand(&stage, "test-user-9").await;
    stage.run("void platform.signOut()").await;
    stage.arrives_at(&dev.url("127.0.0.1", "/")).await;
    demand(&stage, "test-guest-1").await;
    stage.run("void platform.signOut('/level')").await;
    stage.arrives_at(&dev.url("127.0.0.1", "/level")).await;
    demand(&stage, "test-guest-1").await;
    let error = stage
        .refused("await platform.signOut('https://example.com/')")
        .await;
    assert_eq!(error.name, "TypeError");
}

async fn the_badge_is_reached_by_keyboard_and_covers_no_click_elsewhere(stage: Stage) {
    let (_world, dev) = start().await;
    stage.open(&dev.url("localhost", "/level")).await;
    let session = &stage.browser().session;
    // The game's own button comes first.
    for _ in 0..2 {
        session
            .action_chain()
            .send_keys(Key::Tab + "")
            .perform()
            .await
            .unwrap();
    }
    // The result of a request leaves the focus where it is.
    let focused = "await platform.getAccessToken({ forceRefresh: true });
        return document.activeElement.shadowRoot?.activeElement?.textContent.trim()";
    assert_eq!(stage.run(focused).await, json!("DEV test-guest-1"));
    let places = stage
        .run(
            "const box = document.activeElement.shadowRoot.activeElement.getBoundingClientRect();
            return [innerWidth - box.right < 20, innerHeight - box.bottom < 20, box.width < 250, box.height < 40,
                document.elementFromPoint(box.left - 2, box.top + 2).id, document.elementFromPoint(5, innerHeight - 5).id,
                document.elementFromPoint(innerWidth / 2, innerHeight / 2).id,
                document.elementFromPoint(box.left + 5, box.top + 5).localName]",
        )
        .await;
    assert_eq!(
        places,
        json!([
            true,
            true,
            true,
            true,
            "play",
            "play",
            "play",
            "platform-dev"
        ])
    );
    // A script whose page is left has no result, so the browser is asked for its address.
    let picker = stage.run("return platform.loginUrl()").await;
    session
        .action_chain()
        .send_keys(Key::Enter + "")
        .perform()
        .await
        .unwrap();
    stage.arrives_at(picker.as_str().unwrap()).await;
    let redirect = stage
        .run("return new URLSearchParams(location.search).get('redirect')")
        .await;
    assert_eq!(redirect, json!(dev.url("localhost", "/level")));
}

async fn nothing_but_the_four_paths_is_requested(stage: Stage) {
    let (world, dev) = start().await;
    stage.open(&dev.url("localhost", "/")).await;
    demand(&stage, "test-guest-1").await;
    let login = stage.run("return platform.loginUrl()").await;
    stage.open(login.as_str().unwrap()).await;
    pick(&stage, "test-user-4").await;
    stage.arrives_at(&dev.url("localhost", "/")).await;
    demand(&stage, "test-user-4").await;
    stage.loads_again_by("void platform.signOut()").await;
    stage.arrives_at(&dev.url("localhost", "/")).await;
    demand(&stage, "test-guest-1").await;
    let asked: BTreeSet<String> = dev.log().into_iter().collect();
    let expected = [
        "GET /",
        "GET /__platform/login",
        "GET /__platform/runtime.js",
        "GET /api/me",
        "POST /__platform/token/guest/1",
        "POST /__platform/token/user/4",
    ];
    assert_eq!(
        asked.iter().map(String::as_str).collect::<Vec<_>>(),
        expected
    );
    let origin = dev.url("localhost", "/");
    for request in stage.requests() {
        assert!(
            request.url.starts_with(&origin) || request.url.starts_with("data:"),
            "{request:?}"
        );
    }
    assert_eq!(world.gateway.count(), 0);
}

async fn a_local_page_keeps_the_native_console_and_sends_nothing(stage: Stage) {
    stage.tolerate_log("deliberate");
    let (world, dev) = start().await;
    stage.open(&dev.url("localhost", "/")).await;
    let native = stage
        .run(
            "console.log('deliberate line'); console.error('deliberate error');
            setTimeout(() => { throw new Error('deliberate throw') }); Promise.reject(new Error('deliberate rejection'));
            await platform.reportError('deliberate report', { metadata: 1 });
            await platform.getAccessToken();
            return [console.log === natives[0], console.error === natives[1], fetch === natives[2], /native code/.test(console.log)]",
        )
        .await;
    assert_eq!(native, json!([true, true, true, true]));
    // More time than the runtime waits anywhere else, by the page's clock.
    stage.open(&dev.url("localhost", "/level")).await;
    stage.open(&dev.url("localhost", "/")).await;
    demand(&stage, "test-guest-1").await;
    let log = dev.log();
    assert!(
        !log.iter()
            .any(|line| line.contains("heartbeat") || line.contains("logs")),
        "{log:?}"
    );
    assert_eq!(world.gateway.count(), 0);
}

/// Waits until the text of `element` contains `part`, and returns it.
async fn says(stage: &Stage, element: &str, part: &str) -> String {
    let script = format!("return {element}.textContent");
    poll::until(part, async || {
        let text = stage.run(&script).await;
        let text = text.as_str().unwrap_or_default().to_owned();
        text.contains(part).then_some(text)
    })
    .await
}

/// Waits until the text of the badge contains `part`, and returns it.
async fn badge_says(stage: &Stage, part: &str) -> String {
    let badge = "document.querySelector('platform-dev').shadowRoot.querySelector('a')";
    says(stage, badge, part).await
}

/// Waits until the text of the picker contains `part`, and returns it.
async fn picker_says(stage: &Stage, part: &str) -> String {
    says(stage, "document.querySelector('[role=alert]')", part).await
}

async fn a_dev_server_s_problem_is_shown_in_the_badge_and_the_picker(stage: Stage) {
    let (_world, dev) = start().await;
    let body = r#"{"type":"urn:x:not-signed-in","detail":"Sign in first: run platform login.","request_id":"r-1"}"#;
    for path in ["guest/1", "user/2"] {
        dev.refuse(
            &format!("/__platform/token/{path}"),
            401,
            "application/problem+json",
            body,
        );
    }
    stage.open(&dev.url("localhost", "/")).await;
    let error = stage.refused("await platform.fetch('/api/me')").await;
    assert_eq!(
        (error.status, error.message.as_str()),
        (Some(401), "Sign in first: run platform login.")
    );
    assert_eq!(
        (error.kind.as_deref(), error.request_id.as_deref()),
        (Some("urn:x:not-signed-in"), Some("r-1"))
    );
    assert!(
        badge_says(&stage, "Sign in first")
            .await
            .contains("test-guest-1")
    );
    let login = dev.url("localhost", "/__platform/login?redirect=/");
    stage.open(&login).await;
    pick(&stage, "test-user-2").await;
    picker_says(&stage, "Sign in first: run platform login.").await;
    assert_eq!(
        stage.run("return location.href").await,
        json!(login),
        "it stays"
    );
    dev.mend();
    stage.reload().await;
    let marked = stage
        .run("return document.querySelector('[aria-current]').textContent")
        .await;
    assert_eq!(
        marked,
        json!("test-guest-1"),
        "who cannot be played is not played"
    );
    pick(&stage, "test-user-2").await;
    stage.arrives_at(&dev.url("localhost", "/")).await;
    demand(&stage, "test-user-2").await;
}

async fn a_dev_server_without_the_token_path_is_told_what_has_it(stage: Stage) {
    let (_world, dev) = start().await;
    // As dev servers respond to unknown paths: with an error, or with the start page.
    for (status, kind) in [
        (404, "text/html"),
        (405, "text/plain"),
        (200, "text/html"),
        (500, "application/json"),
    ] {
        for path in ["guest/1", "user/5"] {
            dev.refuse(
                &format!("/__platform/token/{path}"),
                status,
                kind,
                "<!doctype html><title>Cannot POST</title>",
            );
        }
        stage.open(&dev.url("localhost", "/")).await;
        let error = stage.refused("await platform.getAccessToken()").await;
        assert_eq!(error.name, "PlatformError");
        let named = |text: &str| text.contains("start it with `platform dev`");
        assert!(named(&error.message), "{}", error.message);
        let said = format!("The dev server gave no test player ({status})");
        assert!(error.message.starts_with(&said), "{}", error.message);
        assert!(named(&badge_says(&stage, "platform dev").await));
        stage
            .open(&dev.url("localhost", "/__platform/login?redirect=/"))
            .await;
        pick(&stage, "test-user-5").await;
        assert!(named(&picker_says(&stage, "platform dev").await));
    }
}

async fn a_deployed_game_has_no_badge_and_no_test_players(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.url("demo", "/")).await;
    let facts = "return [document.querySelector('platform-dev'), new URL(platform.loginUrl()).hostname, (await fetch('/__platform/login')).status,
        (await fetch('/__platform/token/guest/1', { method: 'POST' })).status, (await (await platform.fetch('/api/me')).json()).username.startsWith('test-')]";
    assert_eq!(
        stage.run(facts).await,
        json!([null, "auth.platform.localhost", 404, 404, false])
    );
}
