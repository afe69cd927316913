//! The demo game's backend.
