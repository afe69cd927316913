//! Tests of what is SQLite alone.
