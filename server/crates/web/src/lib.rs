//! What every answer goes through, whichever handler gives it.
//!
//! | module | holds |
//! |---|---|
//! | [`serve`] | listening, connections and their limits, the graceful stop |
//! | `head_budget` | the memory that requests' heads may take |
//! | [`places`] | who may have a connection, and who gives way to whom |
//! | `descriptors` | how many connections the system lets us have |
//! | `turn` | what becomes of a connection's place while it is used |
//! | `unread` | answers to what is no request |
//! | [`tls`] | TLS to others |
//! | [`shares`] | how many of something each holds |
//! | [`context`] | what is known of a request before a handler sees it |
//! | [`api_error`] | Problem Details (RFC 9457) |
//! | [`navigation`] | whether a person opens an address |
//! | [`request_id`] | `X-Request-Id` |
//! | [`client_address`] | who asks, behind trusted proxies too |
//! | [`cookies`] | the session cookie |
//! | [`foreign_cookies`] | cookies that others set on the platform's domain |
//! | [`cors`] | which origins may ask with the player's cookie |
//! | [`limiter`] | limits on how often somebody may do something |
//! | [`api`] | what calls of the project API are read with and answered with |
//! | [`encoding`] | which content coding a client takes |
//! | [`asset`] | small files kept in memory, compressed once |
//! | [`gzip_stream`] | a text sent piece by piece to many, compressed once |
//! | [`page`] | HTML pages and their security headers |
//! | [`browser`] | which browser asks, in a few words |
//! | [`body`] | request bodies that must be small |
//! | [`pace`] | how fast something has to move that is waited for |
//! | [`json`] | what a game's page posts to the platform |
//! | [`form`] | what the platform's own pages post |
//! | [`oauth`] | what OAuth clients send, and the errors that they are told |
//! | [`csrf`] | forms that only our own pages can send |
//! | [`seal`] | what a page tells its own browser, and the time before a press counts |

pub mod api;
pub mod api_error;
pub mod asset;
pub mod body;
pub mod browser;
pub mod client_address;
pub mod context;
pub mod cookies;
pub mod cors;
pub mod csrf;
mod descriptors;
pub mod encoding;
pub mod foreign_cookies;
pub mod form;
pub mod gzip_stream;
mod head_budget;
pub mod json;
pub mod limiter;
pub mod navigation;
pub mod oauth;
pub mod pace;
pub mod page;
pub mod places;
pub mod request_id;
pub mod seal;
pub mod serve;
pub mod shares;
pub mod tls;
mod turn;
mod unread;
