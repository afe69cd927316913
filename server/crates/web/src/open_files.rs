//! The number of files and connections that the system lets this process open.

/// The number of files that the process opens in addition to visitors' connections: databases,
/// files, uploaded archives, idle connections to backends.
const OTHERS: u64 = 256;
/// The limit that is assumed if the system does not report one: the lowest common value.
const USUAL: u64 = 1_024;

/// Raises the limit of open files and connections to the maximum that the process may set itself
/// (`RLIMIT_NOFILE`), and returns it.
pub(super) fn raise() -> u64 {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => limit,
        Err(error) => {
            tracing::warn!(
                %error,
                "the number of open files could not be raised; raise it from outside, for \
                 example with LimitNOFILE= of systemd"
            );
            USUAL
        }
    }
}

/// Returns how many visitors' connections are possible: each may need another one to a backend.
pub(super) fn connections(descriptors: u64) -> usize {
    let connections = descriptors.saturating_sub(OTHERS) / 2;
    usize::try_from(connections).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_connection_has_room_for_its_backend() {
        assert_eq!(connections(1_024), 384);
        assert_eq!(connections(0), 0);
        assert!(connections(u64::MAX) > 1_000_000);
    }

    #[test]
    fn the_limit_is_the_one_that_the_system_allows() {
        let raised = raise();
        let (soft, hard) = rlimit::getrlimit(rlimit::Resource::NOFILE).unwrap();
        assert_eq!((soft, raised), (hard, soft));
    }
}
