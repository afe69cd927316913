//! The runtime in the page: the player's token, calls to the game's backend,
//! and sign-out.
//!
//! | module | holds |
//! |---|---|
//! | [`token`] | when a token is requested, shared, kept and dropped |
//! | [`problem`] | the errors made of failed responses |
//! | [`log`] | which log records are kept, folded, left out and sent |
//! | [`presence`] | when a page counts its player |
//! | `flow` | the steps of each call, written against `web` |
//! | `exports` | the functions that JavaScript calls |
//! | `web` | the only code that touches the browser |
//!
//! The first four use no browser: time and outcomes are arguments, so that their tests run natively
//! on a clock that the test moves.

pub mod log;
pub mod presence;
pub mod problem;
pub mod token;

#[cfg(target_arch = "wasm32")]
mod exports;
#[cfg(target_arch = "wasm32")]
mod flow;
#[cfg(target_arch = "wasm32")]
mod heap;
#[cfg(all(test, target_arch = "wasm32"))]
mod tests;
#[cfg(target_arch = "wasm32")]
mod web;

#[cfg(target_arch = "wasm32")]
pub use exports::{
    end_batch, fetch, get_access_token, go_away, held_token, keep_record, look, settle, sign_out,
    take_batch, take_left_out, wake,
};
