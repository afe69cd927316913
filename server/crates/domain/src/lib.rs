//! The platform's domain: players, sessions, keys, projects and deployments, their states and
//! transitions. Pure: no HTTP and no database. Time and randomness are arguments.
//!
//! | module | holds |
//! |---|---|
//! | [`clock`], [`entropy`] | time and randomness, which callers pass in |
//! | [`date`], [`errors`] | times and errors in words |
//! | [`histogram`] | how long things took |
//! | [`origin`] | the platform origin and the addresses derived from it |
//! | [`player`], [`username`], [`identity`] | players, their names, and their identities at
//! providers |
//! | [`session`], [`sign_in`], [`left_guest`] | a browser's session, signing in, and restoring a
//! guest |
//! | [`game_session`] | sessions of games on a site of their own, and how browsers get them |
//! | [`deletion`], [`retention`] | deleting a player; how long events and addresses are kept |
//! | `cookie_secret` | the secrets in cookies |
//! | [`device`], [`console_token`] | the command line's sign-in; tokens of the console and the command line |
//! | [`token_id`] | the ids of game tokens, which say whether heartbeats with them count |
//! | [`deploy_token`] | the secrets with which programs deploy a project |
//! | [`preview`] | previews of a project, and when an unused one ends |
//! | [`custom_domain`], [`domain_name`] | domains of a project's own, and which names they may have |
//! | [`listing`], [`player_game`] | what the public page shows of a game; players' favourites |
//! | [`secret`] | secrets of the settings |
//! | [`key`] | the life of a signing key |
//! | [`certificate`] | certificates of an ACME server: their renewal, and limits on orders |
//! | [`node`] | servers that share a store, and what changes for them |
//! | [`project`], [`room`], [`takedown`] | projects with their deployments, their storage, and
//! taking them down |
//! | [`stored_file`] | names of deployed files in the file store |
//! | [`presence`], [`counting`] | who is playing now; players over time |
//! | [`log`], [`page`] | frontend log records; the page that sends them |
//! | [`stack`], [`fingerprint`], [`error_group`] | errors: how engines describe them, which have one
//! cause, and those with one cause as a group |
//! | [`error_alert`], [`player_event`], [`webhook`] | what is told of groups and of deleted players, and to whom: alerts, events,
//! signed requests |
//! | [`audit`], [`administration`] | the log of security events; what administrators see |

pub mod administration;
pub mod audit;
pub mod certificate;
pub mod clock;
pub mod console_token;
mod cookie_secret;
pub mod counting;
pub mod custom_domain;
pub mod date;
pub mod deletion;
pub mod deploy_token;
pub mod device;
pub mod domain_name;
pub mod entropy;
pub mod environment_setting;
pub mod error_alert;
pub mod error_group;
pub mod errors;
pub mod fingerprint;
pub mod game_session;
pub mod histogram;
pub mod identity;
pub mod key;
pub mod left_guest;
pub mod listing;
pub mod log;
pub mod node;
pub mod origin;
pub mod page;
pub mod people;
pub mod player;
pub mod player_event;
pub mod player_game;
pub mod presence;
pub mod preview;
pub mod project;
pub mod retention;
pub mod room;
pub mod secret;
pub mod session;
pub mod sign_in;
pub mod stack;
pub mod stored_file;
pub mod takedown;
pub mod token_id;
pub mod username;
pub mod webhook;
