//! What a page of a game says of it. The pages are written by strangers, so texts are short and plain
//! afterwards, and images are the game's own files and small enough to draw.
//!
//! | module | contents |
//! |---|---|
//! | [`inspection`] | what is stored of a deployment's page |
//! | [`metadata`] | title, words and images in the head of a page |
//! | [`images`] | which images a list may show |
//! | [`svg`] | which of them in SVG: what is drawn in a bounded time |

pub mod images;
pub mod inspection;
pub mod metadata;
pub mod svg;
