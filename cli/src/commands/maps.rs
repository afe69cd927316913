//! The hint about missing source maps, which a deploy and a check give.

use std::path::Path;

use platform_checks::maps::{hint, is_script, lacks_map};

use crate::archive::Folder;
use crate::terminal;

/// The most bytes of a script that are read. The server reads no larger one for its map.
const LARGEST: u64 = 16 * 1024 * 1024;
/// The most scripts that are read: this is only a hint.
const SCRIPTS: usize = 100;

/// What to say about the scripts of a folder, if some were bundled without a source map.
pub(super) fn missing(folder: &Folder) -> Option<String> {
    let scripts = folder
        .entries()
        .filter(|(name, _, bytes)| is_script(name) && *bytes <= LARGEST)
        .take(SCRIPTS);
    let lacking = |path: &Path| std::fs::read(path).is_ok_and(|script| lacks_map(&script));
    let mut without = scripts.filter(|(_, path, _)| lacking(path));
    let (first, ..) = without.next()?;
    Some(hint(first, 1 + without.count()))
}

/// Says it, if there is anything to say.
pub(super) fn tell(missing: Option<&String>) {
    if let Some(hint) = missing {
        terminal::note(format_args!("hint: {hint}"));
    }
}
