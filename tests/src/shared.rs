//! What the nodes of one platform share, if tests run against several nodes: a database, a Redis
//! and a bucket, which only this platform uses.
//!
//! With the variable `TESTS_NODES`, [`Platform`](crate::platform::Platform),
//! [`World`](crate::world::World) and [`Server`](crate::server::Server) are that many nodes behind a
//! [`Balancer`](crate::balancer::Balancer); without it, one server with an embedded store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use platform_cluster::Files;
use platform_server::clock::Millis;
use platform_server::config::{Config, load};
use platform_test_postgres::TestDatabase;
use platform_test_redis::TestRedis;
use tempfile::TempDir;

use crate::settings;

/// The variable with the number of nodes.
const NODES: &str = "TESTS_NODES";
/// Seals the signing keys on every node.
const KEY_SECRET: &str = "the same thirty-two or more characters";

/// The tests that several nodes leave out: what they test is about the one process. Each line has
/// the name of a test and the reason.
const LEFT_OUT: &str = include_str!("../one-server-only.txt");

/// Lets time pass in Redis, whose limits use its own clock: each one is as far from its end as it
/// would be `ARGV[1]` milliseconds later.
const PASS: &str = "
    local time = redis.call('TIME')
    local micros = time[1] * 1000000 + time[2]
    for _, key in ipairs(redis.call('KEYS', 'platform:limit:*')) do
        local left = redis.call('GET', key) - ARGV[1] * 1000 - micros
        if left > 0 then
            local value = string.format('%.0f', micros + left)
            redis.call('SET', key, value, 'PX', math.ceil(left / 1000))
        else
            redis.call('DEL', key)
        end
    end";

/// Returns how many nodes tests run against; `None` for one server with an embedded store.
///
/// # Panics
/// Panics if the variable is no number.
#[must_use]
pub fn nodes() -> Option<usize> {
    let nodes = settings::variable(NODES)?;
    let nodes = nodes.parse().expect("TESTS_NODES is a number");
    (nodes > 1).then_some(nodes)
}

/// Whether several nodes leave out the test `name`, which then prints why.
///
/// # Panics
/// Panics if `tests/one-server-only.txt` does not name it.
#[must_use]
#[expect(clippy::print_stdout, reason = "nobody should think that it ran")]
pub fn leave_out(name: &str) -> bool {
    let reason = reason(name).expect("tests/one-server-only.txt names the test");
    if nodes().is_none() {
        return false;
    }
    println!("{name} is left out with several nodes: {reason}");
    true
}

fn reason(name: &str) -> Option<&'static str> {
    let mut lines = LEFT_OUT.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The database, the Redis and the bucket of one platform.
#[derive(Debug)]
pub struct Shared {
    redis: TestRedis,
    bucket: Files,
    _objects: TempDir,
    /// It comes last, so that no program uses it when it is emptied for the next test.
    database: TestDatabase,
}

impl Shared {
    /// Starts all of it. Call this on the thread of the test, which lives as long as the bucket's
    /// server.
    ///
    /// # Panics
    /// Panics if a program is missing, or does not start.
    #[must_use]
    pub fn start() -> Self {
        let objects = TempDir::with_prefix("platform-tests-").expect("a temporary directory");
        let program = settings::program("S3S_FS", &["s3s-fs"]);
        let bucket = Files::start(objects.path(), Some(&program));
        Self {
            redis: TestRedis::start(),
            bucket: bucket.unwrap_or_else(|error| panic!("no bucket: {error:#}")),
            _objects: objects,
            database: TestDatabase::new(),
        }
    }

    /// Returns what the platform with the data folder `data` shares: also after a restart, as long
    /// as the folder exists.
    #[must_use]
    pub fn of(data: &Path) -> Arc<Self> {
        static ALL: Mutex<BTreeMap<PathBuf, Arc<Shared>>> = Mutex::new(BTreeMap::new());
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|data, _| data.exists());
        let shared = all.entry(data.to_owned());
        Arc::clone(shared.or_insert_with(|| Arc::new(Self::start())))
    }

    /// Gives a node in this process its settings, apart from its address and its folder.
    pub fn configure(&self, config: &mut Config) {
        let variables = self.variables().into_iter();
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        let own = load::from_parts(None, &variables.collect()).expect("these settings are valid");
        config.postgres = own.postgres;
        config.redis = own.redis;
        config.s3 = own.s3;
        config.key_secret = own.key_secret;
    }

    /// Returns the same settings as environment variables of a program.
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("PLATFORM_DATABASE_URL", self.database.url()),
            ("PLATFORM_REDIS_URL", self.redis.url()),
            ("PLATFORM_KEY_SECRET", KEY_SECRET.to_owned()),
        ];
        variables.extend(self.bucket.settings());
        variables
    }

    /// Returns its database.
    #[must_use]
    pub const fn database(&self) -> &TestDatabase {
        &self.database
    }

    /// Lets time pass for what uses the clock of Redis.
    ///
    /// # Panics
    /// Panics if Redis refuses.
    pub fn pass(&self, time: Millis) {
        let script = PASS.replace('\n', " ");
        let answer = self.redis.ask(&format!("EVAL \"{script}\" 0 {time}"));
        assert!(!answer.starts_with('-'), "{answer}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_that_is_left_out_has_a_reason() {
        for line in LEFT_OUT.lines() {
            let (name, said) = line.split_once(": ").expect("a name and a reason");
            assert_eq!(reason(name), Some(said));
            assert!(said.ends_with('.'), "a sentence: {said}");
        }
        assert_eq!(reason("a_test"), None);
    }
}
