//! `GET /docs` on the platform origin: the documents, and searching them with `?q=`.
//! `GET /docs/<name>`: one of them.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use platform_protocol::paths::DOCUMENT_PAGES;
use platform_protocol::problem::ProblemCode;

use crate::console::ConsoleState;
use crate::console::documents::markdown::Document;
use crate::console::documents::search::{Found, MAX_QUERY_CHARS, search};
use crate::console::documents::{Audience, Documents};
use crate::web::api_error::ApiError;
use crate::web::form::Form;
use crate::web::page::{self, Layout};

#[derive(Template)]
#[template(path = "documents.html")]
struct Index<'a> {
    frame: Layout,
    /// The path of the folder of the stylesheet.
    folder: String,
    query: &'a str,
    most: usize,
    /// `None` if nothing was searched for.
    found: Option<Vec<Found<'a>>>,
    contents: Contents<'a>,
}

#[derive(Template)]
#[template(path = "document.html")]
struct Page<'a> {
    frame: Layout,
    /// The path of the folder of the stylesheet.
    folder: String,
    document: &'a Document,
    contents: Contents<'a>,
}

/// The list of all documents.
struct Contents<'a> {
    /// The name of the present one; empty if there is none.
    present: &'a str,
    groups: [Group<'a>; 2],
}

struct Group<'a> {
    heading: &'static str,
    documents: Vec<&'a Document>,
}

impl<'a> Contents<'a> {
    fn new(documents: &'a Documents, present: &'a str) -> Self {
        let group = |heading, audience| Group {
            heading,
            documents: documents.of(audience).collect(),
        };
        Self {
            present,
            groups: [
                group("Making games", Audience::Makers),
                group("Running a platform", Audience::Operators),
            ],
        }
    }
}

/// Returns the list, or what was found.
///
/// # Errors
/// `invalid-request` for a query that is repeated.
pub async fn index(
    State(state): State<Arc<ConsoleState>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let form = Form::of_query(query.as_deref());
    let query = form.field("q")?.unwrap_or_default().trim();
    let documents = state.documents();
    let page = Index {
        frame: Layout::new(&state.platform.origin),
        folder: state.files.folder(),
        query,
        most: MAX_QUERY_CHARS,
        found: (!query.is_empty()).then(|| search(documents, query)),
        contents: Contents::new(documents, ""),
    };
    Ok(page::render(StatusCode::OK, &page))
}

/// Returns one document.
///
/// # Errors
/// `not-found`
pub async fn document(
    State(state): State<Arc<ConsoleState>>,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    let documents = state.documents();
    let Some(document) = documents.find(&name) else {
        let origin = &state.platform.origin;
        let detail = format!("There is no such document. {origin}{DOCUMENT_PAGES} lists them all.");
        return Err(ApiError::new(ProblemCode::NotFound).with_detail(detail));
    };
    let page = Page {
        frame: Layout::new(&state.platform.origin),
        folder: state.files.folder(),
        document,
        contents: Contents::new(documents, document.name),
    };
    Ok(page::render(StatusCode::OK, &page))
}
