//! The steps of each call, from the rules' answers to the browser's functions.

use std::cell::RefCell;

use platform_protocol::problem::Slug;
use wasm_bindgen::{JsCast, JsValue};

use crate::problem::{self, Body, NO_TEST_TOKEN, Problem};
use crate::token::{Failure, Step, Tokens, Want};
use crate::web::task::{settled, spawn};
use crate::web::{self, Deferred, Request, Response};

thread_local! {
    static TOKENS: RefCell<Tokens<JsValue, JsValue, Deferred>> = const { RefCell::new(Tokens::new()) };
}

/// `platform.getAccessToken`: answers `who` now or later.
pub(crate) fn ask(want: Want<JsValue>, who: Deferred) {
    // The clocks are read before the tokens are borrowed: a page may have put
    // its own in their place, which may ask for a token.
    let now = web::now();
    match TOKENS.with_borrow_mut(|tokens| tokens.ask(now, want, who)) {
        Step::Answer(who, answer) => tell(&who, answer),
        Step::Start(number) => spawn(obtain(number)),
        Step::Wait => {}
    }
}

/// The page may have slept.
pub(crate) fn wake(restored: bool) {
    let now = web::now();
    let lost = TOKENS.with_borrow_mut(|tokens| tokens.wake(now, restored));
    if let Some(number) = lost {
        spawn(obtain(number));
    }
}

/// Settles a promise.
pub(crate) fn tell(who: &Deferred, outcome: Result<JsValue, JsValue>) {
    match outcome {
        Ok(value) => web::fulfil(who, &value),
        Err(reason) => web::reject(who, &reason),
    }
}

/// Requests a token for all who wait for it.
async fn obtain(number: u32) {
    // Callers of the same moment join before the request starts.
    let _ = settled(&web::shown()).await;
    let now = web::now();
    if !TOKENS.with_borrow_mut(|tokens| tokens.begin(now, number)) {
        return;
    }
    let outcome = exchange().await;
    if web::is_local() {
        web::announce(
            outcome
                .as_ref()
                .err()
                .map_or(&JsValue::UNDEFINED, |(_, error)| error),
        );
    }
    let now = web::now();
    // Settling a promise runs none of the page's code at once, so nobody asks
    // again while the tokens are borrowed.
    let next = TOKENS.with_borrow_mut(|tokens| {
        tokens.end(now, number, outcome, &mut |who, answer| {
            tell(&who, answer);
        })
    });
    if let Some(number) = next {
        spawn(obtain(number));
    }
}

/// Exchanges the shared cookie, or the choice of a test player, for a token
/// and its life in milliseconds.
async fn exchange() -> Result<(JsValue, f64), (Failure, JsValue)> {
    if web::is_opaque() {
        return Err((Failure::Refused, raise(0, &problem::unsupported_context())));
    }
    let (status, body) = match settled(&web::mint()).await {
        Err(_) => (0, JsValue::UNDEFINED),
        Ok(response) => {
            let response: Response = response.unchecked_into();
            if !response.ok() {
                let problem = read(&response, web::is_local()).await;
                let error = raise(response.status(), &problem);
                let expired = web::is(&error, Slug::SessionExpired.as_str());
                let failure = if expired {
                    Failure::SessionExpired
                } else {
                    Failure::Refused
                };
                return Err((failure, error));
            }
            (
                200,
                settled(&web::json(&response)).await.unwrap_or_default(),
            )
        }
    };
    match web::text(&body, "access_token") {
        Some(token) => Ok((token, web::seconds(&body, "expires_in") * 1_000.0)),
        None if web::is_local() && status == 200 => Err((Failure::Refused, no_test_token())),
        None => Err((Failure::NoAnswer, no_answer())),
    }
}

/// `platform.fetch`.
pub(crate) async fn call(input: JsValue, init: JsValue) -> Result<JsValue, JsValue> {
    let request = web::request(&input, &init)?;
    let again = web::copy(&request);
    let token = token_for(&request, Want::Any).await?;
    let mut response = transmit(&request, &token).await?;
    if response.status() == 401 {
        let token = token_for(&again, Want::Other(token)).await?;
        response = transmit(&again, &token).await?;
    }
    if response.ok() {
        return Ok(response.into());
    }
    let problem = read(&response, false).await;
    Err(raise(response.status(), &problem))
}

async fn token_for(request: &Request, want: Want<JsValue>) -> Result<JsValue, JsValue> {
    let who = web::deferred();
    let promise = web::abortable(&web::promise(&who), request);
    if !request.signal().aborted() {
        ask(want, who);
    }
    settled(&promise).await
}

async fn transmit(request: &Request, token: &JsValue) -> Result<Response, JsValue> {
    // WebKit's own rejection has a reason of its own in place of the signal's.
    match settled(&web::abortable(&web::send(request, token), request)).await {
        Ok(response) => Ok(response.unchecked_into()),
        Err(reason) if request.signal().aborted() => Err(reason),
        Err(_) => Err(no_answer()),
    }
}

/// `platform.signOut`.
pub(crate) async fn sign_out(redirect: JsValue) -> Result<JsValue, JsValue> {
    let address = web::destination(&redirect)?;
    let Ok(ended) = settled(&web::end_session()).await else {
        return Err(no_answer());
    };
    // Among test players there is no session to end, and no answer.
    if !ended.is_undefined() {
        let response: Response = ended.unchecked_into();
        if !response.ok() {
            let problem = read(&response, false).await;
            return Err(raise(response.status(), &problem));
        }
    }
    TOKENS.with_borrow_mut(Tokens::forget);
    web::leave(&address)?;
    Ok(JsValue::UNDEFINED)
}

/// The token in hand, or undefined.
pub(crate) fn held() -> JsValue {
    let now = web::now();
    TOKENS.with_borrow(|tokens| tokens.held(now).cloned().unwrap_or_default())
}

/// What a failed answer says. `minting` is a local dev server's answer to a
/// request for a test player's token.
async fn read(response: &Response, minting: bool) -> Problem<JsValue> {
    let body = settled(&web::json(response)).await.unwrap_or_default();
    let body = Body {
        detail: web::text(&body, "detail"),
        type_uri: web::text(&body, "type"),
        request_id: web::text(&body, "request_id"),
    };
    let sentence = if minting {
        NO_TEST_TOKEN
    } else {
        problem::sentence(response.status())
    };
    problem::read(sentence, body, web::request_id(response))
}

fn raise(status: u16, problem: &Problem<JsValue>) -> JsValue {
    web::problem(
        status,
        &problem.message,
        &problem.type_uri,
        &problem.request_id,
    )
}

fn no_answer() -> JsValue {
    raise(
        0,
        &problem::read(problem::sentence(0), Body::default(), None),
    )
}

fn no_test_token() -> JsValue {
    raise(0, &problem::read(NO_TEST_TOKEN, Body::default(), None))
}
