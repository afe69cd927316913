//! The rules for a deployment. The server checks them at the upload (`server/crates/archive`,
//! `server/crates/game-pages`), because it trusts no client. The command line checks them before it
//! (`cli/src/archive.rs`), and so does the console's page, with this crate as WebAssembly
//! (`upload/`), so that nobody waits for an upload that will be refused.
//!
//! | module | holds |
//! |---|---|
//! | [`folder`] | which files of a folder are deployed, and what its developer should know before |
//! | [`page`] | whether `index.html` loads the runtime as it should |
//! | [`path`] | which names a deployed file may have |
//! | [`maps`] | whether scripts have source maps |
//! | [`private`] | which files should hardly be public |
//! | [`sources`] | whether a folder holds sources instead of the built game |
//! | [`limits`] | how much one deployment may be |
//! | `place`, `script`, `early` | places in a page, its scripts, and whether one uses `platform` too early |
//!
//! A page that does not load the runtime, and a file that should hardly be public, are deployed all
//! the same, with a [`Warning`]; a name or a size that breaks a rule makes the whole deployment
//! invalid.

mod early;
pub mod folder;
pub mod limits;
pub mod maps;
pub mod page;
pub mod path;
mod place;
pub mod private;
mod script;
pub mod sources;

pub use page::{
    ReadFile, Warning, WarningCode, module_scripts, warnings, warnings_at, warnings_of,
    warnings_with,
};
pub use path::{PathProblem, check_path, normalise};
pub use private::name_warnings;
