//! End to end: real browsers, hostile input, durability.
