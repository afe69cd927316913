//! Tests of limits with a credit. Those with a real counter are in `games/live/shared.rs`.

use async_trait::async_trait;
use tokio::sync::Semaphore;

use super::*;
use crate::clock::ManualClock;
use crate::platform::shared_limits::{LiveNodes, SharedCounter};
use crate::web::limiter::Period;

/// A hundred per second, and a credit of twenty.
const RATE: Rate = Rate::new(100, Period::Second, 400);
const WAIT: Duration = Duration::from_secs(3);

/// Says the same to everybody as soon as it is let, and what it was told.
#[derive(Debug)]
struct Counter {
    says: Mutex<Option<Result<(), Duration>>>,
    answers: Semaphore,
    told: Mutex<Vec<(u32, u32)>>,
}

#[async_trait]
impl SharedCounter for Counter {
    async fn take(
        &self,
        _name: &'static str,
        _key: &str,
        _rate: &Rate,
    ) -> Option<Result<(), Duration>> {
        panic!("these limits tell of several events at once")
    }

    async fn spend(
        &self,
        name: &'static str,
        key: &str,
        _rate: &Rate,
        open: u32,
        many: u32,
    ) -> Option<Result<(), Duration>> {
        assert_eq!((name, key), ("test", "here"));
        self.told.lock().unwrap().push((open, many));
        let permit = self.answers.acquire().await.unwrap();
        permit.forget();
        *self.says.lock().unwrap()
    }
}

struct World {
    clock: Arc<ManualClock>,
    counter: Arc<Counter>,
    limiter: CreditLimiter<Arc<str>>,
}

impl World {
    /// A counter that answers at once.
    fn new(says: Option<Result<(), Duration>>, nodes: usize) -> Self {
        Self::with(says, nodes, Semaphore::MAX_PERMITS)
    }

    fn with(says: Option<Result<(), Duration>>, nodes: usize, answers: usize) -> Self {
        let counter = Arc::new(Counter {
            says: Mutex::new(says),
            answers: Semaphore::new(answers),
            told: Mutex::default(),
        });
        let live = Arc::new(LiveNodes::default());
        live.set(nodes);
        let shared = SharedLimits::new(Some(Arc::clone(&counter) as _), live);
        let clock = Arc::new(ManualClock::new(1_000_000));
        let limiter = CreditLimiter::new(&shared, "test", &RATE, &(clock.clone() as _));
        Self {
            clock,
            counter,
            limiter,
        }
    }

    async fn count(&self, many: u32) -> Result<(), Duration> {
        let many = NonZeroU32::new(many).unwrap();
        let counted = self.limiter.count_many(&"here".into(), many).await;
        // What was begun in the background goes on.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        counted
    }

    /// Returns what the counter was told since the last time: events that had happened, and events
    /// that it was to decide about.
    fn told(&self) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.counter.told.lock().unwrap())
    }
}

#[tokio::test]
async fn without_a_counter_the_node_has_the_whole_limit() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(1_000_000));
    let limiter = CreditLimiter::new(&SharedLimits::default(), "test", &RATE, &clock);
    let here: Arc<str> = "here".into();
    let mut allowed = 0;
    for _ in 0..500 {
        allowed += u32::from(limiter.count(&here).await.is_ok());
    }
    assert_eq!(allowed, 400);
    assert!(limiter.0.accounts().is_empty());
}

#[tokio::test]
async fn the_counter_is_told_of_many_events_at_once_and_of_none_of_a_quiet_key() {
    let world = World::new(Some(Ok(())), 3);
    for _ in 0..9 {
        assert_eq!(world.count(1).await, Ok(()));
    }
    assert_eq!(world.told(), []);
    for _ in 0..31 {
        assert_eq!(world.count(1).await, Ok(()));
    }
    assert_eq!(world.told(), [(10, 0); 4]);
}

#[tokio::test]
async fn a_caller_waits_for_the_counter_only_if_the_credit_is_used_up() {
    let world = World::with(Some(Ok(())), 3, 0);
    for _ in 0..20 {
        assert_eq!(world.count(1).await, Ok(()));
    }
    assert_eq!(world.told(), [(10, 0)]);
    let waits = tokio::spawn({
        let limiter = world.limiter.clone();
        async move { limiter.count(&"here".into()).await }
    });
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(!waits.is_finished());
    assert_eq!(world.told(), [(10, 1)]);
    world.counter.answers.add_permits(2);
    assert_eq!(waits.await.unwrap(), Ok(()));
    // Everything is known now, and there is a credit again.
    for _ in 0..9 {
        assert_eq!(world.count(1).await, Ok(()));
    }
    assert_eq!(world.told(), []);
}

#[tokio::test]
async fn more_than_the_credit_is_decided_by_the_counter() {
    let world = World::new(Some(Ok(())), 3);
    assert_eq!(world.count(3).await, Ok(()));
    assert_eq!(world.count(50).await, Ok(()));
    assert_eq!(world.told(), [(3, 50)]);
    *world.counter.says.lock().unwrap() = Some(Err(WAIT));
    assert_eq!(world.count(50).await, Err(WAIT));
    assert_eq!(world.told(), [(0, 50)]);
    // It is not asked again about as many, but about fewer.
    world.clock.advance(1_000);
    assert_eq!(world.count(60).await, Err(Duration::from_secs(2)));
    assert_eq!(world.told(), []);
    assert_eq!(world.count(30).await, Err(WAIT));
    assert_eq!(world.told(), [(0, 30)]);
    world.clock.advance(3_000);
    *world.counter.says.lock().unwrap() = Some(Ok(()));
    assert_eq!(world.count(30).await, Ok(()));
}

#[tokio::test]
async fn what_the_counter_refuses_in_the_background_is_refused_afterwards() {
    let world = World::new(Some(Err(WAIT)), 3);
    for _ in 0..10 {
        assert_eq!(world.count(1).await, Ok(()));
    }
    assert_eq!(world.told(), [(10, 0)]);
    for _ in 0..10 {
        assert_eq!(world.count(1).await, Err(WAIT));
    }
    assert_eq!(world.told(), []);
    world.clock.advance(3_000);
    assert_eq!(world.count(1).await, Ok(()));
}

#[tokio::test]
async fn while_the_counter_is_out_of_reach_each_node_has_its_part() {
    for (nodes, expected) in [(0, 400), (1, 400), (2, 200), (4, 100)] {
        let world = World::new(None, nodes);
        let mut allowed = 0_usize;
        for _ in 0..500 {
            allowed += usize::from(world.count(1).await.is_ok());
        }
        // Up to half of the credit was allowed before it was counted for the other nodes as well.
        assert!(
            (expected..=expected + 10).contains(&allowed),
            "{nodes}: {allowed}"
        );
    }
    let world = World::new(None, 4);
    let mut allowed = 0;
    for _ in 0..20 {
        allowed += u32::from(world.count(50).await.is_ok());
    }
    assert_eq!(allowed, 2);
}

#[tokio::test]
async fn keys_are_forgotten_when_the_counter_would_have_forgotten_them() {
    let world = World::new(Some(Ok(())), 3);
    assert_eq!(world.count(9).await, Ok(()));
    world.clock.advance(90);
    world.limiter.sweep();
    assert_eq!(world.count(1).await, Ok(()));
    assert_eq!(world.told(), [(10, 0)]);
    assert_eq!(world.count(9).await, Ok(()));
    world.clock.advance(91);
    world.limiter.sweep();
    assert!(world.limiter.0.accounts().is_empty());
}
