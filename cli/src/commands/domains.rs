//! `platform domains`: the domains of an environment's own, and the DNS records that they need.

use std::fmt::Write as _;

use http::{Request, header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Context;
use super::backend::{agree, session};
use crate::args::{DomainsCommand, EnvironmentName};
use crate::client::{empty, json as json_body};
use crate::failure::Failure;
use crate::session::Session;
use crate::terminal::{self, Line};

/// A domain.
#[derive(Debug, Deserialize)]
struct Domain {
    domain: String,
    url: String,
    state: String,
    detail: Option<String>,
    canonical: bool,
    record: Record,
    target: String,
}

/// The record that proves a domain.
#[derive(Debug, Deserialize)]
struct Record {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    value: String,
}

/// The domains of an environment.
#[derive(Debug, Deserialize)]
struct Domains {
    domains: Vec<Domain>,
}

/// Runs a command about domains.
pub(super) async fn run(context: &Context<'_>, command: DomainsCommand) -> Result<(), Failure> {
    match command {
        DomainsCommand::Add {
            domain,
            environment,
            json,
        } => add(context, &domain, environment, json).await,
        DomainsCommand::List { environment, json } => list(context, environment, json).await,
        DomainsCommand::Verify {
            domain,
            environment,
            json,
        } => verify(context, &domain, environment, json).await,
        DomainsCommand::Canonical {
            domain,
            off,
            environment,
            yes,
            json,
        } => {
            let what = if off {
                format!("Let the game's other addresses redirect to {domain} no longer?")
            } else {
                format!("Let the game's other addresses redirect to {domain}?")
            };
            agree(environment, yes, "canonical address", &what)?;
            canonical(context, &domain, !off, (environment, json)).await
        }
        DomainsCommand::Remove {
            domain,
            environment,
            yes,
        } => {
            let what = format!("Remove {domain}, so that the game no longer answers there?");
            agree(environment, yes, "domains", &what)?;
            remove(context, &domain, environment).await
        }
    }
}

/// An environment's domains in the project API.
struct Place {
    session: Session,
    /// The address of all of them.
    address: String,
    /// Its path.
    path: String,
}

impl Place {
    async fn of(context: &Context<'_>, environment: EnvironmentName) -> Result<Self, Failure> {
        let (session, origin, path) = session(context, environment).await?;
        let path = format!("{path}/domains");
        Ok(Self {
            session,
            address: format!("{origin}{path}"),
            path,
        })
    }

    /// The address of one domain.
    ///
    /// # Errors
    /// What was typed is no name, and would be another path.
    fn one(&self, domain: &str) -> Result<String, Failure> {
        let plain = |char: char| char.is_alphanumeric() || matches!(char, '.' | '-');
        if domain.is_empty() || domain.starts_with('.') || !domain.chars().all(plain) {
            return Err(Failure::usage(
                "Write the name of the domain alone, such as play.my-game.example.",
            ));
        }
        let mut address = url::Url::parse(&self.address)
            .map_err(|_| Failure::failed("The platform's address was not understood."))?;
        if let Ok(mut segments) = address.path_segments_mut() {
            segments.push(domain);
        }
        Ok(address.into())
    }
}

async fn add(
    context: &Context<'_>,
    domain: &str,
    environment: EnvironmentName,
    json: bool,
) -> Result<(), Failure> {
    let place = Place::of(context, environment).await?;
    let wanted = json!({ "domain": domain });
    let answer = place
        .session
        .ask(|| {
            let request = Request::post(&place.address);
            let request = request.header(header::CONTENT_TYPE, "application/json");
            Ok((request, json_body(&wanted)?))
        })
        .await?;
    let value: Value = answer.json()?;
    let added = read(&value)?;
    if json {
        terminal::print_json(&value)?;
    } else {
        terminal::print_all(&records(&added))?;
    }
    terminal::note(format_args!(
        "{} is claimed for a week. Create both records, wait until they are seen, then run: \
         platform domains verify {}{}",
        added.domain,
        added.domain,
        option(environment)
    ));
    Ok(())
}

async fn list(
    context: &Context<'_>,
    environment: EnvironmentName,
    json: bool,
) -> Result<(), Failure> {
    let place = Place::of(context, environment).await?;
    let answer = place.session.get(&place.path).await?;
    if json {
        let mut value: Value = answer.json()?;
        let list = json!({ "domains": value["domains"].take() });
        return terminal::print_json(&list);
    }
    let Domains { domains } = answer.json()?;
    if domains.is_empty() {
        terminal::note("There are no domains: add one with `platform domains add`.");
        return Ok(());
    }
    let mut lines = Vec::new();
    for domain in &domains {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        lines.push(Line::from(sentence(domain)));
        lines.extend(records(domain));
    }
    terminal::print_all(&lines)
}

async fn verify(
    context: &Context<'_>,
    domain: &str,
    environment: EnvironmentName,
    json: bool,
) -> Result<(), Failure> {
    let place = Place::of(context, environment).await?;
    let address = format!("{}/verify", place.one(domain)?);
    let answer = place.session.ask(|| Ok((Request::post(&address), empty())));
    let value: Value = answer.await?.json()?;
    let verified = read(&value)?;
    if json {
        terminal::print_json(&value)?;
    }
    if verified.state == "active" {
        terminal::note(format_args!("{}", sentence(&verified)));
        return Ok(());
    }
    let failed = Failure::failed(sentence(&verified));
    Err(if json {
        failed.said_by_results()
    } else {
        failed
    })
}

async fn canonical(
    context: &Context<'_>,
    domain: &str,
    canonical: bool,
    (environment, json): (EnvironmentName, bool),
) -> Result<(), Failure> {
    let place = Place::of(context, environment).await?;
    let address = place.one(domain)?;
    let wanted = json!({ "canonical": canonical });
    let answer = place.session.ask(|| {
        let request = Request::put(&address).header(header::CONTENT_TYPE, "application/json");
        Ok((request, json_body(&wanted)?))
    });
    let value: Value = answer.await?.json()?;
    let set = read(&value)?;
    if json {
        terminal::print_json(&value)?;
    }
    terminal::note(format_args!("{}", sentence(&set)));
    Ok(())
}

async fn remove(
    context: &Context<'_>,
    domain: &str,
    environment: EnvironmentName,
) -> Result<(), Failure> {
    let place = Place::of(context, environment).await?;
    let address = place.one(domain)?;
    let removing = place
        .session
        .ask(|| Ok((Request::delete(&address), empty())));
    removing.await?;
    terminal::note(format_args!(
        "Removed {}. Remove its DNS records as well.",
        domain
    ));
    Ok(())
}

fn read(value: &Value) -> Result<Domain, Failure> {
    serde_json::from_value(value.clone())
        .map_err(|_| Failure::failed("The platform's response was not understood."))
}

/// The option of the environment, for a command to copy.
const fn option(environment: EnvironmentName) -> &'static str {
    match environment {
        EnvironmentName::Dev => "",
        EnvironmentName::Prod => " --env prod",
    }
}

/// The state of a domain.
fn sentence(domain: &Domain) -> String {
    let name = &domain.domain;
    let mut told = match &*domain.state {
        "active" => format!("{name} is active: the game answers at {}.", domain.url),
        "failing" => format!("{name} is failing: it is taken off after 72 hours."),
        state => format!("{name} is {}.", state),
    };
    if domain.canonical {
        told.push_str(" It is the canonical address.");
    }
    if let Some(detail) = &domain.detail {
        // Writing to a string cannot fail.
        let _ = write!(told, " {}", detail);
    }
    told
}

/// The records of a domain, as lines of a table.
fn records(domain: &Domain) -> Vec<Line> {
    let Record { name, kind, value } = &domain.record;
    let row = |name: &str, kind: &str, value: &str| {
        [format!("  {name}"), format!("{kind:5}"), value.to_owned()]
    };
    let rows = [
        row(name, kind, value),
        row(&domain.domain, "CNAME", &domain.target),
    ];
    terminal::table(&rows, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_told_with_its_state_and_its_records() {
        let mut domain = Domain {
            domain: "play.example".to_owned(),
            url: "https://play.example".to_owned(),
            state: "pending".to_owned(),
            detail: Some("There is no TXT record.".to_owned()),
            canonical: false,
            record: Record {
                name: "_platform.play.example".to_owned(),
                kind: "TXT".to_owned(),
                value: "platform-verify=00".to_owned(),
            },
            target: "rings.games.example".to_owned(),
        };
        assert_eq!(
            sentence(&domain),
            "play.example is pending. There is no TXT record."
        );
        assert_eq!(
            terminal::shown(&records(&domain)),
            "  _platform.play.example  TXT    platform-verify=00\n  \
             play.example            CNAME  rings.games.example\n"
        );
        domain.state = "active".to_owned();
        domain.detail = None;
        domain.canonical = true;
        assert_eq!(
            sentence(&domain),
            "play.example is active: the game answers at https://play.example. It is the canonical \
             address."
        );
    }
}
