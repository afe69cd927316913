//! Previews: further deployments of a project's dev environment, each with a name and an address
//! of its own, which end when nobody uses them.

use platform_protocol::preview::UNUSED_DAYS;
use uuid::Uuid;

use crate::clock::Millis;
use crate::project::{Deployment, DeploymentSummary};

/// A day: the precision with which the last use is kept.
const DAY: Millis = 24 * 60 * 60 * 1_000;

/// A preview in a project's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// Its name, which no other preview of the project has.
    pub name: String,
    /// What it shows.
    pub deployment: DeploymentSummary,
    /// When it was created; later deployments replace what it shows.
    pub created_at: Millis,
    /// The beginning of the day on which it was last deployed or opened.
    pub used_at: Millis,
}

/// What the catalogue of games has of a preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedPreview {
    /// The project.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// What it shows.
    pub deployment: Uuid,
    /// The beginning of the day on which it was last deployed or opened.
    pub used_at: Millis,
}

/// A deployment that a preview will show.
#[derive(Clone, Debug)]
pub struct NewPreview {
    /// The preview's name.
    pub name: String,
    /// The deployment, in the dev environment.
    pub deployment: Deployment,
    /// How many previews the project may have with this one.
    pub most: usize,
}

/// The result of deploying a preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddedPreview {
    /// It shows the deployment.
    Done,
    /// The project has as many previews as it may. This one was used longest ago.
    TooMany {
        /// Its name.
        oldest: String,
        /// The beginning of the day on which it was last used.
        used_at: Millis,
    },
}

/// Returns the beginning of the day.
#[must_use]
pub const fn day_of(now: Millis) -> Millis {
    now - now.rem_euclid(DAY)
}

/// Returns when a preview that was last used on this day ends: after as many whole days without
/// use as it may have.
#[must_use]
pub fn expiry(used_at: Millis) -> Millis {
    used_at + (Millis::from(UNUSED_DAYS) + 1) * DAY
}

/// Returns the last day of use of previews that have ended at `now`: theirs is this one or an
/// earlier one.
#[must_use]
pub fn last_use_of_ended(now: Millis) -> Millis {
    now - (Millis::from(UNUSED_DAYS) + 1) * DAY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_ends_after_fourteen_whole_days_without_use() {
        let used_at = day_of(3 * DAY + 5);
        assert_eq!(used_at, 3 * DAY);
        assert_eq!(expiry(used_at), 18 * DAY);
        for (now, ended) in [(18 * DAY - 1, false), (18 * DAY, true)] {
            assert_eq!(used_at <= last_use_of_ended(now), ended, "{now}");
        }
    }
}
