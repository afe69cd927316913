//! The common parts of the descriptions of all calls: errors, and headers of responses.

use utoipa::Modify;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, ObjectBuilder, OpenApi, Ref, RefOr, Response as Described, Type,
};

/// Errors of every call.
const ALWAYS: [(&str, &str); 2] = [("500", "`internal`."), ("503", "`unavailable`.")];
/// Errors of calls with a token.
const SIGNED_IN: [(&str, &str); 3] = [
    (
        "401",
        "`not-signed-in`: there is no token, or it is not valid.",
    ),
    ("403", "`not-allowed` or `account-suspended`."),
    ("429", "`too-many-requests`."),
];
/// Errors of calls whose path names something.
const NAMED: [(&str, &str); 1] = [("404", "`not-found`.")];
/// Errors of calls with a query or a body.
const ASKED: [(&str, &str); 1] = [("400", "`invalid-request`.")];
/// Errors of calls with a body.
const SENT: [(&str, &str); 3] = [
    (
        "408",
        "`invalid-request`: the request took too long to arrive.",
    ),
    ("413", "`payload-too-large`."),
    ("415", "`unsupported-media-type`."),
];

/// Headers, by the status of the response; every response has the first one.
const HEADERS: [(&str, &str, &str); 4] = [
    (
        "",
        "X-Request-Id",
        "The id under which the request was logged.",
    ),
    ("401", "WWW-Authenticate", "`Bearer` (RFC 6750)."),
    (
        "429",
        "Retry-After",
        "Seconds until the next attempt is allowed.",
    ),
    (
        "503",
        "Retry-After",
        "Seconds until the next attempt is allowed.",
    ),
];

/// Completes the description.
pub(super) struct Common;

impl Modify for Common {
    fn modify(&self, openapi: &mut OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .description(Some(
                "A token with the audience `platform:console`, as `platform login` gets one.",
            ))
            .build();
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
        for (path, item) in &mut openapi.paths.paths {
            let operations = [
                &mut item.get,
                &mut item.put,
                &mut item.post,
                &mut item.delete,
            ];
            for operation in operations.into_iter().flatten() {
                // The names of modules mean nothing to readers of the description.
                operation.tags = None;
                operation.description = operation.description.as_deref().and_then(without_errors);
                add_refusals(operation, path.contains('{'));
                complete_responses(operation);
            }
        }
    }
}

/// Removes the part of a handler's documentation about errors, which is for readers of the code.
fn without_errors(description: &str) -> Option<String> {
    let text = description.split("# Errors").next().unwrap_or_default();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn add_refusals(operation: &mut Operation, named: bool) {
    let sent = operation.request_body.is_some();
    let parameters = operation.parameters.iter().flatten();
    let asked = sent
        || parameters
            .filter_map(|parameter| match parameter {
                RefOr::T(parameter) => Some(parameter),
                RefOr::Ref(_) => None,
            })
            .any(|parameter| matches!(parameter.parameter_in, ParameterIn::Query));
    // Calls without a token declare this.
    let signed_in = operation.security.is_none();
    let refusals = ALWAYS
        .iter()
        .chain(SIGNED_IN.iter().filter(|_| signed_in))
        .chain(NAMED.iter().filter(|_| named))
        .chain(ASKED.iter().filter(|_| asked))
        .chain(SENT.iter().filter(|_| sent));
    let responses = &mut operation.responses.responses;
    for (status, description) in refusals {
        responses
            .entry((*status).to_owned())
            .or_insert_with(|| RefOr::T(Described::new(*description)));
    }
}

fn complete_responses(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else {
            continue;
        };
        if status.as_str() >= "400" {
            let problem = ContentBuilder::new()
                .schema(Some(Ref::from_schema_name("Problem")))
                .build();
            response
                .content
                .insert("application/problem+json".to_owned(), RefOr::T(problem));
        }
        for (at, name, description) in HEADERS {
            if at.is_empty() || at == status {
                let header = RefOr::T(text(description));
                response.headers.insert(name.to_owned(), header);
            }
        }
    }
}

fn text(description: &str) -> Header {
    let schema = ObjectBuilder::new().schema_type(Type::String).build();
    HeaderBuilder::new()
        .schema(Some(schema))
        .description(Some(description))
        .build()
}
