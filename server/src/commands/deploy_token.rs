//! `platform-server project token …`: deploy tokens that the operator makes, for a platform without accounts
//! and for projects that belong to the platform.

use std::fmt::Write as _;

use clap::Subcommand;
use platform_protocol::deploy_token::{DEFAULT_DAYS, MAX_DAYS, NAME_CHARS, PER_PROJECT, Scope};
use platform_server::clock::Millis;
use platform_server::domain::audit::Actor;
use platform_server::domain::date::Date;
use platform_server::domain::deploy_token::{
    AddedDeployToken, DeploySecret, DeployToken, NewDeployToken, OPERATOR, expiry, parse_name,
};
use platform_server::domain::errors::chain;
use platform_server::entropy::Entropy;
use platform_server::origin::PlatformOrigin;
use platform_server::store::{Store, StoreError};

use crate::Failure;

/// What a token of the operator allows, unless it is created for something else: deploying to both environments.
pub(crate) const SCOPES: [Scope; 2] = [Scope::DeployDev, Scope::DeployProd];

#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a deploy token, and print it for the only time
    Create {
        /// The project
        slug: String,
        /// What it is for: a name that no other valid token of the project has
        #[arg(value_parser = name)]
        name: String,
        /// For how many days it is valid
        #[arg(long, default_value_t = DEFAULT_DAYS, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_DAYS)))]
        days: u16,
        /// What it allows, once for each: deploy-dev, deploy-prod or logs. Both kinds of deploys, if it is left out
        #[arg(long, value_name = "scope", value_parser = scope)]
        scope: Vec<Scope>,
    },
    /// List a project's deploy tokens, also those of its owner
    List {
        /// The project
        slug: String,
    },
    /// Revoke a deploy token: the next request with it is refused
    Revoke {
        /// The project
        slug: String,
        /// The token's name
        name: String,
    },
}

fn scope(text: &str) -> Result<Scope, String> {
    Scope::from_name(text).ok_or_else(|| {
        let known = Scope::ALL.map(Scope::as_str).join(", ");
        format!("it is none of {known}")
    })
}

fn name(text: &str) -> Result<String, String> {
    parse_name(text).map(str::to_owned).ok_or_else(|| {
        format!("a name must be one line of at most {NAME_CHARS} visible characters")
    })
}

/// What a new token is made from.
pub(crate) struct Making<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) entropy: &'a dyn Entropy,
    pub(crate) origin: &'a PlatformOrigin,
    pub(crate) now: Millis,
}

impl TokenCommand {
    /// Runs the command and returns its output.
    pub(crate) async fn run(self, making: &Making<'_>) -> Result<String, Failure> {
        let (store, now) = (making.store, making.now);
        match self {
            Self::Create {
                slug,
                name,
                days,
                mut scope,
            } => {
                scope.sort_unstable();
                scope.dedup();
                let scopes = if scope.is_empty() {
                    SCOPES.into()
                } else {
                    scope
                };
                create(making, &slug, (&name, scopes), days).await
            }
            Self::List { slug } => {
                let mut text = String::new();
                for token in tokens(store, &slug).await? {
                    let (name, ends) = (&token.name, Date::of(token.expires_at).words);
                    let state = if token.is_valid(now) {
                        "valid until"
                    } else {
                        "expired on"
                    };
                    let scopes = token.scopes.iter().map(|scope| scope.as_str());
                    let scopes: Vec<&str> = scopes.collect();
                    let _ = writeln!(text, "{name}  {}, {state} {ends}", scopes.join(", "));
                }
                Ok(text)
            }
            Self::Revoke { slug, name } => {
                let tokens = tokens(store, &slug).await?;
                let named = tokens.iter().filter(|token| token.name == name);
                // Of several, the others have expired.
                let token = named.max_by_key(|token| token.expires_at);
                let missing = || {
                    let name = name.escape_default();
                    format!("{slug} has no deploy token {name}, or it was revoked before")
                };
                let id = token.ok_or_else(missing)?.id;
                let revoked = store.revoke_deploy_token(&slug, id, Actor::Operator.into(), now);
                let revoked = revoked.await.map_err(|error| chain(&error))?;
                revoked.ok_or_else(missing)?;
                Ok(format!("the deploy token “{name}” of {slug} is revoked\n"))
            }
        }
    }
}

/// Returns the tokens of an existing project.
async fn tokens(store: &dyn Store, slug: &str) -> Result<Vec<DeployToken>, Failure> {
    let failed = |error: StoreError| chain(&error);
    if store.find_project(slug).await.map_err(failed)?.is_none() {
        return Err(no_project(slug));
    }
    store.list_deploy_tokens(slug).await.map_err(failed)
}

/// Says that there is no such project, and how to find the right one.
pub(crate) fn no_project(slug: &str) -> Failure {
    format!(
        "there is no project {}; `project list` shows all projects",
        slug.escape_default()
    )
}

/// Creates a token, and returns it with the command that uses it.
pub(crate) async fn create(
    making: &Making<'_>,
    slug: &str,
    (name, scopes): (&str, Vec<Scope>),
    days: u16,
) -> Result<String, Failure> {
    let (store, now) = (making.store, making.now);
    let secret = DeploySecret::generate(making.entropy.uuid_v7(now), making.entropy);
    let expires_at = expiry(now, days).ok_or("a deploy token lives for 1 to 365 days")?;
    let token = DeployToken {
        id: secret.id(),
        name: name.to_owned(),
        scopes,
        created_by: OPERATOR,
        created_at: now,
        expires_at,
        used_at: None,
        revoked_at: None,
    };
    let new = NewDeployToken {
        token,
        hash: secret.hash(),
        most: PER_PROJECT,
    };
    match store
        .add_deploy_token(slug, new, Actor::Operator.into())
        .await
    {
        Ok(AddedDeployToken::Done) => {}
        Ok(AddedDeployToken::NameTaken) => {
            return Err(format!(
                "{slug} already has a deploy token “{name}”; choose another name, or revoke it first"
            ));
        }
        Ok(AddedDeployToken::TooMany) => {
            return Err(format!(
                "{slug} has {PER_PROJECT} valid deploy tokens, as many as a project may have; revoke one first"
            ));
        }
        Err(StoreError::Missing { .. }) => return Err(no_project(slug)),
        Err(error) => return Err(chain(&error)),
    }
    let (until, secret) = (Date::of(expires_at).words, secret.expose());
    let origin = making.origin;
    Ok(format!(
        "the deploy token “{name}” of {slug} is valid until {until}, and shown only now. Next, deploy a built game with it:\n\
         PLATFORM_TOKEN={secret} platform deploy <folder> --project {slug} --origin {origin} --env prod --yes\n"
    ))
}
