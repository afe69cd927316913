//! What both sides of the wire must agree on: token claims, problem slugs, responses, paths, names
//! and limits.
//!
//! This crate uses no clock, no I/O and no browser, and depends on serde alone, so that the module
//! in the page, the server, a game's backend and the command line can share it.
//!
//! | module | holds |
//! |---|---|
//! | [`claims`] | what a game token says |
//! | [`command_line`] | the list of the files of the command line that a platform hands out |
//! | [`token`] | the responses of the token endpoints |
//! | [`deploy_token`] | what a deploy token allows, and its limits |
//! | [`heartbeat`] | how a page reports that its player is playing |
//! | [`log`] | frontend log records |
//! | [`preview`] | names, addresses and limits of previews |
//! | [`problem`] | Problem Details and the slugs that name them |
//! | [`invisible`] | characters that show nothing, or change how the text around them looks |
//! | [`names`] | slugs, environments and audiences |
//! | [`paths`] | every reserved path |
//! | [`limits`] | every number that more than one crate needs |

pub mod claims;
pub mod command_line;
pub mod deploy_token;
pub mod heartbeat;
pub mod invisible;
pub mod limits;
pub mod log;
pub mod names;
pub mod paths;
pub mod people;
pub mod preview;
pub mod problem;
pub mod token;
