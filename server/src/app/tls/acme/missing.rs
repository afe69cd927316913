//! The certificates that every platform needs and this one does not have, as the node and its metrics say it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::lock;
use crate::platform::Platform;

/// The names of those that are missing.
#[derive(Debug)]
pub(super) struct Missing {
    platform: Arc<Platform>,
    names: Mutex<BTreeSet<String>>,
}

impl Missing {
    /// It is not known yet which ones are missing.
    pub(super) fn new(platform: &Arc<Platform>) -> Self {
        Self {
            platform: Arc::clone(platform),
            names: Mutex::default(),
        }
    }

    /// Notes that these are missing now, and no others.
    pub(super) fn set(&self, names: BTreeSet<String>) {
        let mut missing = lock(&self.names);
        *missing = names;
        self.tell(missing.len());
    }

    /// Notes that one was obtained.
    pub(super) fn obtained(&self, name: &str) {
        let mut missing = lock(&self.names);
        if missing.remove(name) {
            self.tell(missing.len());
        }
    }

    fn tell(&self, count: usize) {
        self.platform.nodes.lack_certificates(count > 0);
        self.platform.metrics.set_certificates_missing(count);
    }
}
