//! The steps of each call, between the rules and the browser's functions.

use std::cell::RefCell;

use wasm_bindgen::{JsCast, JsValue};

use crate::problem;
use crate::token::{Failure, Instant, Step, Tokens, Want};
use crate::web::task::{settled, spawn};
use crate::web::{self, Deferred, Request, Response};

thread_local! {
    static TOKENS: RefCell<Tokens<JsValue, JsValue, Deferred>> = const { RefCell::new(Tokens::new()) };
}

/// `platform.getAccessToken`: settles `who` now or later.
pub(crate) fn ask(want: Want<JsValue>, who: Deferred) {
    // The clocks are read before the tokens are borrowed: a page may have replaced them by its own,
    // which may ask for a token.
    let now = web::now();
    match TOKENS.with_borrow_mut(|tokens| tokens.ask(now, want, who)) {
        Step::Answer(who, answer) => tell(&who, answer),
        Step::Start(number) => spawn(obtain(number)),
        Step::Wait => {}
    }
}

type Page = Tokens<JsValue, JsValue, Deferred>;

/// The page may have been asleep.
pub(crate) fn wake(restored: bool, doubt: bool) {
    start(|tokens, now| tokens.wake(now, restored, doubt));
}

/// Time has passed.
pub(crate) fn go_on() {
    start(Tokens::go_on);
}

/// Starts the request that the tokens ask for, if any.
fn start(asked: impl FnOnce(&mut Page, Instant) -> Option<u32>) {
    let now = web::now();
    if let Some(number) = TOKENS.with_borrow_mut(|tokens| asked(tokens, now)) {
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

/// Requests a token for all callers that wait for it.
async fn obtain(number: u32) {
    // Callers of the same moment join before the request starts.
    let _ = settled(&web::shown()).await;
    let now = web::now();
    if !TOKENS.with_borrow_mut(|tokens| tokens.begin(now, number)) {
        return;
    }
    let outcome = exchange().await;
    let nothing = JsValue::UNDEFINED;
    let (token, error) = match &outcome {
        Ok((token, _)) => (token.clone(), nothing),
        Err((_, error)) => (nothing, error.clone()),
    };
    // Settling a promise runs none of the page's code at once, so no call comes in while the tokens
    // are borrowed.
    start(|tokens, now| {
        tokens.end(now, number, outcome, &mut |who, answer| {
            tell(&who, answer);
        })
    });
    // The page's own code may run here, and finds the new token.
    web::announce(&token, &error);
}

/// Exchanges the shared cookie, or the choice of a test player, for a token
/// and its life in milliseconds.
async fn exchange() -> Result<(JsValue, f64), (Failure, JsValue)> {
    if web::is_opaque() {
        let (sentence, kind) = problem::UNSUPPORTED_CONTEXT;
        let error = web::problem(0, sentence, kind, &JsValue::UNDEFINED);
        return Err((Failure::Refused, error));
    }
    let Ok(response) = settled(&web::mint()).await else {
        return Err((Failure::NoAnswer, no_answer()));
    };
    let response: Response = response.unchecked_into();
    let answer = read(&response, true).await;
    let milliseconds = web::seconds(&answer) * 1_000.0;
    if response.ok() {
        return match web::token(&answer) {
            Some(token) => Ok((token, milliseconds)),
            None => Err((Failure::NoAnswer, refusal(0, &answer))),
        };
    }
    let status = response.status();
    let error = refusal(status, &answer);
    let failure = if web::is_expired(&error) {
        Failure::SessionExpired
    } else if status == 429 {
        // The edge limit on guest creation; here a problem document names no time.
        Failure::Busy(milliseconds)
    } else {
        Failure::Refused
    };
    Err((failure, error))
}

/// `platform.fetch`.
pub(crate) async fn call(request: Request) -> Result<JsValue, JsValue> {
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
    let answer = read(&response, false).await;
    Err(refusal(response.status(), &answer))
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
    // WebKit rejects with a reason of its own in place of the signal's.
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
    // Test players have no session to end, so there is no response.
    if !ended.is_undefined() {
        let response: Response = ended.unchecked_into();
        if !response.ok() {
            let answer = read(&response, false).await;
            return Err(refusal(response.status(), &answer));
        }
    }
    TOKENS.with_borrow_mut(Tokens::forget);
    web::leave(&address)?;
    Ok(JsValue::UNDEFINED)
}

/// The current token, or undefined.
pub(crate) fn held() -> JsValue {
    let now = web::now();
    TOKENS.with_borrow(|tokens| tokens.held(now).cloned().unwrap_or_default())
}

/// What a response says. `minting`: it is the response to a request for a token.
async fn read(response: &Response, minting: bool) -> JsValue {
    settled(&web::answered(response, minting))
        .await
        .unwrap_or_default()
}

/// What a call rejects with after this response.
fn refusal(status: u16, answer: &JsValue) -> JsValue {
    web::problem(status, problem::sentence(status), "", answer)
}

fn no_answer() -> JsValue {
    refusal(0, &JsValue::UNDEFINED)
}
