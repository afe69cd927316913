//! Attacks on sign-in and accounts over plain HTTP: misbehaving providers, requests that no browser
//! sends, and simultaneous requests.
//!
//! | module | contents |
//! |---|---|
//! | `scene` | common code of the tests of the callback |
//! | `tokens` | ID tokens that must be refused, and a few unusual ones that must be accepted |
//! | `endpoints` | token endpoints, key sets and metadata that misbehave |
//! | `answers` | what can be wrong with the provider's redirect back |
//! | `keys` | when keys are fetched |
//! | `secrets` | what the log and the store must not contain |
//! | `states` | every row of the table of states |
//! | `errors` | every row of the table of errors, except for those of the browser |
//! | `cookies` | planted, repeated, huge and foreign cookies |
//! | `forgery` | forms that another site sends |
//! | `guests` | how many guests an address may hold |
//! | `race` | the same identity from several browsers at the same time |
//! | `suspension` | suspended players, on every path |
//! | `redirects` | where a sign-in finally leads |

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

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
