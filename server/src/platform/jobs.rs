//! Periodic work. Each slice defines its jobs, `app/jobs.rs` lists them, and the loop here runs
//! each of them.
//!
//! Every job runs in every process. If several nodes share a store, a job that only one of them must
//! do ([`Schedule::on_one_node`]) takes a lease before each run, and waits while another node holds
//! it.

use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::domain::errors::chain;

/// A periodic job, with its state between runs.
#[async_trait]
pub trait Job: Send + Sync + 'static {
    /// Returns the job's name, and when it runs.
    fn schedule(&self) -> Schedule;

    /// Returns when the job must run before its time.
    async fn woken(&self) {
        std::future::pending::<()>().await;
    }

    /// Whether the job waits, such as for some minutes after a failure. A run that would begin
    /// meanwhile is left out, and does not count as one.
    fn is_paused(&self) -> bool {
        false
    }

    /// Performs one run. The loop logs an error, and the next run tries again.
    ///
    /// # Errors
    /// What failed, for the log.
    async fn run(&mut self) -> Result<(), JobError>;
}

/// Decides which node does the work that only one node must do.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes or keeps the lease `name`. Returns whether this node has it.
    async fn take(&self, name: &'static str) -> bool;

    /// Returns when this node may no longer have the lease `name`. Work that it covers must end.
    async fn lost(&self, name: &'static str);
}

/// A job's name, and when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The name, for the log.
    pub name: &'static str,
    /// The time between two runs. If a run takes longer, the next one begins one period after it.
    pub period: Duration,
    /// Whether the first run is at the start of the server, or one period later.
    pub at_start: bool,
    /// Whether only one node does it.
    pub on_one_node: bool,
}

impl Schedule {
    /// Runs at the start, and then every `period`.
    #[must_use]
    pub const fn from_start(name: &'static str, period: Duration) -> Self {
        Self {
            name,
            period,
            at_start: true,
            on_one_node: false,
        }
    }

    /// Runs for the first time one `period` after the start.
    #[must_use]
    pub const fn after_one_period(name: &'static str, period: Duration) -> Self {
        Self {
            name,
            period,
            at_start: false,
            on_one_node: false,
        }
    }

    /// Of several nodes, only the one that has the lease of the job's name runs it.
    #[must_use]
    pub const fn on_one_node(self) -> Self {
        Self {
            on_one_node: true,
            ..self
        }
    }
}

/// What failed in a run of a job, and why. Several parts of it may have failed.
#[derive(Debug)]
pub struct JobError(Vec<Failure>);

/// A part of a run that failed.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Failure {
    what: &'static str,
    source: Box<dyn Error + Send + Sync>,
}

impl JobError {
    /// Joins the parts of a run. A part that fails does not keep the others from being done,
    /// nor their errors from being logged.
    ///
    /// # Errors
    /// The errors of all parts.
    pub fn join<const N: usize>(parts: [Result<(), Self>; N]) -> Result<(), Self> {
        let failed = parts.into_iter().filter_map(Result::err);
        let failures: Vec<Failure> = failed.flat_map(|error| error.0).collect();
        if failures.is_empty() {
            Ok(())
        } else {
            Err(Self(failures))
        }
    }

    /// Creates an error from its cause. `what` is a sentence such as "the keys could not be read
    /// again".
    pub fn because<E: Into<Box<dyn Error + Send + Sync>>>(
        what: &'static str,
    ) -> impl FnOnce(E) -> Self {
        move |source| {
            let source = source.into();
            Self(vec![Failure { what, source }])
        }
    }
}

/// Runs a job in its own task, until the set is shut down.
pub fn spawn(job: impl Job, leases: Arc<dyn Leases>, tasks: &mut JoinSet<()>) {
    tasks.spawn(run_for_ever(job, leases));
}

/// How often a node tries to take a lease that another one has. If that node is killed, another one
/// continues so long after the end of the lease.
const TRY: Duration = Duration::from_secs(3);

/// Returns when this node has the lease.
async fn wait_for_lease(name: &'static str, leases: &dyn Leases) {
    let mut tries = tokio::time::interval(TRY);
    tries.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tries.tick().await;
        if leases.take(name).await {
            return;
        }
    }
}

async fn run_for_ever(mut job: impl Job, leases: Arc<dyn Leases>) {
    let Schedule {
        name,
        period,
        at_start,
        on_one_node,
    } = job.schedule();
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    if !at_start {
        // The first tick of an interval is immediate.
        ticks.tick().await;
    }
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = job.woken() => {}
        }
        if job.is_paused() {
            continue;
        }
        if on_one_node {
            wait_for_lease(name, &*leases).await;
        }
        let run = AssertUnwindSafe(job.run()).catch_unwind();
        let ran = tokio::select! {
            ran = run => ran,
            // Another node may begin. Every write of a run is complete in itself.
            () = leases.lost(name), if on_one_node => {
                tracing::warn!(job = name, "a job was ended, because its lease was lost");
                continue;
            }
        };
        match ran {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                for failure in &error.0 {
                    tracing::error!(job = name, error = chain(failure), "a job failed");
                }
            }
            // The panic hook has logged the message and the location.
            Err(_panic) => tracing::error!(job = name, "a job panicked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    /// How a run ends.
    #[derive(Clone, Copy)]
    enum End {
        Done,
        Failed,
        Panicked,
    }

    /// The leases of a node that is alone.
    struct Always;

    #[async_trait]
    impl Leases for Always {
        async fn take(&self, _name: &'static str) -> bool {
            true
        }

        async fn lost(&self, _name: &'static str) {
            std::future::pending::<()>().await;
        }
    }

    /// A lease that this node has for some seconds, after which it is lost.
    #[derive(Default)]
    struct Held {
        taken: AtomicUsize,
        seconds: Option<u64>,
    }

    #[async_trait]
    impl Leases for Held {
        async fn take(&self, name: &'static str) -> bool {
            assert_eq!(name, "endless");
            self.taken.fetch_add(1, Ordering::SeqCst);
            self.seconds.is_some()
        }

        async fn lost(&self, _name: &'static str) {
            let lost = tokio::time::Instant::now() + Duration::from_secs(self.seconds.unwrap_or(0));
            tokio::time::sleep_until(lost).await;
        }
    }

    /// Begins every ten seconds and never ends.
    struct Endless(Arc<AtomicUsize>);

    #[async_trait]
    impl Job for Endless {
        fn schedule(&self) -> Schedule {
            Schedule::from_start("endless", Duration::from_secs(10)).on_one_node()
        }

        async fn run(&mut self) -> Result<(), JobError> {
            self.0.fetch_add(1, Ordering::SeqCst);
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_for_one_node_runs_only_while_the_node_has_the_lease() {
        for (seconds, expected, tries) in [(None, 0, 9), (Some(3), 3, 3), (Some(100), 1, 1)] {
            let leases = Arc::new(Held {
                seconds,
                ..Held::default()
            });
            let runs = Arc::new(AtomicUsize::new(0));
            let running = run_for_ever(Endless(Arc::clone(&runs)), Arc::clone(&leases) as _);
            let ended = tokio::time::timeout(Duration::from_secs(25), running).await;
            assert!(ended.is_err(), "the loop ended by itself");
            assert_eq!(runs.load(Ordering::SeqCst), expected, "{seconds:?}");
            let taken = leases.taken.load(Ordering::SeqCst);
            assert_eq!(taken, tries, "{seconds:?}");
        }
    }

    /// Counts its runs, one every ten seconds.
    #[derive(Clone)]
    struct Counting {
        at_start: bool,
        end: End,
        wake: Arc<Notify>,
        runs: Arc<AtomicUsize>,
    }

    impl Counting {
        fn new(at_start: bool, end: End) -> Self {
            Self {
                at_start,
                end,
                wake: Arc::default(),
                runs: Arc::default(),
            }
        }
    }

    #[async_trait]
    impl Job for Counting {
        fn schedule(&self) -> Schedule {
            let period = Duration::from_secs(10);
            if self.at_start {
                Schedule::from_start("counting", period)
            } else {
                Schedule::after_one_period("counting", period)
            }
        }

        async fn woken(&self) {
            self.wake.notified().await;
        }

        async fn run(&mut self) -> Result<(), JobError> {
            self.runs.fetch_add(1, Ordering::SeqCst);
            match self.end {
                End::Done => Ok(()),
                End::Failed => Err(JobError::because("the runs could not be counted")("why")),
                End::Panicked => panic!("a run that panics"),
            }
        }
    }

    /// Returns how often the job runs within this number of seconds.
    async fn runs_within(job: &Counting, seconds: u64) -> usize {
        let running = run_for_ever(job.clone(), Arc::new(Always));
        let ended = tokio::time::timeout(Duration::from_secs(seconds), running).await;
        assert!(ended.is_err(), "the loop ended by itself");
        job.runs.load(Ordering::SeqCst)
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_runs_at_the_start_and_then_once_a_period() {
        assert_eq!(runs_within(&Counting::new(true, End::Done), 25).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_does_not_run_at_the_start_first_runs_one_period_later() {
        let job = Counting::new(false, End::Done);
        assert_eq!(runs_within(&job, 9).await, 0);
        assert_eq!(runs_within(&job, 25).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_is_woken_runs_before_its_time() {
        let job = Counting::new(false, End::Done);
        job.wake.notify_one();
        assert_eq!(runs_within(&job, 5).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_runs_again_after_a_run_that_failed_or_panicked() {
        for end in [End::Failed, End::Panicked] {
            assert_eq!(runs_within(&Counting::new(true, end), 25).await, 3);
        }
    }

    /// Would run every ten seconds, and waits for 25 seconds after each run.
    struct Waiting {
        until: tokio::time::Instant,
        runs: Arc<AtomicUsize>,
    }

    #[async_trait]
    impl Job for Waiting {
        fn schedule(&self) -> Schedule {
            Schedule::from_start("waiting", Duration::from_secs(10))
        }

        fn is_paused(&self) -> bool {
            tokio::time::Instant::now() < self.until
        }

        async fn run(&mut self) -> Result<(), JobError> {
            self.runs.fetch_add(1, Ordering::SeqCst);
            self.until = tokio::time::Instant::now() + Duration::from_secs(25);
            Err(JobError::because("it must wait")("why"))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_waits_does_not_run_until_it_has_waited() {
        let runs = Arc::<AtomicUsize>::default();
        let job = Waiting {
            until: tokio::time::Instant::now(),
            runs: Arc::clone(&runs),
        };
        let running = run_for_ever(job, Arc::new(Always));
        let ended = tokio::time::timeout(Duration::from_secs(65), running).await;
        assert!(ended.is_err(), "the loop ended by itself");
        assert_eq!(runs.load(Ordering::SeqCst), 3, "at 0, 30 and 60 seconds");
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_ends_with_the_set_that_it_was_spawned_in() {
        let job = Counting::new(true, End::Done);
        let mut tasks = JoinSet::new();
        spawn(job.clone(), Arc::new(Always), &mut tasks);
        let ended = tokio::time::timeout(Duration::from_secs(1), tasks.join_next()).await;
        assert!(ended.is_err(), "the job ended by itself");
        tasks.shutdown().await;
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(job.runs.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn an_error_says_of_each_part_what_could_not_be_done_and_why() {
        let failed = |what: &'static str| Err(JobError::because(what)("the disk is full"));
        let parts = [
            failed("the keys could not be read again"),
            Ok(()),
            failed("the games could not be ranked"),
        ];
        let error = JobError::join(parts).unwrap_err();
        let said: Vec<String> = error.0.iter().map(|failure| chain(failure)).collect();
        assert_eq!(
            said,
            [
                "the keys could not be read again: the disk is full",
                "the games could not be ranked: the disk is full"
            ]
        );
        assert!(JobError::join([Ok(()), Ok(())]).is_ok());
    }
}
