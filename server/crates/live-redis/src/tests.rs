//! Tests with a real Redis, and a clock that tests move.

#[path = "../../../src/games/live/memory/cases.rs"]
mod cases;
mod cluster;
mod hints;
mod limits;
mod outage;
mod presence;
mod sentinel;

use std::time::Duration;

use platform_domain::clock::Millis;
use platform_domain::page::PageId;
use platform_test_redis::TestRedis;
use tokio::time::{Instant, interval};
use uuid::Uuid;

use crate::LiveRedis;
use crate::scripts::Scripts;

/// Stands before the scripts instead of the clock of Redis.
const CLOCK: &str = "local now = tonumber(redis.call('GET', 'clock'))
    local micros = now * 1000";
const START: Millis = 1_800_000_000_000;
const DEMO: &str = "game:demo";
/// How long something that happens in the background may take.
const SOON: Duration = Duration::from_secs(30);

/// A Redis whose scripts read the clock of the test.
struct World {
    redis: TestRedis,
    now: Millis,
}

impl World {
    fn new() -> Self {
        let world = Self {
            redis: TestRedis::start(),
            now: START,
        };
        world.set_clock();
        world
    }

    fn set_clock(&self) {
        assert_eq!(
            self.redis.ask(&format!("SET clock {}", self.now)),
            "+OK\r\n"
        );
    }

    fn advance(&mut self, millis: Millis) {
        self.now += millis;
        self.set_clock();
    }

    /// Returns one of the nodes, which waits for a busy machine.
    async fn node(&self) -> LiveRedis {
        let node = LiveRedis::open(&self.redis.url()).await.unwrap();
        let mut node = LiveRedis {
            scripts: Scripts::with_clock(CLOCK),
            ..node
        };
        node.link.patience = [SOON; 2];
        node
    }

    /// Returns how many members a key of the demo has.
    fn length(&self, command: &str, name: &str) -> String {
        let answer = self
            .redis
            .ask(&format!("{command} platform:{{{DEMO}:0}}:{name}"));
        answer.trim().trim_start_matches(':').to_owned()
    }
}

fn player(number: u8) -> Uuid {
    Uuid::from_bytes([number; 16])
}

fn page(number: u8) -> PageId {
    PageId([number; 16])
}

async fn playing(node: &LiveRedis) -> usize {
    node.count_playing(&[DEMO]).await.unwrap()[0]
}

/// Waits until `is_so`.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    let mut looks = interval(Duration::from_millis(5));
    while !is_so().await {
        assert!(start.elapsed() < SOON, "{what} did not happen");
        looks.tick().await;
    }
}
