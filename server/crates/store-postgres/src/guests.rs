//! New guests: many of them in one commit, and never more for a network address than its limit.

use std::collections::BTreeMap;

use platform_domain::clock::Millis;
use platform_domain::player::{Player, PlayerState};
use platform_domain::session::BACK_MILLIS;
use platform_domain::username;
use platform_store::{GuestCap, NewGuest, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::Database;
use super::error::Error;
use super::group::{Group, Request};
use super::rows::get;
use super::transaction::Transaction;
use super::{players, sessions};

/// How many guests may wait. One more is refused, so that memory stays bounded.
const QUEUE: usize = 4_096;
/// How many guests one transaction adds: more would only delay the first.
const GROUP: usize = 128;

/// Adds new guests.
#[derive(Debug)]
pub(super) struct Guests {
    database: Database,
    group: Group<NewGuest, Player>,
}

impl Guests {
    /// Starts the writing task.
    pub(super) fn start(database: Database) -> Self {
        let writing = database.clone();
        let group = Group::start(QUEUE, GROUP, move |requests| {
            let database = writing.clone();
            async move { write(&database, requests).await }
        });
        Self { database, group }
    }

    /// Adds a guest with the next group.
    pub(super) async fn add(&self, guest: NewGuest) -> Result<Player, StoreError> {
        self.group.write(guest).await
    }

    /// Adds a guest again whose row was removed, or gives it one more session if that was just
    /// done.
    pub(super) async fn bring_back(&self, guest: &NewGuest) -> Result<Player, StoreError> {
        transact!(self.database, transaction => bring_back(&transaction, guest))
    }

    /// Whether the new guests of a game leave room for one more at an address.
    pub(super) async fn admits(
        &self,
        address: &str,
        game: &str,
        cap: GuestCap,
    ) -> Result<bool, StoreError> {
        let row = self
            .database
            .row(
                COUNT,
                &[
                    &[address].as_slice(),
                    &[game].as_slice(),
                    &[cap.seen_since].as_slice(),
                    &[cap.awaited_since].as_slice(),
                    &[i64::from(cap.guests)].as_slice(),
                ],
            )
            .await?;
        let count = row.as_ref().map(GuestCount::of).transpose()?;
        let count = count.unwrap_or_default();
        Ok(count.admits(cap) || count.confirmed >= i64::from(cap.guests))
    }

    /// Records that a guest's cookie came back, if its address has room. Returns whether the guest
    /// counts now.
    pub(super) async fn confirm(
        &self,
        player: Uuid,
        cap: Option<GuestCap>,
        now: Millis,
    ) -> Result<bool, StoreError> {
        transact!(self.database, transaction => confirm(&transaction, player, cap, now))
    }

    /// Returns how many new guests wait.
    pub(super) fn waiting(&self) -> usize {
        self.group.waiting()
    }

    /// Writes what is queued, and ends the task.
    pub(super) async fn close(&self) {
        self.group.close().await;
    }
}

/// Writes a group, and replies to each request. If one of them makes the transaction fail, each is
/// written in a transaction of its own.
async fn write(database: &Database, requests: Vec<Request<NewGuest, Player>>) {
    if requests.len() > 1 {
        match add_all(database, &requests).await {
            Ok(results) => {
                for (request, result) in requests.into_iter().zip(results) {
                    request.answer(result);
                }
                return;
            }
            // The commit may have happened, and no guest must be added twice.
            Err(StoreError::Uncertain(why)) => {
                for request in requests {
                    request.answer(Err(StoreError::Uncertain(why.clone())));
                }
                return;
            }
            Err(StoreError::Unavailable(why)) => {
                for request in requests {
                    request.answer(Err(StoreError::Unavailable(why.clone())));
                }
                return;
            }
            Err(_) => {}
        }
    }
    for request in requests {
        let result = add_alone(database, &request.input).await;
        request.answer(result);
    }
}

async fn add_alone(database: &Database, guest: &NewGuest) -> Result<Player, StoreError> {
    transact!(database, transaction => add(&transaction, guest))
}

async fn add_all(
    database: &Database,
    requests: &[Request<NewGuest, Player>],
) -> Result<Vec<Result<Player, StoreError>>, StoreError> {
    let guests: Vec<&NewGuest> = requests.iter().map(|request| &request.input).collect();
    transact!(database, transaction => add_group(&transaction, &guests))
}

/// Locks the rows of the network addresses, in their order, until the transaction ends. Adds
/// missing rows.
async fn lock_addresses(transaction: &Transaction, guests: &[&NewGuest]) -> Result<(), Error> {
    let mut used: BTreeMap<&str, i64> = BTreeMap::new();
    for guest in guests.iter().filter(|guest| guest.cap.is_some()) {
        let at = used.entry(&guest.address).or_insert(guest.now);
        *at = (*at).max(guest.now);
    }
    if used.is_empty() {
        return Ok(());
    }
    let (addresses, times): (Vec<&str>, Vec<i64>) = used.into_iter().unzip();
    transaction
        .execute(
            "INSERT INTO guest_addresses (address, used_at)
             SELECT * FROM unnest($1::text[], $2::bigint[])
             ON CONFLICT (address) DO UPDATE
             SET used_at = greatest(guest_addresses.used_at, excluded.used_at)",
            &[&addresses, &times],
        )
        .await
        .map(drop)
}

/// An address, the game if the new guest's cookie is yet to come back, and the limit.
type Asked<'a> = (&'a str, Option<&'a str>, GuestCap);

/// How many guests count against a limit, each number up to the limit.
#[derive(Clone, Copy, Default)]
struct GuestCount {
    /// The guests of the address with a cookie that came back.
    confirmed: i64,
    /// The new guests of the game there with a cookie that did not.
    awaited: i64,
}

impl GuestCount {
    fn admits(self, cap: GuestCap) -> bool {
        self.confirmed + self.awaited < i64::from(cap.guests)
    }

    fn of(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            confirmed: get(row, 0)?,
            awaited: get(row, 1)?,
        })
    }
}

const COUNT: &str = "SELECT (SELECT count(*) FROM (
         SELECT 1 FROM players WHERE address = asked.address
             AND seen_at >= asked.since AND awaiting IS NULL LIMIT asked.cap) AS confirmed),
     (SELECT count(*) FROM (
         SELECT 1 FROM players WHERE address = asked.address AND awaiting = asked.game
             AND created_at >= asked.awaited_since LIMIT asked.cap) AS awaited)
     FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
         WITH ORDINALITY AS asked (address, game, since, awaited_since, cap, place)
     ORDER BY asked.place";

/// Returns how many guests count against the limit of each.
async fn count(transaction: &Transaction, asked: &[Asked<'_>]) -> Result<Vec<GuestCount>, Error> {
    let addresses: Vec<&str> = asked.iter().map(|(address, ..)| *address).collect();
    let games: Vec<Option<&str>> = asked.iter().map(|(_, game, _)| *game).collect();
    let number =
        |of: fn(&GuestCap) -> i64| -> Vec<i64> { asked.iter().map(|(.., cap)| of(cap)).collect() };
    let since = number(|cap| cap.seen_since);
    let awaited_since = number(|cap| cap.awaited_since);
    let caps = number(|cap| i64::from(cap.guests));
    let rows = transaction
        .rows(COUNT, &[&addresses, &games, &since, &awaited_since, &caps])
        .await?;
    rows.iter().map(GuestCount::of).collect()
}

/// Records that a guest's cookie came back, if its address has room. Returns whether it counts now.
async fn confirm(
    transaction: &Transaction,
    player: Uuid,
    cap: Option<GuestCap>,
    now: Millis,
) -> Result<bool, Error> {
    if let Some(cap) = cap
        && let Some(address) = lock_address_of(transaction, player, now).await?
    {
        let counts = count(transaction, &[(&address, None, cap)]).await?;
        if counts.first().is_some_and(|count| !count.admits(cap)) {
            // Another request with the same cookie may have taken the last room.
            let sql = "SELECT awaiting IS NULL FROM players WHERE id = $1";
            let row = transaction.row(sql, &[&player]).await?;
            return row.map_or(Ok(false), |row| get(&row, 0));
        }
    }
    let confirmed = transaction
        .execute(
            "UPDATE players SET seen_at = greatest(seen_at, $2), awaiting = NULL WHERE id = $1",
            &[&player, &now],
        )
        .await?;
    Ok(confirmed == 1)
}

/// Locks the network address of a guest with a cookie that has not come back, before any player, as adding
/// a guest does. Returns the address.
async fn lock_address_of(
    transaction: &Transaction,
    player: Uuid,
    now: Millis,
) -> Result<Option<String>, Error> {
    let row = transaction
        .row(
            "INSERT INTO guest_addresses (address, used_at)
             SELECT address, $2::bigint FROM players
             WHERE id = $1 AND awaiting IS NOT NULL AND address IS NOT NULL
             ON CONFLICT (address) DO UPDATE
             SET used_at = greatest(guest_addresses.used_at, excluded.used_at)
             RETURNING address",
            &[&player, &now],
        )
        .await?;
    row.as_ref().map(|row| get(row, 0)).transpose()
}

/// Removes the oldest guests of an address and game whose cookie has not come back, so that there
/// is room for `more` within `most`.
async fn make_room(
    transaction: &Transaction,
    (address, game): (&str, &str),
    most: u32,
    more: usize,
) -> Result<(), Error> {
    let kept = i64::from(most).saturating_sub(i64::try_from(more).unwrap_or(i64::MAX));
    let rows = transaction
        .rows(
            "SELECT id FROM players WHERE awaiting IS NOT NULL AND id = ANY(ARRAY(
                 SELECT id FROM players WHERE address = $1 AND awaiting = $2
                 ORDER BY created_at DESC, id OFFSET $3))
             ORDER BY id FOR UPDATE",
            &[&address, &game, &kept.max(0)],
        )
        .await?;
    players::remove_locked(transaction, &rows).await.map(drop)
}

/// Adds one guest.
async fn add(transaction: &Transaction, guest: &NewGuest) -> Result<Player, Error> {
    if let Some(cap) = guest.cap {
        lock_addresses(transaction, &[guest]).await?;
        let asked = (guest.address.as_str(), guest.awaiting.as_deref(), cap);
        let count = count(transaction, &[asked]).await?;
        if count.first().is_some_and(|count| !count.admits(cap)) {
            return Err(StoreError::GuestCap.into());
        }
        if let Some(game) = &guest.awaiting {
            make_room(transaction, (&guest.address, game), cap.awaited, 1).await?;
        }
    }
    let player = players::add_player(
        transaction,
        guest.id,
        &guest.usernames,
        Some(&guest.address),
        guest.awaiting.as_deref(),
        guest.now,
    )
    .await?;
    sessions::add_session(transaction, &guest.session, guest.id, None, guest.now).await?;
    Ok(player)
}

/// Adds a guest again, or gives it one more session if that was just done.
async fn bring_back(transaction: &Transaction, guest: &NewGuest) -> Result<Player, Error> {
    let Some(player) = players::lock_one(transaction, guest.id).await? else {
        return match add(transaction, guest).await.map_err(StoreError::from) {
            // Another request of the same browser has just added the guest.
            Err(StoreError::Conflict {
                table: "players",
                column: "id",
            }) => Err(Error::Changed),
            other => Ok(other?),
        };
    };
    let is_young = guest.now - player.created_at < BACK_MILLIS;
    let is_here = sessions::has_session(transaction, player.id, guest.now).await?;
    if player.state != PlayerState::Guest || !is_young || !is_here {
        return Err(StoreError::Conflict {
            table: "players",
            column: "id",
        }
        .into());
    }
    sessions::add_session(transaction, &guest.session, player.id, None, guest.now).await?;
    Ok(player)
}

/// Adds guests, with the same results as if they were added one after another. An error concerns
/// the whole group.
async fn add_group(
    transaction: &Transaction,
    guests: &[&NewGuest],
) -> Result<Vec<Result<Player, StoreError>>, Error> {
    lock_addresses(transaction, guests).await?;
    let mut results = refuse_those_over_caps(transaction, guests).await?;
    make_room_for(transaction, guests, &results).await?;
    let places = results.iter().enumerate();
    let mut nameless: Vec<usize> = places
        .filter_map(|(place, result)| result.is_none().then_some(place))
        .collect();
    let added = nameless.clone();
    let mut turn = 0;
    while !nameless.is_empty() {
        nameless = add_by_name(transaction, guests, &mut results, nameless, turn).await?;
        turn += 1;
    }
    let added: Vec<&NewGuest> = added
        .into_iter()
        .filter(|place| matches!(results.get(*place), Some(Some(Ok(_)))))
        .filter_map(|place| guests.get(place).copied())
        .collect();
    add_sessions(transaction, &added).await?;
    // Every guest was refused or added.
    results
        .into_iter()
        .map(|result| result.ok_or(Error::Changed))
        .collect()
}

type Results = Vec<Option<Result<Player, StoreError>>>;

/// Refuses the guests whose address has reached its cap.
async fn refuse_those_over_caps(
    transaction: &Transaction,
    guests: &[&NewGuest],
) -> Result<Results, Error> {
    let asked: Vec<Asked<'_>> = guests
        .iter()
        .filter_map(|guest| {
            let (address, game) = (guest.address.as_str(), guest.awaiting.as_deref());
            guest.cap.map(|cap| (address, game, cap))
        })
        .collect();
    let mut counts = if asked.is_empty() {
        Vec::new()
    } else {
        count(transaction, &asked).await?
    }
    .into_iter();
    // How many guests of this group count for an address, or for a game there, so far.
    let mut more: BTreeMap<(&str, Option<&str>), i64> = BTreeMap::new();
    let mut results = Results::new();
    for guest in guests {
        let (address, game) = (guest.address.as_str(), guest.awaiting.as_deref());
        let more_of = |game| more.get(&(address, game)).copied().unwrap_or_default();
        let has_room = guest.cap.is_none_or(|cap| {
            let before = counts.next().unwrap_or_default();
            let now = GuestCount {
                confirmed: before.confirmed + more_of(None),
                awaited: before.awaited + game.map_or(0, |game| more_of(Some(game))),
            };
            now.admits(cap)
        });
        if !has_room {
            results.push(Some(Err(StoreError::GuestCap)));
            continue;
        }
        *more.entry((address, game)).or_default() += 1;
        results.push(None);
    }
    Ok(results)
}

/// Removes the oldest guests whose cookie has not come back, if there would be too many of them
/// together with the new ones.
async fn make_room_for(
    transaction: &Transaction,
    guests: &[&NewGuest],
    results: &Results,
) -> Result<(), Error> {
    let mut awaited: BTreeMap<(&str, &str), (u32, usize)> = BTreeMap::new();
    for (guest, result) in guests.iter().zip(results) {
        if result.is_some() {
            continue;
        }
        if let (Some(cap), Some(game)) = (guest.cap, &guest.awaiting) {
            let of = awaited.entry((&guest.address, game)).or_default();
            *of = (cap.awaited, of.1 + 1);
        }
    }
    for (of, (most, more)) in awaited {
        if u32::try_from(more).is_ok_and(|more| more > most) {
            // Some of the new guests would be removed again, so each is added in a transaction of
            // its own.
            return Err(StoreError::Busy.into());
        }
        make_room(transaction, of, most, more).await?;
    }
    Ok(())
}

/// Adds the guests at these places, each with its username number `turn`. Returns the places of
/// those whose username is taken.
async fn add_by_name(
    transaction: &Transaction,
    guests: &[&NewGuest],
    results: &mut Results,
    places: Vec<usize>,
    turn: usize,
) -> Result<Vec<usize>, Error> {
    // Sorted by name, so that two groups that add the same names cannot deadlock.
    let mut named: Vec<(String, usize, &NewGuest, &str)> = Vec::new();
    for place in places {
        let Some(guest) = guests.get(place) else {
            continue;
        };
        match guest.usernames.get(turn) {
            Some(name) => named.push((username::unique_key(name), place, *guest, name.as_str())),
            None => set(
                results,
                place,
                Err(StoreError::Conflict {
                    table: "players",
                    column: "username",
                }),
            ),
        }
    }
    named.sort_unstable_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    let ids: Vec<Uuid> = named.iter().map(|(_, _, guest, _)| guest.id).collect();
    let names: Vec<&str> = named.iter().map(|(.., name)| *name).collect();
    let keys: Vec<&str> = named.iter().map(|(key, ..)| key.as_str()).collect();
    let addresses: Vec<&str> = named
        .iter()
        .map(|(_, _, guest, _)| guest.address.as_str())
        .collect();
    let awaiting: Vec<Option<&str>> = named
        .iter()
        .map(|(_, _, guest, _)| guest.awaiting.as_deref())
        .collect();
    let times: Vec<i64> = named.iter().map(|(_, _, guest, _)| guest.now).collect();
    let rows = transaction
        .rows(
            "INSERT INTO players (id, username, username_key, address, awaiting, created_at, seen_at)
             SELECT id, name, key, address, awaiting, at, at
             FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
                 WITH ORDINALITY AS new (id, name, key, address, awaiting, at, place)
             ORDER BY place
             ON CONFLICT (username_key) DO NOTHING RETURNING id",
            &[&ids, &names, &keys, &addresses, &awaiting, &times],
        )
        .await?;
    let mut added: Vec<Uuid> = rows
        .iter()
        .map(|row| get(row, 0))
        .collect::<Result<_, _>>()?;
    added.sort_unstable();
    let mut nameless = Vec::new();
    for (_, place, guest, name) in named {
        if added.binary_search(&guest.id).is_err() {
            nameless.push(place);
            continue;
        }
        let player = Player {
            id: guest.id,
            username: name.to_owned(),
            state: PlayerState::Guest,
            created_at: guest.now,
            seen_at: guest.now,
            awaited: guest.awaiting.is_some(),
        };
        set(results, place, Ok(player));
    }
    Ok(nameless)
}

fn set(results: &mut Results, place: usize, result: Result<Player, StoreError>) {
    if let Some(slot) = results.get_mut(place) {
        *slot = Some(result);
    }
}

async fn add_sessions(transaction: &Transaction, guests: &[&NewGuest]) -> Result<(), Error> {
    if guests.is_empty() {
        return Ok(());
    }
    let hashes: Vec<&[u8]> = guests
        .iter()
        .map(|guest| guest.session.0.as_slice())
        .collect();
    let players: Vec<Uuid> = guests.iter().map(|guest| guest.id).collect();
    let times: Vec<i64> = guests.iter().map(|guest| guest.now).collect();
    transaction
        .execute(
            "INSERT INTO sessions (hash, player, created_at, renewed_at)
             SELECT hash, player, at, at
             FROM unnest($1::bytea[], $2::uuid[], $3::bigint[]) AS new (hash, player, at)",
            &[&hashes, &players, &times],
        )
        .await
        .map(drop)
}
