//! What the runtime in a page sent on its own: log records and heartbeats.

use platform_protocol::heartbeat::Heartbeat;
use platform_protocol::limits::{
    LOG_MESSAGE_BYTES, LOG_RECORDS, LOG_REQUEST_BYTES, LOG_STACK_BYTES, LOG_URL_BYTES,
};
use platform_protocol::log::{LogBatch, LogRecord};
use platform_protocol::paths;
use reqwest::Method;
use serde_json::Value;

use crate::browser::Stage;
use crate::gateway::Exchange;
use crate::poll;
use crate::world::World;

/// A log record.
pub type Record = LogRecord<Value>;

/// Every member that a record may have.
const MEMBERS: [&str; 10] = [
    "time", "level", "source", "message", "stack", "url", "line", "column", "metadata", "count",
];

/// One request with log records.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The page's id.
    pub page: String,
    /// Its records.
    pub records: Vec<Record>,
    /// The token of the request.
    pub token: Option<String>,
}

/// A heartbeat.
#[derive(Clone, Debug)]
pub struct Beat {
    /// The page's id.
    pub page: String,
    /// Whether it is the final heartbeat of the page.
    pub leaving: bool,
    /// The token of the request.
    pub token: Option<String>,
    /// The unmodified body.
    pub body: String,
}

impl World {
    /// Returns every log request so far.
    ///
    /// # Panics
    /// Panics if one does not have the shape, size or headers that the server accepts.
    #[must_use]
    pub fn batches(&self) -> Vec<Batch> {
        let requests = self.gateway.seen(&Method::POST, paths::LOGS);
        requests.iter().map(batch).collect()
    }

    /// Returns every record so far that the game or the browser caused, in the order of arrival.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        let batches = self.batches().into_iter();
        batches
            .flat_map(|batch| batch.records)
            .filter(|record| !record.message.starts_with("settled "))
            .collect()
    }

    /// Waits until a record arrives whose message contains `part`.
    pub async fn record(&self, part: &str) -> Record {
        poll::until(&format!("a record of {part:?}"), async || {
            let records = self.records();
            records.into_iter().find(|one| one.message.contains(part))
        })
        .await
    }

    /// Lets the page of [`clock`](crate::world::PageBuilder::clock) send its waiting records, and
    /// returns all records so far.
    pub async fn flushed(&self, stage: &Stage) -> Vec<Record> {
        let marker = format!("flushed {}", self.gateway.count());
        stage
            .run(&format!(
                "platform.reportError('{marker}'); await pass(6); await (await fetch('/?flushed')).text()"
            ))
            .await;
        self.record(&marker).await;
        let mut records = self.records();
        records.retain(|record| !record.message.starts_with("flushed "));
        records
    }

    /// Returns every heartbeat so far.
    ///
    /// # Panics
    /// Panics if the server would not accept one.
    #[must_use]
    pub fn beats(&self) -> Vec<Beat> {
        let requests = self.gateway.seen(&Method::POST, paths::HEARTBEAT);
        requests.iter().map(beat).collect()
    }

    /// Waits until `count` heartbeats have arrived, and returns all so far.
    pub async fn beats_reach(&self, count: usize) -> Vec<Beat> {
        poll::until(&format!("{count} heartbeats"), async || {
            let beats = self.beats();
            (beats.len() >= count).then_some(beats)
        })
        .await
    }
}

fn batch(request: &Exchange) -> Batch {
    let refused = request
        .status
        .is_some_and(|status| [400, 413, 415].contains(&status.as_u16()));
    assert!(
        !refused,
        "the server refused {}",
        String::from_utf8_lossy(&request.body)
    );
    assert!(
        request.body.len() <= LOG_REQUEST_BYTES,
        "{} bytes",
        request.body.len()
    );
    let value: Value = serde_json::from_slice(&request.body).expect("a batch is JSON");
    for record in value["records"].as_array().expect("a list of records") {
        for member in record.as_object().expect("a record is an object").keys() {
            assert!(MEMBERS.contains(&member.as_str()), "{member} in {record}");
        }
    }
    let batch: LogBatch<Value> = serde_json::from_value(value).expect("a batch of records");
    assert!(
        (1..=LOG_RECORDS).contains(&batch.records.len()),
        "{}",
        batch.records.len()
    );
    for record in &batch.records {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        assert!(record.message.len() <= LOG_MESSAGE_BYTES, "{record:?}");
        assert!(length(&record.stack) <= LOG_STACK_BYTES, "{record:?}");
        assert!(length(&record.url) <= LOG_URL_BYTES, "{record:?}");
        assert!(record.count.is_none_or(|count| count > 1), "{record:?}");
    }
    demand_page(&batch.page);
    Batch {
        page: batch.page,
        records: batch.records,
        token: token(request),
    }
}

fn beat(request: &Exchange) -> Beat {
    assert!(
        request.status.is_none_or(|status| status == 204),
        "{request:?}"
    );
    let body = String::from_utf8(request.body.to_vec()).expect("a heartbeat is text");
    let heartbeat: Heartbeat = serde_json::from_str(&body).expect("a heartbeat");
    demand_page(&heartbeat.page);
    Beat {
        page: heartbeat.page,
        leaving: heartbeat.leaving == Some(true),
        token: token(request),
        body,
    }
}

/// A page's id is 128 bits in base64url without padding (RFC 4648, section 5).
fn demand_page(page: &str) {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    assert!(page.len() == 22 && page.bytes().all(letter), "{page:?}");
}

/// Returns the bearer token of a request, whose body must be declared as JSON.
fn token(request: &Exchange) -> Option<String> {
    assert_eq!(request.headers["content-type"], "application/json");
    let value = request.headers.get("authorization")?;
    let value = value.to_str().expect("a header is text");
    Some(
        value
            .strip_prefix("Bearer ")
            .expect("a bearer token")
            .to_owned(),
    )
}
