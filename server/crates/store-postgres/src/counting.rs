//! Players over time: their numbers, sketches and play times.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use platform_domain::clock::Millis;
use platform_domain::counting::{
    Distinct, DistinctCount, DistinctSketch, HOUR, NewCounts, NewPlayTime, PlayerCount,
    RankedProject, Span, StoredSketch,
};
use platform_protocol::names::Environment;
use platform_store::stored_forms::read_environment;
use platform_store::{CountingStore, StoreError};
use uuid::Uuid;

use super::database::Value;
use super::error::Error;
use super::rows::{count, get};
use super::store::PostgresStore;
use super::transaction::Transaction;
use super::{player_games, projects};

#[async_trait]
impl CountingStore for PostgresStore {
    async fn add_player_counts(&self, counts: Vec<NewCounts>) -> Result<(), StoreError> {
        transact!(self.main, transaction => add_player_counts(&transaction, &counts))
    }

    async fn add_play_times(&self, times: Vec<NewPlayTime>) -> Result<(), StoreError> {
        transact!(self.main, transaction => add_play_times(&transaction, &times))
    }

    async fn list_player_counts(
        &self,
        slug: &str,
        environment: Environment,
        span: Span,
        from: Millis,
        to: Millis,
    ) -> Result<Vec<PlayerCount>, StoreError> {
        let rows = self
            .main
            .rows(
                // A row without a count shows that the project exists.
                "SELECT c.start, c.peak, c.player_millis FROM projects p
                 LEFT JOIN player_counts c ON c.project = p.id AND c.environment = $2
                     AND c.span = $3 AND c.start >= $4 AND c.start < $5
                 WHERE p.slug = $1 AND p.removed_at IS NULL ORDER BY c.start",
                &[&slug, &environment.as_str(), &span.millis(), &from, &to],
            )
            .await?;
        if rows.is_empty() {
            return Err(StoreError::Missing { table: "projects" });
        }
        let mut counts = Vec::new();
        for row in &rows {
            let start: Option<i64> = get(row, 0)?;
            let Some(start) = start else { continue };
            counts.push(PlayerCount {
                start,
                peak: u32::try_from(get::<i64>(row, 1)?).unwrap_or(u32::MAX),
                player_millis: get(row, 2)?,
            });
        }
        Ok(counts)
    }

    async fn list_distinct_players(
        &self,
        slug: &str,
        environment: Environment,
        limit: usize,
    ) -> Result<Vec<DistinctCount>, StoreError> {
        let part = |length: u8| {
            format!(
                "(SELECT 2 AS part, period, players FROM distinct_players
                  WHERE project = (SELECT id FROM wanted) AND environment = $2
                      AND octet_length(period) = {length}
                  ORDER BY period DESC LIMIT $3)"
            )
        };
        let sql = format!(
            "WITH wanted AS ({})
             SELECT part, period, players FROM (
                 SELECT 1 AS part, NULL::text AS period, id AS players FROM wanted
                 UNION ALL {} UNION ALL {}) AS found
             ORDER BY part, octet_length(period) DESC, period COLLATE \"C\" DESC",
            projects::NUMBER,
            part(10),
            part(7)
        );
        let values: [super::database::Value<'_>; 3] = [&slug, &environment.as_str(), &count(limit)];
        let rows = self.main.rows(&sql, &values).await?;
        let mut rows = rows.iter();
        if rows.next().is_none() {
            return Err(StoreError::Missing { table: "projects" });
        }
        let counts = rows.map(|row| {
            let period: String = get(row, 1)?;
            Ok(DistinctCount {
                players: u64::try_from(get::<i64>(row, 2)?).map_err(|_| StoreError::Corrupt {
                    table: "distinct_players",
                    column: "players",
                    row: period.clone(),
                })?,
                period,
            })
        });
        Ok(counts.collect::<Result<_, Error>>()?)
    }

    async fn list_sketches(&self, periods: Vec<String>) -> Result<Vec<StoredSketch>, StoreError> {
        let rows = self
            .main
            .rows(
                "SELECT p.slug, d.environment, d.period, d.sketch
                 FROM distinct_players d JOIN projects p ON p.id = d.project
                 WHERE d.period = ANY($1) AND d.sketch IS NOT NULL",
                &[&periods],
            )
            .await?;
        let sketches = rows.iter().map(|row| {
            let slug: String = get(row, 0)?;
            let players =
                Distinct::from_bytes(get(row, 3)?).ok_or_else(|| StoreError::Corrupt {
                    table: "distinct_players",
                    column: "sketch",
                    row: slug.clone(),
                })?;
            Ok(StoredSketch {
                environment: read_environment(get(row, 1)?, || slug.clone())?,
                sketch: DistinctSketch {
                    period: get(row, 2)?,
                    players,
                },
                slug,
            })
        });
        Ok(sketches.collect::<Result<_, Error>>()?)
    }

    async fn rank_projects(
        &self,
        since: Millis,
        least: Millis,
    ) -> Result<Vec<RankedProject>, StoreError> {
        let rows = self
            .main
            .rows_of_many(
                // A guest that has signed out counts for no address. If it counted here, one script
                // could make any number of guests, past the limit for its address.
                "SELECT p.slug, count(*) AS players
                 FROM (SELECT t.project FROM play_times t JOIN players u ON u.id = t.player
                       WHERE t.hour >= $1 AND t.environment = 'prod'
                         AND (u.linked OR u.merged_into IS NOT NULL OR u.address IS NOT NULL)
                       GROUP BY t.project, coalesce(u.merged_into, u.id)
                       HAVING sum(t.millis) >= $2::bigint) t
                 JOIN projects p ON p.id = t.project
                 GROUP BY p.slug ORDER BY players DESC, p.slug",
                &[&Span::Hour.start(since), &least],
            )
            .await?;
        let ranked = rows.iter().map(|row| {
            Ok(RankedProject {
                slug: get(row, 0)?,
                // A count is never negative.
                players: get::<i64>(row, 1)?.unsigned_abs(),
            })
        });
        Ok(ranked.collect::<Result<_, Error>>()?)
    }

    async fn set_ranking(&self, ranked: Vec<RankedProject>) -> Result<(), StoreError> {
        transact!(self.main, transaction => set_ranking(&transaction, &ranked))
    }

    async fn list_ranking(&self) -> Result<Vec<RankedProject>, StoreError> {
        let rows = self
            .main
            .rows("SELECT slug, players FROM ranking ORDER BY position", &[])
            .await?;
        let ranked = rows.iter().map(|row| {
            Ok(RankedProject {
                slug: get(row, 0)?,
                players: get::<i64>(row, 1)?.unsigned_abs(),
            })
        });
        Ok(ranked.collect::<Result<_, Error>>()?)
    }

    async fn sweep_counts(
        &self,
        minutes_before: Millis,
        play_before: Millis,
        running: Vec<String>,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let limit = count(limit);
        let minutes = self
            .main
            .write(
                "DELETE FROM player_counts c USING (
                     SELECT project, environment, span, start FROM player_counts
                     WHERE span = $1 AND start < $2 LIMIT $3 FOR UPDATE SKIP LOCKED) AS old
                 WHERE (c.project, c.environment, c.span, c.start)
                     = (old.project, old.environment, old.span, old.start) RETURNING 1",
                &[&Span::Minute.millis(), &minutes_before, &limit],
            )
            .await?;
        let play = self
            .main
            .write(
                "DELETE FROM play_times t USING (
                     SELECT hour, project, environment, player FROM play_times
                     WHERE hour <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED) AS old
                 WHERE (t.hour, t.project, t.environment, t.player)
                     = (old.hour, old.project, old.environment, old.player) RETURNING 1",
                &[&(play_before - HOUR), &limit],
            )
            .await?;
        let sketches = self
            .main
            .write(
                "UPDATE distinct_players SET sketch = NULL
                 WHERE sketch IS NOT NULL AND period <> ALL($1) RETURNING 1",
                &[&running],
            )
            .await?;
        Ok(minutes.len().max(play.len()).max(sketches.len()))
    }
}

/// Locks projects, so that none of them is removed before the transaction ends. Returns their ids
/// by slug.
///
/// # Errors
/// [`StoreError::Missing`] if one of them does not exist.
async fn hold_projects(
    transaction: &Transaction,
    slugs: BTreeSet<&str>,
) -> Result<BTreeMap<String, i64>, Error> {
    let wanted: Vec<&str> = slugs.into_iter().collect();
    let rows = transaction
        .rows(
            "SELECT slug, id FROM projects WHERE slug = ANY($1) AND removed_at IS NULL
             ORDER BY id FOR SHARE",
            &[&wanted],
        )
        .await?;
    if rows.len() < wanted.len() {
        return Err(StoreError::Missing { table: "projects" }.into());
    }
    rows.iter()
        .map(|row| Ok((get(row, 0)?, get(row, 1)?)))
        .collect()
}

/// Returns the id of one of the locked projects.
fn number_of(projects: &BTreeMap<String, i64>, slug: &str) -> Result<i64, Error> {
    let found = projects.get(slug).copied();
    Ok(found.ok_or(StoreError::Missing { table: "projects" })?)
}

async fn add_player_counts(transaction: &Transaction, counts: &[NewCounts]) -> Result<(), Error> {
    let slugs = counts.iter().map(|new| new.slug.as_str()).collect();
    let projects = hold_projects(transaction, slugs).await?;
    // Values for the same row are added up first, because one statement may change a row only once.
    // The rows are in the order of their key, so that two concurrent operations cannot deadlock.
    let mut minutes: BTreeMap<(i64, &str, i64, i64), (i64, i64)> = BTreeMap::new();
    let mut sketches: BTreeMap<(i64, &str, &str), Distinct> = BTreeMap::new();
    for new in counts {
        let project = number_of(&projects, &new.slug)?;
        let environment = new.environment.as_str();
        for minute in &new.minutes {
            for span in [Span::Minute, Span::Hour] {
                let key = (
                    project,
                    environment,
                    span.millis(),
                    span.start(minute.start),
                );
                let of = minutes.entry(key).or_default();
                *of = (
                    of.0.max(i64::from(minute.peak)),
                    of.1 + minute.player_millis,
                );
            }
        }
        for DistinctSketch { period, players } in &new.distinct {
            let of = sketches.entry((project, environment, period)).or_default();
            of.unite(players);
        }
    }
    add_minutes(transaction, &minutes).await?;
    if sketches.is_empty() {
        return Ok(());
    }
    unite_sketches(transaction, sketches).await
}

async fn add_minutes(
    transaction: &Transaction,
    minutes: &BTreeMap<(i64, &str, i64, i64), (i64, i64)>,
) -> Result<(), Error> {
    let projects: Vec<i64> = minutes.keys().map(|key| key.0).collect();
    let environments: Vec<&str> = minutes.keys().map(|key| key.1).collect();
    let spans: Vec<i64> = minutes.keys().map(|key| key.2).collect();
    let starts: Vec<i64> = minutes.keys().map(|key| key.3).collect();
    let peaks: Vec<i64> = minutes.values().map(|of| of.0).collect();
    let millis: Vec<i64> = minutes.values().map(|of| of.1).collect();
    transaction
        .execute(
            "INSERT INTO player_counts AS known
                 (project, environment, span, start, peak, player_millis)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[],
                 $5::bigint[], $6::bigint[])
             ON CONFLICT (project, environment, span, start) DO UPDATE
             SET peak = greatest(known.peak, excluded.peak),
                 player_millis = known.player_millis + excluded.player_millis",
            &[&projects, &environments, &spans, &starts, &peaks, &millis],
        )
        .await
        .map(drop)
}

/// Unites the sketches with those in the store. Each row is locked by what it is written with, in
/// the order of the key, so that of two nodes neither overwrites what the other has counted.
async fn unite_sketches(
    transaction: &Transaction,
    sketches: BTreeMap<(i64, &str, &str), Distinct>,
) -> Result<(), Error> {
    let found = write_sketches(transaction, &sketches, "known.sketch").await?;
    let mut united = BTreeMap::new();
    for (key, mut players) in sketches {
        let (project, environment, period) = key;
        let known = found.get(&(project, environment.to_owned(), period.to_owned()));
        let Some(known) = known.filter(|known| **known != players.to_bytes()) else {
            continue;
        };
        let known = Distinct::from_bytes(known).ok_or_else(|| StoreError::Corrupt {
            table: "distinct_players",
            column: "sketch",
            row: format!("{project} {environment} {period}"),
        })?;
        players.unite(&known);
        united.insert(key, players);
    }
    if united.is_empty() {
        return Ok(());
    }
    let written = write_sketches(transaction, &united, "excluded.sketch");
    written.await.map(drop)
}

/// The key of a sketch: project, environment and period.
type SketchKey = (i64, String, String);

/// Writes the sketches that are new; in the rows that exist, `sketch` says which one stays. Returns
/// those that are there now: of a period that is over, only the number is kept.
async fn write_sketches(
    transaction: &Transaction,
    sketches: &BTreeMap<(i64, &str, &str), Distinct>,
    sketch: &str,
) -> Result<BTreeMap<SketchKey, Vec<u8>>, Error> {
    let projects: Vec<i64> = sketches.keys().map(|key| key.0).collect();
    let environments: Vec<&str> = sketches.keys().map(|key| key.1).collect();
    let periods: Vec<&str> = sketches.keys().map(|key| key.2).collect();
    let counts = sketches.values().map(Distinct::count);
    let counts: Vec<i64> = counts
        .map(|players| i64::try_from(players).unwrap_or(i64::MAX))
        .collect();
    let bytes: Vec<Vec<u8>> = sketches.values().map(Distinct::to_bytes).collect();
    let sql = format!(
        "INSERT INTO distinct_players AS known (project, environment, period, players, sketch)
         SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bytea[])
         ON CONFLICT (project, environment, period) DO UPDATE
         SET players = CASE WHEN known.sketch IS NULL
                 THEN greatest(known.players, excluded.players) ELSE excluded.players END,
             sketch = {sketch}
         RETURNING project, environment, period, sketch"
    );
    let values: [Value<'_>; 5] = [&projects, &environments, &periods, &counts, &bytes];
    let rows = transaction.rows(&sql, &values).await?;
    let mut written = BTreeMap::new();
    for row in &rows {
        let sketch: Option<Vec<u8>> = get(row, 3)?;
        if let Some(sketch) = sketch {
            written.insert((get(row, 0)?, get(row, 1)?, get(row, 2)?), sketch);
        }
    }
    Ok(written)
}

async fn set_ranking(transaction: &Transaction, ranked: &[RankedProject]) -> Result<(), Error> {
    // Of two who set it, the second one waits, so that the ranking is never a mixture.
    transaction
        .execute("SELECT 1 FROM locks WHERE name = 'ranking' FOR UPDATE", &[])
        .await?;
    transaction.execute("DELETE FROM ranking", &[]).await?;
    let slugs: Vec<&str> = ranked.iter().map(|project| project.slug.as_str()).collect();
    let players: Vec<i64> = ranked
        .iter()
        .map(|project| i64::try_from(project.players).unwrap_or(i64::MAX))
        .collect();
    transaction
        .execute(
            "INSERT INTO ranking (position, slug, players)
             SELECT position, slug, players FROM unnest($1::text[], $2::bigint[])
                 WITH ORDINALITY AS ranked (slug, players, position)",
            &[&slugs, &players],
        )
        .await
        .map(drop)
}

async fn add_play_times(transaction: &Transaction, times: &[NewPlayTime]) -> Result<(), Error> {
    let slugs = times.iter().map(|time| time.slug.as_str()).collect();
    let projects = hold_projects(transaction, slugs).await?;
    let mut added: BTreeMap<(i64, i64, &str, Uuid), i64> = BTreeMap::new();
    for time in times {
        let project = number_of(&projects, &time.slug)?;
        let key = (time.hour, project, time.environment.as_str(), time.player);
        *added.entry(key).or_default() += time.millis;
    }
    let in_production = |key: &&(i64, i64, &str, Uuid)| key.2 == Environment::Prod.as_str();
    // In ascending order of hours, so that the last one stays.
    let played: BTreeMap<(Uuid, i64), i64> = added
        .keys()
        .filter(in_production)
        .map(|key| ((key.3, key.1), key.0))
        .collect();
    player_games::note_played(transaction, &played).await?;
    let hours: Vec<i64> = added.keys().map(|key| key.0).collect();
    let projects: Vec<i64> = added.keys().map(|key| key.1).collect();
    let environments: Vec<&str> = added.keys().map(|key| key.2).collect();
    let players: Vec<Uuid> = added.keys().map(|key| key.3).collect();
    let millis: Vec<i64> = added.into_values().collect();
    transaction
        .execute(
            "INSERT INTO play_times AS known (hour, project, environment, player, millis)
             SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::uuid[], $5::bigint[])
             ON CONFLICT (hour, project, environment, player) DO UPDATE
             SET millis = known.millis + excluded.millis",
            &[&hours, &projects, &environments, &players, &millis],
        )
        .await
        .map(drop)
}
