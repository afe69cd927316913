//! What is in the store: look-ups of sessions, the ranking, and the sweep of old sessions, beside the
//! same statements on SQLite without the store.

use std::path::Path;

use platform_protocol::names::Environment;
use platform_server::clock::{Clock, Millis, SystemClock};
use platform_server::domain::counting::HOUR;
use platform_server::domain::project::{Deployment, Made, Project};
use platform_server::domain::session::SessionHash;
use platform_server::entropy::{Entropy, SystemEntropy};
use platform_server::games::files::FileStore;
use platform_server::store::{SchemaPolicy, Store, connect};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::{Measured, Numbers, Outcome, ROUNDS, add, microseconds, now};

/// Look-ups of a round.
const LOOKUPS: usize = 1_000;
/// Sessions that one sweep removes.
const SWEPT: u32 = 500;
/// What counts as having played, in milliseconds.
const LEAST: Millis = 60_000;

const LOOK_UP: &str = "SELECT p.id, p.username, p.linked, p.merged_into, p.suspended_at,
         p.suspension_reason, p.created_at, p.seen_at, p.awaiting IS NOT NULL,
         s.created_at, s.renewed_at, s.ended_at, s.browser
     FROM sessions s JOIN players p ON p.id = s.player WHERE s.hash = ?1";
/// Without the rules about guests who have signed out and accounts that were merged.
const RANK: &str = "SELECT project, count(*) AS players
     FROM (SELECT project FROM play_times WHERE hour >= ?1 AND environment = 'prod'
           GROUP BY project, player HAVING sum(millis) >= ?2)
     GROUP BY project ORDER BY players DESC";
const SWEEP: &str = "DELETE FROM sessions WHERE hash IN
     (SELECT hash FROM sessions WHERE renewed_at <= 1 LIMIT ?1)";

/// Fills a store and measures it.
pub(super) async fn measure(
    directory: &Path,
    players: usize,
    games: usize,
    to: &mut Measured,
) -> Outcome<()> {
    let file = directory.join("platform.db");
    let store = connect(
        &format!("sqlite://{}", file.display()),
        SchemaPolicy::Upgrade,
    )
    .await?;
    let at = SystemClock.now();
    deploy(&*store, directory, games, at).await?;
    let bare = Connection::open(&file)?;
    bare.execute_batch("PRAGMA synchronous = FULL; PRAGMA busy_timeout = 10000;")?;
    fill(&bare, players, games, at)?;
    for round in 0..=ROUNDS {
        let (ours, alone) = look_ups(&*store, &bare, players, round).await?;
        add(to, round, "look-up of a session, µs", ours, alone);
    }
    for round in 0..=ROUNDS {
        let begin = now();
        store.rank_projects(at - 24 * HOUR, LEAST).await?;
        let ours = microseconds(begin) / 1e3;
        let begin = now();
        let mut statement = bare.prepare_cached(RANK)?;
        let mut rows = statement.query([at - 24 * HOUR, LEAST])?;
        while rows.next()?.is_some() {}
        add(to, round, "ranking, ms", ours, microseconds(begin) / 1e3);
    }
    for round in 0..=ROUNDS {
        expire(&bare)?;
        let begin = now();
        store.sweep_sessions(at, SWEPT as usize).await?;
        let ours = microseconds(begin) / 1e3;
        expire(&bare)?;
        let begin = now();
        bare.prepare_cached(SWEEP)?.execute([SWEPT])?;
        let alone = microseconds(begin) / 1e3;
        add(to, round, "sweep of 500 sessions, ms", ours, alone);
    }
    store.close().await?;
    Ok(())
}

fn hash(player: usize) -> SessionHash {
    // Spread like the hashes of cookies, which a table of them must cope with.
    let spread = (player as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let mut hash = [1; 32];
    hash[..16].copy_from_slice(&spread.to_le_bytes());
    SessionHash(hash)
}

fn id(player: usize) -> Uuid {
    Uuid::from_u128(player as u128 + 1)
}

/// The mean of a look-up with the store, and without it.
async fn look_ups(
    store: &dyn Store,
    bare: &Connection,
    players: usize,
    round: usize,
) -> Outcome<(f64, f64)> {
    let mut numbers = Numbers(round as u64 + 1);
    let hashes: Vec<_> = (0..LOOKUPS).map(|_| hash(numbers.below(players))).collect();
    let begin = now();
    for hash in &hashes {
        let found = store.lookup_session(hash).await?;
        found.ok_or("a session is missing")?;
    }
    let ours = microseconds(begin) / LOOKUPS as f64;
    let mut statement = bare.prepare_cached(LOOK_UP)?;
    let begin = now();
    for hash in &hashes {
        let name: String = statement.query_row([hash.0.as_slice()], |row| row.get(1))?;
        if name.is_empty() {
            return Err("a player has no name".into());
        }
    }
    Ok((ours, microseconds(begin) / LOOKUPS as f64))
}

async fn deploy(store: &dyn Store, directory: &Path, games: usize, at: Millis) -> Outcome<()> {
    let entropy: &dyn Entropy = &SystemEntropy;
    let files = FileStore::local(&directory.join("files"))?;
    for game in 0..games {
        let slug = format!("game-{game:05}");
        let project = Project {
            slug: slug.clone(),
            owner: None,
            created_at: at,
        };
        store.add_project(project).await?;
        let page = format!("<!doctype html><title>Game number {game}</title>");
        let page = files.put(page.into()).await?;
        let deployment = Deployment {
            id: entropy.uuid_v4(),
            slug,
            environment: Environment::Prod,
            files: [("index.html".to_owned(), page)].into(),
            created_at: at,
            made: Made::default(),
            inspection: None,
        };
        let actor = platform_server::domain::audit::Actor::Own;
        store.add_deployment(deployment, actor.into()).await?;
    }
    Ok(())
}

/// Adds players with a session each, who played one or two games in the last day: at once, which
/// takes seconds where requests would take hours.
fn fill(bare: &Connection, players: usize, games: usize, at: Millis) -> Outcome<()> {
    let mut numbers = Numbers(1);
    let hour = at - at.rem_euclid(HOUR);
    let transaction = bare.unchecked_transaction()?;
    let projects: Vec<i64> = transaction
        .prepare("SELECT id FROM projects WHERE slug LIKE 'game-%' ORDER BY id")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    {
        let mut player = transaction.prepare(
            "INSERT INTO players (id, username, username_key, address, created_at, seen_at)
             VALUES (?1, ?2, ?2, '192.0.2.1', 0, ?3)",
        )?;
        let mut session = transaction.prepare(
            "INSERT INTO sessions (hash, player, created_at, renewed_at) VALUES (?1, ?2, 0, ?3)",
        )?;
        let mut time = transaction.prepare(
            "INSERT OR IGNORE INTO play_times (hour, project, environment, player, millis)
             VALUES (?1, ?2, 'prod', ?3, ?4)",
        )?;
        for number in 0..players {
            let id = id(number);
            player.execute(params![id.as_bytes(), format!("guest-{number:010}"), at])?;
            session.execute(params![hash(number).0, id.as_bytes(), at])?;
            for _ in 0..1 + numbers.below(2) {
                let game = projects[numbers.below(games) * numbers.below(games) / games];
                let hour = hour - numbers.below(24) as i64 * HOUR;
                let millis = 30_000 + numbers.below(1_200_000) as i64;
                time.execute(params![hour, game, id.as_bytes(), millis])?;
            }
        }
    }
    transaction.commit()?;
    bare.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);")?;
    Ok(())
}

/// Adds sessions that are to be swept.
fn expire(bare: &Connection) -> Outcome<()> {
    let transaction = bare.unchecked_transaction()?;
    {
        let mut add = transaction.prepare_cached(
            "INSERT INTO sessions (hash, player, created_at, renewed_at) VALUES (?1, ?2, 0, 1)",
        )?;
        let entropy: &dyn Entropy = &SystemEntropy;
        for _ in 0..SWEPT {
            let hash: [u8; 32] = entropy.bytes();
            add.execute(params![hash, id(0).as_bytes()])?;
        }
    }
    transaction.commit()?;
    Ok(())
}
