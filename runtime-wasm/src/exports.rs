//! What JavaScript calls: converts, delegates, nothing else.

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::flow;
use crate::token::Want;
use crate::web::task::{resume, spawn};
use crate::web::{deferred, promise};

/// A promise that the task `number` waits for was settled.
#[wasm_bindgen]
pub fn settle(number: u32, fulfilled: bool, value: JsValue) {
    resume(number, if fulfilled { Ok(value) } else { Err(value) });
}

/// The page may have slept; `restored` after the back/forward cache.
#[wasm_bindgen]
pub fn wake(restored: bool) {
    flow::wake(restored);
}

/// `platform.getAccessToken`.
#[wasm_bindgen(js_name = getAccessToken)]
#[must_use]
pub fn get_access_token(force: bool) -> Promise {
    let who = deferred();
    let answer = promise(&who);
    flow::ask(if force { Want::Fresh } else { Want::Any }, who);
    answer
}

/// `platform.fetch`. Not exported under that name, which would hide the
/// browser's own from the glue.
#[wasm_bindgen(js_name = call)]
#[must_use]
pub fn fetch(input: JsValue, init: JsValue) -> Promise {
    start(flow::call(input, init))
}

/// `platform.signOut`.
#[wasm_bindgen(js_name = signOut)]
#[must_use]
pub fn sign_out(redirect: JsValue) -> Promise {
    start(flow::sign_out(redirect))
}

fn start(steps: impl Future<Output = Result<JsValue, JsValue>> + 'static) -> Promise {
    let who = deferred();
    let answer = promise(&who);
    spawn(async move { flow::tell(&who, steps.await) });
    answer
}
