//! What pages send to the log, made safe to store, and the source maps that name places in it. Pages
//! and maps are written by strangers: whatever they contain, what comes out is within the limits.
//!
//! | module | contents |
//! |---|---|
//! | [`entries`] | the records of a request as they are stored |
//! | [`sanitize`] | repair of texts and JSON |
//! | [`origin`] | where an error is of the game and not of the runtime |
//! | [`source_map`] | source maps |

pub mod entries;
pub mod origin;
pub mod sanitize;
pub mod source_map;
