//! Numbers that more than one crate needs.

/// Test users, and test guests, of a project: numbers 1 to 10.
pub const TEST_USERS: u8 = 10;
/// Life of a test token, in seconds.
pub const TEST_TOKEN_SECONDS: u64 = 1_800;
/// Life of a production game token where nothing else is set, in seconds.
pub const TOKEN_SECONDS: u64 = 900;
/// Seconds between two heartbeats of one page where nothing else is set.
pub const HEARTBEAT_SECONDS: u64 = 30;
/// Seconds after its last beat for which a player counts as playing.
pub const PLAYING_SECONDS: u64 = 75;
/// Clock difference that a verifier forgives, in seconds.
pub const CLOCK_LEEWAY_SECONDS: u64 = 60;
/// The longest life that a token of the platform may be given, in seconds: a
/// verifier refuses what claims to live longer.
pub const LONGEST_TOKEN_SECONDS: u64 = 86_400;
/// Seconds between two fetches of a key set that an unknown `kid` may cause.
pub const KEY_SET_REFETCH_SECONDS: u64 = 30;
/// Seconds for which a published key set may be cached. A verifier fetches it
/// again then, so that a key that was revoked is forgotten.
pub const KEY_SET_CACHE_SECONDS: u64 = 600;
/// Records in one log request, at most.
pub const LOG_RECORDS: usize = 100;
/// Bytes of one log request, at most.
pub const LOG_REQUEST_BYTES: usize = 64 * 1024;
/// Bytes of one record's `message`, at most.
pub const LOG_MESSAGE_BYTES: usize = 8 * 1024;
/// Bytes of one record's `stack`, at most.
pub const LOG_STACK_BYTES: usize = 16 * 1024;
/// Bytes of one record's `url`, at most.
pub const LOG_URL_BYTES: usize = 2 * 1024;
/// Bytes of one record's `metadata`, at most.
pub const LOG_METADATA_BYTES: usize = 8 * 1024;
/// Arrays and objects within each other in one record's `metadata`, at most.
pub const LOG_METADATA_DEPTH: usize = 64;
/// Bytes of one heartbeat, at most.
pub const HEARTBEAT_BYTES: usize = 1024;
/// Characters of a request id, at most.
pub const REQUEST_ID_CHARS: usize = 64;
