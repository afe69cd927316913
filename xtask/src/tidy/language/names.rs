//! Names that say nothing to a stranger, and what this field calls the same things.

use super::definitions::words;

/// Each word with the words of the field among which the right one usually is.
const BANNED: &[(&str, &str)] = &[
    ("Place", "a location, path, address, slot, bucket or host"),
    ("Known", "a cache, snapshot, registry or index"),
    ("Held", "a lease, lock, guard, buffer or backlog"),
    ("Found", "a match, result, row or the thing itself"),
    ("Room", "a capacity, quota or free space"),
    ("Told", "a notification, notice or acknowledgement"),
    ("Wished", "a request, a requested or desired value"),
    (
        "Look",
        "a poll, lookup, check or scan; a time is an interval",
    ),
    ("Patience", "a timeout"),
    ("Soon", "a timeout, deadline or delay"),
    ("Late", "overdue, expired, delayed or stale"),
    ("Faces", "a listener, interface or endpoint"),
    ("Whose", "an owner, subject or account"),
    ("Somebody", "a user, player, caller or account"),
];

/// Pairs that are terms of HTTP, in which the second word is allowed.
const TERMS: &[(&str, &str)] = &[("not", "found"), ("well", "known")];

/// The banned words in a name, in the spelling of the list.
pub(super) fn banned(name: &str) -> Vec<&'static str> {
    let words = words(name);
    let is_in_name = |banned: &str| {
        words.iter().enumerate().any(|(at, word)| {
            let before = at.checked_sub(1).and_then(|at| words.get(at));
            let is_term = before.is_some_and(|before| TERMS.contains(&(before.as_str(), word)));
            word.eq_ignore_ascii_case(banned) && !is_term
        })
    };
    BANNED
        .iter()
        .map(|(banned, _)| *banned)
        .filter(|banned| is_in_name(banned))
        .collect()
}

/// What the field calls what a banned word stands for.
pub(super) fn terms_for(banned: &str) -> &'static str {
    BANNED
        .iter()
        .find(|(word, _)| *word == banned)
        .map_or("", |(_, terms)| terms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banned_word_is_found_in_a_name_of_any_case() {
        for name in ["Place", "RedisPlace", "place_of", "LOG_PLACE", "isPlace"] {
            assert_eq!(banned(name), ["Place"], "{name}");
        }
        assert_eq!(banned("look_for_room"), ["Room", "Look"]);
    }

    #[test]
    fn words_that_contain_a_banned_word_are_allowed() {
        for name in [
            "lookup",
            "Template",
            "replaced",
            "interfaces",
            "unknown",
            "LATEST",
        ] {
            assert!(banned(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn terms_of_http_are_allowed() {
        assert!(banned("not_found").is_empty());
        assert!(banned("WELL_KNOWN").is_empty());
        assert_eq!(banned("known_found"), ["Known", "Found"]);
    }
}
