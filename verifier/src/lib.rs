//! Verifies game tokens in a game's backend.
