//! A page's log records and heartbeats: what is accepted can be stored as text by every database, and
//! grouped.

#![no_main]

use libfuzzer_sys::fuzz_target;
use platform_protocol::heartbeat::Heartbeat;
use platform_protocol::log::LogBatch;
use platform_server::domain::fingerprint::fingerprint;
use platform_server::domain::page::PageId;
use platform_server::domain::stack::Described;
use platform_server::logs::sanitize::{mend_text, shortened, sound_metadata};
use platform_server::web::json;
use serde_json::value::RawValue;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(heartbeat) = json::parse::<Heartbeat>(bytes) {
        let _ = PageId::parse(&heartbeat.page);
    }
    let mended = mend_text(bytes);
    let Ok(batch) = json::parse::<LogBatch<Box<RawValue>>>(&mended) else {
        return;
    };
    for record in batch.records {
        assert!(!record.message.contains('\0'));
        let message = shortened(record.message, 500);
        assert!(message.len() <= 503);
        let described = Described::read(&message, record.stack.as_deref());
        let _ = fingerprint(described.kind, described.message, None);
        if let Some(metadata) = record.metadata {
            let sound = sound_metadata(metadata.get());
            serde_json::from_str::<serde_json::Value>(&sound).expect("metadata is JSON");
        }
    }
});
