//! What the server and `platform dev` must do alike when they serve a game, so that a game behaves
//! on its developer's machine as it does when it is deployed.
//!
//! | module | contents |
//! |---|---|
//! | [`media_type`] | the media type of a file |
//! | [`paths`] | which paths belong to a backend, and which to the platform |
//! | [`forwarding`] | the headers of forwarded requests and responses |
//! | [`websocket`] | the headers with which a connection becomes a WebSocket |

pub mod forwarding;
pub mod media_type;
pub mod paths;
pub mod websocket;
