//! How much one deployment may be.

/// Files of one deployment, at most.
pub const MAX_FILES: usize = 20_000;
/// Bytes of one deployment's files together, unpacked, at most: 512 MiB.
pub const MAX_BYTES: u64 = 512 * 1024 * 1024;
/// Bytes of one file's path, at most.
pub const MAX_PATH_BYTES: usize = 1_024;
/// Bytes of the paths of one deployment's files together, at most: 4 MiB, which is 209 bytes for each of
/// [`MAX_FILES`]. Servers keep the paths of shown deployments in memory.
pub const MAX_PATHS_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of the archive as it is sent, at most. More than [`MAX_BYTES`]: what cannot be compressed
/// becomes a little larger, and every file has a header.
pub const MAX_ARCHIVE_BYTES: u64 = MAX_BYTES + 64 * 1024 * 1024;
