//! The console's upload, as far as it is not the browser's own work: which files of a folder or zip
//! are deployed and why not, with the words of the command line; the headers of the archive that is
//! sent; and where the files of a zip are.
//!
//! | module | holds |
//! |---|---|
//! | [`chosen`] | the files of what was dropped that are deployed |
//! | [`entry`] | headers of the tar file |
//! | [`zip`] | the files of a zip, read from its end |
//! | [`exports`] | what the page calls |
//!
//! The page gives names, sizes and small pieces, never the content of files: browsers read, unpack
//! and compress those in their own code (`www/console/upload_archive.js`).

pub mod chosen;
pub mod entry;
pub mod exports;
pub mod zip;
