//! The rules of the runtime in the page: when a token is requested and shared, which log records
//! are kept, when a player counts.
//!
//! | module | holds |
//! |---|---|
//! | [`token`] | when a token is requested, shared, kept and dropped |
//! | [`log`] | which log records are kept, folded, left out and sent |
//! | [`presence`] | when a page counts its player |
//! | `exports` | the functions that JavaScript calls |
//! | `web` | the only code that touches the browser: `page.js` has the steps of each call |
//!
//! The first three use no browser: time and outcomes are arguments, so that their tests run natively
//! on a clock that the test moves.

pub mod log;
pub mod presence;
pub mod token;

#[cfg(target_arch = "wasm32")]
mod exports;
#[cfg(any(target_arch = "wasm32", test))]
mod heap;
#[cfg(all(test, target_arch = "wasm32"))]
mod tests;
#[cfg(target_arch = "wasm32")]
mod web;

#[cfg(target_arch = "wasm32")]
pub use exports::{
    ask, begin, end, end_batch, forget, go_away, has_token, is_wanted, keep_record, look,
    take_batch, take_left_out, wake,
};
