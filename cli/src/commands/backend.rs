//! `platform backend`: the address of a game's own backend, and the variables with which it
//! verifies players.

use std::net::IpAddr;

use http::{Request, header};
use platform_loopback::is_localhost;
use platform_protocol::names::Environment;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Context;
use crate::args::{BackendCommand, DEFAULT_PATH, EnvironmentName};
use crate::client::json as json_body;
use crate::failure::Failure;
use crate::session::Session;
use crate::terminal::{self, Line};

/// The backend settings of an environment.
#[derive(Debug, Deserialize)]
struct View {
    url: String,
    backend: Option<Backend>,
    variables: Variables,
    /// Whether the platform reached a backend that was just set; older platforms do not try.
    trial: Option<Trial>,
}

#[derive(Debug, Deserialize)]
struct Trial {
    reached: bool,
    sentence: String,
}

#[derive(Debug, Deserialize)]
struct Backend {
    url: String,
    paths: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Variables {
    #[serde(rename = "AUTH_ISSUER")]
    issuer: String,
    #[serde(rename = "AUTH_AUDIENCE")]
    audience: String,
    #[serde(rename = "AUTH_JWKS_URL")]
    jwks_url: String,
}

/// Sets, removes or shows the backend, or prints its variables.
pub(super) async fn run(context: &Context<'_>, command: BackendCommand) -> Result<(), Failure> {
    match command {
        BackendCommand::Set {
            url,
            paths,
            environment,
            yes,
        } => {
            has_scheme(&url, &paths, environment)?;
            let question = format!(
                "Send players' requests under {} to {url}?",
                paths.join(", ")
            );
            agree(environment, yes, "backend", &question)?;
            let wanted = json!({ "url": url, "paths": paths });
            let view = put(context, environment, &wanted).await?;
            terminal::note(format_args!("{}", sentence(&view)));
            match view.trial {
                Some(trial) if trial.reached => {
                    terminal::note(format_args!("{}", trial.sentence));
                }
                Some(trial) => terminal::warn(format_args!("{}", trial.sentence)),
                None => {}
            }
            Ok(())
        }
        BackendCommand::Remove { environment, yes } => {
            agree(
                environment,
                yes,
                "backend",
                "Stop sending the players' requests to a backend?",
            )?;
            let view = put(context, environment, &json!({ "url": null })).await?;
            terminal::note(format_args!("{}", sentence(&view)));
            Ok(())
        }
        BackendCommand::Show { environment, json } => {
            let (value, view) = get(context, environment).await?;
            if json {
                return terminal::print_json(&value["backend"]);
            }
            match view.backend {
                Some(backend) => {
                    let paths = backend.paths.join(" ");
                    terminal::print(format_args!("{} {paths}", backend.url))
                }
                None => {
                    terminal::note(format_args!("{}", sentence(&view)));
                    Ok(())
                }
            }
        }
        BackendCommand::Variables { environment, json } => {
            let (value, view) = get(context, environment).await?;
            if json {
                return terminal::print_json(&value["variables"]);
            }
            let Variables {
                issuer,
                audience,
                jwks_url,
            } = view.variables;
            terminal::print_all(&[
                Line::from(format_args!("AUTH_ISSUER={issuer}")),
                Line::from(format_args!("AUTH_AUDIENCE={audience}")),
                Line::from(format_args!("AUTH_JWKS_URL={jwks_url}")),
            ])
        }
    }
}

/// The session, and the API path of an environment.
pub(super) async fn session(
    context: &Context<'_>,
    environment: EnvironmentName,
) -> Result<(Session, String, String), Failure> {
    let settings = context.settings()?;
    let slug = settings.project()?;
    let environment = Environment::from(environment).as_str();
    let path = format!("/api/projects/{slug}/environments/{environment}");
    let origin = settings.origin.to_string();
    let session = context.session(&settings)?;
    session.look_whose(slug).await?;
    Ok((session, origin, path))
}

async fn get(
    context: &Context<'_>,
    environment: EnvironmentName,
) -> Result<(Value, View), Failure> {
    let (session, _, path) = session(context, environment).await?;
    let value: Value = session.get(&path).await?.json()?;
    let view = serde_json::from_value(value.clone())
        .map_err(|_| Failure::failed("The platform's response was not understood."))?;
    Ok((value, view))
}

async fn put(
    context: &Context<'_>,
    environment: EnvironmentName,
    wanted: &Value,
) -> Result<View, Failure> {
    let (session, origin, path) = session(context, environment).await?;
    let address = format!("{origin}{path}/backend");
    let answer = session
        .ask(|| {
            let request = Request::put(&address).header(header::CONTENT_TYPE, "application/json");
            Ok((request, json_body(wanted)?))
        })
        .await?;
    answer.json()
}

/// Asks for confirmation before production is changed, as a deploy does; `what` names the setting.
///
/// # Errors
/// The answer is no, or there is no terminal to ask on.
pub(super) fn agree(
    environment: EnvironmentName,
    yes: bool,
    what: &str,
    question: &str,
) -> Result<(), Failure> {
    if environment != EnvironmentName::Prod || yes {
        return Ok(());
    }
    if !terminal::can_ask() {
        return Err(Failure::usage(format!(
            "Changing production's {what} needs a confirmation, and this is not an interactive \
             terminal: add --yes."
        )));
    }
    if terminal::ask(format_args!("This is production. {question}")) {
        Ok(())
    } else {
        Err(Failure::failed("Nothing was changed."))
    }
}

/// Checks that an address begins with a scheme, which is left out often.
///
/// # Errors
/// There is none; the sentence shows the command with one.
fn has_scheme(url: &str, paths: &[String], environment: EnvironmentName) -> Result<(), Failure> {
    if url.contains("://") {
        return Ok(());
    }
    let host = url.split(['/', ':']).next().unwrap_or_default();
    let is_near = is_localhost(host) || host.parse::<IpAddr>().is_ok() || url.starts_with('[');
    let scheme = if is_near { "http" } else { "https" };
    let mut command = format!("platform backend set {scheme}://{url}");
    if environment == EnvironmentName::Prod {
        command.push_str(" --env prod");
    }
    if paths != [DEFAULT_PATH] {
        for path in paths {
            command.push_str(&format!(" --path {path}"));
        }
    }
    Err(Failure::usage(format!(
        "{url} has no scheme: run `{command}`."
    )))
}

/// Where requests go now.
fn sentence(view: &View) -> String {
    let game = &view.url;
    match &view.backend {
        Some(backend) => {
            let paths = backend.paths.join(", ");
            format!("Requests under {paths} of {game} go to {}.", backend.url)
        }
        None => format!("{game} has no backend."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(backend: Option<Backend>) -> View {
        View {
            url: "https://dev-rings.games.example".to_owned(),
            backend,
            variables: Variables {
                issuer: String::new(),
                audience: String::new(),
                jwks_url: String::new(),
            },
            trial: None,
        }
    }

    #[test]
    fn it_is_said_where_requests_go() {
        let backend = Backend {
            url: "https://rings.example".to_owned(),
            paths: vec!["/api/".to_owned(), "/ws".to_owned()],
        };
        assert_eq!(
            sentence(&view(Some(backend))),
            "Requests under /api/, /ws of https://dev-rings.games.example go to \
             https://rings.example."
        );
        assert_eq!(
            sentence(&view(None)),
            "https://dev-rings.games.example has no backend."
        );
    }
}
