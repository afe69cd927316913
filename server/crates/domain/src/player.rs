//! A player: a guest at first, an account once an identity is linked.

use platform_protocol::invisible::{JOINERS, is_invisible};
use uuid::Uuid;

use crate::clock::Millis;

/// Characters of a suspension's reason, at most: it is a sentence on a page.
pub const REASON_CHARS: usize = 500;

/// Parses a suspension's reason, which the player reads: one trimmed line of at
/// most [`REASON_CHARS`] visible characters. Joiners are allowed between two
/// visible characters. Returns `None` for any other text.
#[must_use]
pub fn parse_reason(text: &str) -> Option<&str> {
    let text = text.trim();
    let sound = !text.is_empty() && text.chars().count() <= REASON_CHARS && is_legible(text);
    sound.then_some(text)
}

/// Whether every character is visible, or joins two visible ones.
fn is_legible(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let is_seen = |at: usize| {
        let char = chars.get(at);
        char.is_some_and(|char| !char.is_whitespace() && !is_invisible(*char))
    };
    let mut all = chars.iter().enumerate();
    all.all(|(at, char)| match char {
        char if JOINERS.contains(char) => is_seen(at.wrapping_sub(1)) && is_seen(at + 1),
        char => !is_invisible(*char),
    })
}

/// A player as the store knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Player {
    /// The player's id, the `sub` of every token.
    pub id: Uuid,
    /// The current display name.
    pub username: String,
    /// Guest, account, merged away or suspended.
    pub state: PlayerState,
    /// When the player was made.
    pub created_at: Millis,
    /// When the player was last seen. Kept up to date only for guests, and not to the minute: see
    /// [`Player::wants_to_be_seen`].
    pub seen_at: Millis,
    /// Whether this is a guest whose cookie has not come back yet. Such a guest counts for no
    /// address, and its row is removed after [`UNCONFIRMED_MILLIS`]; its cookie makes it again.
    pub awaited: bool,
}

/// How long the row of a guest is kept if its cookie does not come back.
pub const UNCONFIRMED_MILLIS: Millis = 20 * 60 * 1_000;

/// The present state of a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlayerState {
    /// No external identity is linked.
    Guest,
    /// At least one external identity is linked.
    Account,
    /// This guest was merged into an account and never gets a token again.
    Merged {
        /// The account.
        into: Uuid,
    },
    /// The platform suspended this player, guest or account.
    Suspended {
        /// The reason for the player, a sentence.
        reason: Option<String>,
        /// Whether an external identity is linked.
        linked: bool,
    },
}

/// A suspended player, or a guest that was merged into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspendedPlayer {
    /// The player's id, which may be in tokens.
    pub id: Uuid,
    /// The reason for the player, a sentence.
    pub reason: Option<String>,
}

impl Player {
    /// Whether a use at `now` should be stored. A guest counts for an address until `idle` after
    /// its last use; this is kept to a 24th of `idle`. The first time that its cookie comes back is
    /// stored as well.
    #[must_use]
    pub const fn wants_to_be_seen(&self, now: Millis, idle: Millis) -> bool {
        matches!(self.state, PlayerState::Guest)
            && (self.awaited || now - self.seen_at >= idle / 24)
    }

    /// The claim `is_anon`: true until an external identity is linked.
    #[must_use]
    pub const fn is_anonymous(&self) -> bool {
        matches!(
            self.state,
            PlayerState::Guest | PlayerState::Suspended { linked: false, .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joiners_stand_in_a_reason_where_they_join() {
        for sound in [
            "You broke the rules.",
            "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645} \u{631}\u{641}\u{62a}",
            "\u{915}\u{94d}\u{200d}\u{937}",
            "No \u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467} here",
            "\u{1f3f3}\u{fe0f}\u{200d}\u{1f308}",
        ] {
            assert_eq!(parse_reason(sound), Some(sound), "{sound:?}");
        }
        assert_eq!(parse_reason(" Why. "), Some("Why."));
        for wrong in [
            "\u{200d}",
            "\u{200c}a",
            "a\u{200c}",
            "a\u{200d}\u{200c}b",
            "a \u{200d}b",
            "a\u{200c} b",
            "a\u{200d}\u{202e}b",
            "a\u{202e}b",
            "a\u{2066}b\u{2069}",
            "a\u{200b}b",
            "a\u{200f}b",
            "a\u{2060}b",
            "two\nlines",
            "",
        ] {
            assert_eq!(parse_reason(wrong), None, "{wrong:?}");
        }
        assert!(parse_reason(&"x".repeat(REASON_CHARS)).is_some());
        assert_eq!(parse_reason(&"x".repeat(REASON_CHARS + 1)), None);
    }
}
