//! Reading archives of others: those of deploys, and those of backups. Nothing in an archive is
//! trusted, and nothing is written outside of the folder that the caller names.
//!
//! | module | contents |
//! |---|---|
//! | [`deploy`] | a deploy's archive |
//! | [`staging`] | the files of a deployment before they are stored: names and limits |
//! | [`backup`] | the archive of a backup |

pub mod backup;
pub mod deploy;
pub mod staging;
