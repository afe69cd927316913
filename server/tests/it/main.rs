//! The server seen from outside: real requests to a server on its own port, with a clock that the
//! tests move.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of tests may fail as loudly as a test"
)]

mod account_pages;
mod admin_pages;
mod administration;
mod another_name;
mod apart;
mod authorisation;
mod backends;
mod backups;
mod behind_proxies;
mod bounded_events;
mod browser;
#[cfg(feature = "cluster")]
mod bucket;
mod build_page;
mod caller;
mod colour_contrast;
mod command_line;
mod connections;
mod containers;
mod deletion;
mod deploy_tokens;
mod deploys;
mod device;
mod device_page;
mod doctor;
mod documents;
mod domains;
mod error_groups;
mod faults;
mod fixtures;
mod heartbeat;
mod hosting;
mod hosts;
mod https;
mod in_containers;
#[cfg(feature = "cluster")]
mod listing;
mod live;
mod log_stream;
mod logs;
mod metrics;
mod monitoring;
#[cfg(feature = "cluster")]
mod moving;
mod native_histograms;
mod navigation;
#[cfg(feature = "cluster")]
mod nodes;
mod operations;
mod operator;
mod operator_projects;
mod overload;
mod own_games;
mod pages;
mod panes;
mod people;
mod player_events;
mod players;
#[cfg(feature = "cluster")]
mod postgres;
mod previews;
mod profile;
mod program;
mod projects;
mod proxy;
mod redirects;
mod request_ids;
mod restore;
mod restore_guest;
mod retention;
mod revoked;
mod runtime;
mod service;
mod sessions;
mod settings;
mod sign_in;
mod step_up;
mod stop;
mod support;
mod takedown;
mod telemetry;
mod tls_visitor;
mod token;
mod upgrades;
mod webhooks;
