//! The source map of a deployed script, and a stack that names places in it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use platform_domain::stack::Described;
use platform_frontend_logs::source_map::SourceMap;

fuzz_target!(|bytes: &[u8]| {
    if let Some(map) = SourceMap::parse(bytes) {
        for line in [0, 1, 2, u32::MAX] {
            for column in [0, 1, 7, u32::MAX] {
                let _ = map.find(line, column);
            }
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Described::read("Error: a message", Some(text));
    }
});
