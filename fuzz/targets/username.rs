//! A name that a player types: what is accepted stays as it is when it is typed again, and so does its
//! unique key.

#![no_main]

use libfuzzer_sys::fuzz_target;
use platform_domain::username::{check, unique_key};
use platform_protocol::{names, preview};

fuzz_target!(|text: &str| {
    let key = unique_key(text);
    if let Ok(name) = check(text) {
        let again = check(name.as_str()).expect("an accepted name is accepted again");
        assert_eq!(again.as_str(), name.as_str());
        assert_eq!(unique_key(name.as_str()), unique_key(again.as_str()));
        assert!(!key.is_empty());
    }
    if names::check_slug(text).is_ok() {
        assert!(
            text.len() <= 63,
            "a label of a host name has at most 63 bytes"
        );
    }
    if let Some(name) = preview::name_of(text, "demo") {
        assert!(preview::check_name(&name, "demo").is_ok());
    }
});
