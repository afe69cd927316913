//! Who counts as playing after which heartbeats: the same in every place of presence. The tests of
//! presence in Redis include this file.

use platform_domain::clock::Millis;

/// The steps of a test, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// A heartbeat of a player's page.
    Beat(u8, u8),
    /// The final heartbeat of a page.
    Leave(u8),
    /// Time passes, in milliseconds.
    Wait(Millis),
    /// Asserts the number of players.
    Playing(usize),
}

use Act::{Beat, Leave, Playing, Wait};

/// A second in milliseconds.
const SECOND: Millis = 1_000;

/// Tests of the rules, by name.
pub(crate) const ROWS: &[(&str, &[Act])] = &[
    ("nobody", &[Playing(0)]),
    (
        "three tabs are one player",
        &[Beat(1, 1), Beat(1, 2), Beat(1, 3), Playing(1)],
    ),
    (
        "three players are three",
        &[Beat(1, 1), Beat(2, 2), Beat(3, 3), Playing(3)],
    ),
    (
        "of three tabs, all must be closed",
        &[
            Beat(1, 1),
            Beat(1, 2),
            Beat(1, 3),
            Leave(2),
            Playing(1),
            Leave(1),
            Playing(1),
            Leave(3),
            Playing(0),
        ],
    ),
    (
        "a tab that vanished counts for 75 s and not longer",
        &[
            Beat(1, 1),
            Wait(75 * SECOND),
            Playing(1),
            Wait(1),
            Playing(0),
        ],
    ),
    (
        "a beat every 30 s keeps the player",
        &[
            Beat(1, 1),
            Wait(30 * SECOND),
            Beat(1, 1),
            Wait(60 * SECOND),
            Playing(1),
            Wait(16 * SECOND),
            Playing(0),
        ],
    ),
    (
        "the freshest tab decides",
        &[
            Beat(1, 1),
            Wait(70 * SECOND),
            Beat(1, 2),
            Wait(10 * SECOND),
            Playing(1),
            Leave(2),
            Playing(0),
        ],
    ),
    (
        "a restored page has a new id",
        &[Beat(1, 1), Leave(1), Playing(0), Beat(1, 2), Playing(1)],
    ),
    (
        "a page whose player changed counts for the new one alone",
        &[Beat(1, 1), Beat(2, 1), Playing(1), Leave(1), Playing(0)],
    ),
    (
        "a farewell of an unknown page changes nothing",
        &[Beat(1, 1), Leave(9), Playing(1)],
    ),
    (
        "a beat of before the clock was set back by a day does not count for a day",
        &[
            Beat(1, 1),
            Wait(-86_400 * SECOND),
            Playing(0),
            Beat(2, 2),
            Playing(1),
        ],
    ),
];
