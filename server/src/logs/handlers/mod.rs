//! Frontend logs: taking records in, searching and following them, and their
//! errors. One endpoint a file.

pub mod errors;
pub mod ingest;
pub mod search;
pub mod stream;
