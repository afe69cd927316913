//! Tests of presence with a manual clock.

use super::cases::Act::{Beat, Leave, Playing, Wait};
use super::cases::ROWS;
use super::*;
use crate::clock::{Clock, ManualClock};

const DEMO: &str = "game:demo";
const SECOND: Millis = 1_000;

struct World {
    presence: Arc<MemoryPresence>,
    clock: ManualClock,
}

fn player(number: u8) -> Uuid {
    Uuid::from_bytes([number; 16])
}

fn page(number: u8) -> PageId {
    PageId([number; 16])
}

impl World {
    fn new() -> Self {
        Self {
            presence: Arc::new(MemoryPresence::new()),
            clock: ManualClock::new(1_800_000_000_000),
        }
    }

    async fn beat(&self, who: u8, on: u8) {
        let now = self.clock.now();
        let beat = self.presence.beat(DEMO, player(who), page(on), now);
        assert_eq!(beat.await, None);
    }

    async fn leave(&self, on: u8) -> bool {
        self.presence.leave(DEMO, page(on)).await.unwrap()
    }

    async fn playing(&self) -> usize {
        let playing = self.presence.playing(DEMO, self.clock.now());
        playing.await.unwrap()
    }

    /// Returns the numbers of players and pages in memory.
    fn kept(&self) -> (usize, usize) {
        let room = self.presence.find(DEMO).unwrap();
        let players = room.players.iter().map(|shard| lock(shard).len()).sum();
        let pages = room.pages.iter().map(|shard| lock(shard).len()).sum();
        (players, pages)
    }
}

#[tokio::test]
async fn players_count_by_their_last_beat() {
    for (name, acts) in ROWS {
        let world = World::new();
        for (step, act) in acts.iter().enumerate() {
            match *act {
                Beat(who, on) => world.beat(who, on).await,
                Leave(on) => drop(world.leave(on).await),
                Wait(millis) => world.clock.advance(millis),
                Playing(count) => assert_eq!(world.playing().await, count, "{name}, step {step}"),
            }
        }
    }
}

#[tokio::test]
async fn a_farewell_says_whether_the_page_was_known() {
    let world = World::new();
    assert!(!world.leave(1).await);
    world.beat(1, 1).await;
    assert!(world.leave(1).await);
    assert!(!world.leave(1).await);
}

#[tokio::test]
async fn environments_do_not_mix() {
    let world = World::new();
    world.beat(1, 1).await;
    let now = world.clock.now();
    let dev = world.presence.playing("game:dev-demo", now).await.unwrap();
    assert_eq!((world.playing().await, dev), (1, 0));
    let left = world.presence.leave("game:dev-demo", page(1)).await;
    assert!(!left.unwrap());
    assert_eq!(world.playing().await, 1);
}

#[tokio::test]
async fn a_sweep_forgets_exactly_those_who_no_longer_count() {
    let world = World::new();
    world.beat(1, 1).await;
    world.beat(2, 2).await;
    world.clock.advance(50 * SECOND);
    world.beat(2, 3).await;
    world.presence.sweep(world.clock.now()).await;
    assert_eq!(world.kept(), (2, 3));
    world.clock.advance(26 * SECOND);
    world.presence.sweep(world.clock.now()).await;
    assert_eq!(world.kept(), (1, 1));
    assert_eq!(world.playing().await, 1);
    assert!(!world.leave(2).await, "a page that was swept is unknown");
    world.clock.advance(76 * SECOND);
    world.presence.sweep(world.clock.now()).await;
    assert_eq!(world.kept(), (0, 0));
}

#[tokio::test]
async fn made_up_page_ids_take_no_memory() {
    let world = World::new();
    for on in 0..=255 {
        world.clock.advance(1);
        world.beat(1, on).await;
    }
    assert_eq!(world.kept(), (1, PAGES));
    assert_eq!(world.playing().await, 1);
    assert!(!world.leave(0).await, "the oldest was displaced");
    assert!(world.leave(255).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_beats_at_once_are_all_counted() {
    let world = World::new();
    let now = world.clock.now();
    let tasks: Vec<_> = (0..200_u8)
        .map(|who| {
            let presence = Arc::clone(&world.presence);
            tokio::spawn(async move {
                // A third of the players leave; all of them have two pages.
                for half in [0, 1] {
                    let mut on = [who; 16];
                    on[0] = half;
                    let beat = presence.beat(DEMO, player(who), PageId(on), now);
                    assert_eq!(beat.await, None);
                    if who % 3 == 0 {
                        assert!(presence.leave(DEMO, PageId(on)).await.unwrap());
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let left = (0..200).filter(|who| who % 3 != 0).count();
    assert_eq!(world.playing().await, left);
    assert_eq!(world.kept(), (left, 2 * left));
}
