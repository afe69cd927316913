//! A page's log records and heartbeats: what is accepted is within the limits, can be stored as text by
//! every database, and can be grouped.

#![no_main]

use libfuzzer_sys::fuzz_target;
use platform_domain::fingerprint::fingerprint;
use platform_domain::log::LogEntry;
use platform_domain::page::PageId;
use platform_domain::stack::Described;
use platform_frontend_logs::entries::{BELIEVED_MILLIS, entries_of};
use platform_frontend_logs::sanitize::{mend_text, shortened};
use platform_protocol::heartbeat::Heartbeat;
use platform_protocol::limits::{
    LOG_MESSAGE_BYTES, LOG_METADATA_BYTES, LOG_STACK_BYTES, LOG_URL_BYTES,
};
use platform_protocol::log::LogBatch;
use platform_web::json;
use serde_json::value::RawValue;

const NOW: i64 = 1_700_000_000_000;
/// The repetitions that the records of a request may count.
const REPEATS: u32 = 5_000;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(heartbeat) = json::parse::<Heartbeat>(bytes)
        && PageId::parse(&heartbeat.page).is_some()
    {
        assert_eq!(heartbeat.page.len(), 22);
    }
    let mended = mend_text(bytes);
    assert_eq!(mend_text(&mended), mended, "nothing is left to mend");
    let Ok(batch) = json::parse::<LogBatch<Box<RawValue>>>(&mended) else {
        return;
    };
    let none = batch.records.iter().any(|record| record.count == Some(0));
    let many = batch.records.len();
    let entries = entries_of(batch.records, NOW, REPEATS);
    assert_eq!(
        entries.is_err(),
        none,
        "only a record that stands for none is refused"
    );
    let Ok(entries) = entries else {
        return;
    };
    assert_eq!(entries.len(), many);
    let repeats: u32 = entries.iter().map(|entry| entry.count - 1).sum();
    assert!(repeats <= REPEATS);
    for entry in entries {
        check_entry(entry);
    }
});

fn check_entry(entry: LogEntry) {
    assert!((NOW - BELIEVED_MILLIS..=NOW).contains(&entry.time));
    for (text, most) in [
        (Some(&entry.message), LOG_MESSAGE_BYTES),
        (entry.stack.as_ref(), LOG_STACK_BYTES),
        (entry.url.as_ref(), LOG_URL_BYTES),
        (entry.metadata.as_ref(), LOG_METADATA_BYTES),
    ] {
        if let Some(text) = text {
            assert!(text.len() <= most, "{} bytes", text.len());
            assert!(!text.contains('\0'), "no database stores it");
        }
    }
    if let Some(metadata) = &entry.metadata {
        assert!(!metadata.contains(['\n', '\r']), "it is on one line");
        serde_json::from_str::<serde_json::Value>(metadata).expect("metadata is JSON");
    }
    let message = shortened(entry.message, 500);
    assert!(message.len() <= 500);
    let described = Described::read(&message, entry.stack.as_deref());
    let _ = fingerprint(described.kind, described.message, None);
}
