//! Who is playing: heartbeats and their memory, beside one map with a lock.

use std::collections::HashMap;
use std::sync::Mutex;

use platform_server::clock::Millis;
use platform_server::domain::page::PageId;
use platform_server::games::live::{MemoryPresence, Presence};
use uuid::Uuid;

use super::{Measured, Outcome, ROUNDS, add, microseconds, now};

/// Heartbeats of a round.
const BEATS: usize = 20_000;
/// Fewer players take less than what the system accounts for.
const SEEN: usize = 10_000;
/// 2026-11-21T12:00:00Z
const NOON: Millis = 1_795_262_400_000;

type Map = Mutex<HashMap<(usize, PageId), (Uuid, Millis)>>;

fn page(player: usize) -> PageId {
    // Spread like those of browsers.
    let spread = (player as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    PageId(spread.to_le_bytes())
}

fn player(number: usize) -> Uuid {
    Uuid::from_u128(number as u128 + 1)
}

fn beat(map: &Map, game: usize, number: usize, now: Millis) -> Outcome<()> {
    let mut map = map.lock().map_err(|_| "a thread has panicked")?;
    map.insert((game, page(number)), (player(number), now));
    Ok(())
}

/// Every player plays one game.
pub(super) async fn measure(players: usize, games: usize, to: &mut Measured) -> Outcome<()> {
    let audiences: Vec<String> = (0..games).map(|game| format!("game:game-{game}")).collect();
    let before = resident()?;
    let map = Map::default();
    for number in 0..players {
        beat(&map, number % games, number, NOON)?;
    }
    let with_map = resident()?;
    let presence = MemoryPresence::new();
    for number in 0..players {
        let audience = &audiences[number % games];
        presence
            .beat(audience, player(number), page(number), NOON)
            .await;
    }
    let with_both = resident()?;
    if players >= SEEN {
        let each = |from: f64, until: f64| (until - from).max(0.0) / players as f64;
        let (ours, bare) = (each(with_map, with_both), each(before, with_map));
        add(to, 1, "memory of presence, bytes a player", ours, bare);
    }
    for round in 0..=ROUNDS {
        let at = NOON + round as Millis * 1_000;
        let numbers = (0..BEATS).map(|beat| beat * 7_919 % players);
        let begin = now();
        for number in numbers.clone() {
            let audience = &audiences[number % games];
            presence
                .beat(audience, player(number), page(number), at)
                .await;
        }
        let ours = microseconds(begin) / BEATS as f64;
        let begin = now();
        for number in numbers {
            beat(&map, number % games, number, at)?;
        }
        let bare = microseconds(begin) / BEATS as f64;
        add(to, round, "heartbeat, µs", ours, bare);
    }
    Ok(())
}

/// The memory of this program, in bytes.
fn resident() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: f64 = kilobytes.ok_or("the memory is unknown")?.trim().parse()?;
    Ok(kilobytes * 1_024.0)
}
