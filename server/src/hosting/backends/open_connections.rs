//! Open connections between players and backends: WebSockets and unfinished responses. All of a
//! game's are closed when the game is taken down or its backend is removed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use platform_protocol::names::Environment;
use tokio_util::sync::CancellationToken;

/// One environment of one project.
type Key = (String, Environment);

/// Closes the open connections of one game.
#[derive(Clone, Debug)]
pub(super) struct Door {
    /// Closes WebSockets. The server's shutdown closes them, too.
    pub(super) sockets: CancellationToken,
    /// Cancels unfinished responses. The server's shutdown lets them finish.
    pub(super) answers: CancellationToken,
}

impl Door {
    fn close(&self) {
        self.sockets.cancel();
        self.answers.cancel();
    }
}

/// The doors of all games whose backend has received a request.
#[derive(Debug)]
pub(super) struct Doors {
    /// Cancelled when the server stops.
    stopping: CancellationToken,
    games: Mutex<HashMap<Key, Door>>,
}

impl Doors {
    /// Creates an empty set; WebSockets end with `stopping`.
    pub(super) fn new(stopping: CancellationToken) -> Self {
        Self {
            stopping,
            games: Mutex::default(),
        }
    }

    /// Returns the door of a game. A connection with a closed door ends at once.
    pub(super) fn of(&self, slug: &str, environment: Environment) -> Door {
        let mut games = self.games();
        let door = games.entry((slug.to_owned(), environment));
        door.or_insert_with(|| self.open()).clone()
    }

    /// Closes the doors of games that are not shown, and opens those of games that are shown again.
    /// Removes those of games that do not exist any more, for which `is_shown` returns `None`. It
    /// is called under the lock, so that an older state does not replace a newer one.
    pub(super) fn follow(&self, is_shown: impl Fn(&str, Environment) -> Option<bool>) {
        self.games().retain(|(slug, environment), door| {
            let shown = is_shown(slug, *environment);
            if shown != Some(true) {
                door.close();
            } else if door.answers.is_cancelled() {
                *door = self.open();
            }
            shown.is_some()
        });
    }

    /// Closes everything that is open now. Later requests get a new door.
    pub(super) fn end(&self, key: &Key) {
        if let Some(door) = self.games().remove(key) {
            door.close();
        }
    }

    fn open(&self) -> Door {
        Door {
            sockets: self.stopping.child_token(),
            answers: CancellationToken::new(),
        }
    }

    fn games(&self) -> MutexGuard<'_, HashMap<Key, Door>> {
        self.games.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROD: Environment = Environment::Prod;

    fn is_closed(door: &Door) -> bool {
        assert_eq!(door.sockets.is_cancelled(), door.answers.is_cancelled());
        door.sockets.is_cancelled()
    }

    #[test]
    fn the_door_of_a_game_is_closed_for_as_long_as_it_is_down() {
        let doors = Doors::new(CancellationToken::new());
        let (game, other) = (doors.of("game", PROD), doors.of("other", PROD));
        let all_but = |down: &'static str| move |slug: &str, _| Some(slug != down);
        doors.follow(all_but("nobody"));
        assert!(!is_closed(&game) && !is_closed(&other));
        doors.follow(all_but("game"));
        assert!(is_closed(&game) && !is_closed(&other));
        // A request that was accepted before the game was taken down.
        assert!(is_closed(&doors.of("game", PROD)));
        assert!(!is_closed(&doors.of("game", Environment::Dev)));
        doors.follow(all_but("nobody"));
        assert!(!is_closed(&doors.of("game", PROD)));
        assert!(is_closed(&game), "what ended stays ended");
        doors.follow(|_, _| None);
        assert!(is_closed(&other));
        assert!(doors.games().is_empty(), "nothing is left over");
    }

    #[test]
    fn the_servers_stop_ends_websockets_and_lets_answers_finish() {
        let stopping = CancellationToken::new();
        let doors = Doors::new(stopping.clone());
        let door = doors.of("game", PROD);
        stopping.cancel();
        assert!(door.sockets.is_cancelled() && !door.answers.is_cancelled());
    }
}
