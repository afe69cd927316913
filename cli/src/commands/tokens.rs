//! `platform tokens`: creates, lists and revokes a project's deploy tokens.

use http::{Request, header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Context;
use crate::args::TokensCommand;
use crate::client::{empty, json as json_body};
use crate::clock;
use crate::failure::Failure;
use crate::session::Session;
use crate::terminal::{self, Line};

/// The deploy tokens of a project.
#[derive(Debug, Deserialize)]
struct Tokens {
    tokens: Vec<Token>,
}

/// A deploy token, without its text.
#[derive(Debug, Deserialize)]
struct Token {
    id: String,
    name: String,
    scopes: Vec<String>,
    expires_at: String,
    #[serde(default)]
    expired: bool,
    used_on: Option<String>,
}

/// A new token.
#[derive(Debug, Deserialize)]
struct Created {
    secret: String,
    #[serde(flatten)]
    token: Token,
}

/// The tokens of one project.
struct Known {
    session: Session,
    slug: String,
    path: String,
    address: String,
}

impl Known {
    async fn look_up(context: &Context<'_>) -> Result<Self, Failure> {
        let settings = context.settings()?;
        let slug = settings.project()?.to_owned();
        let session = context.session(&settings)?;
        session.look_whose(&slug).await?;
        let path = format!("/api/projects/{slug}/tokens");
        let address = format!("{}{path}", settings.origin);
        Ok(Self {
            session,
            slug,
            path,
            address,
        })
    }
}

/// Runs a command about deploy tokens.
pub(super) async fn run(context: &Context<'_>, command: TokensCommand) -> Result<(), Failure> {
    let known = Known::look_up(context).await?;
    match command {
        TokensCommand::Create {
            name,
            scopes,
            days,
            json,
        } => {
            let scopes: Vec<&str> = scopes.into_iter().map(|scope| scope.as_str()).collect();
            let wanted = json!({ "name": name, "scopes": scopes, "days": days });
            create(&known, &wanted, json).await
        }
        TokensCommand::List { json } => list(&known, json).await,
        TokensCommand::Revoke { token } => revoke(&known, &token).await,
    }
}

/// Creates a token. Its text alone is the result, so that it can be piped into a secret store.
async fn create(known: &Known, wanted: &Value, json: bool) -> Result<(), Failure> {
    let answer = known
        .session
        .ask(|| {
            let request = Request::post(&known.address);
            let request = request.header(header::CONTENT_TYPE, "application/json");
            Ok((request, json_body(wanted)?))
        })
        .await?;
    if json {
        let value: Value = answer.json()?;
        return terminal::print_json(&value);
    }
    let Created { secret, token } = answer.json()?;
    terminal::note(format_args!(
        "Created the deploy token {} for {} ({}), valid until {}. It is shown only now.",
        token.name,
        known.slug,
        token.scopes(),
        terminal::to_the_minute(&token.expires_at)
    ));
    terminal::print(secret)
}

async fn list(known: &Known, json: bool) -> Result<(), Failure> {
    let answer = known.session.get(&known.path).await?;
    if json {
        let value: Value = answer.json()?;
        return terminal::print_json(&value);
    }
    let Tokens { tokens } = answer.json()?;
    if tokens.is_empty() {
        terminal::note(format_args!(
            "{} has no deploy tokens: create one with `platform tokens create`.",
            known.slug
        ));
        return Ok(());
    }
    terminal::print_all(&table(&tokens, clock::now()))
}

async fn revoke(known: &Known, wanted: &str) -> Result<(), Failure> {
    let Tokens { tokens } = known.session.get(&known.path).await?.json()?;
    let mut found = tokens
        .iter()
        .filter(|token| token.id == wanted || token.name == wanted);
    let token = match (found.next(), found.next()) {
        (Some(token), None) => token,
        (Some(_), Some(_)) => {
            return Err(Failure::failed(format!(
                "{} has several deploy tokens with the name {}: name its id, which `platform \
                 tokens list --json` prints.",
                known.slug, wanted
            )));
        }
        (None, _) => {
            return Err(Failure::failed(format!(
                "{} has no deploy token with the name or the id {}.",
                known.slug, wanted
            )));
        }
    };
    let address = format!("{}/{}", known.address, token.id);
    let revoked = known
        .session
        .ask(|| Ok((Request::delete(&address), empty())));
    revoked.await?;
    terminal::note(format_args!(
        "Revoked the deploy token {} of {}.",
        token.name, known.slug
    ));
    Ok(())
}

impl Token {
    fn scopes(&self) -> String {
        self.scopes.join(", ")
    }

    fn expires(&self, now: i64) -> String {
        let moment = terminal::when(&self.expires_at, now);
        if self.expired {
            format!("{moment} (expired)")
        } else {
            moment
        }
    }
}

fn table(tokens: &[Token], now: i64) -> Vec<Line> {
    let mut rows = vec![["NAME", "SCOPES", "EXPIRES", "LAST USED"].map(str::to_owned)];
    rows.extend(tokens.iter().map(|token| {
        let used = token.used_on.as_deref().unwrap_or("never");
        [
            token.name.clone(),
            token.scopes(),
            token.expires(now),
            used.to_owned(),
        ]
    }));
    terminal::table(&rows, &[])
}
