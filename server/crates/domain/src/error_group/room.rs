//! Which groups make room for new ones. Everybody can send errors, so the groups of a page that sends
//! many must not keep the others away.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{ErrorGroupId, GROUPS, GROUPS_OF_STRANGERS, Occurrences};
use crate::clock::Millis;

/// From this number of groups on, each player may have begun [`GROUPS_OF_PLAYER`].
pub const CROWDED: usize = GROUPS / 4;
/// How many groups may have begun with one player's error, of those that fewer than [`CONFIRMED`]
/// players met.
pub const GROUPS_OF_PLAYER: usize = 20;
/// A group that this number of players met is no invention of the one with whom it began.
pub const CONFIRMED: u64 = 10;

/// An open group of an environment, which may make room. Groups that a developer has resolved or
/// ignored stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its id; never [`ErrorGroupId::OTHERS`].
    pub id: ErrorGroupId,
    /// How many players met it, about.
    pub reach: u64,
    /// When the last error was received.
    pub last_at: Millis,
    /// How many errors, with repetitions.
    pub count: u64,
    /// Whether its first error came from a page without a player's token.
    pub of_stranger: bool,
    /// The player of its first error, if known.
    pub begun_by: Option<Uuid>,
}

impl Held {
    /// The group with the lowest value makes room first.
    fn value(&self) -> (u64, Millis, ErrorGroupId) {
        (self.reach, self.last_at, self.id)
    }

    /// Its errors, to be counted among all other errors.
    pub(super) fn into_others(self) -> Occurrences {
        Occurrences {
            id: ErrorGroupId::OTHERS,
            first_at: self.last_at,
            last_at: self.last_at,
            count: self.count,
            hours: BTreeMap::new(),
            players: Vec::new(),
            first_deployment: None,
            deployments: BTreeMap::new(),
            engines: BTreeMap::new(),
            records: Vec::new(),
            sample: super::Sample::default(),
        }
    }
}

/// The groups of an environment, without the one for all other errors.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// How many there are.
    pub all: usize,
    /// How many of them began with a stranger's error.
    pub of_strangers: usize,
    /// The open ones, which may make room. They are needed if [`Room::is_short`].
    pub open: Vec<Held>,
}

impl From<(usize, usize)> for Room {
    fn from((all, of_strangers): (usize, usize)) -> Self {
        Self {
            all,
            of_strangers,
            open: Vec::new(),
        }
    }
}

/// Where the errors of a new group are counted.
pub(super) enum Placed {
    /// In a group of their own.
    Own,
    /// In a group of their own, instead of this one.
    Instead(Held),
    /// Among all other errors.
    Others,
}

impl Room {
    /// Whether errors of `new` causes may need other groups to make room.
    #[must_use]
    pub const fn is_short(all: usize, of_strangers: usize, new: usize) -> bool {
        all.saturating_add(new) > CROWDED || of_strangers.saturating_add(new) > GROUPS_OF_STRANGERS
    }

    /// Leaves groups out that get errors themselves.
    pub(super) fn keep(&mut self, new: &[Occurrences]) {
        self.open
            .retain(|held| new.iter().all(|new| new.id != held.id));
    }

    /// Finds room for the first errors of a cause. `begun` is how many groups each player has begun
    /// in this batch.
    pub(super) fn place(&mut self, new: &Occurrences, begun: &BTreeMap<Uuid, usize>) -> Placed {
        let reach = new.reach();
        let player = new.players.first().copied();
        let Some(player) = player else {
            if self.all < GROUPS && self.of_strangers < GROUPS_OF_STRANGERS {
                self.of_strangers += 1;
                self.all += 1;
                return Placed::Own;
            }
            return self.instead(reach, |held| held.of_stranger);
        };
        let is_own = |held: &Held| held.begun_by == Some(player) && held.reach < CONFIRMED;
        let own = self.open.iter().filter(|held| is_own(held)).count();
        let own = own + begun.get(&player).copied().unwrap_or_default();
        if self.all >= CROWDED && own >= GROUPS_OF_PLAYER {
            return self.instead(CONFIRMED, is_own);
        }
        if self.all < GROUPS {
            self.all += 1;
            return Placed::Own;
        }
        self.instead(reach, |_| true)
    }

    /// Takes the least important of some groups, if no more than `reach` players met it.
    fn instead(&mut self, reach: u64, may_go: impl Fn(&Held) -> bool) -> Placed {
        let candidates = self.open.iter().enumerate();
        let least = candidates
            .filter(|(_, held)| may_go(held) && held.reach <= reach)
            .min_by_key(|(_, held)| held.value());
        match least.map(|(place, _)| place) {
            Some(place) => Placed::Instead(self.open.swap_remove(place)),
            None => Placed::Others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Occurrence, Sample, regroup};
    use super::*;
    use crate::log::LogId;

    const NOW: Millis = 1_800_000_000_000;

    fn id(number: u16) -> ErrorGroupId {
        let mut id = [1; 16];
        id[..2].copy_from_slice(&number.to_be_bytes());
        ErrorGroupId(id)
    }

    fn held(number: u16, reach: u64, begun_by: Option<u128>) -> Held {
        Held {
            id: id(number),
            reach,
            last_at: NOW + Millis::from(number),
            count: 3,
            of_stranger: begun_by.is_none(),
            begun_by: begun_by.map(Uuid::from_u128),
        }
    }

    fn errors(number: u16, player: Option<u128>) -> Occurrences {
        let one = Occurrence {
            record: LogId::first_of(NOW),
            count: 2,
            player: player.map(Uuid::from_u128),
            deployment: None,
            engine: None,
            sample: Sample::default(),
        };
        Occurrences::new(id(number), one)
    }

    /// Adds errors, and returns the groups that made room, those that are written, and how many
    /// errors are counted among all others.
    fn add(room: Room, new: Vec<Occurrences>) -> (Vec<u16>, usize, u64) {
        let regrouped = regroup(Vec::new(), room, new);
        let number = |id: &ErrorGroupId| u16::from_be_bytes([id.0[0], id.0[1]]);
        let others = regrouped.groups.iter();
        let others = others.filter(|group| group.id == ErrorGroupId::OTHERS);
        let others: u64 = others.map(|group| group.count).sum();
        let gone = regrouped.removed.iter().map(number).collect();
        (gone, regrouped.groups.len(), others)
    }

    fn full(open: Vec<Held>) -> Room {
        Room {
            all: GROUPS,
            of_strangers: 0,
            open,
        }
    }

    #[test]
    fn the_group_that_fewest_players_met_longest_ago_makes_room() {
        let open = vec![
            held(9, 2, Some(1)),
            held(7, 1, Some(2)),
            held(6, 1, Some(3)),
        ];
        let new = vec![errors(100, Some(8)), errors(101, Some(9))];
        assert_eq!(add(full(open.clone()), new), (vec![6, 7], 3, 6));
        // What more players met stays.
        let new = errors(100, Some(8));
        assert_eq!(
            add(full(vec![held(9, 2, Some(1))]), vec![new]),
            (vec![], 1, 2)
        );
        // And so does what happens again in this batch.
        let new = vec![errors(100, Some(8)), errors(6, Some(3))];
        let regrouped = regroup(vec![], full(open), new);
        assert_eq!(regrouped.removed, [id(7)]);
    }

    #[test]
    fn a_player_takes_the_room_of_nobody_else() {
        let most = u16::try_from(GROUPS_OF_PLAYER).unwrap();
        let mut open: Vec<Held> = (10..10 + most)
            .map(|number| held(number, 1, Some(1)))
            .collect();
        open.push(held(1, 1, Some(2)));
        let room = Room {
            all: CROWDED,
            of_strangers: 0,
            open,
        };
        let many = (100..120).map(|number| errors(number, Some(1))).collect();
        let (gone, _, others) = add(room.clone(), many);
        assert_eq!(gone, (10..10 + most).collect::<Vec<_>>());
        assert_eq!(others, 3 * u64::from(most));
        // One more has nothing left to take the place of.
        let many: Vec<_> = (100..121).map(|number| errors(number, Some(1))).collect();
        assert_eq!(add(room.clone(), many).2, 3 * u64::from(most) + 2);
        // Others still have room, and a stranger's token is no player.
        for player in [Some(3), None] {
            let new = vec![errors(100, player)];
            assert_eq!(add(room.clone(), new), (vec![], 1, 0));
        }
    }

    #[test]
    fn strangers_take_the_room_of_strangers_alone() {
        let room = |open| Room {
            all: GROUPS,
            of_strangers: GROUPS_OF_STRANGERS,
            open,
        };
        let open = vec![held(1, 1, Some(1)), held(2, 0, None), held(3, 4, None)];
        assert_eq!(add(room(open), vec![errors(100, None)]), (vec![2], 2, 3));
        let met = vec![held(1, 1, Some(1)), held(3, 4, None)];
        assert_eq!(add(room(met), vec![errors(100, None)]), (vec![], 1, 2));
    }
}
