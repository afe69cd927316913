//! The functions that JavaScript calls. They convert and delegate, nothing else.

use std::cell::RefCell;

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::flow;
use crate::log::{Log, Place};
use crate::presence::Presence;
use crate::token::Want;
use crate::web::task::{resume, spawn};
use crate::web::{Request, deferred, monotonic, promise};

thread_local! {
    static PRESENCE: RefCell<Presence> = const { RefCell::new(Presence::new()) };
    static LOG: RefCell<Log> = const { RefCell::new(Log::new()) };
}

/// The promise that task `number` waits for was settled.
#[wasm_bindgen]
pub fn settle(number: u32, fulfilled: bool, value: JsValue) {
    resume(number, if fulfilled { Ok(value) } else { Err(value) });
}

/// The page may have been asleep. `restored`: it comes from the back/forward cache, or the player
/// signed out. With `doubt`, a token that is not new is replaced.
#[wasm_bindgen]
pub fn wake(restored: bool, doubt: bool) {
    flow::wake(restored, doubt);
}

/// The current token, or undefined.
#[wasm_bindgen(js_name = heldToken)]
#[must_use]
pub fn held_token() -> JsValue {
    flow::held()
}

/// Notes whether the page is `visible`, and was `used` since the last look. Returns whether the
/// page counts its player now, at most once in `interval` milliseconds. Also makes a request that
/// has waited long enough.
#[wasm_bindgen]
#[must_use]
pub fn look(visible: bool, used: bool, interval: f64) -> bool {
    flow::go_on();
    let now = monotonic();
    PRESENCE.with_borrow_mut(|presence| presence.look(now, visible, used, interval))
}

/// The page goes away. Returns whether it sends a last heartbeat.
#[wasm_bindgen(js_name = goAway)]
#[must_use]
pub fn go_away() -> bool {
    PRESENCE.with_borrow_mut(Presence::leave)
}

/// A log record was made; `urgent` if it is an error. Returns what the page does with it: -1 to
/// append it, -2 to append it and send all, -3 to leave it out, else the index of the record that
/// it repeats.
#[wasm_bindgen(js_name = keepRecord)]
#[must_use]
pub fn keep_record(same: u32, bytes: u32, urgent: bool) -> i32 {
    let now = monotonic();
    match LOG.with_borrow_mut(|log| log.record(now, same, bytes, urgent)) {
        Place::Append => -1,
        Place::AppendAndSend => -2,
        Place::LeaveOut => -3,
        Place::Fold(at) => i32::try_from(at).unwrap_or(-3),
    }
}

/// Takes the kept records as a batch if they are due, or if `at_once`. Returns the batch's size in
/// bytes, negative if it may not outlive the page, or 0 for no batch.
#[wasm_bindgen(js_name = takeBatch)]
#[must_use]
pub fn take_batch(at_once: bool) -> i32 {
    let now = monotonic();
    LOG.with_borrow_mut(|log| log.take(now, at_once))
}

/// How many records were left out since the last call.
#[wasm_bindgen(js_name = takeLeftOut)]
#[must_use]
pub fn take_left_out() -> u32 {
    LOG.with_borrow_mut(Log::take_left_out)
}

/// A batch of this `size` and number of `records` ended. `pause` is 0 if it arrived, else
/// milliseconds until the next attempt, or negative if they are unknown. Returns whether its
/// records are put back in front.
#[wasm_bindgen(js_name = endBatch)]
#[must_use]
pub fn end_batch(size: i32, records: u32, pause: f64) -> bool {
    let now = monotonic();
    LOG.with_borrow_mut(|log| log.end(now, size, records, pause))
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

/// `platform.fetch`, with the request that the page made of its arguments. Not exported under that
/// name, which would hide the browser's own from the glue.
#[wasm_bindgen(js_name = call)]
#[must_use]
pub fn fetch(request: Request) -> Promise {
    start(flow::call(request))
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
