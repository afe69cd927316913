//! Tables of names: valid, invalid, and similar.

use super::*;

#[test]
fn letters_and_digits_of_any_script_make_names() {
    for (typed, name) in [
        ("ada", "ada"),
        ("Ada_Lovelace-1815", "Ada_Lovelace-1815"),
        ("  ada\t", "ada"),
        ("\u{3000}ada\u{a0}", "ada"),
        ("123", "123"),
        ("-x-", "-x-"),
        ("Zo\u{eb}", "Zo\u{eb}"),
        // Composed letters, and letters in their plain form.
        ("Zoe\u{308}", "Zo\u{eb}"),
        ("\u{ff21}\u{ff44}\u{ff41}", "Ada"),
        ("\u{fb01}sh", "fish"),
        ("x\u{b2}y", "x2y"),
        ("Stra\u{df}e", "Stra\u{df}e"),
        (
            "\u{410}\u{43b}\u{438}\u{441}\u{430}",
            "\u{410}\u{43b}\u{438}\u{441}\u{430}",
        ),
        (
            "\u{3a9}\u{3bc}\u{3ad}\u{3b3}\u{3b1}",
            "\u{3a9}\u{3bc}\u{3ad}\u{3b3}\u{3b1}",
        ),
        // Japanese uses three scripts; Thai and Devanagari use marks.
        (
            "\u{6f22}\u{5b57}\u{304b}\u{306a}\u{30ab}\u{30ca}",
            "\u{6f22}\u{5b57}\u{304b}\u{306a}\u{30ab}\u{30ca}",
        ),
        (
            "\u{e2a}\u{e27}\u{e31}\u{e2a}\u{e14}\u{e35}",
            "\u{e2a}\u{e27}\u{e31}\u{e2a}\u{e14}\u{e35}",
        ),
        (
            "\u{928}\u{92e}\u{938}\u{94d}\u{924}\u{947}",
            "\u{928}\u{92e}\u{938}\u{94d}\u{924}\u{947}",
        ),
        (
            "\u{5e9}\u{5dc}\u{5d5}\u{5dd}_7",
            "\u{5e9}\u{5dc}\u{5d5}\u{5dd}_7",
        ),
        ("admiral", "admiral"),
        ("test-user-x", "test-user-x"),
        ("guest-of-honour", "guest-of-honour"),
    ] {
        assert_eq!(
            check(typed).as_ref().map(Username::as_str),
            Ok(name),
            "{typed}"
        );
        assert_eq!(
            check(name).as_ref().map(Username::as_str),
            Ok(name),
            "once more"
        );
    }
}

#[test]
fn length_counts_characters_after_normalisation() {
    let letters = |count: usize| "\u{e9}".repeat(count);
    assert_eq!(check(&letters(2)), Err(UsernameError::TooShort));
    assert!(check(&letters(3)).is_ok());
    assert!(check(&letters(24)).is_ok());
    assert_eq!(check(&letters(25)), Err(UsernameError::TooLong(25)));
    // 48 characters that become 24, and one that becomes three.
    assert!(check(&"e\u{301}".repeat(24)).is_ok());
    assert_eq!(check("\u{fb03}").unwrap().as_str(), "ffi");
    assert_eq!(
        check(&"x".repeat(8_000)),
        Err(UsernameError::TooLong(8_000))
    );
}

#[test]
fn what_is_no_name_is_refused_with_what_to_change() {
    use UsernameError::*;
    for (typed, expected) in [
        ("", Empty),
        (" \t\n", Empty),
        ("ab", TooShort),
        (" a ", TooShort),
        ("ada lovelace", Space),
        ("ada\u{a0}lovelace", Space),
        ("ada\nlovelace", Space),
        ("ada.lovelace", Character('.')),
        ("ada@home", Character('@')),
        ("<b>ada</b>", Character('<')),
        ("ada\0", Character('\0')),
        ("ada\u{200b}", Character('\u{200b}')),
        ("\u{202e}ada", Character('\u{202e}')),
        ("a\u{200d}da", Character('\u{200d}')),
        ("ada\u{1f600}", Character('\u{1f600}')),
        ("ada\u{ad}", Character('\u{ad}')),
        ("ada\u{2013}", Character('\u{2013}')),
        ("\u{16a0}\u{16a2}\u{16a6}", Character('\u{16a0}')),
        // Piled-up marks, or marks without a letter.
        ("ad\u{336}a", Character('\u{336}')),
        ("z\u{30d}\u{30d}ada", Character('\u{30d}')),
        ("-\u{94d}ada", Character('\u{94d}')),
        ("---", NoLetter),
        ("_-_", NoLetter),
        ("p\u{430}ypal", MixedScripts),
        ("\u{430}d\u{430}", MixedScripts),
        ("ada\u{661}", MixedScripts),
        ("admin", Reserved),
        ("Admin", Reserved),
        ("ADM1N", Reserved),
        ("AdmIn", Reserved),
        ("a_d-m-i-n", Reserved),
        ("adrnin", Reserved),
        ("r00t", Reserved),
        ("\u{ff41}\u{ff44}\u{ff4d}\u{ff49}\u{ff4e}", Reserved),
        ("Official", Reserved),
        ("0ff1c1al", Reserved),
        ("guest", Reserved),
        ("test-user-1", Reserved),
        ("Test_User_10", Reserved),
        ("testguest7", Reserved),
        ("test-guest-", Reserved),
    ] {
        assert_eq!(check(typed), Err(expected), "{typed:?}");
        let sentence = expected.to_string();
        assert!(
            sentence.ends_with('.') && !sentence.contains('\0'),
            "{sentence}"
        );
    }
    assert_eq!(
        Character('.').to_string(),
        "\u{201c}.\u{201d} cannot be part of a name. Use letters, digits, _ and -."
    );
    assert_eq!(
        Character('\u{200b}').to_string(),
        "The character U+200B cannot be part of a name. Use letters, digits, _ and -."
    );
}

#[test]
fn names_that_look_alike_have_one_key() {
    for (one, other) in [
        ("Swift-OTTER-1", "swift-otter-1"),
        ("\u{c9}T\u{c9}", "\u{e9}t\u{e9}"),
        ("STRASSE", "stra\u{df}e"),
        (
            "\u{39f}\u{3b4}\u{3cc}\u{3c2}",
            "\u{39f}\u{394}\u{38c}\u{3a3}",
        ),
        ("paypal", "p\u{430}yp\u{430}l"),
        ("paypal", "PayPaI"),
        ("paypal", "paypa1"),
        ("paypal", "\u{440}\u{430}\u{443}\u{440}\u{430}\u{4cf}"),
        ("Otto", "0tt0"),
        ("modern", "rnodern"),
        // Capitals that look Latin where their small letters do not.
        ("MATT", "\u{41c}\u{410}\u{422}\u{422}"),
        ("matt", "\u{43c}\u{430}\u{442}\u{442}"),
        ("BOB", "\u{392}\u{39f}\u{392}"),
        ("Zoe\u{308}", "zo\u{eb}"),
        ("\u{ff41}\u{ff44}\u{ff41}", "ada"),
        ("\u{131}vy", "IVY"),
    ] {
        assert_eq!(unique_key(one), unique_key(other), "{one} {other}");
    }
}

#[test]
fn names_that_can_be_told_apart_have_two_keys() {
    for (one, other) in [
        ("otter2", "otter3"),
        ("otter-1", "otter_1"),
        ("otter-1", "otter1"),
        ("zoe", "zo\u{eb}"),
        ("nina", "vina"),
        ("swift-otter-1000", "swift-otter-1001"),
        ("\u{43b}\u{438}\u{441}", "\u{43b}\u{435}\u{441}"),
        ("\u{6f22}\u{5b57}\u{4e00}", "\u{6f22}\u{5b57}\u{4e8c}"),
    ] {
        assert_ne!(unique_key(one), unique_key(other), "{one} {other}");
    }
}

#[test]
fn the_key_of_a_plain_name_is_plain() {
    assert_eq!(unique_key("swift-otter-4821"), "swlft-otter-482l");
    assert_eq!(unique_key("Amber_Zebra-1000"), "arnber_zebra-looo");
}

#[test]
fn marks_are_not_piled_up() {
    let piled = format!("\u{e01}\u{e32}\u{e01}{}", "\u{e48}".repeat(9));
    assert_eq!(check(&piled), Err(UsernameError::Character('\u{e48}')));
    let piled = format!("\u{915}\u{916}\u{917}{}", "\u{901}".repeat(2));
    assert_eq!(check(&piled), Err(UsernameError::Character('\u{901}')));
    // As people write them.
    for name in [
        "\u{e01}\u{e33}\u{e25}\u{e31}\u{e07}",
        "\u{915}\u{94d}\u{937}\u{93f}\u{924}",
    ] {
        assert!(check(name).is_ok(), "{name}");
    }
}
