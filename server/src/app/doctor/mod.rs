//! `platform-server doctor`: looks at everything that a platform needs, and says of each part whether it
//! is fine, or what is wrong and what to do. It changes no data.
//!
//! | module | contents |
//! |---|---|
//! | `caa` | whether the certificate authority may issue certificates |
//! | `certificates` | how long the certificates are valid |
//! | `disks` | the data folder, free space |
//! | `backups` | the age of the newest backup |
//! | `services` | database, signing keys, Redis, the bucket, identity providers |
//! | `network` | names, the way through the proxy, the clock, the operator's listener |
//! | `fetch` | requests to the platform and to providers |

mod backups;
mod caa;
mod certificates;
mod disks;
mod fetch;
mod network;
mod services;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use crate::clock::Clock;
use crate::config::Config;
use crate::entropy::Entropy;
use crate::origin::PlatformOrigin;
use crate::platform::disk::FreeSpace;

/// What was found out about a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It works.
    Fine,
    /// It works, and something should be done.
    Warning,
    /// It does not work.
    Wrong,
    /// There is nothing to look at.
    Skipped,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Warning => "warning",
            Self::Wrong => "WRONG",
            Self::Skipped => "skipped",
        }
    }
}

/// One line of the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The part that was looked at.
    pub check: &'static str,
    /// Whether it works.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do; absent if there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    fn fine(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            state: State::Fine,
            found: found.into(),
            advice: None,
        }
    }

    fn skipped(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            state: State::Skipped,
            ..Self::fine(check, found)
        }
    }

    fn warning(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            state: State::Warning,
            advice: Some(advice.into()),
            ..Self::fine(check, found)
        }
    }

    fn wrong(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            state: State::Wrong,
            ..Self::warning(check, found, advice)
        }
    }
}

/// What the checks look at.
#[derive(Debug)]
pub struct Patient<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The folder of backups, or the newest one, in place of what the settings say.
    pub backups: Option<PathBuf>,
    /// This machine's clock.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness.
    pub entropy: Arc<dyn Entropy>,
    /// This machine's disks.
    pub disk: Arc<dyn FreeSpace>,
}

impl Patient<'_> {
    fn games_origin(&self) -> PlatformOrigin {
        let games = self.config.games_origin.clone();
        games.unwrap_or_else(|| self.origin())
    }

    fn origin(&self) -> PlatformOrigin {
        let origin = self.config.origin.clone();
        origin.unwrap_or_else(|| PlatformOrigin::local(self.config.listen.port()))
    }
}

/// Makes all checks, those that wait for others at the same time.
pub async fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    let disks = disks::examine(patient);
    let (backups, services, certificates, caa, network) = tokio::join!(
        backups::examine(patient),
        services::examine(patient),
        certificates::examine(patient),
        caa::examine(patient),
        network::examine(patient),
    );
    let findings = disks.into_iter().chain([backups]).chain(services);
    let findings = findings.chain(certificates).chain(caa);
    findings.chain(network).collect()
}

/// Returns how many parts do not work.
#[must_use]
pub fn count_wrong(findings: &[Finding]) -> usize {
    let wrong = |finding: &&Finding| finding.state == State::Wrong;
    findings.iter().filter(wrong).count()
}

/// Returns the findings for a person: a line for each, and one more for what to do.
#[must_use]
pub fn as_text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.check.len()).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    for Finding {
        check,
        state,
        found,
        advice,
    } in findings
    {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{:7}  {check:width$}  {found}", state.word());
        if let Some(advice) = advice {
            let _ = writeln!(text, "{:7}  {:width$}  → {advice}", "", "");
        }
    }
    text
}

/// Returns the findings for a program.
#[must_use]
pub fn as_json(findings: &[Finding]) -> String {
    // Texts cannot fail to serialize.
    let json = serde_json::to_string_pretty(findings).unwrap_or_default();
    format!("{json}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_what_is_wrong_and_what_to_do() {
        let findings = [
            Finding::fine("disk", "9 GiB are free"),
            Finding::wrong("database", "it does not answer", "start it"),
            Finding::skipped("redis", "none is set"),
        ];
        assert_eq!(count_wrong(&findings), 1);
        let expected = "\
fine     disk      9 GiB are free
WRONG    database  it does not answer
                   → start it
skipped  redis     none is set
";
        assert_eq!(as_text(&findings), expected);
        let json: serde_json::Value = serde_json::from_str(&as_json(&findings)).unwrap();
        assert_eq!(json[1]["state"], "wrong");
        assert_eq!(json[1]["advice"], "start it");
        assert_eq!(json[0].get("advice"), None);
    }
}
