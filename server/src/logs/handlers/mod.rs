//! Frontend logs: receiving, searching and following records, counting and grouping errors. One endpoint per
//! file.

mod error_act;
pub mod error_group;
pub mod error_groups;
pub mod error_removal;
pub mod error_state;
pub mod errors;
pub mod ingest;
pub mod search;
pub mod stream;
