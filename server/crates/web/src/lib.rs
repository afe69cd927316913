//! Everything that is common to the requests and responses of all handlers.
//!
//! | module | contents |
//! |---|---|
//! | [`serve`] | listening, connections and their limits, graceful shutdown |
//! | [`https`] | TLS of the platform's own: the handshake, and the choice of the protocol |
//! | [`certificates`] | its certificates, from PEM, chosen by name |
//! | `http2` | connections of HTTP/2 and their limits |
//! | `memory_budget` | how much memory connections may use, in all and per network |
//! | `head_budget` | what requests' heads take of it |
//! | [`places`] | the slots for connections, and which connection is closed for another one |
//! | `open_files` | how many connections the system allows |
//! | `connection_state` | whether a connection is in use, and the state of its slot |
//! | `unreadable_head` | responses to unreadable requests |
//! | [`tls`] | TLS to other servers |
//! | [`fair_shares`] | how many of something each holder has |
//! | [`request_context`] | facts about a request that are known before a handler runs |
//! | [`api_error`] | Problem Details (RFC 9457) |
//! | [`navigation`] | whether a person opens an address |
//! | [`request_id`] | `X-Request-Id` |
//! | [`client_address`] | the client's address, also behind trusted proxies |
//! | [`requested_host`] | the host that a request names |
//! | [`byte_range`] | the part of a file that a request asks for |
//! | [`return_address`], [`hand_off_state`] | parameters that come back through a browser: where to return, and a hand-off's state |
//! | [`cookies`] | the session cookie |
//! | [`foreign_cookies`] | cookies that others set on the platform's domain |
//! | [`cors`] | CORS for origins that may send the player's cookie |
//! | [`limiter`] | rate limits |
//! | [`api`] | parsing of requests and building of responses of the project API |
//! | [`encoding`] | negotiation of the content coding |
//! | [`asset`] | small files kept in memory, compressed once |
//! | [`gzip_stream`] | a text streamed to many readers, compressed once |
//! | [`page`] | HTML pages and their security headers |
//! | [`browser`] | a short description of a request's browser |
//! | [`body`] | request bodies with a small size limit |
//! | [`minimum_rate`] | the minimum speed of transfers |
//! | [`json`] | JSON documents that a game's page posts |
//! | [`form`] | forms that the platform's own pages post |
//! | [`fuzzing`] | a connection without a socket, for the fuzz targets |
//! | [`oauth`] | parameters and errors of the OAuth endpoints |
//! | [`csrf`] | protection of forms against other sites |
//! | [`seal`] | sealed values for a browser, and the time before a press counts |

pub mod api;
pub mod api_error;
pub mod asset;
pub mod body;
pub mod browser;
pub mod byte_range;
pub mod certificates;
pub mod client_address;
mod connection_state;
pub mod cookies;
pub mod cors;
pub mod csrf;
pub mod encoding;
pub mod fair_shares;
pub mod foreign_cookies;
pub mod form;
#[doc(hidden)]
pub mod fuzzing;
pub mod gzip_stream;
pub mod hand_off_state;
mod head_budget;
mod head_timer;
mod http2;
pub mod https;
pub mod json;
pub mod limiter;
mod memory_budget;
pub mod minimum_rate;
pub mod navigation;
pub mod oauth;
mod open_files;
pub mod page;
pub mod places;
mod rarely;
pub mod redirects;
pub mod request_context;
pub mod request_id;
pub mod requested_host;
pub mod return_address;
pub mod seal;
pub mod serve;
pub mod tls;
mod unreadable_head;
