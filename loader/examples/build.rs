//! Builds the runtime and prints its sizes.

fn main() -> anyhow::Result<()> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let report = platform_loader::build(&platform_loader::Options { workspace_root: root.canonicalize()? })?;
    eprintln!("{report}");
    Ok(())
}
