//! The only code that touches the browser: the functions of `page.js`, and
//! tasks that wait for promises.

pub(crate) mod task;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
pub(crate) use web_sys::{Request, Response, Url};

use crate::token::Instant;

#[wasm_bindgen(module = "/src/web/page.js")]
extern "C" {
    /// A promise with the functions that settle it.
    pub(crate) type Deferred;

    pub(crate) fn deferred() -> Deferred;
    pub(crate) fn fulfil(deferred: &Deferred, value: &JsValue);
    pub(crate) fn reject(deferred: &Deferred, reason: &JsValue);
    pub(crate) fn promise(deferred: &Deferred) -> Promise;

    #[cfg(test)]
    pub(crate) fn connect(settle: &JsValue, auth_url: &str, platform_origin: &str, local: bool);
    #[wasm_bindgen(js_name = isOpaque)]
    pub(crate) fn is_opaque() -> bool;
    pub(crate) fn shown() -> Promise;
    fn watch(promise: &Promise, task: u32);
    pub(crate) fn monotonic() -> f64;
    fn wall() -> f64;

    pub(crate) fn problem(status: u16, sentence: &str, kind: &str, answer: &JsValue) -> JsValue;
    #[wasm_bindgen(js_name = isExpired)]
    pub(crate) fn is_expired(error: &JsValue) -> bool;
    pub(crate) fn token(answer: &JsValue) -> Option<JsValue>;
    pub(crate) fn seconds(answer: &JsValue) -> f64;

    pub(crate) fn mint() -> Promise;
    pub(crate) fn announce(token: &JsValue, error: &JsValue);
    #[wasm_bindgen(js_name = endSession)]
    pub(crate) fn end_session() -> Promise;
    pub(crate) fn answered(response: &Response, minting: bool) -> Promise;
    // Functions that read the page's own objects may throw, and must be caught: an exception that
    // passes through the module would not restore its stack.
    #[cfg(test)]
    #[wasm_bindgen(catch)]
    pub(crate) fn request(input: &JsValue, init: &JsValue) -> Result<Request, JsValue>;
    #[wasm_bindgen(catch)]
    pub(crate) fn destination(redirect: &JsValue) -> Result<Url, JsValue>;
    pub(crate) fn copy(request: &Request) -> Request;
    pub(crate) fn send(request: &Request, token: &JsValue) -> Promise;
    pub(crate) fn abortable(promise: &Promise, request: &Request) -> Promise;
    #[wasm_bindgen(catch)]
    pub(crate) fn leave(url: &Url) -> Result<(), JsValue>;
}

/// Now, on both clocks.
pub(crate) fn now() -> Instant {
    Instant {
        monotonic: monotonic(),
        wall: wall(),
    }
}
