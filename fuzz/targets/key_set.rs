//! A key set that a verifier fetches (RFC 7517): what is accepted has keys, and each can be found.

#![no_main]

use libfuzzer_sys::fuzz_target;
use platform_verifier::KeySet;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(keys) = KeySet::parse(bytes) {
        assert!(!keys.is_empty());
    }
});
