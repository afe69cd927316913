//! The store in PostgreSQL, for any number of nodes. Every operation is one
//! transaction at READ COMMITTED with explicit row locks, or one statement.
//!
//! | module | holds |
//! |---|---|
//! | `store` | the store itself: its databases, opened and closed |
//! | `address` | the address of a database, and the connection settings made from it |
//! | `servers` | the servers of an address, and connecting to the one that accepts writes |
//! | `database` | a database's connections: reads, writes, time limits, closing |
//! | `transaction` | a transaction, and running an operation again after a conflict |
//! | `migrations` | the schemas' history |
//! | `transfer` | its rows as they are, to move them into or from another back end |
//! | `error` | converts PostgreSQL's errors for callers |
//! | `group` | group commit: many callers' writes in one transaction |
//! | `players`, `guests`, `sessions`, `accounts`, `administration`, `sign_ins`, `suspensions`, `left_guests`, `game_sessions`, `audit`, `certificates`, `handovers`, `keys`, `projects`, `deletions`, `deployments`, `deploy_tokens`, `previews`, `devices`, `device_codes`, `environments`, `counting`, `logs`, `log_writes`, `log_days`, `log_reads`, `log_quota`, `error_groups`, `alerts`, `webhooks`, `takedown`, `retention`, `room`, `stored_files`, `nodes`, `outlets`, `player_events` | the operations, as SQL |
//!
//! Every operation that locks several rows locks them in the same order, so that deadlocks are
//! rare: the address of a guest, players by their ids, sessions, devices; a project before its
//! owner. If a deadlock happens all the same, PostgreSQL aborts one of the two transactions, and
//! its operation runs again.

#[macro_use]
mod transaction;

mod accounts;
mod address;
mod administration;
mod alerts;
mod audit;
mod certificates;
mod counting;
mod database;
mod deletions;
mod deploy_tokens;
mod deployments;
mod device_codes;
mod devices;
mod domains;
mod environments;
mod error;
mod error_groups;
mod game_sessions;
mod group;
mod guests;
mod handovers;
mod keys;
mod left_guests;
mod listings;
mod log_days;
mod log_quota;
mod log_reads;
mod log_writes;
mod logs;
mod migrations;
mod nodes;
mod outlets;
mod people;
mod player_events;
mod player_games;
mod players;
mod previews;
mod projects;
mod retention;
mod room;
mod rows;
mod servers;
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

pub use self::store::PostgresStore;
pub use self::transfer::PostgresRows;
