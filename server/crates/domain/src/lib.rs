//! What the platform is about: players, sessions, keys, projects and
//! deployments, their states and transitions. Pure: no HTTP and no database.
//! Time and randomness are handed in.
//!
//! | module | holds |
//! |---|---|
//! | [`clock`], [`entropy`] | time and randomness, as something that is handed in |
//! | [`origin`] | the platform origin and what follows from it |
//! | [`player`], [`username`], [`identity`] | who plays, under which name, signed in by which provider |
//! | [`session`], [`sign_in`], [`left_guest`] | a browser's session, how it comes to be, and the way back to a guest |
//! | `cookie_secret` | what a browser holds in a cookie |
//! | [`device`], [`console_token`] | the command line's sign-in; tokens of the console and the command line |
//! | [`key`] | the life of a signing key |
//! | [`project`], [`room`], [`takedown`] | projects with their deployments, the room they take, and taking them down |
//! | [`counting`], [`log`], [`page`] | players over time; frontend log records; the page that sends them |
//! | [`audit`], [`administration`] | the log of security events; what administrators see |

pub mod administration;
pub mod audit;
pub mod clock;
pub mod console_token;
mod cookie_secret;
pub mod counting;
pub mod device;
pub mod entropy;
pub mod identity;
pub mod key;
pub mod left_guest;
pub mod log;
pub mod origin;
pub mod page;
pub mod player;
pub mod project;
pub mod room;
pub mod session;
pub mod sign_in;
pub mod takedown;
pub mod username;
