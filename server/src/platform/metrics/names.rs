//! The table of all metrics: name, type, labels, unit and meaning. `docs/metrics.md` contains it.

use std::fmt::Write as _;

use prometheus_client::metrics::MetricType;

/// A metric that the server exports.
#[derive(Debug)]
pub struct Metric {
    /// Its whole name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What its value counts.
    pub unit: &'static str,
    /// What it says, in one sentence.
    pub help: &'static str,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, and begins at 0 when the server starts.
    Counter,
    /// It rises and falls.
    Gauge,
    /// It counts durations in buckets.
    Histogram,
}

impl Kind {
    /// Returns the name of the type in the text format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Metric {
    /// Returns the name that the encoder expects: it adds `_total` to that of a counter.
    #[must_use]
    pub fn encoded_name(&self) -> &'static str {
        match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            Kind::Gauge | Kind::Histogram => self.name,
        }
    }

    /// Returns the type for the encoder.
    #[must_use]
    pub const fn encoded_kind(&self) -> MetricType {
        match self.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        }
    }
}

macro_rules! table {
    ($($constant:ident: $kind:ident $name:literal [$($label:literal),*] $unit:literal, $help:literal;)+) => {
        $(
            #[doc = $help]
            pub const $constant: Metric = Metric {
                name: $name,
                kind: Kind::$kind,
                labels: &[$($label),*],
                unit: $unit,
                help: $help,
            };
        )+
        /// All metrics.
        pub const ALL: &[&Metric] = &[$(&$constant),+];
    };
}

table! {
    REQUESTS: Counter "platform_http_requests_total" ["host", "route", "status"] "requests",
        "Requests that were answered, by the kind of host, the pattern of the path, and the status.";
    REQUEST_SECONDS: Histogram "platform_http_request_duration_seconds" ["host", "route"] "seconds",
        "The time from a request's head to the head of its response.";
    CONNECTIONS: Gauge "platform_connections" [] "connections",
        "Open connections of visitors, WebSockets included.";
    CONNECTIONS_LIMIT: Gauge "platform_connections_limit" [] "connections",
        "The maximum number of connections of visitors.";
    LIMIT_REFUSALS: Counter "platform_limit_refusals_total" ["limit"] "refusals",
        "What rate limits refused on this node.";

    TOKENS: Counter "platform_tokens_minted_total" ["kind"] "tokens",
        "Tokens that were signed for a player: for a game, or for the console and the command line.";
    GUESTS: Counter "platform_guests_created_total" ["kind"] "guests",
        "Guests that were created: new ones, and those that were restored from a cookie.";
    SIGN_INS: Counter "platform_sign_ins_total" ["provider", "outcome"] "sign-ins",
        "Browsers that returned from an identity provider; `merged` means that a guest was merged into an account.";
    KEY_AGE: Gauge "platform_signing_key_age_seconds" [] "seconds",
        "The time since the key that signs now was created; it is replaced after 90 days.";
    KEYS: Gauge "platform_signing_keys" ["phase"] "keys",
        "Signing keys that this node knows.";
    KEYS_READ_AGE: Gauge "platform_signing_keys_read_age_seconds" [] "seconds",
        "The time since the signing keys were last read from the store.";

    CERTIFICATES: Gauge "platform_certificates" [] "certificates",
        "Certificates of TLS that the platform has.";
    CERTIFICATES_EXPIRING: Gauge "platform_certificates_expiring" [] "certificates",
        "Those of them that end within seven days, or have ended.";
    CERTIFICATE_LEFT: Gauge "platform_certificate_left_seconds" [] "seconds",
        "The time until the first of them ends; negative if it has ended.";
    CERTIFICATES_MISSING: Gauge "platform_certificates_missing" [] "certificates",
        "Certificates that every platform needs, and that could not be obtained from the ACME server or have ended.";
    CERTIFICATE_ORDERS: Counter "platform_certificate_orders_total" ["outcome"] "orders",
        "Orders of certificates at the ACME server: obtained, failed, or held back by limits and earlier failures.";

    WRITES_WAITING: Gauge "platform_store_writes_waiting" ["database"] "writes",
        "Writes that wait for the writer of a database.";
    WRITES: Counter "platform_store_writes_total" ["database"] "writes",
        "Writes that were committed; in PostgreSQL, a group of new guests or log records counts once.";
    COMMIT_SECONDS: Histogram "platform_store_commit_duration_seconds" ["database"] "seconds",
        "The time of a commit: in SQLite of a whole group of writes, in PostgreSQL of the statement that commits.";
    COMMIT_FAILURES: Counter "platform_store_commit_failures_total" ["database"] "commits",
        "Commits that failed, so that nothing was written, or that were not answered.";
    POOL: Gauge "platform_store_connections" ["database", "state"] "connections",
        "Connections to PostgreSQL.";
    POOL_LIMIT: Gauge "platform_store_connections_limit" ["database"] "connections",
        "The maximum number of connections to PostgreSQL.";
    POOL_WAITING: Gauge "platform_store_connections_waiting" ["database"] "operations",
        "Operations that wait for a connection to PostgreSQL.";
    UNANSWERED: Gauge "platform_store_writes_unanswered" ["database"] "writes",
        "Writes that PostgreSQL has not answered within 4 s, such as those that wait for a standby that is gone.";

    BACKUP_NEWEST: Gauge "platform_backup_newest_timestamp_seconds" [] "seconds since 1970",
        "When the newest backup in `PLATFORM_BACKUP` was begun.";
    BACKUP_OVERDUE: Gauge "platform_backup_overdue_seconds" [] "seconds",
        "The time since a backup should have been made that is not there; 0 if none is due.";

    READY: Gauge "platform_ready" [] "0 or 1",
        "Whether visitors can be sent to this node, as `/readyz` says.";
    DEGRADED: Gauge "platform_degraded" ["component"] "0 or 1",
        "Whether a part does not work as it should, as `/readyz` says.";
    CLOCK_OFFSET: Gauge "platform_clock_offset_seconds" [] "seconds",
        "How far this node's clock is ahead of PostgreSQL's.";
    DISK_FREE: Gauge "platform_disk_free_bytes" ["folder"] "bytes",
        "The free space on the disk of the data folder, and on that of deployed files.";
    DISK_FLOOR: Gauge "platform_disk_floor_bytes" [] "bytes",
        "The free space below which deploys and log records are refused.";

    PLAYING: Gauge "platform_players_playing" [] "players",
        "Players of published games now, on all nodes; who plays two games counts twice.";
    GAMES: Gauge "platform_games" [] "games",
        "Games that can be played.";
    DEPLOYS: Counter "platform_deploys_total" ["outcome"] "deploys",
        "Deploys of archives: published, refused because of what they contain or who sent them, or failed.";
    DEPLOYED_BYTES: Gauge "platform_deployments_bytes" [] "bytes",
        "The storage that the deployments of all projects use, as limits on storage count it.";
    LOG_RECORDS: Counter "platform_log_records_total" ["outcome"] "records",
        "Frontend log records of games that were stored, or refused by limits or because the store was busy.";

    JOB_RUNS: Counter "platform_job_runs_total" ["task", "outcome"] "runs",
        "Runs of periodic jobs: done, failed, or interrupted by a panic or a lost lease.";
    JOB_SECONDS: Counter "platform_job_run_seconds_total" ["task"] "seconds",
        "The time that runs of periodic jobs took.";
    JOB_DONE: Gauge "platform_job_last_success_timestamp_seconds" ["task"] "seconds since 1970",
        "When a periodic job was last done on this node.";

    TELEMETRY: Counter "platform_telemetry_items_total" ["signal", "outcome"] "spans or log records",
        "Spans and log records for the receiver of `otlp_endpoint`: sent, dropped because too many waited, or failed because it did not take them.";

    BUILD: Gauge "platform_build_info" ["version"] "1",
        "The version of the server.";
    CPU: Counter "process_cpu_seconds_total" [] "seconds",
        "The processor time that the server has used.";
    OPEN_FILES: Gauge "process_open_fds" [] "descriptors",
        "Open files and connections of the server.";
    FILES_LIMIT: Gauge "process_max_fds" [] "descriptors",
        "The maximum number of open files and connections.";
    RESIDENT: Gauge "process_resident_memory_bytes" [] "bytes",
        "The memory that the server uses.";
    VIRTUAL: Gauge "process_virtual_memory_bytes" [] "bytes",
        "The address space of the server.";
    THREADS: Gauge "process_threads" [] "threads",
        "Threads of the server.";
    STARTED: Gauge "process_start_time_seconds" [] "seconds since 1970",
        "When the server was started.";
}

/// Returns the table of all metrics as Markdown.
#[must_use]
pub fn table() -> String {
    let mut table =
        "| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n".to_owned();
    for metric in ALL {
        let labels: Vec<String> = metric
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {} | {} |",
            metric.name,
            metric.kind.name(),
            metric.unit,
            labels.join(", "),
            metric.help
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_those_that_prometheus_recommends() {
        let names: BTreeSet<_> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len(), "a name is there twice");
        for metric in ALL {
            let name = metric.name;
            let own = ["platform_", "process_"];
            assert!(own.iter().any(|prefix| name.starts_with(prefix)), "{name}");
            assert_eq!(
                name.ends_with("_total"),
                metric.kind == Kind::Counter,
                "{name}"
            );
            assert!(metric.help.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn the_documents_have_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
        let written = std::fs::read_to_string(path).unwrap();
        let table = table();
        assert!(
            written.contains(&table),
            "docs/metrics.md must contain this table:\n{table}"
        );
        let rows = written
            .lines()
            .filter(|line| line.starts_with("| `platform_") || line.starts_with("| `process_"));
        assert_eq!(rows.count(), ALL.len());
    }
}
