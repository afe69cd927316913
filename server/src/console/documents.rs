//! The platform's documents for people who make games and for operators: `docs/` of the project,
//! as HTML, with this platform's own addresses in place of the examples' ones.
//!
//! | module | contents |
//! |---|---|
//! | [`markdown`] | one document: its HTML, headings and sections |
//! | `wide_tables` | tables with many columns on a phone |
//! | [`search`] | finding words in the sections |

pub mod markdown;
pub mod search;
mod wide_tables;

use self::markdown::Document;
use crate::origin::PlatformOrigin;

/// Whom a document is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Those who make games.
    Makers,
    /// Those who run a platform. Its addresses stay those of the examples, because the documents
    /// speak of platforms that are yet to be set up.
    Operators,
}

/// The source of a document.
struct Source {
    /// The last segment of its address.
    name: &'static str,
    audience: Audience,
    text: &'static str,
}

macro_rules! source {
    ($audience:ident, $name:literal) => {
        Source {
            name: $name,
            audience: Audience::$audience,
            text: include_str!(concat!("../../../docs/", $name, ".md")),
        }
    };
}

/// All documents, in the order in which a reader needs them. `docs/dependencies.md` and
/// `docs/performance.md` are for those who change the platform itself.
const SOURCES: [Source; 27] = [
    source!(Makers, "cli"),
    source!(Makers, "dev-server"),
    source!(Makers, "runtime"),
    source!(Makers, "deploying"),
    source!(Makers, "pipelines"),
    source!(Makers, "build-page"),
    source!(Makers, "project-page"),
    source!(Makers, "public-page"),
    source!(Makers, "domains"),
    source!(Makers, "errors"),
    source!(Makers, "alerts"),
    source!(Makers, "people"),
    source!(Makers, "backends"),
    source!(Makers, "rust-games"),
    source!(Makers, "api"),
    source!(Makers, "glossary"),
    source!(Operators, "hosting"),
    source!(Operators, "own-site"),
    source!(Operators, "settings"),
    source!(Operators, "sign-in"),
    source!(Operators, "administration"),
    source!(Operators, "privacy"),
    source!(Operators, "upgrading"),
    source!(Operators, "several-nodes"),
    source!(Operators, "metrics"),
    source!(Operators, "faults"),
    source!(Operators, "security"),
];

/// Returns the title of the document with this file name.
fn title_of(file: &str) -> Option<String> {
    let name = file.strip_suffix(".md")?;
    let source = SOURCES.iter().find(|source| source.name == name)?;
    let heading = source.text.lines().next()?.trim_start_matches("# ");
    Some(heading.replace('`', ""))
}

/// The rendered documents.
#[derive(Debug)]
pub struct Documents(Vec<Document>);

impl Documents {
    /// Renders all documents for the platform with this origin, and the origin of its games.
    #[must_use]
    pub fn new(origin: &PlatformOrigin, games: &PlatformOrigin) -> Self {
        let render = |source: &Source| match source.audience {
            Audience::Makers => {
                let text = with_addresses(source.text, origin, games);
                Document::new(source.name, source.audience, &text)
            }
            Audience::Operators => Document::new(source.name, source.audience, source.text),
        };
        Self(SOURCES.iter().map(render).collect())
    }

    /// Returns the document with this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Document> {
        self.0.iter().find(|document| document.name == name)
    }

    /// Returns the documents for these people.
    pub fn of(&self, audience: Audience) -> impl Iterator<Item = &Document> {
        let is_for = move |document: &&Document| document.audience == audience;
        self.0.iter().filter(is_for)
    }

    /// Returns all documents.
    #[must_use]
    pub fn all(&self) -> &[Document] {
        &self.0
    }
}

/// Replaces the addresses of the examples' platform by those of this one.
fn with_addresses(text: &str, origin: &PlatformOrigin, games: &PlatformOrigin) -> String {
    let auth_url = origin.auth_url();
    let console = origin.to_string();
    let host = console.split_once("://").map_or("", |(_, host)| host);
    let games = games.sub_domain("");
    let games_host = games.split_once("://").map_or("", |(_, host)| host);
    text.replace("https://auth.play.example", &auth_url)
        .replace("https://play.example", &console)
        .replace(".play.example", games_host)
        .replace("play.example", host)
        .replace("{auth_url}", &auth_url)
        .replace("{console}", &console)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn documents() -> Documents {
        let origin = "https://games.test:8443".parse().unwrap();
        Documents::new(&origin, &origin)
    }

    #[test]
    fn every_document_is_shown_but_those_for_the_platforms_own_developers() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
        let names = std::fs::read_dir(folder).unwrap().filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            Some(name.strip_suffix(".md")?.to_owned())
        });
        let mut names: BTreeSet<_> = names.collect();
        for own in ["dependencies", "performance"] {
            assert!(names.remove(own));
        }
        let shown: BTreeSet<_> = SOURCES
            .iter()
            .map(|source| source.name.to_owned())
            .collect();
        assert_eq!(shown, names);
    }

    #[test]
    fn makers_read_this_platforms_addresses_and_operators_those_of_the_examples() {
        let documents = documents();
        for document in documents.of(Audience::Makers) {
            assert!(!document.html.contains("play.example"), "{}", document.name);
            assert!(!document.html.contains("{auth_url}"), "{}", document.name);
        }
        let command_line = documents.find("cli").unwrap();
        assert!(
            command_line
                .html
                .contains("https://games.test:8443/cli/install.sh")
        );
        let sign_in = documents.find("sign-in").unwrap();
        assert!(sign_in.html.contains("play.example"));
    }

    /// A file of the project that is no document is named by its path from `docs/`, such as
    /// `../deploy/…`: the console shows such a link as text.
    #[test]
    fn every_relative_link_and_picture_of_a_document_is_served() {
        use pulldown_cmark::{Event, Options, Parser, Tag};
        for source in &SOURCES {
            for event in Parser::new_ext(source.text, Options::ENABLE_TABLES) {
                let target = match event {
                    Event::Start(Tag::Link { dest_url, .. }) => dest_url,
                    Event::Start(Tag::Image { dest_url, .. }) => {
                        panic!("{}: {dest_url}", source.name)
                    }
                    _ => continue,
                };
                if target.starts_with("../") {
                    continue;
                }
                let served = markdown::address(&target);
                assert!(served.is_some(), "{}: {target}", source.name);
            }
        }
    }

    /// Documents link to one another and to places in them.
    #[test]
    fn every_link_between_documents_leads_to_a_heading_that_is_there() {
        let documents = documents();
        let mut links = 0;
        for document in documents.all() {
            for part in document.html.split("href=\"").skip(1) {
                let (target, _) = part.split_once('"').unwrap();
                let (page, place) = target.split_once('#').unwrap_or((target, ""));
                let target = match page.strip_prefix("/docs/") {
                    Some(name) => documents.find(name),
                    None if page.is_empty() => Some(document),
                    None => {
                        assert!(
                            page.starts_with("https://") || page.starts_with('/'),
                            "{}: {page}",
                            document.name
                        );
                        continue;
                    }
                };
                let target = target.unwrap_or_else(|| panic!("{}: {page}", document.name));
                let is_there =
                    place.is_empty() || target.sections.iter().any(|one| one.id == place);
                assert!(is_there, "{}: {page}#{place}", document.name);
                links += 1;
            }
        }
        assert!(links > 30, "{links}");
    }
}
