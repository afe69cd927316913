//! Players over time: their numbers, sketches and play times.

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::counting::{
    Distinct, DistinctCount, DistinctSketch, HOUR, NewCounts, NewPlayTime, PlayerCount,
    RankedProject, Span, StoredSketch,
};
use platform_protocol::names::Environment;
use platform_store::stored_forms::read_environment;
use platform_store::{CountingStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::error::Error;
use super::player_games;
use super::projects::project_id;
use super::store::SqliteStore;

#[async_trait]
impl CountingStore for SqliteStore {
    async fn add_player_counts(&self, counts: Vec<NewCounts>) -> Result<(), StoreError> {
        self.main
            .write(move |connection| add_player_counts(connection, &counts))
            .await
    }

    async fn add_play_times(&self, times: Vec<NewPlayTime>) -> Result<(), StoreError> {
        self.main
            .write(move |connection| add_play_times(connection, &times))
            .await
    }

    async fn list_player_counts(
        &self,
        slug: &str,
        environment: Environment,
        span: Span,
        from: Millis,
        to: Millis,
    ) -> Result<Vec<PlayerCount>, StoreError> {
        let slug = slug.to_owned();
        self.main
            .read_much(move |connection| {
                list_player_counts(connection, &slug, environment, span, from, to)
            })
            .await
    }

    async fn list_distinct_players(
        &self,
        slug: &str,
        environment: Environment,
        limit: usize,
    ) -> Result<Vec<DistinctCount>, StoreError> {
        let slug = slug.to_owned();
        self.main
            .read_much(move |connection| {
                list_distinct_players(connection, &slug, environment, limit)
            })
            .await
    }

    async fn list_sketches(&self, periods: Vec<String>) -> Result<Vec<StoredSketch>, StoreError> {
        self.main
            .read_much(move |connection| list_sketches(connection, &periods))
            .await
    }

    async fn rank_projects(
        &self,
        since: Millis,
        least: Millis,
    ) -> Result<Vec<RankedProject>, StoreError> {
        self.main
            .read_much(move |connection| rank_projects(connection, since, least))
            .await
    }

    async fn set_ranking(&self, ranked: Vec<RankedProject>) -> Result<(), StoreError> {
        self.main
            .write(move |connection| set_ranking(connection, &ranked))
            .await
    }

    async fn list_ranking(&self) -> Result<Vec<RankedProject>, StoreError> {
        self.main.read(list_ranking)
    }

    async fn sweep_counts(
        &self,
        minutes_before: Millis,
        play_before: Millis,
        running: Vec<String>,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.main
            .write(move |connection| {
                sweep_counts(connection, minutes_before, play_before, &running, limit)
            })
            .await
    }
}

pub(super) fn add_player_counts(
    connection: &Connection,
    counts: &[NewCounts],
) -> Result<(), Error> {
    let mut add = connection.prepare_cached(
        "INSERT INTO player_counts (project, environment, span, start, peak, player_millis)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (project, environment, span, start) DO UPDATE
         SET peak = max(peak, excluded.peak),
             player_millis = player_millis + excluded.player_millis",
    )?;
    for new in counts {
        let project = project_id(connection, &new.slug)?;
        let environment = new.environment.as_str();
        for minute in &new.minutes {
            for span in [Span::Minute, Span::Hour] {
                add.execute(params![
                    project,
                    environment,
                    span.millis(),
                    span.start(minute.start),
                    minute.peak,
                    minute.player_millis
                ])?;
            }
        }
        for sketch in &new.distinct {
            unite_sketch(connection, project, environment, sketch)?;
        }
    }
    Ok(())
}

/// Unites a sketch with the stored one. Of a period that is over, only the number is kept.
fn unite_sketch(
    connection: &Connection,
    project: i64,
    environment: &str,
    DistinctSketch { period, players }: &DistinctSketch,
) -> Result<(), Error> {
    let known: Option<Option<Vec<u8>>> = connection
        .prepare_cached(
            "SELECT sketch FROM distinct_players
             WHERE project = ?1 AND environment = ?2 AND period = ?3",
        )?
        .query_row(params![project, environment, period], |row| row.get(0))
        .optional()?;
    let mut players = players.clone();
    if let Some(Some(bytes)) = &known {
        let stored = Distinct::from_bytes(bytes).ok_or_else(|| StoreError::Corrupt {
            table: "distinct_players",
            column: "sketch",
            row: format!("{project} {environment} {period}"),
        })?;
        players.unite(&stored);
    }
    let is_over = known == Some(None);
    let count = i64::try_from(players.count()).unwrap_or(i64::MAX);
    let bytes = (!is_over).then(|| players.to_bytes());
    connection
        .prepare_cached(
            "INSERT INTO distinct_players (project, environment, period, players, sketch)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (project, environment, period) DO UPDATE
             SET players = iif(sketch IS NULL, max(players, excluded.players), excluded.players),
                 sketch = excluded.sketch",
        )?
        .execute(params![project, environment, period, count, bytes])?;
    Ok(())
}

fn set_ranking(connection: &Connection, ranked: &[RankedProject]) -> Result<(), Error> {
    connection.execute("DELETE FROM ranking", [])?;
    let mut add =
        connection.prepare_cached("INSERT INTO ranking (slug, players) VALUES (?1, ?2)")?;
    for project in ranked {
        let players = i64::try_from(project.players).unwrap_or(i64::MAX);
        add.execute(params![project.slug, players])?;
    }
    Ok(())
}

fn list_ranking(connection: &Connection) -> Result<Vec<RankedProject>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT slug, players FROM ranking ORDER BY position")?;
    let ranked = statement.query_map([], |row| {
        Ok(RankedProject {
            slug: row.get(0)?,
            players: row.get::<_, i64>(1)?.unsigned_abs(),
        })
    })?;
    Ok(ranked.collect::<Result<_, _>>()?)
}

pub(super) fn add_play_times(connection: &Connection, times: &[NewPlayTime]) -> Result<(), Error> {
    let mut add = connection.prepare_cached(
        "INSERT INTO play_times (hour, project, environment, player, millis)
         VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (hour, project, environment, player) DO UPDATE
         SET millis = millis + excluded.millis",
    )?;
    for time in times {
        let project = project_id(connection, &time.slug)?;
        add.execute(params![
            time.hour,
            project,
            time.environment.as_str(),
            time.player.as_bytes(),
            time.millis
        ])?;
        player_games::note_played(connection, project, time)?;
    }
    Ok(())
}

pub(super) fn list_player_counts(
    connection: &Connection,
    slug: &str,
    environment: Environment,
    span: Span,
    from: Millis,
    to: Millis,
) -> Result<Vec<PlayerCount>, Error> {
    let project = project_id(connection, slug)?;
    let mut statement = connection.prepare_cached(
        "SELECT start, peak, player_millis FROM player_counts
         WHERE project = ?1 AND environment = ?2 AND span = ?3 AND start >= ?4 AND start < ?5
         ORDER BY start",
    )?;
    let found = statement.query_map(
        params![project, environment.as_str(), span.millis(), from, to],
        |row| {
            Ok(PlayerCount {
                start: row.get(0)?,
                peak: row.get(1)?,
                player_millis: row.get(2)?,
            })
        },
    )?;
    Ok(found.collect::<Result<_, _>>()?)
}

pub(super) fn list_distinct_players(
    connection: &Connection,
    slug: &str,
    environment: Environment,
    limit: usize,
) -> Result<Vec<DistinctCount>, Error> {
    let project = project_id(connection, slug)?;
    let mut statement = connection.prepare_cached(
        "SELECT period, players FROM distinct_players
         WHERE project = ?1 AND environment = ?2 AND length(period) = ?3
         ORDER BY period DESC LIMIT ?4",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut counts = Vec::new();
    for length in [10, 7] {
        let mut rows = statement.query(params![project, environment.as_str(), length, limit])?;
        while let Some(row) = rows.next()? {
            let period: String = row.get(0)?;
            let players: i64 = row.get(1)?;
            counts.push(DistinctCount {
                players: u64::try_from(players).map_err(|_| StoreError::Corrupt {
                    table: "distinct_players",
                    column: "players",
                    row: period.clone(),
                })?,
                period,
            });
        }
    }
    Ok(counts)
}

pub(super) fn list_sketches(
    connection: &Connection,
    periods: &[String],
) -> Result<Vec<StoredSketch>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT p.slug, d.environment, d.period, d.sketch
         FROM distinct_players d JOIN projects p ON p.id = d.project
         WHERE d.period IN (SELECT value FROM json_each(?1)) AND d.sketch IS NOT NULL",
    )?;
    let mut rows = statement.query([serde_json::json!(periods).to_string()])?;
    let mut sketches = Vec::new();
    while let Some(row) = rows.next()? {
        let slug: String = row.get(0)?;
        let name: String = row.get(1)?;
        let bytes: Vec<u8> = row.get(3)?;
        let players = Distinct::from_bytes(&bytes).ok_or_else(|| StoreError::Corrupt {
            table: "distinct_players",
            column: "sketch",
            row: slug.clone(),
        })?;
        sketches.push(StoredSketch {
            environment: read_environment(&name, || slug.clone())?,
            sketch: DistinctSketch {
                period: row.get(2)?,
                players,
            },
            slug,
        });
    }
    Ok(sketches)
}

pub(super) fn rank_projects(
    connection: &Connection,
    since: Millis,
    least: Millis,
) -> Result<Vec<RankedProject>, Error> {
    // A guest that has signed out counts for no address. If it counted here, one script could make
    // any number of guests, past the limit for its address.
    let mut statement = connection.prepare_cached(
        "SELECT p.slug, count(*) AS players
         FROM (SELECT t.project FROM play_times t JOIN players u ON u.id = t.player
               WHERE t.hour >= ?1 AND t.environment = 'prod'
                 AND (u.linked = 1 OR u.merged_into IS NOT NULL OR u.address IS NOT NULL)
               GROUP BY t.project, coalesce(u.merged_into, u.id) HAVING sum(t.millis) >= ?2) t
         JOIN projects p ON p.id = t.project
         GROUP BY t.project ORDER BY players DESC, p.slug",
    )?;
    let found = statement.query_map(params![Span::Hour.start(since), least], |row| {
        let players: i64 = row.get(1)?;
        Ok(RankedProject {
            slug: row.get(0)?,
            // A count is never negative.
            players: players.unsigned_abs(),
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

pub(super) fn sweep_counts(
    connection: &Connection,
    minutes_before: Millis,
    play_before: Millis,
    running: &[String],
    limit: usize,
) -> Result<usize, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let minutes = connection
        .prepare_cached(
            "DELETE FROM player_counts WHERE (project, environment, span, start) IN
             (SELECT project, environment, span, start FROM player_counts
              WHERE span = ?1 AND start < ?2 LIMIT ?3)",
        )?
        .execute(params![Span::Minute.millis(), minutes_before, limit])?;
    let play = connection
        .prepare_cached(
            "DELETE FROM play_times WHERE (hour, project, environment, player) IN
             (SELECT hour, project, environment, player FROM play_times
              WHERE hour <= ?1 LIMIT ?2)",
        )?
        .execute(params![play_before - HOUR, limit])?;
    let sketches = connection
        .prepare_cached(
            "UPDATE distinct_players SET sketch = NULL
             WHERE sketch IS NOT NULL AND period NOT IN (SELECT value FROM json_each(?1))",
        )?
        .execute([serde_json::json!(running).to_string()])?;
    Ok(minutes.max(play).max(sketches))
}
