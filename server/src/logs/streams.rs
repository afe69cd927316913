//! The readers of frontend log streams, and announcements of new records.
//!
//! A stream reads the records from the store, where their ids follow the order of their commits;
//! only the fact that there are new records is announced here. So a stream that continues where
//! another ended misses nothing and repeats nothing, and a slow reader delays nobody. Nothing is
//! kept in memory per reader. For a short time, the last result (or the fact that there was none)
//! is kept for other readers at the same position.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moka::future::Cache;
use platform_protocol::log::LogLevel;
use platform_protocol::names::Environment;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use crate::domain::log::LogId;
use crate::store::StoreError;
use crate::web::gzip_stream::SharedChunk;

/// The maximum number of open streams per player.
pub const STREAMS: usize = 10;

/// How long a result is kept for other readers.
const SHARED_FOR: Duration = Duration::from_secs(5);
/// How long an empty result is valid for other readers. Announced records are read all the same;
/// this only delays records that another process wrote.
const NOTHING_FOR: Duration = Duration::from_secs(1);
/// The maximum number of bytes that are kept for other readers.
const SHARED_BYTES: u64 = 16 * 1024 * 1024;

/// A reader's position: the environment, the filter, and the last record that was sent.
pub type Place = (String, Environment, LogLevel, LogId);

/// The records after a position.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The records as events.
    pub events: SharedChunk,
    /// The last of these records.
    pub last: LogId,
    /// Whether there may already be more records after it.
    pub full: bool,
    /// When the store was read.
    pub at: Instant,
}

/// What a reader finds after its position in the store.
#[derive(Debug)]
pub enum Found {
    /// Nothing yet.
    Nothing,
    /// Records that all readers at this position get.
    Shared(Sent),
    /// Records for this reader only, which is far behind: some were left out.
    Own(Sent),
}

impl Found {
    fn sent(self) -> Option<Sent> {
        match self {
            Self::Nothing => None,
            Self::Shared(sent) | Self::Own(sent) => Some(sent),
        }
    }
}

/// The result of the last read at a position.
#[derive(Clone, Debug)]
enum Known {
    Sent(Sent),
    /// There was nothing: the last announcement before the read, and when the read began.
    Nothing {
        heard: u64,
        at: Instant,
    },
    /// The result was only for that reader.
    Own,
    Failed(Arc<StoreError>),
}

impl Known {
    /// Whether it is outdated for a reader that knows this announcement.
    fn is_old(&self, heard_of: u64) -> bool {
        match self {
            Self::Sent(_) => false,
            Self::Nothing { heard, at } => *heard < heard_of || at.elapsed() >= NOTHING_FOR,
            Self::Own | Self::Failed(_) => true,
        }
    }
}

/// An environment of a project.
type Room = (String, Environment);

/// The open streams.
#[derive(Debug)]
pub struct LogStreams {
    /// Recent results. However many readers follow, the store is read once and records are
    /// formatted once: readers with the same last record are at the same position, and stay
    /// together.
    looks: Cache<Place, Known>,
    open: Arc<Open>,
    stopping: watch::Receiver<bool>,
}

#[derive(Debug, Default)]
struct Open {
    /// The number of each room's last announcement, and its number of readers.
    rooms: Mutex<HashMap<Room, (watch::Sender<u64>, usize)>>,
    players: Mutex<HashMap<Uuid, usize>>,
    /// The last announcement of all rooms, so that no two have the same number.
    announced: AtomicU64,
    /// The number of readers so far.
    begun: AtomicU32,
}

impl Open {
    /// Returns the number of the next announcement. It is called with the rooms locked, so the
    /// numbers of each room only increase.
    fn next(&self) -> u64 {
        self.announced.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A reader. Dropping it ends its stream.
#[derive(Debug)]
pub struct Follower {
    open: Arc<Open>,
    room: Room,
    player: Uuid,
    /// The number of readers before this one.
    seat: u32,
    news: watch::Receiver<u64>,
    /// The last announcement before the store was read.
    heard: u64,
    stopping: watch::Receiver<bool>,
}

/// A panic of a holder leaves no partial change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LogStreams {
    /// Creates an empty set of streams; all of them end when `stopping` becomes true.
    #[must_use]
    pub fn new(stopping: watch::Receiver<bool>) -> Self {
        // Their compressed form is also kept, and is not larger.
        let bytes = |known: &Known| match known {
            Known::Sent(sent) => u32::try_from(2 * sent.events.plain().len()).unwrap_or(u32::MAX),
            Known::Nothing { .. } | Known::Own | Known::Failed(_) => 0,
        };
        Self {
            looks: Cache::builder()
                .weigher(move |_, known| bytes(known))
                .max_capacity(SHARED_BYTES)
                .time_to_live(SHARED_FOR)
                .build(),
            open: Arc::default(),
            stopping,
        }
    }

    /// Announces to readers that records were committed.
    pub fn announce(&self, slug: &str, environment: Environment) {
        let rooms = lock(&self.open.rooms);
        if rooms.is_empty() {
            return;
        }
        if let Some((news, _)) = rooms.get(&(slug.to_owned(), environment)) {
            news.send_replace(self.open.next());
        }
    }

    /// Adds a reader, unless the player already has too many.
    #[must_use]
    pub fn follow(&self, slug: &str, environment: Environment, player: Uuid) -> Option<Follower> {
        {
            let mut players = lock(&self.open.players);
            let count = players.entry(player).or_default();
            if *count >= STREAMS {
                return None;
            }
            *count += 1;
        }
        let room = (slug.to_owned(), environment);
        let mut rooms = lock(&self.open.rooms);
        let (news, followers) = rooms
            .entry(room.clone())
            .or_insert_with(|| (watch::Sender::new(self.open.next()), 0));
        *followers += 1;
        let (news, heard) = (news.subscribe(), *news.borrow());
        Some(Follower {
            news,
            heard,
            open: Arc::clone(&self.open),
            room,
            player,
            seat: self.open.begun.fetch_add(1, Ordering::Relaxed),
            stopping: self.stopping.clone(),
        })
    }

    /// Returns the records after this position, for a reader that has called `begin_to_read`;
    /// `None` if there are none yet. Readers at the same position share the result, and only one of
    /// them reads the store.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn look<R>(
        &self,
        place: Place,
        follower: &Follower,
        read: impl Fn() -> R,
    ) -> Result<Option<Sent>, Arc<StoreError>>
    where
        R: Future<Output = Result<Found, StoreError>>,
    {
        loop {
            let (mut looked, mut own) = (false, None);
            let look = async {
                looked = true;
                let (heard, at) = (*follower.news.borrow(), Instant::now());
                match read().await {
                    Ok(Found::Nothing) => Known::Nothing { heard, at },
                    Ok(Found::Shared(sent)) => Known::Sent(sent),
                    Ok(Found::Own(sent)) => {
                        own = Some(sent);
                        Known::Own
                    }
                    Err(error) => Known::Failed(Arc::new(error)),
                }
            };
            let is_old = |known: &Known| known.is_old(follower.heard);
            let known = self.looks.entry_by_ref(&place);
            let known = known.or_insert_with_if(look, is_old).await.into_value();
            match known {
                Known::Sent(sent) => return Ok(Some(sent)),
                Known::Failed(error) if looked => return Err(error),
                Known::Own if looked => return Ok(own),
                Known::Own | Known::Failed(_) => {
                    return read().await.map(Found::sent).map_err(Arc::new);
                }
                // The other reader's read had begun too early. After a read of its own, a reader
                // does not repeat it only for this reason, however long it took.
                Known::Nothing { heard, .. } if !looked && heard < follower.heard => {}
                Known::Nothing { .. } => return Ok(None),
            }
        }
    }

    /// Returns the number of open streams.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.open.players).values().sum()
    }
}

impl Follower {
    /// Marks all announcements so far as seen. It must be called before the store is read, so that
    /// later ones are not missed.
    pub fn begin_to_read(&mut self) {
        self.heard = *self.news.borrow_and_update();
    }

    /// Waits until there may be new records, or the server stops.
    pub async fn news(&mut self) {
        tokio::select! {
            // The senders exist as long as the server.
            _ = self.news.changed() => {}
            _ = self.stopping.wait_for(|stopping| *stopping) => {}
        }
    }

    /// Waits until this time, or until the server stops.
    pub async fn rest(&mut self, until: Instant) {
        if until > Instant::now() {
            let stop = self.stopping.wait_for(|stopping| *stopping);
            let _ = tokio::time::timeout_at(until, stop).await;
        }
    }

    /// Returns this reader's part of a time over which all readers are spread: always the same, and
    /// different from those of readers that began just before or after.
    #[must_use]
    pub fn share_of(&self, time: Duration) -> Duration {
        // Multiples of the golden ratio are never close to each other.
        time.mul_f64((f64::from(self.seat) * 0.618_033_988_749_895).fract())
    }

    /// Whether the server stops, or was dropped without saying so: both waits above then return at
    /// once, and a stream that continued would never pause.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow() || self.stopping.has_changed().is_err()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        one_less(&mut lock(&self.open.players), &self.player, |count| count);
        one_less(&mut lock(&self.open.rooms), &self.room, |(_, count)| count);
    }
}

/// Decreases a count, and removes the entry if it was the last.
fn one_less<K: Eq + Hash, V>(
    map: &mut HashMap<K, V>,
    key: &K,
    count_of: impl Fn(&mut V) -> &mut usize,
) {
    let left = map.get_mut(key).map(|entry| {
        let count = count_of(entry);
        *count = count.saturating_sub(1);
        *count
    });
    if left == Some(0) {
        map.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::future::join_all;
    use tokio::sync::Notify;

    use super::*;

    fn streams() -> (LogStreams, watch::Sender<bool>) {
        let (stopping, stopped) = watch::channel(false);
        (LogStreams::new(stopped), stopping)
    }

    #[tokio::test]
    async fn what_is_announced_while_the_store_is_read_is_heard_afterwards() {
        let (streams, _stopping) = streams();
        let player = Uuid::nil();
        let mut follower = streams.follow("a", Environment::Dev, player).unwrap();
        follower.begin_to_read();
        streams.announce("a", Environment::Dev);
        follower.news().await;

        follower.begin_to_read();
        streams.announce("a", Environment::Prod);
        streams.announce("b", Environment::Dev);
        assert!(!follower.news.has_changed().unwrap(), "those are others'");
    }

    #[tokio::test]
    async fn a_stop_is_heard_at_once() {
        let (streams, stopping) = streams();
        let mut follower = streams.follow("a", Environment::Dev, Uuid::nil()).unwrap();
        stopping.send_replace(true);
        follower.news().await;
        assert!(follower.is_stopping());
    }

    #[test]
    fn a_server_that_is_gone_ends_its_streams() {
        let (streams, stopping) = streams();
        let follower = streams.follow("a", Environment::Dev, Uuid::nil()).unwrap();
        assert!(!follower.is_stopping());
        drop(stopping);
        assert!(follower.is_stopping());
    }

    #[tokio::test(start_paused = true)]
    async fn who_rests_does_so_until_then_or_until_the_stop() {
        let (streams, stopping) = streams();
        let mut follower = streams.follow("a", Environment::Dev, Uuid::nil()).unwrap();
        let begin = Instant::now();
        follower.rest(begin).await;
        assert_eq!(begin.elapsed(), Duration::ZERO);
        follower.rest(begin + Duration::from_secs(1)).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(1));
        stopping.send_replace(true);
        follower.rest(begin + Duration::from_secs(3_600)).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test]
    async fn those_who_follow_are_spread_over_the_time() {
        let (streams, _stopping) = streams();
        let mut shares: Vec<Duration> = (0..200)
            .map(|player| {
                let follower = streams.follow("a", Environment::Dev, Uuid::from_u128(player));
                follower.unwrap().share_of(Duration::from_millis(50))
            })
            .collect();
        shares.sort();
        let gaps = shares.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.max() < Some(Duration::from_millis(1)));
        assert!(shares[199] > Duration::from_millis(49));
        assert!(shares[199] < Duration::from_millis(50));
    }

    fn sent(last: i64) -> Sent {
        Sent {
            events: "data".into(),
            last: LogId(last),
            full: false,
            at: Instant::now(),
        }
    }

    /// Reads once for each follower concurrently; returns the results, and how often the store was
    /// read.
    async fn look(
        streams: &LogStreams,
        followers: &mut [Follower],
        found: impl Fn() -> Result<Found, StoreError>,
    ) -> (Vec<Option<LogId>>, usize) {
        let reads = Cell::new(0);
        let looks = followers.iter_mut().map(|follower| {
            follower.begin_to_read();
            streams.look(place(), follower, async || {
                reads.set(reads.get() + 1);
                // The others arrive while this one reads.
                tokio::task::yield_now().await;
                found()
            })
        });
        let got = join_all(looks).await.into_iter();
        let got = got.map(|sent| sent.unwrap().map(|sent| sent.last));
        (got.collect(), reads.get())
    }

    fn place() -> Place {
        ("a".into(), Environment::Dev, LogLevel::Debug, LogId(0))
    }

    fn followers<const N: usize>(streams: &LogStreams) -> [Follower; N] {
        let follow = |player| streams.follow("a", Environment::Dev, player);
        std::array::from_fn(|_| follow(Uuid::nil()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn idle_followers_share_one_look_at_the_store() {
        let (streams, _stopping) = streams();
        let mut idle: [_; 3] = followers(&streams);
        let nothing = || Ok(Found::Nothing);
        assert_eq!(look(&streams, &mut idle, nothing).await, (vec![None; 3], 1));
        // A reader that comes a moment later need not read until it is time again.
        assert_eq!(look(&streams, &mut idle, nothing).await, (vec![None; 3], 0));
        tokio::time::advance(NOTHING_FOR).await;
        assert_eq!(look(&streams, &mut idle, nothing).await, (vec![None; 3], 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_slow_is_still_looked_at_once_for_all() {
        let (streams, _stopping) = streams();
        let (followers, reads): ([_; 3], _) = (followers(&streams), Cell::new(0));
        let slow = async || {
            reads.set(reads.get() + 1);
            tokio::time::advance(NOTHING_FOR * 2).await;
            Ok(Found::Nothing)
        };
        let looks = followers
            .iter()
            .map(|follower| streams.look(place(), follower, slow));
        for found in join_all(looks).await {
            assert!(found.unwrap().is_none());
        }
        assert_eq!(reads.get(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_announced_since_the_last_look_is_looked_for() {
        let (streams, _stopping) = streams();
        let mut idle: [_; 2] = followers(&streams);
        look(&streams, &mut idle, || Ok(Found::Nothing)).await;
        streams.announce("a", Environment::Dev);
        let something = || Ok(Found::Shared(sent(7)));
        let found = (vec![Some(LogId(7)); 2], 1);
        assert_eq!(look(&streams, &mut idle, something).await, found);
        // A slower reader gets the same result as the others.
        let found = (vec![Some(LogId(7)); 2], 0);
        assert_eq!(look(&streams, &mut idle, something).await, found);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_began_before_the_news_is_not_shared_with_who_has_heard_them() {
        let (streams, _stopping) = streams();
        let [mut early, mut late] = followers(&streams);
        let (begun, go_on) = (Notify::new(), Notify::new());
        early.begin_to_read();
        let first = streams.look(place(), &early, async || {
            begun.notify_one();
            go_on.notified().await;
            Ok(Found::Nothing)
        });
        let second = async {
            begun.notified().await;
            streams.announce("a", Environment::Dev);
            late.begin_to_read();
            go_on.notify_one();
            let read = async || Ok(Found::Shared(sent(7)));
            streams.look(place(), &late, read).await
        };
        let (first, second) = tokio::join!(first, second);
        assert!(first.unwrap().is_none());
        assert_eq!(second.unwrap().unwrap().last, LogId(7));
        assert!(early.news.has_changed().unwrap(), "it looks again at once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_room_that_was_empty_knows_nothing_of_what_was_not_announced_to_it() {
        let (streams, _stopping) = streams();
        let mut gone: [_; 1] = followers(&streams);
        look(&streams, &mut gone, || Ok(Found::Nothing)).await;
        drop(gone);
        streams.announce("a", Environment::Dev);
        let mut back: [_; 1] = followers(&streams);
        let found = look(&streams, &mut back, || Ok(Found::Shared(sent(7)))).await;
        assert_eq!(found, (vec![Some(LogId(7))], 1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_left_out_for_one_is_not_left_out_for_the_others() {
        let (streams, _stopping) = streams();
        let mut followers: [_; 2] = followers(&streams);
        let number = Cell::new(0);
        let each = || {
            number.set(number.get() + 1);
            Ok(Found::Own(sent(number.get())))
        };
        let found = (vec![Some(LogId(1)), Some(LogId(2))], 2);
        assert_eq!(look(&streams, &mut followers, each).await, found);
        // An error is not kept either.
        let failing = || Err(StoreError::Database("full".into()));
        for follower in &mut followers {
            follower.begin_to_read();
            let failed = streams.look(place(), follower, async || failing()).await;
            assert!(failed.is_err());
        }
        let found = (vec![Some(LogId(9)); 2], 1);
        let shared = || Ok(Found::Shared(sent(9)));
        assert_eq!(look(&streams, &mut followers, shared).await, found);
    }

    #[test]
    fn a_player_follows_only_so_often_and_nothing_is_left_over() {
        let (streams, _stopping) = streams();
        let [one, other] = [Uuid::from_u128(1), Uuid::from_u128(2)];
        let follow = |player| streams.follow("a", Environment::Dev, player);
        let mut open: Vec<_> = (0..STREAMS).map(|_| follow(one).unwrap()).collect();
        assert!(follow(one).is_none());
        assert!(follow(other).is_some());
        assert_eq!(streams.count(), STREAMS);
        open.pop();
        assert!(follow(one).is_some());
        open.clear();
        assert_eq!(streams.count(), 0);
        assert!(lock(&streams.open.rooms).is_empty());
    }
}
