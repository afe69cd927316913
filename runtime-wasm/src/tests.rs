//! The flows in a real browser, against a `fetch` of the test: which requests are made, how often,
//! and what the caller gets.

use js_sys::{Array, Function, Object, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue, closure::Closure};
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

use crate::exports::wake;
use crate::web::{self, get_access_token, sign_out};

wasm_bindgen_test_configure!(run_in_browser);

/// Installs a `fetch` that records every call as `METHOD url authorization body` and returns what
/// `answers` returns for the call: `[status, type, body]`, or nothing for no response. Then starts
/// the runtime anew, as far as the page can tell: the token is forgotten.
fn connect(answers: &str) -> Array {
    let calls = Array::new();
    let install = Function::new_with_args(
        "calls",
        &format!(
            "const answer = (url, token) => {{ {answers} }};
            globalThis.fetch = async (input, init) => {{
                const request = new Request(input, init);
                const token = request.headers.get('Authorization');
                const call = request.method + ' ' + new URL(request.url).pathname;
                calls.push([call, token, await request.text()].filter(Boolean).join(' '));
                if (request.signal.aborted) throw request.signal.reason;
                const made = answer(new URL(request.url).pathname, token);
                if (!made) throw new TypeError('network');
                const headers = {{ 'Content-Type': made[1], 'X-Request-Id': 'header-id' }};
                return new Response(made[2], {{ status: made[0], headers }});
            }};
            let minted = 0;
            globalThis.mint = () =>
                [200, 'application/json', JSON.stringify({{ access_token: 't' + ++minted, expires_in: 900 }})];"
        ),
    );
    install
        .call1(&JsValue::NULL, &calls)
        .expect("the fetch is in place");
    join_own_platform();
    calls
}

/// Connects page and module to a platform whose address is the page's: the auth service is then not
/// on another site.
fn join_own_platform() {
    let origin = eval("location.origin").as_string();
    join(&origin.expect("a page has an origin"), false);
}

/// Connects page and module, and forgets the token.
fn join(platform: &str, local: bool) {
    web::use_module(&wasm_bindgen::exports());
    web::connect("https://auth.play.example", platform, local);
    wake(true, false);
}

/// `platform.fetch`, as `loader.js` defines it.
fn fetch(input: JsValue, init: JsValue) -> Promise {
    match web::request(&input, &init) {
        Ok(request) => web::call(&request),
        Err(error) => Promise::reject(&error),
    }
}

fn called(calls: &Array) -> Vec<String> {
    calls.iter().filter_map(|call| call.as_string()).collect()
}

async fn ok(promise: Promise) -> JsValue {
    JsFuture::from(promise).await.expect("it is fulfilled")
}

async fn err(promise: Promise) -> JsValue {
    JsFuture::from(promise).await.expect_err("it is rejected")
}

fn get(value: &JsValue, member: &str) -> JsValue {
    Reflect::get(value, &member.into()).expect("a member")
}

fn init(pairs: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new();
    for (name, value) in pairs {
        Reflect::set(&object, &(*name).into(), value).expect("a plain object");
    }
    object.into()
}

fn eval(code: &str) -> JsValue {
    js_sys::eval(code).expect("the test's own code")
}

#[wasm_bindgen_test]
async fn simultaneous_callers_make_one_request() {
    let calls = connect("return mint()");
    let all = (0..50).map(|_| get_access_token(false)).collect::<Array>();
    let tokens = ok(Promise::all(&all)).await;
    assert!(Array::from(&tokens).iter().all(|token| token == "t1"));
    assert_eq!(called(&calls), ["POST /token"]);
    let both = [get_access_token(true), get_access_token(true)]
        .into_iter()
        .collect::<Array>();
    let tokens = ok(Promise::all(&both)).await;
    assert!(Array::from(&tokens).iter().all(|token| token == "t2"));
    assert_eq!(called(&calls).len(), 2);
}

#[wasm_bindgen_test]
async fn a_call_carries_the_token_and_the_caller_s_headers() {
    let calls = connect("return url == '/token' ? mint() : [200, 'text/plain', 'pong']");
    let headers = init(&[("Authorization", "mine".into())]);
    let response = ok(fetch("/ping".into(), init(&[("headers", headers)]))).await;
    let response: web_sys::Response = response.unchecked_into();
    assert_eq!(ok(response.text().expect("a body")).await, "pong");
    assert_eq!(called(&calls), ["POST /token", "GET /ping Bearer t1"]);
}

#[wasm_bindgen_test]
async fn a_401_is_sent_again_once_with_another_token_and_the_whole_body() {
    let calls = connect(
        "return url == '/token' ? mint() : token == 'Bearer t1' ? [401, '', ''] : [200, '', '']",
    );
    let post = init(&[("method", "POST".into()), ("body", "hello".into())]);
    ok(fetch("/save".into(), post)).await;
    let expected = [
        "POST /token",
        "POST /save Bearer t1 hello",
        "POST /token",
        "POST /save Bearer t2 hello",
    ];
    assert_eq!(called(&calls), expected);

    let calls = connect("return url == '/token' ? mint() : [401, '', '']");
    let error = err(fetch("/save".into(), JsValue::NULL)).await;
    assert_eq!(get(&error, "status"), 401);
    assert_eq!(called(&calls).len(), 4, "there is never a third time");
}

#[wasm_bindgen_test]
async fn a_failed_answer_becomes_an_error_with_the_body_s_members() {
    connect(
        "return url == '/token' ? mint() : [409, 'application/problem+json',
            JSON.stringify({ type: 'https://game.example/p#taken', detail: 'Taken.', request_id: 'r1' })]",
    );
    let error = err(fetch("/name".into(), JsValue::UNDEFINED)).await;
    assert_eq!(get(&error, "name"), "PlatformError");
    assert_eq!(get(&error, "message"), "Taken.");
    assert_eq!(get(&error, "requestId"), "r1");
    let is: Function = get(&error, "is").unchecked_into();
    assert_eq!(is.call1(&error, &"taken".into()), Ok(JsValue::TRUE));
    assert_eq!(is.call1(&error, &"aken".into()), Ok(JsValue::FALSE));
}

#[wasm_bindgen_test]
async fn a_failed_answer_without_a_readable_body_has_a_plain_sentence() {
    for body in [
        "'not json'",
        "'[1]'",
        "'null'",
        "''",
        "'{\"detail\":7,\"type\":null}'",
    ] {
        connect(&format!(
            "return url == '/token' ? mint() : [500, 'application/json', {body}]"
        ));
        let error = err(fetch("/x".into(), JsValue::UNDEFINED)).await;
        let sentence = "Something went wrong. Please try again.";
        assert_eq!(get(&error, "message"), sentence, "{body}");
        assert_eq!(get(&error, "type"), "");
        assert_eq!(get(&error, "requestId"), "header-id");
    }
}

#[wasm_bindgen_test]
async fn every_status_has_a_sentence_for_the_player() {
    let mut sentences = Vec::new();
    for status in ["401", "403", "404", "429", "500"] {
        connect(&format!(
            "return url == '/token' ? mint() : [{status}, '', '']"
        ));
        let error = err(fetch("/x".into(), JsValue::UNDEFINED)).await;
        let sentence = get(&error, "message").as_string().expect("a sentence");
        assert!(sentence.ends_with('.'), "{status}: {sentence}");
        assert!(!sentences.contains(&sentence), "{status}: {sentence}");
        sentences.push(sentence);
    }
}

#[wasm_bindgen_test]
async fn without_a_token_nothing_is_sent_and_the_error_is_the_token_s() {
    let calls = connect(
        "return [403, 'application/problem+json', JSON.stringify({ type: 'x/account-suspended', detail: 'No.' })]",
    );
    let error = err(fetch("/ping".into(), JsValue::UNDEFINED)).await;
    assert_eq!(get(&error, "message"), "No.");
    assert_eq!(called(&calls), ["POST /token"]);
}

#[wasm_bindgen_test]
async fn code_of_the_page_that_runs_with_every_promise_keeps_nobody_waiting() {
    connect("return mint()");
    let before = get_access_token(false);
    let queued = get_access_token(true);
    // Resolving with an object reads its `then`, which may be the page's.
    let ask = Closure::<dyn Fn() -> Promise>::new(|| get_access_token(true));
    let install = Function::new_with_args(
        "ask",
        "globalThis.later = [];
        Object.defineProperty(Object.prototype, 'then', {
            configurable: true,
            get() { if (later.length < 5) later.push(ask().catch(String)); },
        });",
    );
    let installed = install.call1(&JsValue::NULL, ask.as_ref());
    installed.expect("the getter is in place");
    for token in [before, queued] {
        assert!(ok(token).await.is_string());
    }
    eval("delete Object.prototype.then");
    let later = Array::from(&eval("later"));
    for token in ok(Promise::all(&later))
        .await
        .unchecked_into::<Array>()
        .iter()
    {
        assert!(
            token
                .as_string()
                .is_some_and(|token| token.starts_with('t'))
        );
    }
}

#[wasm_bindgen_test]
async fn what_cannot_be_read_is_an_error_with_the_status() {
    connect("return url == '/token' ? mint() : [500, 'application/json', '{}']");
    ok(get_access_token(false)).await;
    eval(
        "globalThis.nativeJson = Response.prototype.json;
        Response.prototype.json = () => { throw new Error('mine') }",
    );
    let error = err(fetch("/x".into(), JsValue::UNDEFINED)).await;
    eval("Response.prototype.json = nativeJson");
    assert_eq!(get(&error, "name"), "PlatformError");
    assert_eq!(get(&error, "status"), 500);
}

#[wasm_bindgen_test]
async fn no_answer_is_status_0() {
    let calls = connect("return url == '/token' ? mint() : undefined");
    let error = err(fetch("/ping".into(), JsValue::UNDEFINED)).await;
    assert_eq!(get(&error, "status"), 0);
    assert_eq!(called(&calls).len(), 2);
}

#[wasm_bindgen_test]
async fn other_addresses_and_streams_reject_before_a_token_is_asked_for() {
    let calls = connect("return mint()");
    let other = [
        "https://other.example/",
        "//other.example/x",
        "\\\\other.example",
        "javascript:alert(1)",
        "data:,x",
        "ftp://x/",
        "http://",
    ];
    for address in other {
        let error = err(fetch(address.into(), JsValue::UNDEFINED)).await;
        assert_eq!(get(&error, "name"), "TypeError", "{address}");
    }
    let blob = eval("URL.createObjectURL(new Blob(['x']))");
    assert_eq!(
        get(&err(fetch(blob, JsValue::UNDEFINED)).await, "name"),
        "TypeError"
    );
    let stream = eval("({ method: 'POST', body: new ReadableStream(), duplex: 'half' })");
    assert_eq!(
        get(&err(fetch("/x".into(), stream)).await, "name"),
        "TypeError"
    );
    let request = eval("new Request('/x', { method: 'POST', body: 'x' })");
    assert_eq!(
        get(&err(fetch(request, JsValue::UNDEFINED)).await, "name"),
        "TypeError"
    );
    assert_eq!(called(&calls), [""; 0]);
}

#[wasm_bindgen_test]
async fn what_is_checked_is_what_is_sent() {
    let calls = connect(
        "return url == '/token' ? mint() : token == 'Bearer t1' ? [401, '', ''] : [200, '', '']",
    );
    let fickle = eval(
        "let read = 0; ({ url: '/checked', toString: () => (read++ ? 'https://evil.example/' : '/first') })",
    );
    ok(fetch(fickle, JsValue::UNDEFINED)).await;
    let options = eval("globalThis.options = { method: 'POST', body: 'first' }");
    let call = fetch("/save".into(), options);
    eval("options.body = 'second'");
    ok(call).await;
    let sent = called(&calls);
    assert!(
        sent.iter()
            .all(|call| !call.contains("evil") && !call.contains("second")),
        "{sent:?}"
    );
    let no_cors = init(&[("mode", "no-cors".into())]);
    assert_eq!(
        get(&err(fetch("/x".into(), no_cors)).await, "name"),
        "TypeError"
    );
}

#[wasm_bindgen_test]
async fn options_that_throw_reject_and_leave_the_runtime_whole() {
    connect("return url == '/token' ? mint() : [200, '', '']");
    let thrower = eval("({ get body() { throw 'mine' } })");
    for _ in 0..5_000 {
        assert_eq!(err(fetch("/x".into(), thrower.clone())).await, "mine");
    }
    ok(fetch("/x".into(), JsValue::UNDEFINED)).await;
}

#[wasm_bindgen_test]
async fn an_abort_rejects_with_the_signal_s_reason() {
    let calls = connect("return mint()");
    let aborted = init(&[("signal", eval("AbortSignal.abort('why')"))]);
    assert_eq!(err(fetch("/x".into(), aborted)).await, "why");
    assert_eq!(called(&calls), [""; 0]);

    // While the request for the token is under way, which never ends here.
    connect("");
    eval(
        "globalThis.fetch = () => new Promise(() => {}); globalThis.controller = new AbortController()",
    );
    join("https://play.example", false);
    let call = fetch("/x".into(), init(&[("signal", eval("controller.signal"))]));
    eval("controller.abort('enough')");
    assert_eq!(err(call).await, "enough");
}

#[wasm_bindgen_test]
fn only_the_platform_and_its_sub_domains_are_on_the_platform() {
    join("https://play.example:8443", false);
    let cases = [
        ("https://play.example:8443", true),
        ("https://PLAY.example:8443/path", true),
        ("https://auth.play.example:8443", true),
        ("https://dev-demo.play.example:8443", true),
        ("http://play.example:8443", false),
        ("https://play.example", false),
        ("https://evilplay.example:8443", false),
        ("https://play.example:8443@evil.example", false),
        ("https://play.example.evil.example:8443", false),
        ("https://evil.example", false),
        ("javascript://play.example:8443", false),
        ("data:,", false),
    ];
    for (address, expected) in cases {
        assert_eq!(
            web::destination(&address.into()).is_ok(),
            expected,
            "{address}"
        );
    }
}

#[wasm_bindgen_test]
async fn signing_out_leads_nowhere_else_and_fails_without_leaving() {
    let calls = connect("return [503, '', '']");
    let error = err(sign_out(&"https://evil.example/".into())).await;
    assert_eq!(get(&error, "name"), "TypeError");
    assert_eq!(called(&calls), [""; 0]);
    let error = err(sign_out(&JsValue::NULL)).await;
    assert_eq!(get(&error, "status"), 503);
    assert_eq!(called(&calls), ["POST /sign-out"]);
}

#[wasm_bindgen_test]
async fn a_game_on_another_site_asks_its_own_address() {
    let calls = connect("return url == '/__platform/token' ? mint() : [503, '', '']");
    join("https://play.example", false);
    assert_eq!(ok(get_access_token(false)).await, "t1");
    let error = err(sign_out(&JsValue::NULL)).await;
    assert_eq!(get(&error, "status"), 503);
    assert_eq!(
        called(&calls),
        ["POST /__platform/token", "POST /__platform/sign-out"]
    );
}

#[wasm_bindgen_test]
async fn a_local_dev_server_gives_test_players_and_its_reasons_are_relayed() {
    let calls = connect("return mint()");
    join("https://play.example", true);
    assert_eq!(ok(get_access_token(false)).await, "t1");
    assert_eq!(called(&calls), ["POST /__platform/token/guest/1"]);

    connect(
        "return [401, 'application/problem+json', JSON.stringify({ type: 'x/not-signed-in', detail: 'Log in.' })]",
    );
    join("https://play.example", true);
    assert_eq!(
        get(&err(get_access_token(false)).await, "message"),
        "Log in."
    );

    for answer in [
        "[404, 'text/html', '<h1>']",
        "[200, 'text/html', '<h1>']",
        "[405, '', '']",
        "[500, 'application/json', '{\"error\":1}']",
    ] {
        connect(&format!("return {answer}"));
        join("https://play.example", true);
        let error = err(get_access_token(false)).await;
        let message = get(&error, "message").as_string().expect("a sentence");
        let status = &answer[1..4];
        let said = format!("The dev server gave no test player ({status})");
        assert!(message.starts_with(&said), "{message}");
        assert!(message.contains("`platform dev`"), "{message}");
    }
}

#[wasm_bindgen_test]
fn a_problem_is_found_by_its_whole_type_or_its_last_segment() {
    let cases = [
        ("session-expired", "session-expired", true),
        (
            "https://auth.example/problems/session-expired",
            "session-expired",
            true,
        ),
        ("https://game.example/p#out-of-coins", "out-of-coins", true),
        ("urn:game:out-of-coins", "out-of-coins", true),
        ("urn:game:out-of-coins", "coins", false),
        ("urn:game:out-of-coins", "urn:game:out-of-coins", true),
        (
            "https://a/problems/session-expired",
            "problems/session-expired",
            false,
        ),
        (
            "https://a/problems/session-expired/",
            "session-expired",
            false,
        ),
        (
            "https://a/problems/Session-Expired",
            "session-expired",
            false,
        ),
        ("", "session-expired", false),
    ];
    for (type_uri, slug, expected) in cases {
        let error = web::problem(0, "", type_uri, &JsValue::UNDEFINED);
        let is: Function = get(&error, "is").unchecked_into();
        let found = is.call1(&error, &slug.into());
        assert_eq!(found, Ok(expected.into()), "{type_uri:?} is {slug:?}");
    }
}
