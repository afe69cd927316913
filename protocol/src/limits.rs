//! Numbers that more than one crate needs.

/// Test users of a project, and test guests: numbers 1 to 10.
pub const TEST_USERS: u8 = 10;
/// Life of a test token, in seconds.
pub const TEST_TOKEN_SECONDS: u64 = 1_800;
/// Life of a production game token by default, in seconds.
pub const TOKEN_SECONDS: u64 = 900;
/// Seconds between two heartbeats of one page by default.
pub const HEARTBEAT_SECONDS: u64 = 30;
/// For how many seconds after its last heartbeat a player counts as playing.
pub const PLAYING_SECONDS: u64 = 75;
/// Clock difference that a verifier tolerates, in seconds.
pub const CLOCK_LEEWAY_SECONDS: u64 = 60;
/// The longest life of a token of the platform, in seconds: a verifier refuses a token with a
/// longer one.
pub const LONGEST_TOKEN_SECONDS: u64 = 86_400;
/// Minimum seconds between two fetches of a key set that an unknown `kid` causes.
pub const KEY_SET_REFETCH_SECONDS: u64 = 30;
/// Seconds for which a published key set may be cached. A verifier then fetches it again, so that
/// it forgets a revoked key.
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
/// Levels of nested arrays and objects in one record's `metadata`, at most.
pub const LOG_METADATA_DEPTH: usize = 64;
/// Bytes of one heartbeat, at most.
pub const HEARTBEAT_BYTES: usize = 1024;
/// Characters of a request id, at most.
pub const REQUEST_ID_CHARS: usize = 64;
