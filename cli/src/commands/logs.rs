//! `platform logs`: the log records of players' pages, past and new ones.

mod follow;
mod record;
mod sources;

use std::collections::{HashSet, VecDeque};

use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use super::Context;
use crate::args::{Level, LogsOptions};
use crate::failure::Failure;
use crate::session::Session;
use crate::terminal;

/// How many ids are remembered, so that no record is printed twice.
const REMEMBERED: usize = 10_000;

/// A page of records, newest first.
#[derive(Debug, Deserialize)]
struct Page {
    records: Vec<Value>,
}

/// The records of one environment.
#[derive(Debug)]
struct Source {
    session: Session,
    /// The project's address in the project API.
    address: String,
    /// The game's address, for messages.
    game: String,
    environment: &'static str,
    level: Level,
}

/// Prints records, each once.
#[derive(Debug)]
struct Printer {
    json: bool,
    known: HashSet<String>,
    order: VecDeque<String>,
    sources: sources::Sources,
}

/// Prints the newest records, oldest first, and then the new ones.
pub(super) async fn run(context: &Context<'_>, options: &LogsOptions) -> Result<(), Failure> {
    let settings = context.settings()?;
    let environment: platform_protocol::names::Environment = options.environment.into();
    let slug = settings.project()?;
    let session = context.session(&settings)?;
    session.look_whose(slug).await?;
    let games = session.http().games_origin().await;
    let game = games.game_url(slug, environment);
    let source = Source {
        address: format!("/api/projects/{slug}/logs"),
        game,
        session,
        environment: environment.as_str(),
        level: options.level,
    };
    let mut printer = Printer {
        json: options.json,
        known: HashSet::new(),
        order: VecDeque::new(),
        sources: sources::Sources::default(),
    };
    if !options.follow {
        return print(&source, &mut printer, options).await;
    }
    // An interruption is the normal end, not a failure.
    tokio::select! {
        ended = print(&source, &mut printer, options) => ended,
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(|error| {
            Failure::failed(format!("Ctrl-C cannot be handled: {error}."))
        }),
    }
}

/// Prints the requested records.
async fn print(
    source: &Source,
    printer: &mut Printer,
    options: &LogsOptions,
) -> Result<(), Failure> {
    let records = source.newest(options.limit.into()).await?;
    if records.is_empty() && !options.follow {
        let nothing = match options.level {
            Level::Debug => "Nothing was logged",
            _ => "Nothing of this level or a more severe one was logged",
        };
        terminal::note(format_args!("{nothing} on {} yet.", source.game));
    }
    printer.print_page(source, &records).await?;
    if options.follow {
        follow::run(source, printer).await?;
    }
    Ok(())
}

impl Source {
    /// The newest records, newest first.
    async fn newest(&self, limit: usize) -> Result<Vec<Value>, Failure> {
        let mut records: Vec<Value> = Vec::new();
        while records.len() < limit {
            let page = self.page(records.last(), limit - records.len()).await?;
            if page.is_empty() {
                break;
            }
            records.extend(page);
            // Without an id the records before it cannot be requested.
            if records.last().is_none_or(|last| id_of(last).is_none()) {
                break;
            }
        }
        records.truncate(limit);
        Ok(records)
    }

    /// A page of records before `before`, newest first.
    async fn page(&self, before: Option<&Value>, limit: usize) -> Result<Vec<Value>, Failure> {
        let mut query = Serializer::new(String::new());
        query
            .append_pair("env", self.environment)
            .append_pair("level", self.level.as_str())
            .append_pair("limit", &limit.min(PAGE_RECORDS).to_string());
        if let Some(id) = before.and_then(id_of) {
            query.append_pair("before", &id);
        }
        let path = format!("{}?{}", self.address, query.finish());
        let page: Page = self.session.get(&path).await?.json()?;
        Ok(page.records)
    }
}

/// Records of one request, at most.
const PAGE_RECORDS: usize = 100;

impl Printer {
    /// Prints the records of a page that were not printed yet, oldest first.
    async fn print_page(&mut self, source: &Source, newest_first: &[Value]) -> Result<(), Failure> {
        for record in newest_first.iter().rev() {
            self.print(source, record).await?;
        }
        Ok(())
    }

    /// Prints a record unless it was printed already. For people, places are shown as in the game's
    /// sources.
    async fn print(&mut self, source: &Source, record: &Value) -> Result<(), Failure> {
        if let Some(id) = id_of(record) {
            if !self.known.insert(id.clone()) {
                return Ok(());
            }
            self.order.push_back(id);
            if self.order.len() > REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
        if self.json {
            terminal::print_json(record)
        } else {
            let mapped = self.sources.mapped(source, record).await;
            terminal::print_all(&record::lines(&mapped))
        }
    }

    /// Whether a record was already printed.
    fn knows(&self, record: &Value) -> bool {
        id_of(record).is_some_and(|id| self.known.contains(&id))
    }

    /// The last id, from which to continue.
    fn last_id(&self) -> Option<&str> {
        self.order.back().map(String::as_str)
    }
}

/// A record's id as text.
fn id_of(record: &Value) -> Option<String> {
    match record.get("id")? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}
