//! Rate limits on changes of a project's settings, on deploys, on roll-backs, and on decisions about
//! errors. Each change and each deploy is an event that is kept permanently, and every node reads the
//! project again; decisions are events that are kept for a while. These limits never prevent taking a
//! game down.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::clock::Clock;
use crate::platform::shared_limits::{SharedLimiter, SharedLimits};
use crate::web::api_error::ApiError;
use crate::web::limiter::{Period, Rate, too_many_requests};

/// Acts of one kind on one project by one of its people: more than one and their programs ever
/// need. A developer must not use up what the owner needs to withdraw the role.
const OF_PROJECT: Rate = Rate::new(120, Period::Hour, 120);
/// Acts of one kind on all projects by one account.
const OF_ACCOUNT: Rate = Rate::new(600, Period::Hour, 600);

/// What the people of a project do. Each kind is counted separately.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// A change of the project's settings.
    Setting,
    /// A deploy, also of a preview. Each deploy token is counted by itself: a pipeline must not prevent
    /// its owner from deploying by hand.
    Deploy,
    /// A roll-back. A program that changes settings repeatedly must not prevent anybody from undoing
    /// a deploy.
    RollBack,
    /// A decision about errors. Who goes through a long list must still be able to change settings.
    ErrorDecision,
}

/// The limits.
#[derive(Debug)]
pub struct SettingsLimits {
    of_project: SharedLimiter<String>,
    of_account: SharedLimiter<Uuid>,
    deploys: SharedLimiter<String>,
    rollbacks: SharedLimiter<String>,
    decisions_of_project: SharedLimiter<String>,
    decisions_of_account: SharedLimiter<Uuid>,
}

impl SettingsLimits {
    /// Creates the limits with this clock.
    #[must_use]
    pub fn new(clock: &Arc<dyn Clock>, shared: &SharedLimits) -> Self {
        Self {
            of_project: shared.limiter("settings-of-project", &OF_PROJECT, clock),
            of_account: shared.limiter("settings", &OF_ACCOUNT, clock),
            deploys: shared.limiter("deploys-of-project", &OF_PROJECT, clock),
            rollbacks: shared.limiter("rollbacks", &OF_PROJECT, clock),
            decisions_of_project: shared.limiter("error-decisions-of-project", &OF_PROJECT, clock),
            decisions_of_account: shared.limiter("error-decisions", &OF_ACCOUNT, clock),
        }
    }

    /// Counts an act on this project by this account, or by the deploy token with this id: nobody may
    /// use up those of the others.
    ///
    /// # Errors
    /// `too-many-requests`, with the time to wait.
    pub async fn count(&self, act: Act, slug: &str, account: Uuid) -> Result<(), ApiError> {
        let (of_project, of_account) = match act {
            Act::Setting => (&self.of_project, Some(&self.of_account)),
            Act::Deploy => (&self.deploys, None),
            Act::RollBack => (&self.rollbacks, None),
            Act::ErrorDecision => (&self.decisions_of_project, Some(&self.decisions_of_account)),
        };
        let counted = of_project.count(&format!("{slug} {account}")).await;
        counted.map_err(|wait| act.refused("this project", &OF_PROJECT, wait))?;
        let Some(of_account) = of_account else {
            return Ok(());
        };
        let counted = of_account.count(&account).await;
        counted.map_err(|wait| act.refused("your projects", &OF_ACCOUNT, wait))
    }

    /// Removes projects and accounts that have been quiet for long enough.
    pub fn sweep(&self) {
        self.of_project.sweep();
        self.of_account.sweep();
        self.deploys.sweep();
        self.rollbacks.sweep();
        self.decisions_of_project.sweep();
        self.decisions_of_account.sweep();
    }
}

impl Act {
    /// Returns `too-many-requests` with what was done too often, and the time to wait.
    fn refused(self, of_what: &str, rate: &Rate, wait: Duration) -> ApiError {
        let most = rate.burst.get();
        let (what, advice) = match self {
            Self::Setting => (
                format!("The settings of {of_what} were written {most} times"),
                "; a program that writes them repeatedly should write them once",
            ),
            Self::Deploy => (
                format!("You deployed this project {most} times"),
                "; a pipeline that deploys more often than twice a minute should leave out states \
                 that newer ones have replaced",
            ),
            Self::RollBack => (format!("You rolled this project back {most} times"), ""),
            Self::ErrorDecision => (
                format!("You decided {most} times about errors of {of_what}"),
                "; all errors that a search finds can be deleted at once",
            ),
        };
        let minutes = wait.as_secs().div_ceil(60).max(1);
        too_many_requests(wait).with_detail(format!(
            "{what} within a short time, so nothing was changed now. Try again in {minutes} \
             min{advice}."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[tokio::test]
    async fn one_project_takes_nothing_from_another_and_one_owner_nothing_from_another() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(0));
        let limits = SettingsLimits::new(&clock, &SharedLimits::default());
        let written = async |slug: &str, owner: u128| {
            let mut written = 0;
            for _ in 0..200 {
                let counted = limits
                    .count(Act::Setting, slug, Uuid::from_u128(owner))
                    .await;
                written += usize::from(counted.is_ok());
            }
            written
        };
        assert_eq!(written("a", 1).await, 120);
        assert_eq!(written("b", 1).await, 120);
        let mut others = 0;
        for slug in 'c'..'z' {
            others += written(&slug.to_string(), 1).await;
        }
        assert_eq!(others, 600 - 240, "of all their projects");
        assert_eq!(written("other", 2).await, 120);
        for act in [Act::RollBack, Act::Deploy] {
            let done = async |slug: &str, by: u128| {
                let mut done = 0;
                for _ in 0..200 {
                    let counted = limits.count(act, slug, Uuid::from_u128(by));
                    done += usize::from(counted.await.is_ok());
                }
                done
            };
            assert_eq!(done("a", 1).await, 120, "whatever was done before");
            assert_eq!(done("a", 2).await, 120, "whatever others did");
            assert_eq!(done("b", 1).await, 120);
        }
    }

    #[tokio::test]
    async fn a_pipeline_that_deploys_every_minute_never_waits() {
        let moved = Arc::new(ManualClock::new(0));
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&moved);
        let limits = SettingsLimits::new(&clock, &SharedLimits::default());
        for _ in 0..600 {
            let counted = limits.count(Act::Deploy, "a", Uuid::from_u128(1));
            assert!(counted.await.is_ok());
            moved.advance(60_000);
        }
    }
}
