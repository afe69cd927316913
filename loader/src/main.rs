//! Builds the runtime of a workspace (by default this one) and prints its sizes.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

fn main() -> anyhow::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = std::env::args_os().nth(1).map_or(here, PathBuf::from);
    let built = platform_loader::build(&platform_loader::Options {
        workspace_root: root
            .canonicalize()
            .with_context(|| format!("{} is no folder", root.display()))?,
    })?;
    writeln!(std::io::stdout(), "{}", built.report)?;
    Ok(())
}
