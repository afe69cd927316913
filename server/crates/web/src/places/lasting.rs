//! Connections that last: WebSockets, streams, and whatever takes longer than
//! [`LONG`]. They may hold three quarters of all places, so that requests that
//! are answered at once always find one.
//!
//! No client holds more than its part of that, and neither do those around a
//! client together; nor does one game, once more than half of it is taken. What
//! counts is the client of a request, not the peer of its connection: behind a
//! trusted proxy all have the same peer.

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

/// How long a request may take before its connection counts as one that lasts.
pub(crate) const LONG: Duration = Duration::from_secs(10);
/// Which part of all places those that last may hold: three quarters.
const PART: (usize, usize) = (3, 4);
/// Which part of those one network may hold, those around it together, and one
/// game once they are scarce. A network may not borrow what is free: it would
/// leave a game nothing of its part.
const OF_A_NETWORK: usize = 16;
const OF_THOSE_AROUND: usize = 8;
const OF_A_GAME: usize = 4;
/// The log says at most so often that all are held.
const WARN_AGAIN: Duration = Duration::from_secs(60);
/// When somebody without such a place may try again.
const LATER: HeaderValue = HeaderValue::from_static("5");

/// Who holds some of the places of those that last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Clients(Group),
    /// The game that is reached, by the audience of its tokens, or the
    /// platform's own pages.
    Game(Option<Arc<str>>),
}

impl Holder {
    /// How many of so many it may have.
    const fn most(&self, of: usize, are_scarce: bool) -> usize {
        match self {
            Self::Clients(Group::Network(_)) => of.div_ceil(OF_A_NETWORK),
            Self::Clients(Group::Around(_)) => of.div_ceil(OF_THOSE_AROUND),
            Self::Game(_) if are_scarce => of.div_ceil(OF_A_GAME),
            Self::Game(_) => of,
        }
    }

    /// Why it gets no further one.
    fn refusal(&self) -> ApiError {
        too_many(match self {
            Self::Clients(_) => {
                "Your network has as many WebSockets and streams as it may. Close one, or try \
                 again in a moment."
            }
            Self::Game(_) => {
                "The game has as many WebSockets and streams as it may. Try again in a moment."
            }
        })
    }
}

fn too_many(detail: &'static str) -> ApiError {
    ApiError::new(ProblemCode::Unavailable)
        .with_detail(detail)
        .with_header(header::RETRY_AFTER, LATER)
}

/// Who asked for what.
#[derive(Debug)]
struct Whose {
    client: IpAddr,
    game: Option<Arc<str>>,
}

impl Whose {
    /// Who holds what lasts. This machine has no limit: programs that measure
    /// are many visitors in one.
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

/// All those that last.
#[derive(Debug)]
pub(super) struct Crowd {
    most: usize,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    /// Holders of none are not in it.
    holders: HashMap<Holder, usize>,
    /// When the log last said that they are too many.
    warned: Option<Instant>,
}

impl Crowd {
    /// Their part of so many places, and at least one.
    pub(super) fn of(places: usize) -> Self {
        Self {
            most: (places * PART.0 / PART.1).max(1),
            counts: Mutex::default(),
        }
    }

    /// One more, for these holders.
    fn enter(&self, holders: &[Holder]) -> Result<(), ApiError> {
        let mut counts = self.counts();
        if counts.all >= self.most {
            counts.warn(self.most);
            return Err(too_many(
                "The platform has as many lasting connections as it may. Try again in a moment.",
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

    /// One less.
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
    /// Tells the operator, now and then.
    fn warn(&mut self, most: usize) {
        if self.warned.is_none_or(|at| at.elapsed() >= WARN_AGAIN) {
            self.warned = Some(Instant::now());
            tracing::warn!(
                most,
                "WebSockets, streams and long answers hold all the connections that they may; \
                 further WebSockets and streams are refused, and other requests are answered"
            );
        }
    }
}

/// One request, and the place of the connection that it came by.
#[derive(Clone, Debug)]
pub struct Stay(Arc<One>);

#[derive(Debug)]
struct One {
    place: Place,
    /// Known once the request's head was understood.
    whose: OnceLock<Whose>,
    /// It is an archive, which has a place of its own where it is kept.
    is_upload: AtomicBool,
    lasts: Mutex<Lasts>,
}

/// For how many reasons a request lasts, and who holds that.
#[derive(Debug, Default)]
struct Lasts {
    reasons: usize,
    holders: Vec<Holder>,
}

impl Stay {
    /// A request came by the connection of this place.
    pub(crate) fn at(place: &Place) -> Self {
        Self(Arc::new(One {
            place: place.clone(),
            whose: OnceLock::new(),
            is_upload: AtomicBool::new(false),
            lasts: Mutex::default(),
        }))
    }

    /// The place of its connection.
    pub(crate) fn place(&self) -> &Place {
        &self.0.place
    }

    /// It is this client's, and for this game, if for one.
    pub fn is_of(&self, client: IpAddr, game: Option<Arc<str>>) {
        // A request has one client.
        let _ = self.0.whose.set(Whose { client, game });
    }

    /// It is an upload, which is neither counted nor cut off, however long it takes.
    pub fn mark_upload(&self) {
        self.0.is_upload.store(true, Ordering::Relaxed);
    }

    /// Whether it is an upload.
    pub(crate) fn is_upload(&self) -> bool {
        self.0.is_upload.load(Ordering::Relaxed)
    }

    /// Whether it lasts for another reason than this one.
    pub(crate) fn lasts_beside(&self, this: Option<&Lasting>) -> bool {
        self.0.lasts().reasons > usize::from(this.is_some())
    }

    /// From now on it lasts, unless too many do.
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

/// A request lasts. The last owner ends that.
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

    /// So many requests of other clients and games that last.
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
        // For a further reason it is no further one.
        let again = held[0].last().unwrap();
        assert_eq!(places.0.crowd.counts().all, 6);
        drop(lasting.remove(0));
        assert!(held[6].last().is_err(), "it lasts for the other reason");
        drop(again);
        assert!(held[6].last().is_ok());
        drop(lasting);
        assert!(is_empty(&places));
        // However few there are, one may last.
        let one = Stay::at(&Places::new(1).try_take(&[]).unwrap());
        assert!(one.last().is_ok());
    }

    #[test]
    fn a_client_and_those_around_it_have_their_part_of_what_lasts() {
        // 96 may last.
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
