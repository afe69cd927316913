//! Usernames: which ones players may choose, and which are too similar for two players. Guests get
//! theirs from [`generate_guest_names`].

use std::fmt;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;
use unicode_script::{Script, UnicodeScript as _};
use unicode_security::{GeneralSecurityProfile as _, MixedScript as _, skeleton};

pub use generated::{generate_guest_names, is_generated};

mod generated;
#[cfg(test)]
mod tests;

/// Fewest characters of a username.
pub const MIN_CHARS: usize = 3;
/// Most characters of a username.
pub const MAX_CHARS: usize = 24;

/// Names that seem to speak for the platform, or that look like placeholders.
const RESERVED: [&str; 23] = [
    "account",
    "admin",
    "administrator",
    "anonymous",
    "deleted",
    "guest",
    "help",
    "mod",
    "moderator",
    "none",
    "null",
    "official",
    "operator",
    "owner",
    "platform",
    "player",
    "root",
    "security",
    "staff",
    "support",
    "system",
    "undefined",
    "unknown",
];

/// Reserved when a number follows: the players of local development.
const NUMBERED: [&str; 2] = ["test-user", "test-guest"];

/// A name that a player may have, in normal form NFKC (UAX #15).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Username(String);

impl Username {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a name cannot be chosen: a sentence for the player that says what to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsernameError {
    /// It is only white space.
    #[error("Please type a name.")]
    Empty,
    /// It has too few characters.
    #[error("This name is too short. Use at least {MIN_CHARS} characters.")]
    TooShort,
    /// It has too many characters: this many.
    #[error("This name has {0} characters. Use at most {MAX_CHARS}.")]
    TooLong(usize),
    /// It contains white space.
    #[error("Names have no spaces. Use - or _ instead.")]
    Space,
    /// It contains a character other than a letter, a digit, `_` or `-`.
    #[error("{} cannot be part of a name. Use letters, digits, _ and -.", Shown(*.0))]
    Character(char),
    /// It contains no letter and no digit.
    #[error("Use at least one letter or digit.")]
    NoLetter,
    /// It mixes letters of several scripts, which can look like another name.
    #[error("This name mixes letters of several alphabets. Use only one alphabet.")]
    MixedScripts,
    /// It seems to speak for the platform, or belongs to local development.
    #[error("This name is reserved for the platform. Please choose another one.")]
    Reserved,
}

/// A character as it is shown in a sentence: itself if it is visible, else its number.
struct Shown(char);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = !is_combining_mark(self.0)
            && !self.0.is_control()
            && (self.0.is_ascii() || self.0.is_alphanumeric());
        if seen {
            write!(f, "\u{201c}{}\u{201d}", self.0)
        } else {
            write!(f, "The character U+{:04X}", u32::from(self.0))
        }
    }
}

/// Checks a name that a player typed.
///
/// # Errors
/// [`UsernameError`], whose sentence is meant for the player.
pub fn check(text: &str) -> Result<Username, UsernameError> {
    let normal: String = text.trim().nfkc().collect();
    let name = normal.trim();
    if name.is_empty() {
        return Err(UsernameError::Empty);
    }
    check_characters(name)?;
    match name.chars().count() {
        0..MIN_CHARS => return Err(UsernameError::TooShort),
        MIN_CHARS..=MAX_CHARS => {}
        more => return Err(UsernameError::TooLong(more)),
    }
    if !name.chars().any(char::is_alphanumeric) {
        return Err(UsernameError::NoLetter);
    }
    if !name.is_single_script() {
        return Err(UsernameError::MixedScripts);
    }
    if is_reserved(name) {
        return Err(UsernameError::Reserved);
    }
    Ok(Username(name.to_owned()))
}

fn check_characters(name: &str) -> Result<(), UsernameError> {
    // A mark belongs to the letter before it, so there must be one.
    let mut letter = false;
    let mut marks: Vec<char> = Vec::new();
    for char in name.chars() {
        if char.is_whitespace() {
            return Err(UsernameError::Space);
        }
        let good = match char {
            '-' | '_' => true,
            _ if is_combining_mark(char) => {
                let piled = marks.len() >= MAX_MARKS || marks.contains(&char);
                marks.push(char);
                letter && !piled && is_mark_of_script(char)
            }
            // Letters and digits that are in use today (UTS #39 §3.1), and the rare ideographs of
            // people's names.
            _ => {
                char.is_alphanumeric()
                    && (char.identifier_allowed() || char.script() == Script::Han)
            }
        };
        if !good {
            return Err(UsernameError::Character(char));
        }
        letter = !matches!(char, '-' | '_');
        if !is_combining_mark(char) {
            marks.clear();
        }
    }
    Ok(())
}

/// Marks on one letter, at most; none may occur twice (UTS #39 §5.4).
pub const MAX_MARKS: usize = 3;

/// Whether a mark belongs to the normal spelling of one script, such as vowel signs of Devanagari
/// or tone marks of Thai. Other marks, which NFKC does not combine with the letter, are only
/// decoration.
fn is_mark_of_script(char: char) -> bool {
    char.identifier_allowed() && !matches!(char.script(), Script::Inherited | Script::Common)
}

/// Whether a name looks like a reserved one, with any separators in it.
fn is_reserved(name: &str) -> bool {
    let key = bare_key(name);
    RESERVED.iter().any(|reserved| bare_key(reserved) == key)
        || NUMBERED.iter().any(|before| {
            key.strip_prefix(bare_key(before).as_str())
                .is_some_and(|number| {
                    // The key has letters in place of 0 and 1.
                    number
                        .chars()
                        .all(|char| char.is_ascii_digit() || matches!(char, 'o' | 'l'))
                })
        })
}

fn bare_key(name: &str) -> String {
    unique_key(name).replace(['-', '_'], "")
}

/// The key that must be unique. Two names have the same key if they differ only in case or in
/// nothing that a reader would see (the skeletons of UTS #39 §4).
///
/// The key is never shown. In it `0` and `1` are letters, and `m` is `rn`; generated names stay
/// distinct.
#[must_use]
pub fn unique_key(name: &str) -> String {
    let normal: String = name.nfkc().collect();
    let key: String = fold(&normal).nfd().map(look_alike).collect();
    // A capital i looks like an l, and case makes no difference.
    key.replace('i', "l")
}

/// Removes case. It goes through capitals, so that `ß` becomes `ss`, and both small sigmas become
/// one.
fn fold(text: &str) -> String {
    let capitals = text.chars().flat_map(char::to_uppercase);
    capitals.flat_map(char::to_lowercase).collect()
}

/// What a folded character looks like: the Latin letter or digit that its small form resembles,
/// else the one that its capital resembles.
fn look_alike(char: char) -> String {
    let small: String = skeleton(char.encode_utf8(&mut [0; 4])).collect();
    if small.is_ascii() {
        return fold(&small);
    }
    let capital: String = char.to_uppercase().collect();
    let capital: String = skeleton(&capital).collect();
    if capital.is_ascii() {
        return skeleton(&fold(&capital)).collect();
    }
    fold(&small)
}
