//! A key set that a verifier fetches (RFC 7517): what is accepted has keys, and each can be found.

#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use platform_verifier::KeySet;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Ok(keys) = KeySet::parse(bytes) else {
        return;
    };
    assert!(!keys.is_empty());
    let document: Value = serde_json::from_slice(bytes).expect("a key set is JSON");
    let given = document["keys"].as_array().expect("it has keys");
    let ids: BTreeSet<&str> = given.iter().filter_map(|key| key["kid"].as_str()).collect();
    let found = ids.iter().filter(|id| keys.find(id).is_some());
    assert_eq!(found.count(), keys.len());
});
