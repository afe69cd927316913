//! Signing in and accounts, attacked over plain HTTP: providers that
//! misbehave, requests that no browser sends, and everything at once.
//!
//! | module | holds |
//! |---|---|
//! | `scene` | what the tests of the callback have in common |
//! | `tokens` | ID tokens that must not be believed, and the few odd ones that must |
//! | `endpoints` | token endpoints, key sets and metadata that misbehave |
//! | `answers` | what may be wrong with the way back from the provider |
//! | `keys` | which keys are fetched when |
//! | `secrets` | what the log and the store do not have |
//! | `states` | every row of the table of states |
//! | `errors` | every row of the table of errors that is not the browser's |
//! | `cookies` | planted, doubled, huge and foreign cookies |
//! | `forgery` | forms that another site sends |
//! | `guests` | how many guests an address holds |
//! | `race` | the same identity from several browsers at once |
//! | `suspension` | suspended players, on every path |
//! | `redirects` | where a sign-in leads in the end |

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test reports by failing"
)]

mod answers;
mod cookies;
mod endpoints;
mod errors;
mod forgery;
mod guests;
mod keys;
mod race;
mod redirects;
mod scene;
mod secrets;
mod states;
mod suspension;
mod tokens;
