//! The sizes of the built file against the budget of `loader/size.toml`.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use platform_compression::{BEST, SMALL, brotli};
use serde::{Deserialize, Serialize};

/// What was measured, in bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The whole `runtime.js`.
    pub file: Size,
    /// The module alone, before it is written as a string.
    pub module: Size,
    /// The script alone: loader, and page functions.
    pub script: Size,
    /// The whole file in brotli.
    pub brotli: u64,
    /// The limit for the whole file in brotli.
    #[serde(default)]
    pub budget: u64,
}

/// One part's size, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Size {
    /// Uncompressed.
    pub raw: u64,
    /// After brotli at quality 11 (RFC 7932).
    pub brotli: u64,
    /// After gzip at level 9 (RFC 1952).
    pub gzip: u64,
}

#[derive(Deserialize)]
struct Budget {
    brotli: u64,
}

impl Report {
    /// Measures a built file and its parts.
    ///
    /// # Errors
    /// The budget cannot be read.
    pub fn measure(root: &Path, file: &str, script: &str, module: &[u8]) -> Result<Self> {
        let file = Size::of(file.as_bytes())?;
        Ok(Self {
            file,
            module: Size::of(module)?,
            script: Size::of(script.as_bytes())?,
            brotli: file.brotli,
            budget: budget(root)?,
        })
    }

    /// Loads the report of the last build.
    ///
    /// # Errors
    /// Nothing was built, or the budget cannot be read.
    pub fn load(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join("loader/dist/sizes.json"))?;
        for file in ["runtime.js", "runtime.js.map"] {
            fs::metadata(root.join("loader/dist").join(file))?;
        }
        Ok(Self {
            budget: budget(root)?,
            ..serde_json::from_str(&text)?
        })
    }

    /// Writes the report beside the built file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, root: &Path) -> Result<()> {
        fs::write(
            root.join("loader/dist/sizes.json"),
            serde_json::to_string(self)?,
        )
        .context("cannot write loader/dist/sizes.json")
    }

    /// Whether the file is within its budget.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.brotli <= self.budget
    }
}

impl Size {
    fn of(bytes: &[u8]) -> Result<Self> {
        let brotli = brotli(bytes, BEST, SMALL)?;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(bytes)?;
        Ok(Self {
            raw: bytes.len() as u64,
            brotli: brotli.len() as u64,
            gzip: gzip.finish()?.len() as u64,
        })
    }
}

fn budget(root: &Path) -> Result<u64> {
    let text = fs::read_to_string(root.join("loader/size.toml"))
        .context("cannot read loader/size.toml")?;
    let budget: Budget = toml::from_str(&text).context("loader/size.toml has no `brotli`")?;
    Ok(budget.brotli)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28}{:>9}{:>9}{:>9}", "bytes", "raw", "brotli", "gzip")?;
        for (name, size) in [
            ("runtime.js", self.file),
            ("  the module alone", self.module),
            ("  the script alone", self.script),
        ] {
            writeln!(
                f,
                "{name:<28}{:>9}{:>9}{:>9}",
                size.raw, size.brotli, size.gzip
            )?;
        }
        let verdict = if self.fits() { "within" } else { "OVER" };
        write!(
            f,
            "{verdict} the budget of {} bytes of brotli (loader/size.toml)",
            self.budget
        )
    }
}
