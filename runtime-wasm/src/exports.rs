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

/// Looks at the page: see [`flow::tick`].
#[wasm_bindgen]
pub fn tick(visible: bool, used: bool, interval: f64) {
    flow::tick(visible, used, interval);
}

/// The page goes away.
#[wasm_bindgen(js_name = goAway)]
pub fn leave() {
    flow::leave();
}

/// Keeps account of a log record: see [`flow::record`].
#[wasm_bindgen]
#[must_use]
pub fn record(same: u32, bytes: u32) -> i32 {
    flow::record(same, bytes)
}

/// Sends the log records that are kept. A page that is hidden may go away.
#[wasm_bindgen(js_name = sendLog)]
pub fn send_log(leaving: bool) {
    flow::send_log(leaving);
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
