//! `GET` and `POST /api/projects/<slug>/environments/<environment>/domains`, `PUT` and
//! `DELETE …/domains/<domain>`, and `POST …/domains/<domain>/verify`: the domains of an environment's
//! own.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use platform_protocol::problem::ProblemCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::project_caller::{EnvironmentEditor, EnvironmentPath, EnvironmentReader};
use crate::domain::custom_domain::{
    AddedDomain, CustomDomain, DomainState, DomainToken, NewDomain, NotedProof, PER_PROJECT,
    SetCanonical,
};
use crate::domain::date::rfc3339;
use crate::domain::domain_name::DomainName;
use crate::projects::ProjectsState;
use crate::projects::domains::{check, refusal, target};
use crate::projects::settings_limits::Act;
use crate::web::api::{ApiJson, invalid};
use crate::web::api_error::ApiError;

/// The domain to claim.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewDomain)]
pub struct WantedDomain {
    /// The name alone, without a scheme, a port and a path. Upper case, one full stop at the end, and
    /// letters of other scripts are accepted.
    #[schema(
        max_length = 243,
        pattern = r"^(?!xn--)([a-z0-9]{1,20}\.){1,3}example$",
        example = "play.my-game.example"
    )]
    domain: String,
}

/// Whether a domain is the environment's canonical address.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Canonical)]
pub struct WantedCanonical {
    /// Whether the environment's other addresses redirect to it.
    canonical: bool,
}

/// A path that names a domain.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct DomainPath {
    /// A domain of the environment.
    #[param(example = "play.my-game.example")]
    domain: String,
}

/// The state of a domain.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = DomainState, rename_all = "lowercase")]
pub enum StateName {
    /// It is claimed, and not in service.
    Pending,
    /// It is in service.
    Active,
    /// It is in service, but its records are not in order: after 72 hours it is pending again.
    Failing,
}

/// The record that proves a domain.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DomainRecord)]
pub struct RecordView {
    /// Its name.
    #[schema(example = "_platform.play.my-game.example")]
    pub name: String,
    /// Its type: `TXT`.
    #[serde(rename = "type")]
    #[schema(example = "TXT")]
    pub kind: &'static str,
    /// Its value.
    #[schema(example = "platform-verify=0123456789abcdef0123456789abcdef")]
    pub value: String,
}

/// A domain of an environment's own.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Domain)]
pub struct DomainView {
    /// The name, as DNS has it.
    pub domain: String,
    /// The address of the game there.
    #[schema(format = "uri", example = "https://play.my-game.example")]
    pub url: String,
    /// The state.
    pub state: StateName,
    /// What was found that is not in order, and what to do; null if nothing is, or if nobody has
    /// looked yet.
    #[schema(required)]
    pub detail: Option<String>,
    /// Whether the environment's other addresses redirect to it while it is active.
    pub canonical: bool,
    /// The record that proves it, which must stay.
    pub record: RecordView,
    /// The name to which it must lead, by a CNAME record or by its addresses.
    #[schema(example = "my-game.games.example")]
    pub target: String,
    /// When it was claimed (RFC 3339).
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Since when it has its state (RFC 3339).
    #[schema(format = DateTime)]
    pub since: String,
    /// When its records were last looked at (RFC 3339).
    #[schema(required, format = DateTime)]
    pub looked_at: Option<String>,
}

/// The domains of an environment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Domains)]
pub struct DomainsView {
    /// The domains, by name.
    pub domains: Vec<DomainView>,
    /// How many domains the project may have, in both environments together.
    #[schema(example = 10)]
    pub most: usize,
}

impl From<DomainState> for StateName {
    fn from(state: DomainState) -> Self {
        match state {
            DomainState::Pending => Self::Pending,
            DomainState::Active => Self::Active,
            DomainState::Failing => Self::Failing,
        }
    }
}

impl DomainView {
    fn of(state: &ProjectsState, domain: CustomDomain) -> Self {
        Self {
            target: target(state, &domain),
            url: state.platform.games_origin.elsewhere(domain.name.as_str()),
            domain: domain.name.to_string(),
            state: domain.state.into(),
            canonical: domain.canonical,
            record: RecordView {
                name: domain.name.proof_name(),
                kind: "TXT",
                value: domain.token.record(),
            },
            created_at: rfc3339(domain.created_at),
            since: rfc3339(domain.since),
            looked_at: domain.looked_at.map(rfc3339),
            detail: domain.detail,
        }
    }
}

fn missing() -> ApiError {
    ApiError::new(ProblemCode::NotFound).with_detail(
        "This environment has no such domain. It may have been removed, because nobody proved it \
         within a week.",
    )
}

fn taken() -> ApiError {
    ApiError::new(ProblemCode::DomainTaken)
}

/// Returns the domain that a path names.
fn named(path: Result<Path<DomainPath>, PathRejection>) -> Result<DomainName, ApiError> {
    let Path(DomainPath { domain }) = path.map_err(|_| missing())?;
    DomainName::parse(&domain).map_err(|_| missing())
}

/// Lists the domains of an environment.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/environments/{environment}/domains",
    operation_id = "listDomains",
    params(EnvironmentPath),
    responses((status = 200, description = "The domains, by name.", body = DomainsView))
)]
pub async fn list(
    State(state): State<Arc<ProjectsState>>,
    reader: EnvironmentReader,
) -> Result<ApiJson<DomainsView>, ApiError> {
    let domains = state.platform.store.list_domains(&reader.project.slug);
    let own = domains.await?.into_iter();
    let own = own.filter(|domain| domain.environment == reader.environment);
    Ok(ApiJson(DomainsView {
        domains: own.map(|domain| DomainView::of(&state, domain)).collect(),
        most: PER_PROJECT,
    }))
}

/// Claims a domain for an environment. It answers there once its records are in order and somebody
/// has it verified.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`, `invalid-domain`, `domain-taken`, `quota-exceeded`,
/// `too-many-requests`.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/environments/{environment}/domains",
    operation_id = "addDomain",
    params(EnvironmentPath),
    request_body = WantedDomain,
    responses(
        (status = 201, description = "The domain with the record to create.", body = DomainView),
        (status = 409, description = "`domain-taken`: it is in use, here or by another project. `quota-exceeded`: the project has as many domains as it may."),
        (status = 422, description = "`invalid-domain`: this cannot be a domain of a project."),
    )
)]
pub async fn create(
    State(state): State<Arc<ProjectsState>>,
    editor: EnvironmentEditor,
    ApiJson(wanted): ApiJson<WantedDomain>,
) -> Result<(StatusCode, ApiJson<DomainView>), ApiError> {
    let wrong = |sentence: String| ApiError::new(ProblemCode::InvalidDomain).with_detail(sentence);
    let name = DomainName::parse(&wanted.domain).map_err(|error| wrong(error.to_string()))?;
    if let Some(sentence) = refusal(&state, &name) {
        return Err(wrong(sentence.to_owned()));
    }
    state
        .count(Act::Setting, &editor.caller, &editor.project, editor.access)
        .await?;
    let platform = &state.platform;
    let new = NewDomain {
        slug: editor.project.slug.clone(),
        environment: editor.environment,
        name,
        token: DomainToken::generate(&*platform.entropy),
        most: PER_PROJECT,
        now: platform.clock.now(),
    };
    match platform.store.add_domain(new, editor.by()).await? {
        AddedDomain::Done(domain) => {
            let view = DomainView::of(&state, domain);
            Ok((StatusCode::CREATED, ApiJson(view)))
        }
        AddedDomain::Taken => Err(taken()),
        AddedDomain::Known(environment) => Err(taken().with_detail(format!(
            "This project has this domain already, in the environment {}.",
            environment.as_str()
        ))),
        AddedDomain::TooMany => Err(ApiError::new(ProblemCode::QuotaExceeded).with_detail(
            format!("A project can have {PER_PROJECT} domains. Remove one first."),
        )),
    }
}

/// Looks at the records of a domain now. If they are in order, the game answers there from now on.
///
/// # Errors
/// `not-found`, `not-allowed`, `domain-taken`, `too-many-requests`.
#[utoipa::path(
    post,
    path = "/api/projects/{slug}/environments/{environment}/domains/{domain}/verify",
    operation_id = "verifyDomain",
    params(EnvironmentPath, DomainPath),
    responses(
        (status = 200, description = "The domain; `detail` says what is not in order.", body = DomainView),
        (status = 409, description = "`domain-taken`: another project has proven it before."),
    )
)]
pub async fn verify(
    State(state): State<Arc<ProjectsState>>,
    editor: EnvironmentEditor,
    domain: Result<Path<DomainPath>, PathRejection>,
) -> Result<ApiJson<DomainView>, ApiError> {
    let name = named(domain)?;
    let slug = &editor.project.slug;
    let known = state.platform.store.list_domains(slug).await?;
    let mut known = known.into_iter();
    let before = known
        .find(|one| one.name == name && one.environment == editor.environment)
        .ok_or_else(missing)?;
    state
        .count(Act::Setting, &editor.caller, &editor.project, editor.access)
        .await?;
    match check(&state, &before, editor.by()).await? {
        NotedProof::Done(domain) => {
            if domain.state != before.state {
                state.hosting.refresh(slug).await?;
            }
            Ok(ApiJson(DomainView::of(&state, domain)))
        }
        NotedProof::Taken => Err(taken()),
        NotedProof::Gone => Err(missing()),
    }
}

/// Makes a domain the canonical address of its environment, or takes that back.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`, `too-many-requests`.
#[utoipa::path(
    put,
    path = "/api/projects/{slug}/environments/{environment}/domains/{domain}",
    operation_id = "setCanonicalDomain",
    params(EnvironmentPath, DomainPath),
    request_body = WantedCanonical,
    responses((status = 200, description = "The domain, as it is now.", body = DomainView))
)]
pub async fn set(
    State(state): State<Arc<ProjectsState>>,
    editor: EnvironmentEditor,
    domain: Result<Path<DomainPath>, PathRejection>,
    ApiJson(wanted): ApiJson<WantedCanonical>,
) -> Result<ApiJson<DomainView>, ApiError> {
    let name = named(domain)?;
    state
        .count(Act::Setting, &editor.caller, &editor.project, editor.access)
        .await?;
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    let place = (&*editor.project.slug, editor.environment, &name);
    let set = store.set_canonical_domain(place, wanted.canonical, editor.by(), now);
    match set.await? {
        SetCanonical::Done(domain) => {
            state.hosting.refresh(&editor.project.slug).await?;
            Ok(ApiJson(DomainView::of(&state, domain)))
        }
        SetCanonical::NotActive => Err(invalid(
            "Only an active domain can be the canonical address: verify it first.",
        )),
        SetCanonical::Missing => Err(missing()),
    }
}

/// Removes a domain: the game no longer answers there.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    delete,
    path = "/api/projects/{slug}/environments/{environment}/domains/{domain}",
    operation_id = "removeDomain",
    params(EnvironmentPath, DomainPath),
    responses((status = 204, description = "The domain is removed."))
)]
pub async fn remove(
    State(state): State<Arc<ProjectsState>>,
    editor: EnvironmentEditor,
    domain: Result<Path<DomainPath>, PathRejection>,
) -> Result<StatusCode, ApiError> {
    let name = named(domain)?;
    let (store, now) = (&state.platform.store, state.platform.clock.now());
    let place = (&*editor.project.slug, editor.environment, &name);
    if !store.remove_domain(place, editor.by(), now).await? {
        return Err(missing());
    }
    state.hosting.refresh(&editor.project.slug).await?;
    Ok(StatusCode::NO_CONTENT)
}
