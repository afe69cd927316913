//! How deployed files reach browsers: from memory while they are in use, from
//! the file store else.
//!
//! | module | holds |
//! |---|---|
//! | [`contents`] | the bytes, and those compressed here |
//! | [`headers`] | what a file is, and for how long it may be kept |
//! | [`range`] | which part of a file was asked for |

pub mod contents;
pub mod headers;
pub mod range;
