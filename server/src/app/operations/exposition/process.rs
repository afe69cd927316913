//! What the operating system says of this process, with the names that all exporters use.

use crate::platform::metrics::names::Metric;

/// Looks at the process. Where there is no `/proc`, nothing is known.
#[cfg(target_os = "linux")]
pub(super) async fn look() -> Vec<(&'static Metric, f64)> {
    // There is a file for each descriptor.
    let looked = tokio::task::spawn_blocking(linux::look).await;
    let looked = looked.unwrap_or_else(|error| Err(procfs::ProcError::Other(error.to_string())));
    looked.unwrap_or_else(|error| {
        tracing::debug!(%error, "the process could not be looked at");
        Vec::new()
    })
}

/// Looks at the process. Where there is no `/proc`, nothing is known.
#[cfg(not(target_os = "linux"))]
pub(super) async fn look() -> Vec<(&'static Metric, f64)> {
    Vec::new()
}

#[cfg(target_os = "linux")]
mod linux {
    use procfs::ProcResult;
    use procfs::process::{LimitValue, Process};

    use super::super::now::bytes;
    use super::Metric;
    use crate::platform::metrics::names;

    pub(super) fn look() -> ProcResult<Vec<(&'static Metric, f64)>> {
        let process = Process::myself()?;
        let stat = process.stat()?;
        let a_second = bytes(procfs::ticks_per_second());
        let resident = stat.rss.saturating_mul(procfs::page_size());
        let started = bytes(procfs::boot_time_secs()?) + bytes(stat.starttime) / a_second;
        let threads = u64::try_from(stat.num_threads).unwrap_or(0);
        let open = process.fd_count()?;
        let mut known = vec![
            (&names::CPU, bytes(stat.utime + stat.stime) / a_second),
            (&names::OPEN_FILES, bytes(open as u64)),
            (&names::RESIDENT, bytes(resident)),
            (&names::VIRTUAL, bytes(stat.vsize)),
            (&names::THREADS, bytes(threads)),
            (&names::STARTED, started),
        ];
        if let LimitValue::Value(most) = process.limits()?.max_open_files.soft_limit {
            known.push((&names::FILES_LIMIT, bytes(most)));
        }
        Ok(known)
    }
}
