//! How many files and connections the system lets this process have open.

/// What the process has open beside its visitors' connections: databases,
/// files, archives on their way in, connections to backends that are kept.
const OTHERS: u64 = 256;
/// What a process may have open where the system does not say: the least that
/// systems set.
const USUAL: u64 = 1_024;

/// Raises the number of open files and connections to the most that the system
/// lets this process set for itself (`RLIMIT_NOFILE`), and answers which.
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

/// How many visitors' connections fit: each may take one more to a backend.
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
