//! Bytes: what every visitor loads, and the server's program.

use std::io::Write as _;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use platform_compression::{BEST, brotli};

use super::Both;
use super::subjects::{MODULE, Program, RUNTIME, Subject};
use super::verdict::{Better, Figure, Pair};

/// The window of brotli, in powers of two: the largest that browsers must support (RFC 7932 §9.1).
const WINDOW: u8 = 24;

/// The names of the sizes, in the order of [`sizes`].
const NAMES: [&str; 6] = [
    "runtime.js, brotli, bytes",
    "runtime.js, gzip, bytes",
    "runtime.js, bytes",
    "its module, brotli, bytes",
    "its module, bytes",
    "the server's program, bytes",
];

/// Compares all sizes.
pub(super) fn measure(both: &Both<'_>) -> Result<Vec<Figure>> {
    let (old, new) = (sizes(&both.old)?, sizes(&both.new)?);
    let pairs = old.into_iter().zip(new).map(|(old, new)| Pair { old, new });
    let figures = NAMES.into_iter().zip(pairs);
    Ok(figures
        .map(|(name, pair)| Figure::counted(name, Better::Less, pair))
        .collect())
}

fn sizes(subject: &Subject) -> Result<[f64; 6]> {
    let (runtime, module) = (subject.runtime(RUNTIME)?, subject.runtime(MODULE)?);
    let program = subject.program(Program::Server);
    let program = program
        .metadata()
        .with_context(|| format!("cannot read {}", program.display()))?;
    let packed = |bytes: &[u8]| Ok::<_, anyhow::Error>(brotli(bytes, BEST, WINDOW)?.len() as f64);
    Ok([
        packed(&runtime)?,
        gzip(&runtime)?,
        runtime.len() as f64,
        packed(&module)?,
        module.len() as f64,
        program.len() as f64,
    ])
}

/// The length as the best gzip.
fn gzip(bytes: &[u8]) -> Result<f64> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?.len() as f64)
}
