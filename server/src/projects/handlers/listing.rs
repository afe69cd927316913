//! `/api/projects/<slug>/listing`: whether the public page lists the game, and what it shows of it.

use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::project_caller::{ProjectEditor, ProjectPath, ProjectReader};
use crate::domain::date::rfc3339;
use crate::domain::listing::{
    AUTHOR_CHARS, COVER_CHARS, DESCRIPTION_CHARS, Listing, OwnListing, TAG_CHARS, TAGS,
    TITLE_CHARS, parse_line, parse_tag,
};
use crate::games::catalogue::Game;
use crate::games::covers;
use crate::games::page_metadata::{GameListing, cover_address};
use crate::projects::ProjectsState;
use crate::projects::settings_limits::Act;
use crate::web::api::{ApiJson, invalid};
use crate::web::api_error::ApiError;

/// What is set in place of the page's metadata; of what is null or left out, the page's is shown.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ListingTexts {
    /// The title: one line of visible text.
    #[schema(max_length = 60)]
    pub title: Option<String>,
    /// What the game is about: one line of visible text.
    #[schema(max_length = 300)]
    pub description: Option<String>,
    /// Who made it: one line of visible text.
    #[schema(max_length = 60)]
    pub author: Option<String>,
    /// Tags: letters, digits and hyphens. An empty list shows none.
    #[schema(max_items = 6)]
    pub tags: Option<Vec<String>>,
    /// The path of the cover, an image among the files that are deployed to production.
    #[schema(max_length = 300, example = "/cover.png")]
    pub cover: Option<String>,
}

/// How the public page should list the game.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewListing {
    /// Whether the public page lists the game, once it is deployed to production.
    pub listed: bool,
    /// What is set in place of the page's metadata.
    #[serde(default)]
    pub own: ListingTexts,
}

/// What the public page shows of the game.
#[derive(Debug, Serialize, ToSchema)]
pub struct ShownListing {
    /// The title.
    pub title: String,
    /// What the game is about.
    #[schema(required)]
    pub description: Option<String>,
    /// Who made it.
    #[schema(required)]
    pub author: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// The address of its cover: one of its own files of at most 2 MiB and 2048 × 2048 pixels.
    #[schema(required)]
    pub cover: Option<String>,
}

/// How the public page lists the game.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Listing)]
pub struct ListingView {
    /// Whether the public page lists the game, once it is deployed to production.
    pub listed: bool,
    /// When it was listed (RFC 3339); null if it is not.
    #[schema(required, format = DateTime)]
    pub listed_at: Option<String>,
    /// What is set in place of the page's metadata.
    pub own: ListingTexts,
    /// What is shown; null before the first deployment to production.
    #[schema(required)]
    pub shown: Option<ShownListing>,
}

/// Returns how the public page lists the game.
///
/// # Errors
/// `not-found`, `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/projects/{slug}/listing",
    operation_id = "getListing",
    params(ProjectPath),
    responses((status = 200, description = "How the public page lists the game.", body = ListingView))
)]
pub async fn read(
    State(state): State<Arc<ProjectsState>>,
    reader: ProjectReader,
) -> Result<ApiJson<ListingView>, ApiError> {
    ListingView::of(&state, &reader.project.slug)
        .await
        .map(ApiJson)
}

/// Sets whether the public page lists the game, and what it shows of it.
///
/// # Errors
/// `not-found`, `not-allowed`, `invalid-request`.
#[utoipa::path(
    put,
    path = "/api/projects/{slug}/listing",
    operation_id = "setListing",
    params(ProjectPath),
    request_body = NewListing,
    responses((status = 200, description = "The listing, as it is now.", body = ListingView))
)]
pub async fn set(
    State(state): State<Arc<ProjectsState>>,
    editor: ProjectEditor,
    ApiJson(wanted): ApiJson<NewListing>,
) -> Result<ApiJson<ListingView>, ApiError> {
    let slug = &editor.project.slug;
    let game = state.games.catalogue.find(slug);
    let own = wanted.own.parse(game.as_deref()).map_err(invalid)?;
    if let (Some(cover), Some(game)) = (&own.cover, game.as_deref()) {
        refuse_cover(&state, game, cover).await?;
    }
    let by = editor.by();
    state
        .count(Act::Setting, &editor.caller, &editor.project, editor.access)
        .await?;
    let now = state.platform.clock.now();
    let store = &state.platform.store;
    let changed = store.set_listing(slug, wanted.listed, own, by, now).await?;
    if changed {
        state.hosting.refresh(slug).await?;
    }
    ListingView::of(&state, slug).await.map(ApiJson)
}

/// Refuses a cover that no list would show. The cover of a later deployment is passed over if it is
/// like that.
async fn refuse_cover(state: &ProjectsState, game: &Game, cover: &str) -> Result<(), ApiError> {
    let files = &state.games.files;
    match covers::refusal_of(game, cover, files).await {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(invalid(format!(
            "{cover:?} {why}. Please deploy a smaller image and name that one."
        ))),
        Err(error) => {
            Err(error.refusal("so the cover could not be measured; please try again later"))
        }
    }
}

impl ListingView {
    async fn of(state: &ProjectsState, slug: &str) -> Result<Self, ApiError> {
        let Listing { listed_at, own } = state.platform.store.find_listing(slug).await?;
        let game = state.games.catalogue.find(slug);
        let shown = game.filter(|game| game.deployment.is_some()).map(|game| {
            let backends = &state.hosting.backends;
            GameListing::of(&game, |path| backends.find(&game, path).is_none())
        });
        Ok(Self {
            listed: listed_at.is_some(),
            listed_at: listed_at.map(rfc3339),
            own: own.into(),
            shown: shown.map(ShownListing::from),
        })
    }
}

impl ListingTexts {
    /// Returns the values to store, or a sentence with the error. `game` is the game in production,
    /// if there is one.
    fn parse(self, game: Option<&Game>) -> Result<OwnListing, String> {
        let line = |text: Option<String>, what: &str, chars: usize| {
            let Some(text) = text else { return Ok(None) };
            let parsed = parse_line(&text, chars).map(str::to_owned);
            parsed.map(Some).ok_or_else(|| {
                format!(
                    "The {what} must be one line of visible text with at most {chars} \
                     characters; without one, that of the game's page is shown."
                )
            })
        };
        let own = OwnListing {
            title: line(self.title, "title", TITLE_CHARS)?,
            description: line(self.description, "description", DESCRIPTION_CHARS)?,
            author: line(self.author, "author", AUTHOR_CHARS)?,
            tags: self.tags.map(|tags| parse_tags(&tags)).transpose()?,
            cover: line(self.cover, "cover's path", COVER_CHARS)?,
        };
        let deployed = game.filter(|game| game.deployment.is_some());
        if let (Some(cover), Some(game)) = (&own.cover, deployed)
            && cover_address(game, cover).is_none()
        {
            return Err(format!(
                "{cover:?} is not an image among the files that are deployed to production. Write \
                 the path of one, such as /cover.png, or deploy it first."
            ));
        }
        Ok(own)
    }
}

fn parse_tags(texts: &[String]) -> Result<Vec<String>, String> {
    let mut tags = Vec::new();
    for text in texts {
        let tag = parse_tag(text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            format!(
                "{shown:?} is not a tag: a tag has at most {TAG_CHARS} letters, digits and hyphens."
            )
        })?;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    if tags.len() > TAGS {
        return Err(format!("A game has at most {TAGS} tags; leave some out."));
    }
    Ok(tags)
}

impl From<OwnListing> for ListingTexts {
    fn from(own: OwnListing) -> Self {
        Self {
            title: own.title,
            description: own.description,
            author: own.author,
            tags: own.tags,
            cover: own.cover,
        }
    }
}

impl From<GameListing> for ShownListing {
    fn from(shown: GameListing) -> Self {
        Self {
            title: shown.title,
            description: shown.description,
            author: shown.author,
            tags: shown.tags,
            cover: shown.picture,
        }
    }
}
