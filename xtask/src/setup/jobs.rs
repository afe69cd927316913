//! The jobs of the set-up: steps that are done at once, in queues that are worked off side by side.

use std::time::Duration;

use super::announcement::one_by_one;
use super::steps::{Fix, Queue, Step};

/// One step, or every step that installs Debian packages.
pub(super) struct Job {
    /// The steps; never none.
    pub(super) steps: Vec<&'static Step>,
    /// Whether it needs a Debian package that is still missing.
    pub(super) needs_debian: bool,
}

impl Job {
    /// How long it takes.
    pub(super) fn expected(&self) -> Duration {
        one_by_one(&self.steps)
    }

    /// The Debian packages of its steps, each once.
    pub(super) fn debian_packages(&self) -> Vec<&'static str> {
        let mut packages = Vec::new();
        for step in &self.steps {
            if let Fix::Debian(of_step) = step.fix {
                packages.extend(of_step);
            }
        }
        packages.sort_unstable();
        packages.dedup();
        packages
    }
}

/// The jobs of one queue, in order. Each call of apt-get costs some seconds besides what it installs,
/// so one call installs every missing Debian package.
pub(super) fn jobs(missing: &[&'static Step], queue: Queue) -> Vec<Job> {
    let of_queue = missing.iter().filter(|step| step.fix.queue() == queue);
    let (debian, others): (Vec<&'static Step>, Vec<&'static Step>) =
        of_queue.partition(|step| matches!(step.fix, Fix::Debian(_)));
    let debian = (!debian.is_empty()).then_some(Job {
        steps: debian,
        needs_debian: false,
    });
    let others = others.into_iter().map(|step| Job {
        steps: vec![step],
        needs_debian: needs_debian(step, missing),
    });
    debian.into_iter().chain(others).collect()
}

/// Whether a step comes after one that is missing too and installs Debian packages.
fn needs_debian(step: &Step, missing: &[&'static Step]) -> bool {
    missing
        .iter()
        .any(|other| matches!(other.fix, Fix::Debian(_)) && step.fix.after().contains(&other.name))
}

#[cfg(test)]
mod tests {
    use super::super::steps::STEPS;
    use super::*;

    fn steps(names: &[&str]) -> Vec<&'static Step> {
        let steps = STEPS.iter().filter(|step| names.contains(&step.name));
        steps.collect()
    }

    fn names(job: &Job) -> Vec<&'static str> {
        job.steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn one_job_installs_every_debian_package_and_each_once() {
        let missing = steps(&[
            "Go",
            "podman",
            "geckodriver",
            "mmdebstrap",
            "a bare Debian 12",
        ]);
        let jobs = jobs(&missing, Queue::System);
        let all: Vec<_> = jobs.iter().map(names).collect();
        assert_eq!(
            all,
            [&["Go", "podman", "mmdebstrap"][..], &["a bare Debian 12"]]
        );
        let packages = jobs[0].debian_packages();
        assert!(packages.contains(&"golang-go") && packages.contains(&"curl"));
        let twice = packages.iter().filter(|name| **name == "iproute2").count();
        assert_eq!(twice, 1, "podman and mmdebstrap name it");
        assert_eq!(jobs[0].expected(), one_by_one(&jobs[0].steps));
    }

    #[test]
    fn every_step_is_in_one_job() {
        let missing: Vec<&Step> = STEPS.iter().collect();
        let jobs = Queue::ALL.map(|queue| jobs(&missing, queue));
        let mut done: Vec<_> = jobs.iter().flatten().flat_map(names).collect();
        let mut all: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        done.sort_unstable();
        all.sort_unstable();
        assert_eq!(done, all);
    }

    #[test]
    fn a_job_waits_for_debian_only_if_its_program_is_missing() {
        let needs = |names: &[&str], queue| {
            let jobs = jobs(&steps(names), queue);
            jobs.iter().any(|job| job.needs_debian)
        };
        let loader = "npm packages of the loader";
        assert!(needs(&["Node.js", loader], Queue::Packages));
        assert!(!needs(&["Go", loader], Queue::Packages));
        assert!(needs(&["C compiler", "geckodriver"], Queue::Rust));
        assert!(!needs(&["Node.js", "geckodriver"], Queue::Rust));
    }

    #[test]
    fn what_a_step_comes_after_is_a_step_of_debian() {
        for name in STEPS.iter().flat_map(|step| step.fix.after()) {
            let step = STEPS.iter().find(|step| step.name == *name);
            let step = step.unwrap_or_else(|| panic!("no step is named {name}"));
            assert!(matches!(step.fix, Fix::Debian(_)), "{name}");
        }
    }
}
