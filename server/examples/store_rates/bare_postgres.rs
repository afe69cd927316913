//! PostgreSQL without the store: the same statements for the same rows, in groups as large as the
//! store's can be, and on as many connections.

use platform_server::clock::{Clock, SystemClock};
use platform_server::domain::log::LogId;
use platform_server::domain::session::SessionHash;
use platform_server::domain::username;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

use super::rows::{self, ADDRESS, BARE, Turn};
use super::{CALLERS, Outcome, RECORDS};

/// As many connections as a node has.
const CONNECTIONS: usize = 16;

const LOOK_UP: &str = "SELECT p.id, p.username, p.linked, p.merged_into, p.suspended_at,
         p.suspension_reason, p.created_at, p.seen_at, p.awaiting IS NOT NULL,
         s.created_at, s.renewed_at, s.ended_at, s.browser
     FROM sessions s JOIN players p ON p.id = s.player WHERE s.hash = $1";
const ADD_PLAYERS: &str = "INSERT INTO players
         (id, username, username_key, address, awaiting, created_at, seen_at)
     SELECT id, name, key, address, NULL, at, at
     FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[])
         AS new (id, name, key, address, at)";
const ADD_SESSIONS: &str = "INSERT INTO sessions (hash, player, created_at, renewed_at)
     SELECT hash, player, at, at
     FROM unnest($1::bytea[], $2::uuid[], $3::bigint[]) AS new (hash, player, at)";
const ADD_RECORDS: &str = "INSERT INTO log_records (environment, id, level, source, deployment,
         player, page, time, message, stack, url, line, \"column\", metadata, count, bytes)
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::text[], $5::uuid[],
         $6::uuid[], $7::bytea[], $8::bigint[], $9::text[], $10::text[], $11::text[],
         $12::bigint[], $13::bigint[], $14::text[], $15::bigint[], $16::bigint[])";

/// Open connections.
pub(super) struct BarePostgres {
    url: String,
    /// The one that writes, as each of the store's groups has one.
    writer: Client,
    environment: i64,
    last: i64,
}

async fn open(url: &str) -> Outcome<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

impl BarePostgres {
    pub(super) async fn open(url: &str) -> Outcome<Self> {
        let writer = open(url).await?;
        let sql = "SELECT id, last_id FROM log_environments WHERE project = $1";
        let row = writer.query_one(sql, &[&BARE]).await?;
        Ok(Self {
            url: url.to_owned(),
            writer,
            environment: row.get(0),
            last: row.get(1),
        })
    }

    pub(super) async fn add_guests(&mut self) -> Outcome<(usize, Vec<SessionHash>)> {
        let add_players = self.writer.prepare(ADD_PLAYERS).await?;
        let add_sessions = self.writer.prepare(ADD_SESSIONS).await?;
        let (turn, mut sessions) = (Turn::begin(), Vec::new());
        while turn.goes_on() {
            let guests: Vec<_> = (0..CALLERS).map(|_| rows::guest()).collect();
            let ids: Vec<Uuid> = guests.iter().map(|guest| guest.id).collect();
            let names: Vec<&str> = guests.iter().map(|guest| &*guest.username).collect();
            let keys: Vec<String> = names
                .iter()
                .map(|name| username::unique_key(name))
                .collect();
            let addresses = [ADDRESS; CALLERS];
            let times: Vec<i64> = guests.iter().map(|guest| guest.now).collect();
            let hashes = guests.iter().map(|guest| guest.session.0.as_slice());
            let hashes: Vec<&[u8]> = hashes.collect();
            let transaction = self.writer.transaction().await?;
            transaction
                .execute(
                    &add_players,
                    &[&ids, &names, &keys, &addresses.as_slice(), &times],
                )
                .await?;
            transaction
                .execute(&add_sessions, &[&hashes, &ids, &times])
                .await?;
            transaction.commit().await?;
            sessions.extend(guests.iter().map(|guest| guest.session));
        }
        Ok((sessions.len(), sessions))
    }

    pub(super) async fn look_up(&mut self, sessions: &[SessionHash]) -> Outcome<usize> {
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            let client = open(&self.url).await?;
            let statement = client.prepare(LOOK_UP).await?;
            clients.push((client, statement));
        }
        let sessions: std::sync::Arc<[SessionHash]> = sessions.into();
        let (turn, mut callers) = (Turn::begin(), JoinSet::new());
        for (caller, (client, statement)) in clients.into_iter().enumerate() {
            let sessions = std::sync::Arc::clone(&sessions);
            callers.spawn(async move {
                let mut count = 0;
                for session in sessions.iter().cycle().skip(caller * 101).step_by(7) {
                    if !turn.goes_on() {
                        break;
                    }
                    let hash = session.0.as_slice();
                    let row = client.query_one(&statement, &[&hash]).await?;
                    let player: Uuid = row.try_get(0)?;
                    count += usize::from(!player.is_nil());
                }
                Outcome::Ok(count)
            });
        }
        let mut all = 0;
        while let Some(count) = callers.join_next().await {
            all += count??;
        }
        Ok(all)
    }

    pub(super) async fn add_records(&mut self) -> Outcome<usize> {
        let add = self.writer.prepare(ADD_RECORDS).await?;
        let (turn, mut count) = (Turn::begin(), 0);
        while turn.goes_on() {
            let now = SystemClock.now();
            let requests: Vec<_> = (0..CALLERS)
                .map(|_| rows::records(BARE, RECORDS, now))
                .collect();
            let first = LogId::first_of(now).0.max(self.last + 1);
            let columns = Columns::of(&requests);
            let many = columns.messages.len();
            let environments = vec![self.environment; many];
            let ids: Vec<i64> = (first..).take(many).collect();
            self.last = first + many as i64;
            let (texts, numbers) = (vec![None::<&str>; many], vec![None::<i64>; many]);
            self.writer
                .execute(
                    &add,
                    &[
                        &environments,
                        &ids,
                        &columns.levels,
                        &columns.sources,
                        &vec![None::<Uuid>; many],
                        &columns.players,
                        &columns.pages,
                        &columns.times,
                        &columns.messages,
                        &texts,
                        &texts,
                        &numbers,
                        &numbers,
                        &texts,
                        &vec![1_i64; many],
                        &vec![220_i64; many],
                    ],
                )
                .await?;
            count += many;
        }
        Ok(count)
    }
}

/// The columns of records whose values differ.
#[derive(Default)]
struct Columns<'a> {
    levels: Vec<i16>,
    sources: Vec<&'a str>,
    players: Vec<Option<Uuid>>,
    pages: Vec<&'a [u8]>,
    times: Vec<i64>,
    messages: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn of(requests: &'a [platform_server::domain::log::NewLogRecords]) -> Self {
        let mut columns = Self::default();
        for request in requests {
            for entry in &request.entries {
                columns.levels.push(entry.level as i16);
                columns.sources.push(entry.source.as_str());
                columns.players.push(request.player);
                columns.pages.push(request.page.0.as_slice());
                columns.times.push(entry.time);
                columns.messages.push(&entry.message);
            }
        }
        columns
    }
}
