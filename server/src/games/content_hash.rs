//! Finds the part of a file's name that may be a hash of its content, as bundlers write it:
//! `main.3f2a9c1b.js`, `index-BkX3s9aQ.css`.
//!
//! A name alone is never certain: `index-MainMenu.js` may contain a hash or not. If a name is
//! wrongly taken for one with a hash, browsers cache the file for a year, and the game's developer
//! can do nothing about it. In the opposite case, a browser only revalidates the file once more. So
//! in case of doubt it is not a hash here; [`lasting`](super::immutable_files) examines a whole
//! folder, and knows more.

/// The minimum length of a hash.
const SHORTEST: usize = 8;
/// The maximum length of a hash: SHA-256 in hexadecimal.
const LONGEST: usize = 64;

/// A part of a name that may be a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark<'a> {
    /// The character before it; `None` at the beginning.
    pub separator: Option<char>,
    /// The text, which may be a hash.
    pub text: &'a str,
}

/// Returns every part of a file's name that may be a hash: the ends of its parts, except for the
/// extension. Endings such as `.chunk.js`, `.js.map`, `.wasm.br` and `.framework.js.gz` are
/// separate parts.
pub fn marks(name: &str) -> impl Iterator<Item = Mark<'_>> {
    let stems = name.rsplit_once('.').map_or("", |(stems, _)| stems);
    stems.split('.').enumerate().flat_map(|(at, part)| {
        let separator = (at > 0).then_some('.');
        // wasm-bindgen's ending, after the hash that Trunk adds.
        [Some(part), part.strip_suffix("_bg")]
            .into_iter()
            .flatten()
            .flat_map(move |part| in_part(separator, part))
    })
}

/// Returns a whole part, and the text after each of its dashes: a hash in base64url may itself
/// contain dashes.
fn in_part(separator: Option<char>, part: &str) -> impl Iterator<Item = Mark<'_>> {
    let whole = Mark {
        separator,
        text: part,
    };
    let ends = part.match_indices('-').map(move |(dash, _)| Mark {
        separator: Some('-'),
        text: part.get(dash + 1..).unwrap_or_default(),
    });
    std::iter::once(whole).chain(ends).filter(Mark::could_be)
}

impl Mark<'_> {
    fn could_be(&self) -> bool {
        (SHORTEST..=LONGEST).contains(&self.text.len()) && self.text.bytes().all(is_of_mark)
    }

    /// Whether it is certainly a hash, in any position. For code, the rules are less strict than
    /// for images.
    #[must_use]
    pub fn is_clear(&self, code: bool) -> bool {
        let mark = self.text;
        is_hexadecimal(mark) || is_mixed(mark) && !has_word(mark) || code && is_base32(mark)
    }

    /// Whether it can be read as words and numbers, so that a person may have written it:
    /// `MainMenu`, `player12`, `20241122`.
    #[must_use]
    pub fn reads_as_words(&self) -> bool {
        let mark = self.text.as_bytes();
        let all = |kind: fn(&u8) -> bool| mark.iter().all(kind);
        if all(u8::is_ascii_digit) || all(u8::is_ascii_lowercase) || all(u8::is_ascii_uppercase) {
            return true;
        }
        let mut before = false;
        runs(mark).into_iter().all(|run| {
            before = match run.first() {
                Some(b'0'..=b'9') => before,
                _ => is_word(run),
            };
            before
        })
    }

    /// Whether it looks like a name written by a person, even without words: few parts, or mostly
    /// words. `Lv12Boss`, `NPC_Idle`, `btn_Play`.
    #[must_use]
    pub fn looks_written(&self) -> bool {
        let runs = runs(self.text.as_bytes());
        let mut before = false;
        let mut in_words = 0;
        for run in &runs {
            let digits = run.first().is_some_and(u8::is_ascii_digit);
            before = if digits {
                before
            } else {
                run.len() > 2 && is_word(run)
            };
            in_words += if before { run.len() } else { 0 };
        }
        let few = runs.len() <= 2 || runs.len() == 3 && runs.iter().all(|run| run.len() > 1);
        few || in_words * 8 >= self.text.len() * 5 || self.reads_as_words()
    }
}

/// Whether this is a base64url character, which includes those of every other alphabet in use.
pub(crate) fn is_of_mark(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Splits a name into the parts that its author had in mind: `HUDView2` is `HUD`, `View` and `2`.
/// Separators are left out.
fn runs(mark: &[u8]) -> Vec<&[u8]> {
    let mut runs = Vec::new();
    let mut rest = mark;
    while let Some(first) = rest.first() {
        let while_is = |from: usize, kind: fn(&u8) -> bool| {
            let tail = rest.get(from..).unwrap_or_default();
            from + tail.iter().take_while(|byte| kind(byte)).count()
        };
        let length = match first {
            b'0'..=b'9' => while_is(0, u8::is_ascii_digit),
            b'a'..=b'z' => while_is(0, u8::is_ascii_lowercase),
            b'A'..=b'Z' => {
                let upper = while_is(0, u8::is_ascii_uppercase);
                let followed = rest.get(upper).is_some_and(u8::is_ascii_lowercase);
                match (upper, followed) {
                    (1, true) => while_is(1, u8::is_ascii_lowercase),
                    // The last capital letter begins the next word.
                    (_, true) => upper - 1,
                    (_, false) => upper,
                }
            }
            _ => 0,
        };
        let (run, behind) = rest.split_at(length.max(1));
        if length > 0 {
            runs.push(run);
        }
        rest = behind;
    }
    runs
}

/// Whether it is pronounceable: it has a vowel and another letter.
fn is_word(run: &[u8]) -> bool {
    let is_vowel = |byte: &u8| b"aeiouy".contains(&byte.to_ascii_lowercase());
    run == b"UI" || run.len() > 1 && run.iter().any(is_vowel) && !run.iter().all(is_vowel)
}

fn count(mark: &str, kind: fn(&u8) -> bool) -> usize {
    mark.bytes().filter(kind).count()
}

/// Whether it looks like a hash of webpack, Parcel, Trunk, Unity and many others.
fn is_hexadecimal(mark: &str) -> bool {
    let digits = count(mark, u8::is_ascii_digit);
    let letters = count(mark, |byte| matches!(byte, b'a'..=b'f'));
    letters > 0 && digits + letters == mark.len() && has_digit_inside(mark)
}

/// Whether it contains a digit that is not part of a number at the end, as in `facade01`.
fn has_digit_inside(mark: &str) -> bool {
    let word = mark.trim_end_matches(|end: char| end.is_ascii_digit());
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether it looks like a hash of Rollup and Vite: eight characters of base64url.
fn is_mixed(mark: &str) -> bool {
    mark.len() == SHORTEST
        && count(mark, u8::is_ascii_digit) > 0
        && count(mark, u8::is_ascii_lowercase) > 0
        && count(mark, u8::is_ascii_uppercase) > 0
}

/// Whether it may contain a word, as `Player12` and `Forest01` do. So may a quarter of all hashes,
/// which are then revalidated.
fn has_word(mark: &str) -> bool {
    let mark = mark.as_bytes();
    mark.windows(3)
        .any(|three| three.iter().all(u8::is_ascii_lowercase))
}

/// Whether it looks like a hash of esbuild: eight characters of base32 (RFC 4648 §6).
fn is_base32(mark: &str) -> bool {
    let known = |byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7');
    mark.len() == SHORTEST && mark.bytes().all(known) && has_digit_inside(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str) -> Vec<(Option<char>, &str)> {
        marks(name)
            .map(|mark| (mark.separator, mark.text))
            .collect()
    }

    #[test]
    fn whatever_stands_at_the_end_of_a_part_may_be_a_hash() {
        let dash = Some('-');
        assert_eq!(
            found("index-CpR-2CVW.js"),
            [(None, "index-CpR-2CVW"), (dash, "CpR-2CVW")]
        );
        assert_eq!(found("index--k_3Q-aZ.js")[1..], [(dash, "-k_3Q-aZ")]);
        assert_eq!(found("main.3f2a9c1b.chunk.js"), [(Some('.'), "3f2a9c1b")]);
        let wasm = found("app-1a2b3c4d5e6f7081_bg.wasm");
        assert!(wasm.contains(&(dash, "1a2b3c4d5e6f7081")), "{wasm:?}");
        assert_eq!(found("3f2a9c1b8d7e.js"), [(None, "3f2a9c1b8d7e")]);
        for name in [
            "game.js",
            "background",
            "a.3f2a.js",
            "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}.js",
        ] {
            assert_eq!(found(name), [], "{name}");
        }
    }

    fn mark(text: &str) -> Mark<'_> {
        Mark {
            separator: Some('-'),
            text,
        }
    }

    #[test]
    fn only_what_nobody_would_write_is_a_hash_wherever_it_stands() {
        for text in [
            "3f2a9c1b",
            "0a1b2c3d4e5f",
            "BkX3s9aQ",
            "Bk_3Q-aZ",
            "-k_3Q-aZ",
            "CpR-2CVW",
        ] {
            assert!(mark(text).is_clear(false), "{text}");
        }
        assert!(mark("2B3C4D5E").is_clear(true) && !mark("2B3C4D5E").is_clear(false));
        for text in [
            "MainMenu",
            "DUEEZswr",
            "Player12",
            "Forest01",
            "Release1",
            "MyLevel1",
            "Level1Bg",
            "FOREST22",
            "facade01",
            "deadbeef",
            "12345678",
            "20241122",
            "2024-11-22",
            "background1",
        ] {
            assert!(!mark(text).is_clear(true), "{text}");
        }
    }

    #[test]
    fn what_people_write_reads_as_words_or_looks_written() {
        for text in [
            "MainMenu",
            "Player12",
            "mainmenu",
            "MAINMENU",
            "MyUIView",
            "main_old",
            "old_2024",
            "IMG_0012",
            "TileSet2",
            "20241122",
            "background1",
            "part_001",
            "hero_run",
        ] {
            assert!(mark(text).reads_as_words(), "{text}");
        }
        for text in [
            "Lv12Boss", "NPC_Idle", "btn_Play", "UI_Btn01", "map_lv01", "lvl_0001", "DSC01234",
        ] {
            assert!(mark(text).looks_written(), "{text}");
        }
        for text in ["DAkgGDa_", "BkX3s9aQ", "CpR-2CVW", "-k_3Q-aZ"] {
            assert!(
                !mark(text).reads_as_words() && !mark(text).looks_written(),
                "{text}"
            );
        }
        assert!(!mark("DUEEZswr").reads_as_words());
    }
}
