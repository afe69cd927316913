//! Builds the runtime of a workspace, this one unless another is named, and
//! prints its sizes.

use std::path::{Path, PathBuf};

fn main() -> anyhow::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = std::env::args_os().nth(1).map_or(here, PathBuf::from);
    let options = platform_loader::Options {
        workspace_root: root.canonicalize()?,
    };
    eprintln!("{}", platform_loader::build(&options)?);
    Ok(())
}
