//! The jobs of all slices, and jobs that concern several slices: reading again what other nodes and
//! the operator's commands may have changed, and removing unneeded data from memory.
//!
//! Changes are followed within a second (`changes`). What is read again here is read because nobody
//! recorded a change of it, or because a node may have been cut off from the store.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::task::JoinSet;

use crate::app::backups::MakeBackups;
use crate::app::changes::FollowChanges;
use crate::app::state::AppState;
use crate::auth::AuthState;
use crate::auth::deletions::RemovePlayers;
use crate::auth::ended_sessions::ReadEndings;
use crate::auth::refusal_log;
use crate::auth::retention::ApplyRetention;
use crate::auth::sessions::SweepSessions;
use crate::auth::suspensions::ReadSuspensions;
use crate::clock::Clock;
use crate::config::show::OPERATIONS;
use crate::domain::node::NodeReport;
use crate::games::{self, GamesState};
use crate::hosting::HostingState;
use crate::logs::{GroupErrors, SweepLogs};
use crate::platform::Platform;
use crate::platform::jobs::{Job, JobError, Schedule, spawn};
use crate::platform::metrics::Metrics;
use crate::platform::nodes::ReportNode;
use crate::players::counting::persistence::CountPlayers;
use crate::projects::alerts::SendAlerts;
use crate::projects::deploy::SweepDeployments;
use crate::projects::domains::LookAtDomains;
use crate::projects::player_events::SendPlayerEvents;

/// The interval of reading the games again, because of changes by other nodes, and of sweeping
/// memory.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// The interval of reading the signing keys again: a key that another process revokes is used for
/// no longer than this.
const LOOK_FOR_KEYS: Duration = Duration::from_secs(3);

/// The interval of noting what works less well.
const NOTE_FAULTS: Duration = Duration::from_secs(1);

/// The interval of asking whether the bucket of deployed files answers.
const ASK_FOR_FILES: Duration = Duration::from_secs(5);

/// Starts all jobs. They end with the set.
pub(super) fn start(state: &AppState) -> JoinSet<()> {
    let mut tasks = Tasks {
        platform: Arc::clone(&state.platform),
        set: JoinSet::new(),
    };
    let auth = || Arc::clone(&state.auth);
    tasks.start(ReportNode::new(Arc::clone(&state.platform.nodes)));
    tasks.start(FollowChanges(state.clone()));
    tasks.start(ReadGames(Arc::clone(&state.hosting)));
    tasks.start(ReadKeys(auth()));
    tasks.start(ReadSuspensions(auth()));
    tasks.start(ReadEndings(auth()));
    tasks.start(SweepSessions(auth()));
    tasks.start(RemovePlayers::new(auth()));
    tasks.start(ApplyRetention(auth()));
    tasks.start(NoteRefusals(auth()));
    tasks.start(SweepDeployments(Arc::clone(&state.projects)));
    tasks.start(SweepLogs::new(Arc::clone(&state.logs)));
    tasks.start(GroupErrors(Arc::clone(&state.logs)));
    tasks.start(SendAlerts(Arc::clone(&state.projects)));
    tasks.start(SendPlayerEvents(Arc::clone(&state.projects)));
    tasks.start(LookAtDomains(Arc::clone(&state.projects)));
    tasks.start(CountPlayers::new(Arc::clone(&state.players)));
    tasks.start(SweepMemory(state.clone()));
    if state.games.presence.is_shared() || state.games.files.is_shared() {
        tasks.start(NoteFaults(Arc::clone(&state.games)));
    }
    if state.games.files.is_shared() {
        tasks.start(AskForFiles(Arc::clone(&state.games)));
    }
    let platform = &state.platform;
    if platform.config.backup.is_some() {
        tasks.start(MakeBackups::new(state.clone()));
    }
    if platform.store.is_shared() || !platform.config.services().is_empty() {
        tasks.start(FindOwnSockets(Arc::clone(&state.hosting)));
    }
    tasks.set
}

/// The jobs that were started, and what they need: leases, and what counts their runs.
struct Tasks {
    platform: Arc<Platform>,
    set: JoinSet<()>,
}

impl Tasks {
    fn start(&mut self, job: impl Job) {
        let leases = Arc::clone(&self.platform.nodes);
        let measured = Measured {
            job,
            metrics: self.platform.metrics.clone(),
            clock: Arc::clone(&self.platform.clock),
        };
        spawn(measured, leases, &mut self.set);
    }
}

/// A job whose runs are counted.
struct Measured<J> {
    job: J,
    metrics: Metrics,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl<J: Job> Job for Measured<J> {
    fn schedule(&self) -> Schedule {
        self.job.schedule()
    }

    async fn woken(&self) {
        self.job.woken().await;
    }

    fn is_paused(&self) -> bool {
        self.job.is_paused()
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let run = self.metrics.job(self.job.schedule().name);
        let result = self.job.run().await;
        run.end(result.is_ok(), self.clock.now());
        result
    }
}

/// Reads the games again. They were also read when the server started.
struct ReadGames(Arc<HostingState>);

#[async_trait]
impl Job for ReadGames {
    fn schedule(&self) -> Schedule {
        Schedule::after_one_period("read-games", LOOK_AGAIN)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let read = self.0.refresh_all().await;
        read.map_err(JobError::because("the games could not be read again"))
    }
}

/// Reads rotations and revocations by other nodes and the operator's commands. The keys were also
/// read when the server started.
struct ReadKeys(Arc<AuthState>);

#[async_trait]
impl Job for ReadKeys {
    fn schedule(&self) -> Schedule {
        Schedule::after_one_period("read-keys", LOOK_FOR_KEYS)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let read = self.0.keys.refresh().await;
        read.map_err(JobError::because(
            "the signing keys could not be read again",
        ))
    }
}

/// Records in the audit log how many refusals were left out.
struct NoteRefusals(Arc<AuthState>);

#[async_trait]
impl Job for NoteRefusals {
    fn schedule(&self) -> Schedule {
        Schedule::after_one_period("note-refusals", LOOK_AGAIN)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        refusal_log::tell_left_out(&self.0, false).await;
        Ok(())
    }
}

/// Asks whether the bucket of deployed files answers, so that this is known even if nobody requests
/// a file that is not in the cache.
struct AskForFiles(Arc<GamesState>);

#[async_trait]
impl Job for AskForFiles {
    fn schedule(&self) -> Schedule {
        Schedule::after_one_period("ask-for-files", ASK_FOR_FILES)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        // The log has it when that changes, not every time.
        let _ = self.0.files.check().await;
        Ok(())
    }
}

/// Resolves the names of the services that the settings name, and of the other nodes: games'
/// backends must not be there.
struct FindOwnSockets(Arc<HostingState>);

#[async_trait]
impl Job for FindOwnSockets {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("find-own-sockets", LOOK_AGAIN)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let nodes = self.0.platform.store.list_nodes().await;
        let nodes = nodes.map_err(JobError::because("the nodes could not be listed"))?;
        let nodes = nodes.into_iter().flat_map(|node| sockets(&node.report));
        let own = self.0.backends.reach().own_sockets();
        own.look_up(nodes.collect()).await;
        Ok(())
    }
}

/// Returns the sockets of a node: for visitors, and for health checks. The latter are at the address
/// on which it listens, or, if that is not one address, below the name of its machine.
fn sockets(report: &NodeReport) -> Vec<String> {
    let mut sockets = vec![report.address.clone()];
    let settings: BTreeMap<String, String> =
        serde_json::from_str(&report.settings).unwrap_or_default();
    let operations = settings.get(OPERATIONS);
    if let Some(operations) = operations.and_then(|text| text.parse::<SocketAddr>().ok()) {
        let machine = report.address.rsplit_once(':');
        sockets.push(match machine {
            Some((machine, _)) if operations.ip().is_unspecified() => {
                format!("{machine}:{}", operations.port())
            }
            _ => operations.to_string(),
        });
    }
    sockets
}

/// Notes for the other nodes what works less well on this one.
struct NoteFaults(Arc<GamesState>);

#[async_trait]
impl Job for NoteFaults {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("note-faults", NOTE_FAULTS)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let games = &self.0;
        let faults = games::faults(&games.files, &*games.presence);
        games.platform.nodes.set_faults(faults);
        Ok(())
    }
}

/// Removes callers that were quiet for long enough, and players who left.
struct SweepMemory(AppState);

#[async_trait]
impl Job for SweepMemory {
    fn schedule(&self) -> Schedule {
        Schedule::after_one_period("sweep-memory", LOOK_AGAIN)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let state = &self.0;
        state.auth.limits.sweep();
        state.logs.limits.sweep();
        state.projects.settings_limits.sweep();
        state.games.presence.sweep(state.platform.clock.now()).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    /// Fails at its first run, and waits from then on.
    #[derive(Default)]
    struct FailsAndWaits {
        waits: bool,
    }

    #[async_trait]
    impl Job for FailsAndWaits {
        fn schedule(&self) -> Schedule {
            Schedule::from_start("fails", LOOK_AGAIN)
        }

        fn is_paused(&self) -> bool {
            self.waits
        }

        async fn run(&mut self) -> Result<(), JobError> {
            self.waits = true;
            Err(JobError::because("it could not be done")("why"))
        }
    }

    #[tokio::test]
    async fn a_job_whose_runs_are_counted_waits_as_it_does_by_itself() {
        let mut measured = Measured {
            job: FailsAndWaits::default(),
            metrics: Metrics::on(),
            clock: Arc::new(ManualClock::new(0)),
        };
        assert!(!measured.is_paused());
        measured.run().await.unwrap_err();
        assert!(measured.is_paused());
    }

    #[test]
    fn the_health_checks_of_a_node_are_its_sockets_as_well() {
        let sockets = |settings: &str| {
            let report = NodeReport {
                id: uuid::Uuid::nil(),
                address: "node-1:8787".to_owned(),
                binary: String::new(),
                settings: settings.to_owned(),
                applied: 0,
                clock_offset: None,
                degraded: Vec::new(),
            };
            sockets(&report).join(" ")
        };
        let everywhere = r#"{"operations_listen":"0.0.0.0:9090"}"#;
        assert_eq!(sockets(everywhere), "node-1:8787 node-1:9090");
        let everywhere = r#"{"operations_listen":"[::]:9090"}"#;
        assert_eq!(sockets(everywhere), "node-1:8787 node-1:9090");
        let one = r#"{"operations_listen":"10.1.0.5:9090"}"#;
        assert_eq!(sockets(one), "node-1:8787 10.1.0.5:9090");
        // Without health checks, and of an older program.
        assert_eq!(sockets("{}"), "node-1:8787");
        assert_eq!(sockets(""), "node-1:8787");
    }
}
