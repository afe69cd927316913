//! Projects: making them, deploying to them, their settings and their standing.
//!
//! | module | holds |
//! |---|---|
//! | [`handlers`] | the endpoints, one a file, and what they answer |
//! | [`deploy`](mod@deploy) | how a set of files becomes what an environment shows |
//! | [`archive`] | reading a deploy's archive, of which nothing is believed |
//! | [`staging`] | the files of a deployment before they are kept: names and limits |
//! | [`removal`] | the end of deleted projects |
//! | [`settings_limits`] | how often a project's settings may be written |

pub mod archive;
pub mod deploy;
pub mod handlers;
pub mod removal;
pub mod settings_limits;
pub mod staging;
mod state;

pub use self::state::ProjectsState;
