//! Follows new records: through the platform's stream of server-sent events or, if it has none, by
//! polling.

use std::time::Duration;

use eventsource_stream::Eventsource as _;
use futures_util::{StreamExt as _, pin_mut};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::Incoming;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use super::{PAGE_RECORDS, Printer, Source, id_of};
use crate::args::Level;
use crate::client::answer::is_of_type;
use crate::client::empty;
use crate::clock::pause;
use crate::failure::{Exit, Failure};
use crate::secret::Secret;
use crate::session::signed;
use crate::terminal;

/// Between two polls, and before a stream is opened again.
const INTERVAL: Duration = Duration::from_secs(2);
/// A stream without any event or keep-alive for this long counts as broken.
const SILENCE: Duration = Duration::from_secs(90);
/// How many failures in a row are tolerated.
const LOST_ANSWERS: u32 = 15;
/// How many pages are requested to catch up.
const PAGES: usize = 20;
/// The statuses of a server without a stream.
const NO_STREAM: [StatusCode; 3] = [
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::NOT_IMPLEMENTED,
];

/// Where to begin if there was no record yet: before the first.
const FROM_THE_START: &str = "0";

/// How a stream ended.
enum Stream {
    /// The server has no stream.
    Absent,
    /// The stream ended.
    Ended,
    /// The token expired; the stream continues at once with a new one.
    TokenOver(Secret),
}

/// Gets a new token in place of an expired one.
async fn renew(source: &Source, token: &Secret) -> Result<(), Failure> {
    let session = &source.session;
    if session.is_given() {
        let sentence = "The token in PLATFORM_TOKEN is no longer valid: set a new one.";
        return Err(Failure::not_signed_in(session.http().origin(), sentence));
    }
    session.another_than(token).await.map(drop)
}

/// Prints new records until it cannot continue.
pub(super) async fn run(source: &Source, printer: &mut Printer) -> Result<(), Failure> {
    let mut lost = Lost::default();
    loop {
        match listen(source, printer, &mut lost).await {
            Ok(Stream::Absent) => return poll(source, printer, lost).await,
            Ok(Stream::TokenOver(token)) => match renew(source, &token).await {
                Ok(()) => continue,
                Err(failure) => lost.one_more(failure)?,
            },
            Ok(Stream::Ended) => {}
            Err(failure) => lost.one_more(failure)?,
        }
        pause(INTERVAL).await;
    }
}

/// Failures in a row, and whether it ever worked.
#[derive(Debug, Default)]
struct Lost {
    count: u32,
    worked: bool,
}

impl Lost {
    /// It works, for the first time or again, and the user is told.
    fn found(&mut self, source: &Source) {
        if !self.worked {
            terminal::note(format_args!(
                "Following the logs of {}. Press Ctrl-C to stop.",
                source.game
            ));
        } else if self.count > 0 {
            terminal::note("Connected again.");
        }
        *self = Self {
            count: 0,
            worked: true,
        };
    }

    /// Ignores a failure, unless there were too many or it is permanent.
    fn one_more(&mut self, failure: Failure) -> Result<(), Failure> {
        let Failure::Told(told) = &failure else {
            return Err(failure);
        };
        self.count += 1;
        let status = told
            .problem
            .as_ref()
            .and_then(|problem| problem.get("status"));
        let status = status.and_then(Value::as_u64);
        let is_refusal = status.is_some_and(|code| code < 500 && code != 429);
        if told.exit != Exit::Failed || is_refusal || self.count > LOST_ANSWERS {
            return Err(failure);
        }
        if self.count == 1 {
            terminal::warn(format_args!("{told} Waiting for the platform …"));
        }
        Ok(())
    }
}

/// Polls repeatedly.
async fn poll(source: &Source, printer: &mut Printer, mut lost: Lost) -> Result<(), Failure> {
    loop {
        pause(INTERVAL).await;
        match catch_up(source, printer).await {
            Ok(()) => lost.found(source),
            Err(failure) => lost.one_more(failure)?,
        }
    }
}

/// Prints the records since the last poll, page by page back to known ones.
async fn catch_up(source: &Source, printer: &mut Printer) -> Result<(), Failure> {
    let mut pages: Vec<Vec<Value>> = Vec::new();
    while pages.len() < PAGES {
        let before = pages.last().and_then(|page| page.last());
        let page = source.page(before, PAGE_RECORDS).await?;
        // A page may hold fewer records than requested without being the last.
        let leads_on = page.last().is_some_and(|last| id_of(last).is_some());
        let meets = page.iter().any(|record| printer.knows(record));
        pages.push(page);
        // A user who has seen no record yet wants only new ones.
        if !leads_on || meets || printer.last_id().is_none() {
            break;
        }
    }
    for page in pages.iter().rev() {
        printer.print_page(source, page).await?;
    }
    Ok(())
}

/// Prints the events of the stream, starting after the last record.
async fn listen(
    source: &Source,
    printer: &mut Printer,
    lost: &mut Lost,
) -> Result<Stream, Failure> {
    // Records may have arrived since the first page was found empty.
    let last = printer.last_id().unwrap_or(FROM_THE_START);
    let (response, token) = open(source, last).await?;
    if NO_STREAM.contains(&response.status()) {
        return Ok(Stream::Absent);
    }
    let http = source.session.http();
    if !response.status().is_success() {
        let answer = http.read(response).await?;
        return match source.session.done(answer) {
            Ok(_) => Ok(Stream::Absent),
            Err(failure) => Err(failure),
        };
    }
    if !is_of_type(response.headers(), "text/event-stream") {
        return Ok(Stream::Absent);
    }
    lost.found(source);
    let events = response.into_body().into_data_stream().eventsource();
    pin_mut!(events);
    // After a silent or broken stream, the next request continues.
    while let Ok(Some(Ok(event))) = tokio::time::timeout(SILENCE, events.next()).await {
        let Ok(data) = serde_json::from_str::<Value>(&event.data) else {
            continue;
        };
        match event.event.as_str() {
            "message" if data.is_object() && is_as_grave(&data, source.level) => {
                printer.print(source, &data).await?;
            }
            "dropped" => note_dropped(&data),
            "end" if data.get("reason") == Some(&Value::from("token-expired")) => {
                return Ok(Stream::TokenOver(token));
            }
            // Events that a later platform may add.
            _ => {}
        }
    }
    Ok(Stream::Ended)
}

/// Reports that records were left out because this program was too slow.
fn note_dropped(data: &Value) {
    let count = data.get("records").and_then(Value::as_u64);
    terminal::warn(format_args!(
        "{} arrived too fast to be printed and were left out; `platform logs` shows them.",
        terminal::counted(count.unwrap_or_default(), "record")
    ));
}

/// Opens the stream. Repeats it once with a new token if the first is refused.
async fn open(source: &Source, last_id: &str) -> Result<(Response<Incoming>, Secret), Failure> {
    let session = &source.session;
    let mut query = Serializer::new(String::new());
    query
        .append_pair("env", source.environment)
        .append_pair("level", source.level.as_str());
    let origin = session.http().origin();
    let address = format!("{origin}{}/stream?{}", source.address, query.finish());
    let request = |token| {
        let request = Request::get(&address)
            .header(header::ACCEPT, "text/event-stream")
            .header("Last-Event-ID", last_id);
        signed((request, empty()), token)
    };
    let token = session.token().await?;
    let response = session.http().open(request(&token)?).await?;
    if response.status() != StatusCode::UNAUTHORIZED || session.is_given() {
        return Ok((response, token));
    }
    let token = session.another_than(&token).await?;
    let response = session.http().open(request(&token)?).await?;
    Ok((response, token))
}

/// Whether a record is as severe as requested, in case the stream does not filter.
fn is_as_grave(record: &Value, level: Level) -> bool {
    let found = record.get("level").and_then(Value::as_str);
    let found = found.and_then(|name| {
        let levels = [Level::Debug, Level::Info, Level::Warn, Level::Error];
        levels.into_iter().find(|level| level.as_str() == name)
    });
    found.is_none_or(|found| found >= level)
}
