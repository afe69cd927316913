//! The functions that JavaScript calls. They convert and delegate, nothing else. Requests, callers
//! and tokens are numbers here: a token has the number of the request that brought it.

use std::cell::RefCell;

use wasm_bindgen::prelude::*;

use crate::log::{Log, Place};
use crate::presence::Presence;
use crate::token::{self, Instant, Step, Want};
use crate::web::{exchange, monotonic, now, tell};

/// The page keeps the one token in hand and the last failure, so neither is told again.
type Tokens = token::Tokens<u32, (), u32>;

thread_local! {
    static TOKENS: RefCell<Tokens> = const { RefCell::new(Tokens::new()) };
    static PRESENCE: RefCell<Presence> = const { RefCell::new(Presence::new()) };
    static LOG: RefCell<Log> = const { RefCell::new(Log::new()) };
}

/// A caller asks for a token. `want` is 0 for any, -1 for a token that is requested after this call,
/// -2 for one to send a heartbeat with, else the number of the request whose token a backend refused.
#[wasm_bindgen]
pub fn ask(caller: u32, want: i32) {
    // The clocks are read before the tokens are borrowed: a page may have replaced them by its own,
    // which may ask for a token.
    let now = now();
    let asked = TOKENS.with_borrow_mut(|tokens| {
        let want = match want {
            0 => Want::Any,
            -1 => Want::Fresh,
            refused => u32::try_from(refused).map_or_else(|_| tokens.want_to_play(), Want::Other),
        };
        tokens.ask(now, want, caller)
    });
    match asked {
        Step::Answer(caller, answer) => tell(caller, answer.is_ok()),
        Step::Start(number) => exchange(number),
        Step::Wait => {}
    }
}

/// The request of this number is sent now. False if it is no longer wanted.
#[wasm_bindgen]
#[must_use]
pub fn begin(number: u32) -> bool {
    let now = now();
    TOKENS.with_borrow_mut(|tokens| tokens.begin(now, number))
}

/// Whether anybody still wants the outcome of this request: a failure, or a token, `has_token`, of a
/// guest who begins with it, `is_new`.
#[wasm_bindgen(js_name = isWanted)]
#[must_use]
pub fn is_wanted(number: u32, has_token: bool, is_new: bool) -> bool {
    let now = now();
    // As in `end`, no call comes in while the tokens are borrowed.
    TOKENS.with_borrow_mut(|tokens| {
        tokens.is_wanted(number)
            && (!has_token
                || tokens.take(now, is_new, &mut |caller, answer| {
                    tell(caller, answer.is_ok());
                }))
    })
}

/// The request of this number ended: with the response's status if it failed, with or without a
/// token, and with a time in milliseconds: the token's life, or how long to wait. `chance`, a random
/// byte, lengthens a wait ([`token::Failure::of`]).
#[wasm_bindgen]
pub fn end(number: u32, status: u16, has_token: bool, is_expired: bool, time: f64, chance: u8) {
    let outcome = if has_token {
        Ok((number, time))
    } else {
        Err((token::Failure::of(status, is_expired, time, chance), ()))
    };
    // Settling a promise runs none of the page's code at once, as long as its value has no prototype,
    // so no call comes in while the tokens are borrowed.
    start(|tokens, now| {
        tokens.end(now, number, outcome, &mut |caller, answer| {
            tell(caller, answer.is_ok());
        })
    });
}

/// Whether the token in hand has not expired.
#[wasm_bindgen(js_name = hasToken)]
#[must_use]
pub fn has_token() -> bool {
    let now = now();
    TOKENS.with_borrow(|tokens| tokens.held(now).is_some())
}

/// The player signed out: the token must not be used any more.
#[wasm_bindgen]
pub fn forget() {
    TOKENS.with_borrow_mut(Tokens::forget);
}

/// The page may have been asleep. `restored`: it comes from the back/forward cache, or the player
/// signed out. With `doubt`, a token that is not new is replaced.
#[wasm_bindgen]
pub fn wake(restored: bool, doubt: bool) {
    start(|tokens, now| tokens.wake(now, restored, doubt));
}

/// Starts the request that the tokens ask for, if any.
fn start(asked: impl FnOnce(&mut Tokens, Instant) -> Option<u32>) {
    let now = now();
    if let Some(number) = TOKENS.with_borrow_mut(|tokens| asked(tokens, now)) {
        exchange(number);
    }
}

/// Notes whether the page is `visible`, and was `used` since the last look. Returns whether the
/// page counts its player now, at most once in `interval` milliseconds. Also makes a request that
/// has waited long enough.
#[wasm_bindgen]
#[must_use]
pub fn look(visible: bool, used: bool, interval: f64) -> bool {
    start(|tokens, now| tokens.go_on(now));
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
