//! Tests that any store has to pass.
