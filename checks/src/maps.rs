//! Whether scripts have source maps, without which errors are shown at places that nobody wrote.

/// The number of bytes of a script's line above which a program has probably written it.
pub const HAND_WRITTEN: usize = 300;
/// A smaller script is read as it is.
const SMALL: usize = 1_000;
/// What the comment says that names a script's source map (ECMA-426).
pub const COMMENT: &str = "sourceMappingURL=";

/// Whether a file of this name may be a bundled script of the game. What is named `.min.js` is
/// usually somebody else's.
#[must_use]
pub fn is_script(name: &str) -> bool {
    (name.ends_with(".js") || name.ends_with(".mjs")) && !name.ends_with(".min.js")
}

/// Whether a program has written most of a script, and the script names no source map.
#[must_use]
pub fn lacks_map(script: &[u8]) -> bool {
    if script.len() < SMALL {
        return false;
    }
    let lines = script.split(|byte| *byte == b'\n').map(<[u8]>::len);
    let by_program: usize = lines.filter(|length| *length > HAND_WRITTEN).sum();
    by_program > script.len() / 2
        && !script
            .windows(COMMENT.len())
            .any(|part| part == COMMENT.as_bytes())
}

/// A sentence about these scripts without maps, the first of `count`.
#[must_use]
pub fn hint(first: &str, count: usize) -> String {
    let scripts = match count {
        0 | 1 => format!("{first} has no source map"),
        2 => format!("{first} and 1 other script have no source map"),
        _ => format!("{first} and {} other scripts have no source map", count - 1),
    };
    format!(
        "{scripts}, so errors are shown in bundled code: `build: {{ sourcemap: true }}` in \
         vite.config adds it, for anybody to read."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundled_script_without_a_map_is_known_by_its_lines() {
        let bundled = "a();".repeat(500);
        assert!(lacks_map(bundled.as_bytes()));
        let banner = format!("/*! A licence. */\n{bundled}\n");
        assert!(lacks_map(banner.as_bytes()));
        for script in [
            format!("{bundled}\n//# sourceMappingURL=index.js.map\n"),
            format!("{bundled}\n//# sourceMappingURL=data:application/json;base64,e30="),
            "a();\n".repeat(500),
            // A level in a script that somebody wrote.
            format!(
                "const level = \"{}\";\n{}",
                "x".repeat(900),
                "a();\n".repeat(500)
            ),
            "a();".repeat(100),
            String::new(),
        ] {
            assert!(!lacks_map(script.as_bytes()), "{script}");
        }
    }

    #[test]
    fn somebody_elses_scripts_are_left_alone() {
        assert!(is_script("assets/index-Aa1Bb2Cc.js") && is_script("a.mjs"));
        for name in ["three.min.js", "a.js.map", "a.css", "js"] {
            assert!(!is_script(name), "{name}");
        }
    }

    #[test]
    fn a_hint_counts_as_people_do() {
        assert!(hint("a.js", 1).starts_with("a.js has no source map, so"));
        assert!(hint("a.js", 2).starts_with("a.js and 1 other script have no"));
        assert!(hint("a.js", 5).starts_with("a.js and 4 other scripts have no"));
    }
}
