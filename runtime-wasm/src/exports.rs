//! What JavaScript calls: converts, delegates, nothing else.

use std::cell::RefCell;

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::flow;
use crate::log::{Log, Place};
use crate::presence::Presence;
use crate::token::Want;
use crate::web::task::{resume, spawn};
use crate::web::{deferred, monotonic, promise};

thread_local! {
    static PRESENCE: RefCell<Presence> = const { RefCell::new(Presence::new()) };
    static LOG: RefCell<Log> = const { RefCell::new(Log::new()) };
}

/// A promise that the task `number` waits for was settled.
#[wasm_bindgen]
pub fn settle(number: u32, fulfilled: bool, value: JsValue) {
    resume(number, if fulfilled { Ok(value) } else { Err(value) });
}

/// The page may have slept; `restored` after the back/forward cache, or where
/// the player signed out. With `doubt` a token that is not new is replaced.
#[wasm_bindgen]
pub fn wake(restored: bool, doubt: bool) {
    flow::wake(restored, doubt);
}

/// The token in hand, or undefined.
#[wasm_bindgen(js_name = heldToken)]
#[must_use]
pub fn held_token() -> JsValue {
    flow::held()
}

/// Looks at the page: whether it is `visible`, and was `used` since the last
/// look. Answers whether it counts itself now, which it does at most once in
/// `interval` milliseconds. A request that has waited long enough is made.
#[wasm_bindgen]
#[must_use]
pub fn look(visible: bool, used: bool, interval: f64) -> bool {
    flow::go_on();
    let now = monotonic();
    PRESENCE.with_borrow_mut(|presence| presence.look(now, visible, used, interval))
}

/// The page goes away. Answers whether it says farewell.
#[wasm_bindgen(js_name = goAway)]
#[must_use]
pub fn go_away() -> bool {
    PRESENCE.with_borrow_mut(Presence::leave)
}

/// A log record was made; `urgent` if it is an error. Answers what the page
/// does with it: -1 to keep it last, -2 to keep it last and send all, -3 to
/// leave it out, else the place of the record that it repeats.
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

/// Takes the records that are kept, if they are due or else `at_once`.
/// Answers the batch's size in bytes, negative if it may not outlive the page,
/// or 0 for none.
#[wasm_bindgen(js_name = takeBatch)]
#[must_use]
pub fn take_batch(at_once: bool) -> i32 {
    let now = monotonic();
    LOG.with_borrow_mut(|log| log.take(now, at_once))
}

/// How many records were left out since this was last asked.
#[wasm_bindgen(js_name = takeLeftOut)]
#[must_use]
pub fn take_left_out() -> u32 {
    LOG.with_borrow_mut(Log::take_left_out)
}

/// A batch of `size` and so many records ended. `pause` is 0 if it arrived,
/// else milliseconds until the next attempt, or negative if they are unknown.
/// Answers whether its records come first again.
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
