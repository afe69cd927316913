//! Long-lived connections: WebSockets, streams, and requests that take longer than [`LONG`]. They
//! may use three quarters of all slots, so that short requests always find one.
//!
//! One client may hold only a part of these, and so may its surrounding network, and one game once
//! more than half are in use. The client of a request counts, not the peer of its connection:
//! behind a trusted proxy, all have the same peer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::{HeaderValue, header};
use platform_protocol::problem::ProblemCode;
use tokio::time::Instant;

use super::{Group, Network, Place};
use crate::api_error::ApiError;

/// How long a request may take before its connection counts as long-lived.
pub(crate) const LONG: Duration = Duration::from_secs(10);
/// The part of all slots that long-lived connections may use: three quarters.
const PART: (usize, usize) = (3, 4);
/// The parts of these for one network, for its surrounding network, and for one game once they are
/// scarce. A network may not use free slots of others: it would leave nothing of a game's part to
/// the game.
const OF_A_NETWORK: usize = 16;
const OF_THOSE_AROUND: usize = 8;
const OF_A_GAME: usize = 4;
/// The minimum time between two warnings that all are in use.
const WARN_AGAIN: Duration = Duration::from_secs(60);
/// When a refused client may try again.
const LATER: HeaderValue = HeaderValue::from_static("5");

/// A holder of slots for long-lived connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Clients(Group),
    /// The requested game, by the audience of its tokens, or the platform's own pages.
    Game(Option<Arc<str>>),
}

impl Holder {
    /// Returns how many of `of` slots it may hold.
    const fn most(&self, of: usize, are_scarce: bool) -> usize {
        match self {
            Self::Clients(Group::Network(_)) => of.div_ceil(OF_A_NETWORK),
            Self::Clients(Group::Around(_)) => of.div_ceil(OF_THOSE_AROUND),
            Self::Game(_) if are_scarce => of.div_ceil(OF_A_GAME),
            Self::Game(_) => of,
        }
    }

    /// Returns the error for a holder at its limit.
    fn refusal(&self) -> ApiError {
        too_many(match self {
            Self::Clients(_) => {
                "Your network has reached its limit of WebSockets and streams. Close one, or try \
                 again in a moment."
            }
            Self::Game(_) => {
                "The game has reached its limit of WebSockets and streams. Try again in a moment."
            }
        })
    }
}

fn too_many(detail: &'static str) -> ApiError {
    ApiError::new(ProblemCode::Unavailable)
        .with_detail(detail)
        .with_header(header::RETRY_AFTER, LATER)
}

/// The client and the game of a request.
#[derive(Debug)]
struct Whose {
    client: IpAddr,
    game: Option<Arc<str>>,
}

impl Whose {
    /// Returns the holders of a long-lived request. This machine has no limit: programs that
    /// measure simulate many visitors.
    fn holders(&self) -> Vec<Holder> {
        if self.client.is_loopback() {
            return Vec::new();
        }
        let network = Group::Network(Network::of(self.client));
        vec![
            Holder::Clients(network),
            Holder::Clients(Group::around(self.client)),
            Holder::Game(self.game.clone()),
        ]
    }
}

/// All long-lived connections.
#[derive(Debug)]
pub(super) struct Crowd {
    most: usize,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    /// Only contains holders of at least one.
    holders: HashMap<Holder, usize>,
    /// When the log last warned that there are too many.
    warned: Option<Instant>,
}

impl Crowd {
    /// Returns their part of all slots, at least one.
    pub(super) fn of(places: usize) -> Self {
        Self {
            most: (places * PART.0 / PART.1).max(1),
            counts: Mutex::default(),
        }
    }

    /// Adds one for these holders.
    fn enter(&self, holders: &[Holder]) -> Result<(), ApiError> {
        let mut counts = self.counts();
        if counts.all >= self.most {
            counts.warn(self.most);
            return Err(too_many(
                "The platform has reached its limit of lasting connections. Try again in a moment.",
            ));
        }
        let are_scarce = (counts.all + 1) * 2 > self.most;
        let has_its_part = |holder: &&Holder| {
            let held = counts.holders.get(*holder).copied().unwrap_or_default();
            held >= holder.most(self.most, are_scarce)
        };
        if let Some(full) = holders.iter().find(has_its_part) {
            return Err(full.refusal());
        }
        counts.all += 1;
        for holder in holders {
            *counts.holders.entry(holder.clone()).or_default() += 1;
        }
        Ok(())
    }

    /// Removes one.
    fn leave(&self, holders: Vec<Holder>) {
        let mut counts = self.counts();
        counts.all -= 1;
        for holder in holders {
            if let Entry::Occupied(mut held) = counts.holders.entry(holder) {
                *held.get_mut() -= 1;
                if *held.get() == 0 {
                    held.remove();
                }
            }
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// Warns the operator, at most once per [`WARN_AGAIN`].
    fn warn(&mut self, most: usize) {
        if self.warned.is_none_or(|at| at.elapsed() >= WARN_AGAIN) {
            self.warned = Some(Instant::now());
            tracing::warn!(
                most,
                "WebSockets, streams and long answers use all connections that they are allowed; \
                 further WebSockets and streams are refused, and other requests are answered"
            );
        }
    }
}

/// A request, and the slot of its connection.
#[derive(Clone, Debug)]
pub struct Stay(Arc<One>);

#[derive(Debug)]
struct One {
    place: Place,
    /// Known once the request's head is parsed.
    whose: OnceLock<Whose>,
    /// The request uploads an archive; archives have their own limits.
    is_upload: AtomicBool,
    lasts: Mutex<Lasts>,
}

/// The number of reasons why a request is long-lived, and its holders.
#[derive(Debug, Default)]
struct Lasts {
    reasons: usize,
    holders: Vec<Holder>,
}

impl Stay {
    /// Creates the state of a request on the connection with this slot.
    pub(crate) fn at(place: &Place) -> Self {
        Self(Arc::new(One {
            place: place.clone(),
            whose: OnceLock::new(),
            is_upload: AtomicBool::new(false),
            lasts: Mutex::default(),
        }))
    }

    /// Returns the slot of its connection.
    pub(crate) fn place(&self) -> &Place {
        &self.0.place
    }

    /// Sets the request's client and game, if it is for one.
    pub fn is_of(&self, client: IpAddr, game: Option<Arc<str>>) {
        // A request has one client, so this is set once.
        let _ = self.0.whose.set(Whose { client, game });
    }

    /// Marks it as an upload, which is neither counted nor cut off, however long it takes.
    pub fn mark_upload(&self) {
        self.0.is_upload.store(true, Ordering::Relaxed);
    }

    /// Whether it is an upload.
    pub(crate) fn is_upload(&self) -> bool {
        self.0.is_upload.load(Ordering::Relaxed)
    }

    /// Whether it is long-lived for another reason than this one.
    pub(crate) fn lasts_beside(&self, this: Option<&Lasting>) -> bool {
        self.0.lasts().reasons > usize::from(this.is_some())
    }

    /// Makes it long-lived, unless there are too many.
    ///
    /// # Errors
    /// `unavailable`
    pub fn last(&self) -> Result<Lasting, ApiError> {
        let mut lasts = self.0.lasts();
        if lasts.reasons == 0 {
            let holders = self.0.whose.get().map(Whose::holders).unwrap_or_default();
            self.0.place.crowd().enter(&holders)?;
            lasts.holders = holders;
        }
        lasts.reasons += 1;
        Ok(Lasting {
            _reason: Arc::new(Reason(self.clone())),
        })
    }
}

impl One {
    fn lasts(&self) -> MutexGuard<'_, Lasts> {
        self.lasts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reason for a request to be long-lived. It ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Lasting {
    _reason: Arc<Reason>,
}

#[derive(Debug)]
struct Reason(Stay);

impl Drop for Reason {
    fn drop(&mut self) {
        let one = &*self.0.0;
        let mut lasts = one.lasts();
        lasts.reasons -= 1;
        if lasts.reasons == 0 {
            one.place.crowd().leave(std::mem::take(&mut lasts.holders));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Places;
    use super::*;

    /// A request of this client, for this game.
    fn request(places: &Places, client: &str, game: &str) -> Stay {
        let stay = Stay::at(&places.try_take(&[]).unwrap());
        stay.is_of(client.parse().unwrap(), Some(game.into()));
        stay
    }

    /// Creates `count` long-lived requests of other clients and games.
    fn others(places: &Places, count: u8) -> Vec<Lasting> {
        let of = |other| {
            request(
                places,
                &format!("198.51.{other}.1"),
                &format!("game:{other}"),
            )
        };
        (0..count).map(|other| of(other).last().unwrap()).collect()
    }

    fn is_empty(places: &Places) -> bool {
        let counts = places.0.crowd.counts();
        counts.all == 0 && counts.holders.is_empty()
    }

    #[test]
    fn those_that_last_hold_three_quarters_of_all_places() {
        let places = Places::new(8);
        let held: Vec<_> = (0..8)
            .map(|_| Stay::at(&places.try_take(&[]).unwrap()))
            .collect();
        let mut lasting: Vec<_> = held[..6].iter().map(|stay| stay.last().unwrap()).collect();
        let refusal = held[6].last().unwrap_err();
        assert_eq!(refusal.status(), 503);
        assert!(places.0.crowd.counts().warned.is_some());
        // Another reason of the same request is not counted again.
        let again = held[0].last().unwrap();
        assert_eq!(places.0.crowd.counts().all, 6);
        drop(lasting.remove(0));
        assert!(held[6].last().is_err(), "it lasts for the other reason");
        drop(again);
        assert!(held[6].last().is_ok());
        drop(lasting);
        assert!(is_empty(&places));
        // However few slots there are, one may be long-lived.
        let one = Stay::at(&Places::new(1).try_take(&[]).unwrap());
        assert!(one.last().is_ok());
    }

    #[test]
    fn a_client_and_those_around_it_have_their_part_of_what_lasts() {
        // 96 may be long-lived.
        let places = Places::new(128);
        for (clients, most) in [
            (&["192.0.2.1"][..], 6),
            (&["192.0.2.1", "192.0.2.2", "192.0.2.3"], 12),
            (&["2001:db8:1:2::1", "2001:db8:1:2::2"], 6),
            (
                &["2001:db8:1:2::1", "2001:db8:1:3::1", "2001:db8:1:4::1"],
                12,
            ),
        ] {
            let lasting: Vec<_> = (0..most)
                .map(|number| (clients[number % clients.len()], format!("game:{number}")))
                .map(|(client, game)| request(&places, client, &game).last().unwrap())
                .collect();
            for client in clients {
                let refusal = request(&places, client, "game:0").last().unwrap_err();
                assert!(refusal.detail().contains("network"), "{}", refusal.detail());
            }
            assert!(request(&places, "203.0.113.1", "game:0").last().is_ok());
            assert!(request(&places, "127.0.0.1", "game:0").last().is_ok());
            drop(lasting);
            assert!(is_empty(&places), "nothing is left over");
        }
    }

    #[test]
    fn a_game_borrows_what_is_free_up_to_half_of_what_lasts() {
        let places = Places::new(128);
        let player = |number: usize| request(&places, &format!("192.0.{number}.1"), "game:one");
        let borrowed: Vec<_> = (0..48)
            .map(|number| player(number).last().unwrap())
            .collect();
        assert!(player(48).last().is_err());
        let all = others(&places, 48);
        assert_eq!(all.len(), 48, "the other half is everybody's");
        drop(borrowed);
        assert!(player(0).last().is_ok(), "what ended counts no more");
    }

    #[test]
    fn a_game_has_a_quarter_of_what_lasts_once_more_than_half_is_taken() {
        let places = Places::new(128);
        let others = others(&places, 48);
        let player = |number: usize| request(&places, &format!("192.0.{number}.1"), "game:crowded");
        let lasting: Vec<_> = (0..24)
            .map(|number| player(number).last().unwrap())
            .collect();
        let refusal = player(24).last().unwrap_err();
        assert_eq!(refusal.slug().as_str(), "unavailable");
        assert!(refusal.detail().contains("game"), "{}", refusal.detail());
        assert!(request(&places, "192.0.24.1", "game:other").last().is_ok());
        drop((others, lasting));
        assert!(is_empty(&places));
    }
}
