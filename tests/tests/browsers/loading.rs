//! The tag: `platform` is defined when the game's first line runs.

use platform_tests::browser::Stage;
use platform_tests::world::{PageBuilder, World};
use serde_json::json;

platform_tests::browser_tests![
    platform_is_there_in_the_first_line_of_deferred_and_module_scripts,
    platform_is_frozen_and_has_exactly_its_members,
    two_tags_warn_once_and_leave_the_first_object,
    blocked_webassembly_is_said_once_and_every_call_rejects,
    an_engine_that_compiles_only_asynchronously_has_platform_at_once,
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
    assert_eq!(world.gateway.token_requests(), 0);
}

/// Like Chromium before version 114.
const ONLY_SMALL_MODULES: &str = r#"<script>
    const Native = WebAssembly.Module;
    WebAssembly.Module = function Module(bytes) {
        if (bytes.byteLength > 4096) {
            window.refusals = (window.refusals ?? 0) + 1;
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
        .run("return [atOnce, refusals, (await (await answer).json()).length]")
        .await;
    assert_eq!(seen, json!([["function", "string", true], 1, 5]));
    let token = stage.run("return token").await;
    assert_eq!(world.backend.calls("/api/first")[0].token(), token.as_str());
    assert_eq!(world.gateway.token_requests(), 1);
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
