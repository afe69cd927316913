//! Whether a script uses `platform` while it runs, which a script that runs before the runtime cannot.

/// Texts after which code waits for an event, so that the runtime is there by then.
const WAITS: [&str; 4] = [
    "addEventListener",
    "onload",
    "onDOMContentLoaded",
    "requestIdleCallback",
];
/// Objects that have `platform` as a member, before the name.
const GLOBALS: [&str; 3] = ["window.", "globalThis.", "self."];
/// A script that declares the name has a `platform` of its own.
const DECLARES: [&str; 5] = ["const ", "let ", "var ", "function ", "class "];

/// Whether the text of a script reads a member of the runtime's `platform`, and does not wait for an event
/// before. It is a guess: what counts is how the script is written, not what it does.
pub(crate) fn uses_platform(script: &str) -> bool {
    let waits = WAITS.iter().filter_map(|wait| script.find(wait)).min();
    let script = &script[..waits.unwrap_or(script.len())];
    let mut uses = false;
    for (at, word) in script.match_indices("platform") {
        let (before, after) = (&script[..at], &script[at + word.len()..]);
        if DECLARES.iter().any(|word| before.ends_with(word)) {
            return false;
        }
        uses |= is_read(before, after);
    }
    uses
}

fn is_read(before: &str, after: &str) -> bool {
    let is_part =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '#' | '"' | '\'' | '`');
    let is_global = GLOBALS.iter().any(|global| before.ends_with(global));
    let is_whole = is_global || !before.ends_with(is_part);
    let after = after.trim_start();
    is_whole && (after.starts_with('.') || after.starts_with("?.") || after.starts_with('['))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_runtimes_platform_counts() {
        for script in [
            "platform.fetch('/api/me')",
            "await platform\n  .player()",
            "window.platform.signOut()",
            "if(a){globalThis.platform?.fetch('/')}",
            "platform['fetch']('/x'); addEventListener('load', start)",
        ] {
            assert!(uses_platform(script), "{script}");
        }
        for script in [
            "",
            "start()",
            "navigator.platform.startsWith('Mac')",
            "os.platform()",
            "'platform.png'",
            "// for every platform",
            "const platform = new Sprite(); platform.x = 3",
            "typeof platform === 'undefined'",
            "addEventListener('DOMContentLoaded', () => platform.fetch('/'))",
            "window.onload = () => platform.player()",
            "myplatform.x; platforms[3]",
        ] {
            assert!(!uses_platform(script), "{script}");
        }
    }
}
