//! `platform errors`: errors with one cause as one group, and what a developer decides about them.

use std::fmt;

use anstyle::{AnsiColor, Style};
use http::{Request, header};
use platform_protocol::names::Environment;
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::Context;
use crate::args::{ErrorsCommand, ErrorsOptions, GroupArguments};
use crate::client::{empty, json as json_body};
use crate::clock;
use crate::failure::Failure;
use crate::session::Session;
use crate::terminal::{self, Line, STRONG};

const DIM: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default().bold();
/// The number of characters of an id in lists.
const SHORT: usize = 8;
/// The number of characters of a whole id.
const WHOLE: usize = 32;
/// Groups of one request, at most.
const PAGE: usize = 100;
/// Bars of a chart, from nothing to the most.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A page of groups.
#[derive(Debug, Deserialize)]
struct Page {
    groups: Vec<Value>,
    before: Option<String>,
}

/// A group.
#[derive(Debug, Deserialize)]
struct Group {
    id: String,
    state: String,
    kind: Option<String>,
    message: String,
    place: Option<String>,
    first_at: String,
    last_at: String,
    regressed_at: Option<String>,
    count: u64,
    players: u64,
    hours: Vec<u64>,
}

/// What only the page of a group has.
#[derive(Debug, Deserialize)]
struct Detail {
    deployments: Vec<Deployment>,
    browsers: Vec<Browser>,
    frames: Vec<Frame>,
    excerpt: Option<Excerpt>,
}

#[derive(Debug, Deserialize)]
struct Deployment {
    id: String,
    count: u64,
}

#[derive(Debug, Deserialize)]
struct Browser {
    name: String,
    count: u64,
}

#[derive(Debug, Deserialize)]
struct Frame {
    call: String,
    file: String,
    line: u32,
    column: u32,
}

#[derive(Debug, Deserialize)]
struct Excerpt {
    first: u32,
    line: u32,
    lines: Vec<String>,
}

/// The groups of one environment.
#[derive(Debug)]
struct Errors {
    session: Session,
    origin: String,
    /// Their path in the project API.
    path: String,
    environment: &'static str,
    /// The game's address, for messages.
    game: String,
}

/// Lists groups, shows one, or decides about it.
pub(super) async fn run(context: &Context<'_>, options: ErrorsOptions) -> Result<(), Failure> {
    match options.command {
        None => list(context, &options).await,
        Some(ErrorsCommand::Show { group, json }) => show(context, &group, json).await,
        Some(ErrorsCommand::Resolve { group }) => decide(context, &group, "resolved").await,
        Some(ErrorsCommand::Ignore { group }) => decide(context, &group, "ignored").await,
        Some(ErrorsCommand::Delete { group }) => delete(context, &group).await,
        Some(ErrorsCommand::Reopen { group }) => decide(context, &group, "open").await,
    }
}

async fn list(context: &Context<'_>, options: &ErrorsOptions) -> Result<(), Failure> {
    let errors = Errors::of(context, options.environment.into()).await?;
    let mut filter = Vec::new();
    if let Some(state) = options.state.as_str() {
        filter.push(("state", state));
    }
    if let Some(text) = &options.search {
        filter.push(("search", text.as_str()));
    }
    let groups = errors.list(&filter, options.limit.into()).await?;
    if options.json {
        for group in &groups {
            terminal::print_json(group)?;
        }
        return Ok(());
    }
    if groups.is_empty() {
        terminal::note(format_args!("No such errors on {}.", errors.game));
    }
    let (mut lines, now) = (Vec::new(), clock::now());
    for group in groups {
        lines.extend(summary(&parsed(group)?, now));
    }
    terminal::print_all(&lines)
}

async fn show(context: &Context<'_>, group: &GroupArguments, json: bool) -> Result<(), Failure> {
    let errors = Errors::of(context, group.environment.into()).await?;
    let id = errors.whole(&group.id).await?;
    let address = format!("{}/{id}?env={}", errors.path, errors.environment);
    let value: Value = errors.session.get(&address).await?.json()?;
    if json {
        return terminal::print_json(&value);
    }
    let detail = serde_json::from_value(value.clone()).map_err(not_understood)?;
    terminal::print_all(&page(&parsed(value)?, &detail, clock::now()))
}

async fn decide(context: &Context<'_>, group: &GroupArguments, state: &str) -> Result<(), Failure> {
    let errors = Errors::of(context, group.environment.into()).await?;
    let id = errors.whole(&group.id).await?;
    let address = format!(
        "{}{}/{id}?env={}",
        errors.origin, errors.path, errors.environment
    );
    let wanted = json!({ "state": state });
    let answer = errors
        .session
        .ask(|| {
            let request = Request::put(&address).header(header::CONTENT_TYPE, "application/json");
            Ok((request, json_body(&wanted)?))
        })
        .await?;
    let group = parsed(answer.json()?)?;
    terminal::note(format_args!("{} is {} now.", title(&group), group.state));
    Ok(())
}

async fn delete(context: &Context<'_>, group: &GroupArguments) -> Result<(), Failure> {
    let errors = Errors::of(context, group.environment.into()).await?;
    let id = errors.whole(&group.id).await?;
    let address = format!(
        "{}{}/{id}?env={}",
        errors.origin, errors.path, errors.environment
    );
    errors
        .session
        .ask(|| Ok((Request::delete(&address), empty())))
        .await?;
    terminal::note("The error was removed. If it happens again, it is listed again.");
    Ok(())
}

impl Errors {
    async fn of(context: &Context<'_>, environment: Environment) -> Result<Self, Failure> {
        let settings = context.settings()?;
        let slug = settings.project()?;
        let session = context.session(&settings)?;
        session.look_whose(slug).await?;
        let games = session.http().games_origin().await;
        let game = games.game_url(slug, environment);
        Ok(Self {
            session,
            origin: settings.origin.to_string(),
            path: format!("/api/projects/{slug}/error-groups"),
            environment: environment.as_str(),
            game,
        })
    }

    /// The groups that a filter leaves, at most `limit` of them.
    async fn list(&self, filter: &[(&str, &str)], limit: usize) -> Result<Vec<Value>, Failure> {
        let mut groups: Vec<Value> = Vec::new();
        let mut before: Option<String> = None;
        while groups.len() < limit {
            let mut query = Serializer::new(String::new());
            query.append_pair("env", self.environment);
            query.append_pair("limit", &(limit - groups.len()).min(PAGE).to_string());
            query.extend_pairs(filter);
            if let Some(before) = &before {
                query.append_pair("before", before);
            }
            let address = format!("{}?{}", self.path, query.finish());
            let page: Page = self.session.get(&address).await?.json()?;
            groups.extend(page.groups);
            before = page.before;
            if before.is_none() {
                break;
            }
        }
        groups.truncate(limit);
        Ok(groups)
    }

    /// The whole id of the group whose id begins like this.
    async fn whole(&self, start: &str) -> Result<String, Failure> {
        let is_id = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if start.is_empty() || start.len() > WHOLE || !is_id(start) {
            return Err(Failure::usage(format!(
                "{} is not the id of an error: `platform errors` lists them.",
                start
            )));
        }
        let start = start.to_ascii_lowercase();
        if start.len() == WHOLE {
            return Ok(start);
        }
        let groups = self.list(&[], usize::MAX).await?;
        let ids = groups.iter().filter_map(|group| group["id"].as_str());
        let found: Vec<&str> = ids
            .filter(|id| id.starts_with(&start) && is_id(id))
            .collect();
        match found[..] {
            [id] => Ok(id.to_owned()),
            [] => Err(Failure::failed(format!(
                "No error on {} has an id that begins with {start}: `platform errors --env {} --state all` lists \
                 them.",
                self.game, self.environment
            ))),
            _ => Err(Failure::failed(format!(
                "{} errors have ids that begin with {start}: write more of it.",
                found.len()
            ))),
        }
    }
}

fn parsed(value: Value) -> Result<Group, Failure> {
    serde_json::from_value(value).map_err(not_understood)
}

fn not_understood(_: serde_json::Error) -> Failure {
    Failure::failed("The platform's response was not understood.")
}

/// Type and message.
fn title(group: &Group) -> String {
    let message = group.message.lines().next().unwrap_or_default();
    match &group.kind {
        Some(kind) if message.is_empty() => kind.clone(),
        Some(kind) => format!("{kind}: {message}"),
        None => message.to_owned(),
    }
}

/// Two lines of a list.
fn summary(group: &Group, now: i64) -> [Line; 2] {
    let id = group.id.get(..SHORT).unwrap_or(&group.id);
    let first = Line::new().styled(DIM, id).push(" ");
    let second = Line::from(format_args!("  {}", chart(&group.hours)));
    let second = facts(group, now)
        .iter()
        .fold(second, |line, fact| line.push("  ").styled(DIM, fact));
    [first.styled(STRONG, title(group)), second]
}

/// What there is to say about a group in a few words.
fn facts(group: &Group, now: i64) -> Vec<String> {
    let mut facts = vec![
        terminal::counted(group.count, "time"),
        terminal::counted(group.players, "player"),
        format!("last {}", terminal::when(&group.last_at, now)),
    ];
    if let Some(place) = &group.place {
        facts.push(place.clone());
    }
    if group.regressed_at.is_some() {
        facts.push("came back".to_owned());
    } else if group.state != "open" {
        facts.push(group.state.clone());
    }
    facts
}

/// Numbers as bars.
fn chart(numbers: &[u64]) -> String {
    let most = u128::from(numbers.iter().copied().max().unwrap_or_default().max(1));
    let steps = BARS.len() as u128 - 1;
    let bar = |number: &u64| {
        let height = (u128::from(*number) * steps).div_ceil(most).min(steps);
        usize::try_from(height).map_or(' ', |at| BARS[at])
    };
    numbers.iter().map(bar).collect()
}

/// Everything about a group.
fn page(group: &Group, detail: &Detail, now: i64) -> Vec<Line> {
    let mut lines = vec![
        Line::new().styled(STRONG, title(group)),
        Line::new().styled(DIM, &group.id),
        Line::new(),
    ];
    lines.extend(facts(group, now).iter().map(Line::from));
    let mut add = |line: fmt::Arguments<'_>| lines.push(Line::from(line));
    add(format_args!(
        "first {}",
        terminal::when(&group.first_at, now)
    ));
    add(format_args!("last 24 hours {}", chart(&group.hours)));
    for browser in &detail.browsers {
        let count = terminal::counted(browser.count, "time");
        add(format_args!("{} {count}", browser.name));
    }
    for deployment in &detail.deployments {
        let id = deployment.id.get(..SHORT).unwrap_or(&deployment.id);
        let count = terminal::counted(deployment.count, "time");
        add(format_args!("deployment {id} {count}"));
    }
    if let Some(excerpt) = &detail.excerpt {
        lines.push(Line::new());
        for (number, line) in (excerpt.first..).zip(&excerpt.lines) {
            let (style, mark) = if number == excerpt.line {
                (RED, '>')
            } else {
                (DIM, ' ')
            };
            let line = format_args!("{mark} {number:5} {line}");
            lines.push(Line::new().styled(style, line));
        }
    }
    if !detail.frames.is_empty() {
        lines.push(Line::new());
    }
    for frame in &detail.frames {
        let place = format_args!("{}:{}:{}", frame.file, frame.line, frame.column);
        lines.push(if frame.call.is_empty() {
            Line::from(format_args!("  at {place}"))
        } else {
            Line::from(format_args!("  at {} ({place})", frame.call))
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_bars_and_the_least_is_seen() {
        assert_eq!(chart(&[0, 1, 500, 1_000]), " ▁▄█");
        assert_eq!(chart(&[0, 0]), "  ");
        assert_eq!(chart(&[u64::MAX, 1]), "█▁");
    }
}
