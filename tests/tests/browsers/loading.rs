//! The tag: `platform` is defined when the game's first line runs, and the module starts after it.

use platform_tests::browser::Stage;
use platform_tests::poll;
use platform_tests::world::{PageBuilder, World};
use serde_json::json;

use crate::logs::QUIET;

platform_tests::browser_tests![
    platform_is_there_in_the_first_line_of_deferred_and_module_scripts,
    platform_is_frozen_and_has_exactly_its_members,
    two_tags_warn_once_and_leave_the_first_object,
    blocked_webassembly_is_said_once_and_every_call_rejects,
    an_engine_that_compiles_only_asynchronously_has_platform_at_once,
    the_first_lines_calls_wait_for_the_module_and_their_token_does_not,
    a_forced_caller_before_the_module_started_gets_a_later_token,
    a_page_that_leaves_before_the_module_started_sends_what_it_logged,
    a_game_that_logs_much_before_the_module_started_starts_it,
    login_and_profile_addresses_come_at_once_and_lead_back,
    null_means_not_given_in_every_optional_argument,
    a_page_asks_nobody_but_its_game_and_the_auth_service,
];

async fn platform_is_there_in_the_first_line_of_deferred_and_module_scripts(stage: Stage) {
    let world = World::start().await;
    let page = PageBuilder::new()
        .after(r#"<script defer src="classic.js"></script><script type="module" src="module.js"></script>"#)
        .file("classic.js", "window.classic = typeof platform.fetch;")
        .file("module.js", "window.module = typeof platform.fetch;");
    stage.open(&world.publish(page).await).await;
    let seen = stage.run("return [window.classic, window.module]").await;
    assert_eq!(seen, json!(["function", "function"]));
}

/// The members of `platform`, in alphabetical order.
const MEMBERS: [&str; 9] = [
    "PlatformError",
    "fetch",
    "getAccessToken",
    "loginUrl",
    "player",
    "profileUrl",
    "reportError",
    "signOut",
    "version",
];

async fn platform_is_frozen_and_has_exactly_its_members(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.publish(PageBuilder::new()).await).await;
    let facts = "return [Object.isFrozen(platform), Reflect.ownKeys(platform).sort(), typeof platform.version]";
    assert_eq!(stage.run(facts).await, json!([true, MEMBERS, "string"]));
    let facts = "const error = new platform.PlatformError(0, '', '', '');
        return [error instanceof Error, error instanceof platform.PlatformError, error.name]";
    assert_eq!(stage.run(facts).await, json!([true, true, "PlatformError"]));
    assert_eq!(
        world.gateway.token_requests(),
        0,
        "nobody asked for a token"
    );
}

async fn two_tags_warn_once_and_leave_the_first_object(stage: Stage) {
    let world = World::start().await;
    let page = PageBuilder::new()
        .after(
            r#"<script defer src="between.js"></script>
            <script defer src="/__platform/runtime.js"></script>
            <script defer src="/__platform/runtime.js"></script>"#,
        )
        .file("between.js", "window.first = platform;");
    stage.expect_log("twice", 1);
    stage.open(&world.publish(page).await).await;
    assert_eq!(
        stage.run("return window.first === platform").await,
        json!(true)
    );
    let sub = stage
        .run("return (await (await platform.fetch('/api/any')).json()).length")
        .await;
    assert_eq!(sub, json!(0));
}

async fn blocked_webassembly_is_said_once_and_every_call_rejects(stage: Stage) {
    let world = World::start().await;
    let policy = r#"<meta http-equiv="Content-Security-Policy" content="script-src 'self' 'unsafe-inline'">"#;
    // Firefox also reports with its own message what its policy has blocked.
    stage.expect_log("platform cannot start", 1);
    stage.tolerate_log("Content-Security-Policy: The page’s settings blocked");
    stage
        .open(&world.publish(PageBuilder::new().before(policy)).await)
        .await;
    for call in [
        "fetch('/api/any')",
        "getAccessToken()",
        "getAccessToken({ forceRefresh: true })",
        "signOut()",
    ] {
        let body = format!(
            "try {{ await platform.{call} }} catch (error) {{
                return [error instanceof platform.PlatformError, error.is('runtime-unavailable'), error.status, error.message.length > 20]
            }}"
        );
        assert_eq!(
            stage.run(&body).await,
            json!([true, true, 0, true]),
            "{call}"
        );
    }
    let addresses = stage
        .run("return [platform.loginUrl(), platform.profileUrl()]")
        .await;
    assert!(
        addresses[0]
            .as_str()
            .unwrap()
            .starts_with(&world.url("auth", "/login?redirect="))
    );
    assert!(
        addresses[1]
            .as_str()
            .unwrap()
            .starts_with(&world.url("auth", "/profile?redirect="))
    );
    // The first call requests a token before it is known that the module cannot start.
    assert!(world.gateway.token_requests() <= 1);
}

/// Like Chromium before version 114.
const ONLY_SMALL_MODULES: &str = r#"<script>
    const Native = WebAssembly.Module;
    WebAssembly.Module = function Module(bytes) {
        if (bytes.byteLength > 4096) {
            window.refused = true;
            throw new RangeError('WebAssembly.Compile is disallowed on the main thread, if the buffer size is larger than 4KB.');
        }
        return new Native(bytes);
    };
</script>"#;

async fn an_engine_that_compiles_only_asynchronously_has_platform_at_once(stage: Stage) {
    let world = World::start().await;
    let page = PageBuilder::new()
        .before(ONLY_SMALL_MODULES)
        .after(r#"<script defer src="first.js"></script>"#)
        .file(
            "first.js",
            "window.atOnce = [typeof platform.fetch, typeof platform.loginUrl(), Object.isFrozen(platform)];
             window.answer = platform.fetch('/api/first', { method: 'POST', body: 'early' });
             window.token = platform.getAccessToken();",
        );
    stage.open(&world.publish(page).await).await;
    let seen = stage
        .run("return [atOnce, window.refused, (await (await answer).json()).length]")
        .await;
    assert_eq!(seen, json!([["function", "string", true], null, 5]));
    let token = stage.run("return token").await;
    assert_eq!(world.backend.calls("/api/first")[0].token(), token.as_str());
    assert_eq!(world.gateway.token_requests(), 1);
}

/// Lets no module start in the background until the test calls `release`.
const HELD: &str = "<script>{
    const native = WebAssembly.compile;
    const released = new Promise(release => window.release = release);
    WebAssembly.compile = async bytes => { await released; return native(bytes); };
}</script>";

/// A page whose module is held, and whose first script is this.
fn held(first: &str) -> PageBuilder {
    PageBuilder::new()
        .before(HELD)
        .after(r#"<script defer src="first.js"></script>"#)
        .file("first.js", first)
        .file("other.html", &PageBuilder::new().html())
}

/// Waits until the page has requested so many tokens.
async fn token_requests_reach(world: &World, count: usize) {
    poll::until("the request for a token", async || {
        (world.gateway.token_requests() >= count).then_some(())
    })
    .await;
}

async fn the_first_lines_calls_wait_for_the_module_and_their_token_does_not(stage: Stage) {
    let world = World::start().await;
    let page = held(
        "console.log('line 1');
        const init = { method: 'POST', body: 'early' };
        window.answer = platform.fetch('/api/first', init);
        init.body = 'changed afterwards';
        window.token = platform.getAccessToken();
        window.player = platform.player();
        platform.reportError('line 2', { of: 'the first script' });
        throw new Error('deliberately line 3');",
    );
    stage.expect_log("deliberately line 3", 1);
    stage.open(&world.publish(page).await).await;
    stage.hears("deliberately line 3").await;
    token_requests_reach(&world, 1).await;
    let before = stage
        .run("console.log('line 4'); return [typeof platform.loginUrl(), Date.now()]")
        .await;
    assert_eq!(before[0], json!("string"));
    assert_eq!(world.backend.calls("/api/first").len(), 0);
    let seen = stage
        .run(
            "release();
            const token = await window.token;
            return [(await (await answer).json()).length, token, (await player).id.length,
                token === await platform.getAccessToken()]",
        )
        .await;
    assert_eq!(
        (&seen[0], &seen[2], &seen[3]),
        (&json!(5), &json!(36), &json!(true))
    );
    let calls = world.backend.calls("/api/first");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].token(), seen[1].as_str());
    assert_eq!(calls[0].body, "early");
    assert_eq!(
        world.gateway.token_requests(),
        1,
        "the module takes the page's request"
    );

    stage.open(&world.url("arena", "/other.html")).await;
    world.record("line 4").await;
    let records = world.records();
    let lines: Vec<_> = records
        .iter()
        .filter_map(|record| record.message.split("line ").nth(1))
        .collect();
    assert_eq!(lines, ["1", "2", "3", "4"], "{records:?}");
    let released = before[1].as_f64().unwrap();
    assert!(records.iter().take(4).all(|record| record.time <= released));
}

async fn a_forced_caller_before_the_module_started_gets_a_later_token(stage: Stage) {
    let world = World::start().await;
    let page = held("window.first = platform.getAccessToken();");
    stage.open(&world.publish(page).await).await;
    token_requests_reach(&world, 1).await;
    let tokens = stage
        .run(
            "const forced = [1, 2].map(() => platform.getAccessToken({ forceRefresh: true }));
            release();
            return [await first, ...await Promise.all(forced)]",
        )
        .await;
    assert_ne!(tokens[0], tokens[1], "a forced caller gets a new token");
    assert_eq!(
        tokens[1], tokens[2],
        "forced callers of one moment share it"
    );
    assert_eq!(world.gateway.token_requests(), 2);
}

async fn a_page_that_leaves_before_the_module_started_sends_what_it_logged(stage: Stage) {
    let world = World::start().await;
    let page = held("console.log('the first line'); platform.reportError('and the last');");
    stage.open(&world.publish(page).await).await;
    stage.open(&world.url("arena", "/other.html")).await;
    world.record("and the last").await;
    let records = world.records();
    let messages: Vec<_> = records
        .iter()
        .map(|record| record.message.as_str())
        .collect();
    assert_eq!(messages, ["the first line", "and the last"]);
    assert_eq!(
        world.gateway.token_requests(),
        0,
        "nobody asked for a token"
    );
}

async fn a_game_that_logs_much_before_the_module_started_starts_it(stage: Stage) {
    let world = World::start().await;
    let page = held("for (let i = 0; i < 150; i++) console.log('line', i);").before(QUIET);
    stage.open(&world.publish(page).await).await;
    // Nothing moves the page's time: the number of records sends them.
    world.record("line 49").await;
    assert_eq!(world.records()[0].message, "line 0");
}

async fn login_and_profile_addresses_come_at_once_and_lead_back(stage: Stage) {
    let world = World::start().await;
    let page = format!("{}?level=3#top", world.publish(PageBuilder::new()).await);
    stage.open(&page).await;
    let parts = "const parts = address => { const url = new URL(address); return [url.origin + url.pathname, url.searchParams.get('redirect')] };
        return [parts(platform.loginUrl()), parts(platform.loginUrl('/after?x=1&y=2')), parts(platform.loginUrl(null)), parts(platform.profileUrl())]";
    let login = world.url("auth", "/login");
    let expected = json!([
        [login, page],
        [login, world.url("arena", "/after?x=1&y=2")],
        [login, page],
        [world.url("auth", "/profile"), page],
    ]);
    assert_eq!(stage.run(parts).await, expected);
    assert_eq!(world.gateway.token_requests(), 0);
}

async fn null_means_not_given_in_every_optional_argument(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.publish(PageBuilder::new()).await).await;
    let same = "const token = await platform.getAccessToken(null);
        return [token === await platform.getAccessToken({ forceRefresh: null }), (await platform.fetch('/api/any', null)).status,
            platform.loginUrl(null) === platform.loginUrl(), platform.profileUrl(null) === platform.profileUrl()]";
    assert_eq!(stage.run(same).await, json!([true, 200, true, true]));
    assert_eq!(world.gateway.token_requests(), 1);
    stage
        .run("history.replaceState(null, '', '/?somewhere'); void platform.signOut(null)")
        .await;
    stage.arrives_at(&world.url("arena", "/")).await;
}

async fn a_page_asks_nobody_but_its_game_and_the_auth_service(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.url("demo", "/")).await;
    stage.run("await platform.fetch('/api/me')").await;
    stage.settle().await;
    let own = [world.url("demo", "/"), world.url("auth", "/")];
    let requests = stage.requests();
    assert!(
        requests
            .iter()
            .any(|request| request.url == world.url("auth", "/token")),
        "{requests:?}"
    );
    for request in requests {
        let inside = own.iter().any(|own| request.url.starts_with(own));
        assert!(inside || request.url.starts_with("data:"), "{request:?}");
    }
}
