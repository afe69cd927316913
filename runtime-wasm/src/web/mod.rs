//! The only code that touches the browser: functions of `page.js`. Numbers alone pass between module
//! and page, so the module keeps no object of the page.

use wasm_bindgen::prelude::*;

use crate::token::Instant;

#[wasm_bindgen(module = "/src/web/page.js")]
extern "C" {
    // An exception that passes through the module would not restore its stack, and would leave what
    // is borrowed so: none of these may throw.
    pub(crate) fn monotonic() -> f64;
    fn wall() -> f64;

    /// Answers a caller: with the token in hand, or with the last failure.
    pub(crate) fn tell(caller: u32, has_token: bool);
    /// Starts the request of this number.
    pub(crate) fn exchange(number: u32);
}

#[cfg(test)]
#[wasm_bindgen(module = "/src/web/page.js")]
extern "C" {
    #[wasm_bindgen(js_name = useModule)]
    pub(crate) fn use_module(exports: &JsValue);
    pub(crate) fn connect(auth_url: &str, platform_origin: &str, local: bool);
    #[wasm_bindgen(js_name = getAccessToken)]
    pub(crate) fn get_access_token(forced: bool) -> js_sys::Promise;
    pub(crate) fn call(request: &web_sys::Request) -> js_sys::Promise;
    #[wasm_bindgen(js_name = signOut)]
    pub(crate) fn sign_out(redirect: &JsValue) -> js_sys::Promise;
    pub(crate) fn problem(status: u16, sentence: &str, kind: &str, answer: &JsValue) -> JsValue;
    #[wasm_bindgen(catch)]
    pub(crate) fn request(input: &JsValue, init: &JsValue) -> Result<web_sys::Request, JsValue>;
    #[wasm_bindgen(catch)]
    pub(crate) fn destination(redirect: &JsValue) -> Result<JsValue, JsValue>;
}

/// Now, on both clocks.
pub(crate) fn now() -> Instant {
    Instant {
        monotonic: monotonic(),
        wall: wall(),
    }
}
