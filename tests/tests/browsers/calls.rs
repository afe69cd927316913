//! `platform.fetch`: the requests that leave the page.

use std::sync::Arc;

use platform_tests::backend::{Answer, Call};
use platform_tests::browser::Stage;
use platform_tests::gateway::{Fault, Gate};
use platform_tests::world::{PageBuilder, World};
use reqwest::Method;
use serde_json::json;

platform_tests::browser_tests![
    a_refused_token_is_replaced_once_and_the_body_arrives_whole_both_times,
    the_second_refusal_is_final,
    other_addresses_reject_with_type_error_and_nothing_leaves,
    bodies_that_cannot_be_sent_twice_reject_with_type_error_and_nothing_leaves,
    paths_and_addresses_of_the_game_itself_are_called,
    the_callers_headers_stay_and_authorization_is_the_platforms,
    an_abort_rejects_with_the_signals_reason,
];

/// Opens a page that contains only the tag.
pub(crate) async fn open(stage: &Stage) -> World {
    let world = World::start().await;
    stage.open(&world.publish(PageBuilder::new()).await).await;
    world
}

/// The response of a backend that does not accept the token.
const REFUSED: Answer = Answer {
    status: 401,
    headers: &[("content-type", "application/problem+json")],
    body: r#"{"type":"about:blank","title":"Unauthorized","status":401,"detail":"Who are you?"}"#,
};

/// Asserts that there were two calls with two different tokens.
fn two_calls(world: &World, path: &str) -> [Call; 2] {
    let calls: [Call; 2] = world
        .backend
        .calls(path)
        .try_into()
        .expect("exactly two calls");
    assert!(calls.iter().all(|call| call.token().is_some()));
    assert_ne!(
        calls[0].token(),
        calls[1].token(),
        "the second call has another token"
    );
    calls
}

async fn a_refused_token_is_replaced_once_and_the_body_arrives_whole_both_times(stage: Stage) {
    let world = open(&stage).await;
    let post = |path: &str, body: &str| {
        world.backend.answer(path, [REFUSED]);
        format!(
            "return (await platform.fetch('{path}', {{ method: 'POST', body: {body} }})).status"
        )
    };

    let text = post("/api/text", "'grüße ☃ '.repeat(5000)");
    assert_eq!(stage.run(&text).await, json!(200));
    for call in two_calls(&world, "/api/text") {
        assert_eq!(call.body, "grüße ☃ ".repeat(5000));
    }

    let blob = post(
        "/api/blob",
        "new Blob([Uint8Array.from({ length: 300_000 }, (_, i) => i * 7)], { type: 'application/x-save' })",
    );
    assert_eq!(stage.run(&blob).await, json!(200));
    let bytes: Vec<u8> = (0..300_000_u32).map(|i| (i * 7) as u8).collect();
    for call in two_calls(&world, "/api/blob") {
        assert_eq!(call.headers["content-type"], "application/x-save");
        assert!(call.body == bytes, "the blob is whole");
    }

    let form = post(
        "/api/form",
        "(() => { const form = new FormData(); form.append('name', 'Ünal'); form.append('file', new File(['x'.repeat(70_000)], 'save.bin')); return form })()",
    );
    assert_eq!(stage.run(&form).await, json!(200));
    for call in two_calls(&world, "/api/form") {
        let kind = call.headers["content-type"]
            .to_str()
            .expect("a header is text");
        let boundary = kind
            .strip_prefix("multipart/form-data; boundary=")
            .expect("a form's type");
        let body = String::from_utf8_lossy(&call.body);
        assert!(
            body.trim_end().ends_with(&format!("--{boundary}--")),
            "the form's end is there"
        );
        assert!(
            body.contains("Ünal")
                && body.contains(&"x".repeat(70_000))
                && body.contains("save.bin")
        );
    }
    assert_eq!(
        world.gateway.token_requests(),
        4,
        "one token, and one more for each refusal"
    );
}

async fn the_second_refusal_is_final(stage: Stage) {
    let world = open(&stage).await;
    world
        .backend
        .answer("/api/never", [REFUSED, REFUSED, REFUSED]);
    let error = stage.refused("await platform.fetch('/api/never')").await;
    assert_eq!(
        (error.status, error.message.as_str()),
        (Some(401), "Who are you?")
    );
    two_calls(&world, "/api/never");
    let forbidden = Answer {
        status: 403,
        headers: &[],
        body: "",
    };
    world.backend.answer("/api/forbidden", [forbidden]);
    assert_eq!(
        stage
            .refused("await platform.fetch('/api/forbidden')")
            .await
            .status,
        Some(403)
    );
    assert_eq!(
        world.backend.calls("/api/forbidden").len(),
        1,
        "only a 401 is worth another token"
    );
    assert_eq!(world.gateway.token_requests(), 2);
}

/// Asserts that these scripts reject with the page's own `TypeError`, and neither send anything nor
/// request a token.
async fn demand_type_errors(stage: &Stage, world: &World, calls: &[String]) {
    stage.settle().await;
    let (requests, arrived) = (stage.requests(), world.gateway.count());
    for call in calls {
        let body = format!(
            "try {{ await platform.fetch({call}) }} catch (error) {{ return [error instanceof TypeError, error.name] }}"
        );
        assert_eq!(stage.run(&body).await, json!([true, "TypeError"]), "{call}");
    }
    // A request of the page's own arrives after any request that should not have been sent.
    stage.run("await (await fetch('/?last')).text()").await;
    stage.settle().await;
    let after: Vec<_> = stage
        .requests()
        .split_off(requests.len())
        .into_iter()
        .filter(|one| !one.url.ends_with("/?last"))
        .collect();
    assert_eq!(after, [], "no request leaves the page");
    assert_eq!(
        world.gateway.count(),
        arrived + 1,
        "nothing arrives, not even for a token"
    );
}

async fn other_addresses_reject_with_type_error_and_nothing_leaves(stage: Stage) {
    let world = open(&stage).await;
    let own = world.url("arena", "/");
    let host = own.trim_start_matches("http:").trim_matches('/');
    let mut addresses: Vec<String> = [
        "https://example.com/",
        "//example.com/x",
        "///example.com/x",
        r"\\\\example.com/x",
        r"/\\example.com/x",
        r"\\/example.com/x",
        r"http:\\\\example.com/",
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " javascript:alert(1)",
        "data:text/plain,hello",
        "blob:nothing",
        "file:///etc/passwd",
        "about:blank",
        "ftp://example.com/",
        "mailto:a@example.com",
        r"/\t/example.com/",
        r"\n//example.com/",
        "http://[",
        "http://localhost/",
        "http://127.0.0.1/",
    ]
    .map(|address| format!("'{address}'"))
    .to_vec();
    addresses.extend([
        format!("'https://{host}/'"),
        format!("'http://{host}.example.com/'"),
        format!("'http://{host}@example.com/'"),
        format!("'http://player:secret@{host}/api/any'"),
        format!("'{}'", world.url("demo", "/api/me")),
        format!("'{}'", world.url("auth", "/token")),
        format!("new URL('{}')", world.url("auth", "/token")),
        format!("new Request('{}')", world.url("demo", "/api/me")),
        "URL.createObjectURL(new Blob(['x']))".to_owned(),
    ]);
    demand_type_errors(&stage, &world, &addresses).await;
}

async fn bodies_that_cannot_be_sent_twice_reject_with_type_error_and_nothing_leaves(stage: Stage) {
    let world = open(&stage).await;
    let calls = [
        "'/api/any', { method: 'POST', duplex: 'half', body: new ReadableStream({ start(to) { to.close() } }) }",
        "'/api/any', { method: 'POST', duplex: 'half', body: new Blob(['x']).stream() }",
        "new Request('/api/any', { method: 'POST', body: 'x' })",
        "new Request('/api/any', { method: 'PUT', body: new Blob(['x']) })",
    ];
    demand_type_errors(&stage, &world, &calls.map(String::from)).await;
    assert!(world.backend.calls("/api/any").is_empty());
}

async fn paths_and_addresses_of_the_game_itself_are_called(stage: Stage) {
    let world = open(&stage).await;
    let own = world.url("arena", "/api/own");
    let inputs = [
        "'/api/own'".to_owned(),
        "'api/own'".to_owned(),
        "'./x/../api/own?q=1#part'".to_owned(),
        format!("'{own}'"),
        format!("'{}'", own.trim_start_matches("http:")),
        format!("'{}'", own.replace("http://arena", "HTTP://ARENA")),
        format!("new URL('{own}')"),
        format!("new Request('{own}')"),
        "'/api/own', null".to_owned(),
        "'/api/own', { method: 'DELETE' }".to_owned(),
    ];
    for input in &inputs {
        let body = format!("return (await platform.fetch({input})).status");
        assert_eq!(stage.run(&body).await, json!(200), "{input}");
    }
    let calls = world.backend.calls("/api/own");
    assert_eq!(calls.len(), inputs.len());
    assert_eq!(
        calls.last().map(|call| call.method.as_str()),
        Some("DELETE")
    );
    assert!(calls.iter().all(|call| call.token().is_some()));
    assert_eq!(world.gateway.token_requests(), 1);
}

async fn the_callers_headers_stay_and_authorization_is_the_platforms(stage: Stage) {
    let world = open(&stage).await;
    stage
        .run(
            "await platform.fetch('/api/headers', { method: 'POST', body: '{}',
                headers: { 'X-Level': '3', 'Content-Type': 'application/json', authorization: 'Basic c2VjcmV0' } });
            await platform.fetch('/api/headers', { headers: new Headers([['X-Level', '4']]) });
            await platform.fetch('/api/headers', { headers: [['X-Level', '5']] })",
        )
        .await;
    let calls = world.backend.calls("/api/headers");
    let levels: Vec<_> = calls
        .iter()
        .map(|call| call.headers["x-level"].to_str().expect("text"))
        .collect();
    assert_eq!(levels, ["3", "4", "5"]);
    assert_eq!(calls[0].headers["content-type"], "application/json");
    for call in &calls {
        assert_eq!(call.headers.get_all("authorization").iter().count(), 1);
        assert!(
            call.token().is_some(),
            "{:?}",
            call.headers.get("authorization")
        );
    }
}

async fn an_abort_rejects_with_the_signals_reason(stage: Stage) {
    let world = open(&stage).await;
    // Before any request.
    let early = "const reason = { enough: true };
        try { await platform.fetch('/api/early', { signal: AbortSignal.abort(reason) }) } catch (error) { return error === reason }";
    assert_eq!(stage.run(early).await, json!(true));
    assert_eq!(world.gateway.token_requests(), 0);
    // During the token request, then during the call.
    for (method, path) in [(Method::POST, "/token"), (Method::GET, "/api/late")] {
        let gate = Gate::closed();
        world
            .gateway
            .spoil(method, path, Fault::Hold(Arc::clone(&gate)), 1);
        stage
            .run(
                "window.reason = new Error('enough'); window.control = new AbortController();
                window.outcome = platform.fetch('/api/late', { signal: control.signal }).catch(error => error === window.reason)",
            )
            .await;
        gate.reached_by(1).await;
        let aborted = stage.run("control.abort(reason); return outcome").await;
        assert_eq!(aborted, json!(true), "aborted while {path} is held");
        gate.open();
    }
    let plain = "const control = new AbortController(); control.abort();
        try { await platform.fetch('/api/early', { signal: control.signal }) } catch (error) { return [error instanceof DOMException, error.name] }";
    assert_eq!(stage.run(plain).await, json!([true, "AbortError"]));
    assert!(world.backend.calls("/api/early").is_empty());
    assert!(
        stage
            .run("return platform.getAccessToken()")
            .await
            .is_string(),
        "the page plays on"
    );
}
