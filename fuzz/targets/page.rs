//! The check of a game's page and of its files' paths.

#![no_main]

use libfuzzer_sys::fuzz_target;
use platform_checks::{maps, page, path, private, sources};

fuzz_target!(|text: &str| {
    let _ = page::warnings(text);
    let _ = page::module_scripts(text);
    let _ = sources::unbuilt_script(text);
    let _ = maps::lacks_map(text.as_bytes());
    let _ = private::judge(text);
    if let Ok(normal) = path::normalise(text) {
        assert_eq!(
            path::normalise(normal),
            Ok(normal),
            "normal paths stay as they are"
        );
        assert!(!normal.split('/').any(|part| part == ".."));
    }
});
