//! The embedded store: SQLite files, each with one writing thread and a few reading connections.
//! Frontend log records have a separate file, so that a flood of them delays only themselves.
//!
//! | module | holds |
//! |---|---|
//! | `store` | the store itself: its two files, opened and closed |
//! | `database` | one file: its permissions, its settings, its connections |
//! | `writer` | the writing thread and its group commit |
//! | `readers`, `connection` | the reading connections; how every connection is set |
//! | `migrations` | the schemas' history |
//! | `check` | checking a copy before anything is done with it |
//! | `transfer` | its rows as they are, to move them into or from another back end |
//! | `error` | converts SQLite's errors for callers |
//! | `rows`, `player_rows`, `session_rows` | helpers for the rows of several tables |
//! | `players`, `sessions`, `left_guests`, `game_sessions`, `accounts`, `administration`, `sign_ins`, `suspensions`, `audit`, `backup`, `certificates`, `handovers`, `keys`, `projects`, `deletions`, `deployments`, `deploy_tokens`, `deployed_files`, `previews`, `listings`, `player_events`, `player_games`, `stored_files`, `devices`, `device_codes`, `environments`, `counting`, `logs`, `log_quota`, `log_search`, `log_ranges`, `log_rows`, `error_counts`, `error_groups`, `alerts`, `webhooks`, `takedown`, `retention`, `room`, `nodes`, `outlets` | the operations, as SQL |

mod accounts;
mod administration;
mod alerts;
mod audit;
mod backup;
mod certificates;
mod check;
mod connection;
mod counting;
mod database;
mod deletions;
mod deploy_tokens;
mod deployed_files;
mod deployments;
mod device_codes;
mod devices;
mod domains;
mod environments;
mod error;
mod error_counts;
mod error_groups;
mod game_sessions;
mod handovers;
mod keys;
mod left_guests;
mod listings;
mod log_quota;
mod log_ranges;
mod log_rows;
mod log_search;
mod logs;
mod migrations;
mod nodes;
mod outlets;
mod people;
mod player_events;
mod player_games;
mod player_rows;
mod players;
mod previews;
mod projects;
mod readers;
mod retention;
mod room;
mod rows;
mod session_rows;
mod sessions;
mod sign_ins;
mod store;
mod stored_files;
mod suspensions;
mod takedown;
#[cfg(test)]
mod tests;
mod transfer;
mod webhooks;
mod writer;

pub use self::check::{CheckedCopy, CopyFault};
pub use self::database::{make_private_directory, make_private_file};
pub use self::store::SqliteStore;
pub use self::transfer::SqliteRows;
