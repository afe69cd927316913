//! Frontend logs: receiving, searching and following records, and counting errors. One endpoint per
//! file.

pub mod errors;
pub mod ingest;
pub mod search;
pub mod stream;
