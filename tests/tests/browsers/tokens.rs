//! When a token is requested, and when not.

use std::sync::Arc;

use platform_tests::browser::Stage;
use platform_tests::gateway::{Fault, Gate};
use platform_tests::world::{PageBuilder, World};
use reqwest::Method;
use serde_json::{Value, json};

platform_tests::browser_tests![
    fifty_callers_at_once_share_one_request,
    a_wrong_device_clock_costs_no_call_and_no_request,
    the_edge_limit_on_guests_is_waited_out_once,
    an_overloaded_platform_is_asked_again_once_after_the_time_that_it_names,
    no_call_fails_while_the_signing_key_is_rotated;
    in Chromium, because "what is asked when is the runtime's own rule":
    forced_callers_share_one_request_that_starts_after_the_one_before,
    a_failure_without_an_answer_is_shared_for_a_second,
    a_failed_refresh_keeps_the_token_that_is_still_good,
    a_refusal_arrives_as_the_problem_that_it_is,
    a_call_without_a_token_rejects_before_anything_is_sent,
];

async fn fifty_callers_at_once_share_one_request(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.publish(PageBuilder::new()).await).await;
    let distinct = "const tokens = await Promise.all(Array.from({ length: 50 }, () => platform.getAccessToken()));
        return [tokens.length, new Set(tokens).size]";
    assert_eq!(stage.run(distinct).await, json!([50, 1]));
    assert_eq!(world.gateway.token_requests(), 1);
    stage
        .run("await Promise.all(Array.from({ length: 50 }, () => platform.fetch('/api/any')))")
        .await;
    assert_eq!(
        world.gateway.token_requests(),
        1,
        "calls use the token that is there"
    );
    assert_eq!(world.backend.calls("/api/any").len(), 50);
}

async fn forced_callers_share_one_request_that_starts_after_the_one_before(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.publish(PageBuilder::new()).await).await;
    let gate = Gate::closed();
    world
        .gateway
        .spoil(Method::POST, "/token", Fault::Hold(Arc::clone(&gate)), 1);
    stage.run("window.first = platform.getAccessToken()").await;
    gate.reached_by(1).await;
    // The second script ends after a request of the page's own has gone to the gateway and back, so
    // a request that is too early would have arrived.
    stage
        .run(
            "window.forced = [1, 2].map(() => platform.getAccessToken({ forceRefresh: true }));
            await (await fetch('/')).text()",
        )
        .await;
    assert_eq!(
        world.gateway.token_requests(),
        1,
        "a forced request waits for the one before"
    );
    gate.open();
    let tokens = stage
        .run("return [await first, ...await Promise.all(forced)]")
        .await;
    let requests = world.gateway.seen(&Method::POST, "/token");
    assert_eq!(
        requests.len(),
        2,
        "two forced callers of one moment share a request"
    );
    assert!(Some(requests[1].arrived) > requests[0].answered);
    assert_ne!(tokens[0], tokens[1], "a forced caller gets a new token");
    assert_eq!(tokens[1], tokens[2]);
    let now = stage.run("return platform.getAccessToken()").await;
    assert_eq!(now, tokens[1], "the newest token is the one that is kept");
    assert_eq!(world.gateway.token_requests(), 2);
}

/// Simulates a device whose calendar is `skew` ms wrong, and whose clocks a test can advance
/// together through `window.jump`.
fn clock(skew: i64) -> String {
    format!(
        "<script>
        const RealDate = Date, realNow = performance.now.bind(performance);
        window.jump = 0;
        const now = () => RealDate.now() + {skew} + window.jump;
        window.Date = class Date extends RealDate {{
            constructor(...parts) {{ if (parts.length) super(...parts); else super(now()); }}
            static now() {{ return now(); }}
        }};
        performance.now = () => realNow() + window.jump;
        // A hidden page does not count its player, for which a new guest would ask once more.
        Object.defineProperty(document, 'hidden', {{ value: true }});
        </script>"
    )
}

/// Plays for fourteen minutes; returns the tokens that were used.
const PLAY: &str = "
    const tokens = [];
    for (const minutes of [0, 0, 5, 13, 14, 14]) {
        window.jump = minutes * 60_000;
        await platform.fetch('/api/play');
        tokens.push(await platform.getAccessToken());
    }
    return [new Set(tokens).size, tokens[0] === tokens[3], tokens[4] === tokens[5]]";

async fn a_wrong_device_clock_costs_no_call_and_no_request(stage: Stage) {
    let day = 24 * 60 * 60 * 1_000;
    for skew in [0, day, -day] {
        let world = World::start().await;
        stage
            .open(&world.publish(PageBuilder::new().before(&clock(skew))).await)
            .await;
        let played = stage.run(PLAY).await;
        assert_eq!(
            played,
            json!([2, true, true]),
            "a clock that is wrong by {skew} ms"
        );
        assert_eq!(
            world.gateway.token_requests(),
            2,
            "a clock that is wrong by {skew} ms"
        );
        assert_eq!(world.backend.calls("/api/play").len(), 6);
    }
}

/// Requests a token; returns the token, or the members of the error.
const ASK: &str = "try { return await platform.getAccessToken() } catch (error) {
    return [error instanceof platform.PlatformError, error.status, error.type, error.requestId, /^[A-Z].*\\.$/.test(error.message)] }";

fn no_answer() -> Value {
    json!([true, 0, "", "", true])
}

/// Drops the next token request without a response.
fn lose_a_token(stage: &Stage, world: &World) {
    // Firefox reports it with its own message, since it sees no cross-origin response.
    stage.tolerate_log("CORS request did not succeed");
    world.gateway.spoil(Method::POST, "/token", Fault::Drop, 1);
}

async fn a_failure_without_an_answer_is_shared_for_a_second(stage: Stage) {
    let world = World::start().await;
    stage
        .open(&world.publish(PageBuilder::new().before(&clock(0))).await)
        .await;
    lose_a_token(&stage, &world);
    let calls = format!(
        "const ask = async () => {{ {ASK} }}; return [await ask(), await ask(), await ask()]"
    );
    assert_eq!(
        stage.run(&calls).await,
        json!([no_answer(), no_answer(), no_answer()])
    );
    assert_eq!(
        world.gateway.token_requests(),
        1,
        "calls within a second share the failure"
    );
    stage.run("window.jump = 1_500").await;
    assert!(
        stage.run(ASK).await.is_string(),
        "a second later the platform is asked again"
    );
    assert_eq!(world.gateway.token_requests(), 2);
}

async fn a_failed_refresh_keeps_the_token_that_is_still_good(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.publish(PageBuilder::new()).await).await;
    let good = stage.run(ASK).await;
    assert!(good.is_string());
    lose_a_token(&stage, &world);
    let forced = ASK.replace("getAccessToken()", "getAccessToken({ forceRefresh: true })");
    assert_eq!(stage.run(&forced).await, no_answer());
    assert_eq!(stage.run(ASK).await, good);
    let answer = stage
        .run("return (await platform.fetch('/api/any')).status")
        .await;
    assert_eq!(answer, json!(200));
    assert_eq!(world.gateway.token_requests(), 2);
}

async fn a_refusal_arrives_as_the_problem_that_it_is(stage: Stage) {
    let world = World::start().await;
    let page = world.publish(PageBuilder::new()).await;
    for (status, slug) in [(429, "guest-limit-reached"), (403, "account-suspended")] {
        world.refuse_tokens(status, slug, "This is a sentence for the player.", 1);
        stage.open(&page).await;
        let body = format!(
            "try {{ await platform.fetch('/api/any') }} catch (error) {{
                return [error.is('{slug}'), error.is('other'), error.is(error.type), error.status, error.type, error.message, error.requestId]
            }}"
        );
        let kind = world.url("auth", &format!("/problems/{slug}"));
        let expected = json!([
            true,
            false,
            true,
            status,
            kind,
            "This is a sentence for the player.",
            "of-this-request"
        ]);
        assert_eq!(stage.run(&body).await, expected);
    }
    // The rate limit on guest creation has no problem body.
    limit_guests(&world, "31", 1);
    stage.open(&page).await;
    assert_eq!(stage.run(ASK).await, json!([true, 429, "", "", true]));
}

/// Responds to the next token requests like the rate limit on guest creation.
fn limit_guests(world: &World, seconds: &str, times: usize) {
    refuse(
        world,
        (429, "text/plain", "Too many requests\n"),
        seconds,
        times,
    );
}

/// Responds to the next token requests with this status, media type and body, and with a time to wait.
fn refuse(world: &World, (status, kind, body): (u16, &str, &str), seconds: &str, times: usize) {
    let headers = vec![
        ("content-type", kind.to_owned()),
        ("retry-after", seconds.to_owned()),
        ("access-control-allow-origin", world.url("arena", "")),
        ("access-control-allow-credentials", "true".to_owned()),
        (
            "access-control-expose-headers",
            "X-Request-Id, Retry-After".to_owned(),
        ),
    ];
    let answer = Fault::Answer {
        status,
        headers,
        body: body.as_bytes().to_vec(),
    };
    world.gateway.spoil(Method::POST, "/token", answer, times);
}

async fn an_overloaded_platform_is_asked_again_once_after_the_time_that_it_names(stage: Stage) {
    let world = World::start().await;
    let problem = r#"{"type":"https://x.example/problems/unavailable","detail":"Come again."}"#;
    let refusal = (503, "application/problem+json", problem);
    stage.tolerate_log("503");
    // And up to half as long again.
    refuse(&world, refusal, "2", 1);
    stage
        .open(&world.publish(PageBuilder::new().clock()).await)
        .await;
    let wait = format!(
        "window.first = (async () => {{ {ASK} }})(); await (await fetch('/')).text(); await pass(1); await (await fetch('/')).text()"
    );
    stage.run(&wait).await;
    assert_eq!(world.gateway.token_requests(), 1, "it waits");
    // Before the page counts its player, for which a new guest asks once more.
    assert!(stage.run("await pass(3); return first").await.is_string());
    assert_eq!(world.gateway.token_requests(), 2);

    stage.browser().renew().await;
    refuse(&world, refusal, "2", 2);
    stage.open(&world.url("arena", "/")).await;
    stage.run(&wait).await;
    // Before the page counts its player, for which it would ask once more.
    let told = stage.run("await pass(3); return first").await;
    let kind = "https://x.example/problems/unavailable";
    assert_eq!(told, json!([true, 503, kind, told[3], true]));
    assert_eq!(world.gateway.token_requests(), 4, "it asks again once");
}

async fn the_edge_limit_on_guests_is_waited_out_once(stage: Stage) {
    let world = World::start().await;
    // And up to half as long again: longer than the 5 s after which the page counts its player, who then waits as well.
    limit_guests(&world, "7", 1);
    stage
        .open(&world.publish(PageBuilder::new().clock()).await)
        .await;
    let wait = format!(
        "window.first = (async () => {{ {ASK} }})(); await (await fetch('/')).text(); await pass(4); await (await fetch('/')).text()"
    );
    stage.run(&wait).await;
    assert_eq!(world.gateway.token_requests(), 1, "it waits");
    assert!(stage.run("await pass(11); return first").await.is_string());
    // The page has waited to count its player, a new guest, and asks once more for that.
    world.beats_reach(1).await;
    assert_eq!(world.gateway.token_requests(), 3);

    stage.browser().renew().await;
    limit_guests(&world, "7", 2);
    stage.open(&world.url("arena", "/")).await;
    stage.run(&wait).await;
    let refused = json!([true, 429, "", "", true]);
    assert_eq!(stage.run("await pass(11); return first").await, refused);
    assert_eq!(world.gateway.token_requests(), 5, "it asks again once");
}

async fn a_call_without_a_token_rejects_before_anything_is_sent(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.publish(PageBuilder::new()).await).await;
    lose_a_token(&stage, &world);
    let error = stage
        .refused("await platform.fetch('/api/any', { method: 'POST', body: 'x' })")
        .await;
    assert_eq!(
        (error.name.as_str(), error.status),
        ("PlatformError", Some(0))
    );
    assert!(world.backend.calls("/api/any").is_empty());
}

/// Calls the backend without a pause until it is stopped.
const KEEP_PLAYING: &str = "
    window.playing = true; window.calls = 0; window.failures = [];
    (async () => {
        while (window.playing) {
            try { await platform.fetch('/api/me'); window.calls += 1 } catch (error) { window.failures.push(String(error)) }
        }
    })();";

/// Waits until the page has made some more calls, and returns the key of its token.
async fn play_on(stage: &Stage) -> Value {
    stage
        .run(
            "const enough = window.calls + 5;
            while (window.calls < enough && !window.failures.length) await platform.fetch('/api/me');
            return JSON.parse(atob((await platform.getAccessToken()).split('.')[0])).kid",
        )
        .await
}

async fn no_call_fails_while_the_signing_key_is_rotated(stage: Stage) {
    let world = World::start().await;
    stage.open(&world.url("demo", "/")).await;
    stage.run(KEEP_PLAYING).await;
    let first = play_on(&stage).await;
    world.rotate_keys().await;
    let published = play_on(&stage).await;
    assert_eq!(
        published, first,
        "a new key does not sign while verifiers do not know it"
    );
    for minutes in [7, 7, 8, 10, 15, 30] {
        world.pass_minutes(minutes).await;
        play_on(&stage).await;
    }
    stage
        .run("await platform.getAccessToken({ forceRefresh: true })")
        .await;
    let last = play_on(&stage).await;
    assert_ne!(last, first, "the new key signs by now");
    let failures = stage
        .run("window.playing = false; return window.failures")
        .await;
    assert_eq!(failures, json!([]));
}
