//! Requests by host, route and status. What visitors send is never a label: a host is one of five
//! kinds, a route is the pattern that the router has matched, and a status that no route of ours has
//! is counted with its class. Counting a request is three additions; it takes no lock and no memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::domain::histogram::{Counted, Histogram};

/// The kind of host to which a request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostKind {
    /// The platform's own pages and its API.
    Console,
    /// The auth service.
    Auth,
    /// A game, in any environment.
    Game,
    /// A pane of the Build page.
    Pane,
    /// None of the platform's.
    Other,
}

impl HostKind {
    const ALL: [Self; 5] = [
        Self::Console,
        Self::Auth,
        Self::Game,
        Self::Pane,
        Self::Other,
    ];

    /// Returns the value of the label `host`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Auth => "auth",
            Self::Game => "game",
            Self::Pane => "pane",
            Self::Other => "other",
        }
    }
}

/// A route of a kind of host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteId(u16);

/// The routes that are not patterns of a router, in the order of their ids, after one for each kind
/// of host without any.
const OWN: [(HostKind, &str); 5] = [
    (HostKind::Game, "(files)"),
    (HostKind::Game, "(backend)"),
    (HostKind::Pane, "(files)"),
    (HostKind::Pane, "(backend)"),
    (HostKind::Other, "(unread)"),
];

impl RouteId {
    /// No route of this host.
    #[must_use]
    pub const fn none(host: HostKind) -> Self {
        Self(host as u16)
    }

    /// The files of a game.
    pub const GAME_FILES: Self = Self::own(0);
    /// The backend of a game.
    pub const GAME_BACKEND: Self = Self::own(1);
    /// The files of a game in a pane.
    pub const PANE_FILES: Self = Self::own(2);
    /// The backend of a game in a pane.
    pub const PANE_BACKEND: Self = Self::own(3);
    /// A request whose head could not be read.
    pub const UNREAD: Self = Self::own(4);

    const fn own(index: u16) -> Self {
        Self(HostKind::ALL.len() as u16 + index)
    }
}

/// The maximum number of routes. There are far fewer patterns; requests of any others would count as
/// those without a route.
const MOST: usize = 512;

/// The statuses that are counted one by one.
const STATUSES: [u16; 38] = [
    101, 200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 406, 408,
    409, 410, 411, 412, 413, 414, 415, 416, 417, 422, 426, 428, 429, 431, 500, 501, 502, 503, 504,
];
/// Those of all others, by their first digit.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Returns the index at which a status is counted. A game's backend may send any status.
fn index(status: u16) -> usize {
    let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
    STATUSES
        .binary_search(&status)
        .unwrap_or(STATUSES.len() + class)
}

/// The requests of one route.
#[derive(Debug)]
struct Row {
    host: HostKind,
    pattern: String,
    seconds: Histogram,
    statuses: [AtomicU64; STATUSES.len() + CLASSES.len()],
}

/// The requests of all routes.
#[derive(Debug)]
pub struct Requests {
    rows: Box<[OnceLock<Box<Row>>]>,
    /// The ids of the patterns. It is only used when an endpoint gets its first request.
    known: Mutex<HashMap<(HostKind, String), RouteId>>,
}

/// What was counted of one route.
#[derive(Debug)]
pub struct RouteFigures<'requests> {
    /// The kind of host.
    pub host: HostKind,
    /// The pattern of its path.
    pub pattern: &'requests str,
    /// How long the requests took.
    pub seconds: Counted,
    /// The number of requests by status.
    pub statuses: Vec<(String, u64)>,
}

impl Default for Requests {
    fn default() -> Self {
        let requests = Self {
            rows: (0..MOST).map(|_| OnceLock::new()).collect(),
            known: Mutex::default(),
        };
        let none = HostKind::ALL.map(|host| (host, "(none)"));
        for (host, pattern) in none.into_iter().chain(OWN) {
            requests.route(host, pattern);
        }
        requests
    }
}

impl Requests {
    /// Returns the id of a pattern. It takes a lock, so an endpoint keeps the result.
    pub fn route(&self, host: HostKind, pattern: &str) -> RouteId {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let next = known.len();
        if let Some(id) = known.get(&(host, pattern.to_owned())) {
            return *id;
        }
        let (Some(row), Ok(id)) = (self.rows.get(next), u16::try_from(next)) else {
            return RouteId::none(host);
        };
        row.get_or_init(|| {
            Box::new(Row {
                host,
                pattern: pattern.to_owned(),
                seconds: Histogram::default(),
                statuses: std::array::from_fn(|_| AtomicU64::new(0)),
            })
        });
        known.insert((host, pattern.to_owned()), RouteId(id));
        RouteId(id)
    }

    /// Returns the kind of host and the pattern of a route.
    #[must_use]
    pub fn name(&self, route: RouteId) -> Option<(HostKind, &str)> {
        let row = self
            .rows
            .get(usize::from(route.0))
            .and_then(OnceLock::get)?;
        Some((row.host, row.pattern.as_str()))
    }

    /// Counts a request.
    pub fn count(&self, route: RouteId, status: u16, took: Duration) {
        let row = self.rows.get(usize::from(route.0)).and_then(OnceLock::get);
        let Some(row) = row else { return };
        row.seconds.count(took);
        if let Some(count) = row.statuses.get(index(status)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the routes that had requests.
    pub fn read(&self) -> impl Iterator<Item = RouteFigures<'_>> {
        let rows = self.rows.iter().map_while(OnceLock::get);
        rows.map(|row| RouteFigures {
            host: row.host,
            pattern: &row.pattern,
            seconds: row.seconds.read(),
            statuses: row.statuses(),
        })
        .filter(|route| !route.statuses.is_empty())
    }
}

impl Row {
    fn statuses(&self) -> Vec<(String, u64)> {
        let names = STATUSES.iter().map(u16::to_string);
        let names = names.chain(CLASSES.map(str::to_owned));
        let counts = self
            .statuses
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        names.zip(counts).filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(requests: &Requests) -> Vec<String> {
        let line = |route: RouteFigures<'_>| {
            let host = route.host.name();
            format!("{host} {} {:?}", route.pattern, route.statuses)
        };
        requests.read().map(line).collect()
    }

    #[test]
    fn requests_are_counted_by_host_route_and_status() {
        let requests = Requests::default();
        let token = requests.route(HostKind::Auth, "/token");
        assert_eq!(requests.route(HostKind::Auth, "/token"), token);
        assert_ne!(requests.route(HostKind::Console, "/token"), token);
        assert_eq!(requests.name(token), Some((HostKind::Auth, "/token")));
        let took = Duration::from_millis(1);
        for (route, status) in [
            (token, 200),
            (token, 200),
            (token, 429),
            (RouteId::GAME_BACKEND, 299),
            (RouteId::GAME_BACKEND, 999),
            (RouteId::UNREAD, 400),
            (RouteId::none(HostKind::Other), 404),
        ] {
            requests.count(route, status, took);
        }
        assert_eq!(
            read(&requests),
            [
                r#"other (none) [("404", 1)]"#,
                r#"game (backend) [("2xx", 1), ("5xx", 1)]"#,
                r#"other (unread) [("400", 1)]"#,
                r#"auth /token [("200", 2), ("429", 1)]"#,
            ]
        );
    }

    #[test]
    fn there_are_no_more_routes_and_statuses_than_room_for_them() {
        let requests = Requests::default();
        let took = Duration::from_millis(1);
        for number in 0..2 * MOST {
            let route = requests.route(HostKind::Game, &format!("/{number}"));
            for status in 0..=999 {
                requests.count(route, status, took);
            }
        }
        assert!(read(&requests).len() <= MOST);
        for route in requests.read() {
            assert!(route.statuses.len() <= STATUSES.len() + CLASSES.len());
        }
    }

    #[test]
    fn the_statuses_are_in_their_order() {
        assert!(STATUSES.is_sorted());
    }
}
