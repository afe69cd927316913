//! Tests of the key ring.
