//! One document: Markdown as HTML for a page without scripts and inline styles.

use std::collections::HashMap;

use pulldown_cmark::{CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html};

use super::{Audience, wide_tables};

/// A rendered document.
#[derive(Debug)]
pub struct Document {
    /// The last segment of its address.
    pub name: &'static str,
    /// Whom it is for.
    pub audience: Audience,
    /// Its first heading.
    pub title: String,
    /// Its first sentence.
    pub summary: String,
    /// Everything after its title. Safe to put into a page.
    pub html: String,
    /// Its text by heading, in order. The first section is what precedes the first heading below
    /// the title.
    pub sections: Vec<Section>,
}

/// The text under a heading.
#[derive(Debug, Default)]
pub struct Section {
    /// The heading's id in the page; empty for the document's beginning.
    pub id: String,
    /// The heading.
    pub heading: String,
    /// Whether it is a heading of the second level, which the table of contents has.
    pub is_chapter: bool,
    /// The text, with single spaces.
    pub text: String,
}

impl Document {
    /// Renders a document, which begins with its title.
    #[must_use]
    pub fn new(name: &'static str, audience: Audience, text: &str) -> Self {
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        let mut events: Vec<Event<'_>> = Parser::new_ext(text, options).collect();
        let mut ids = Ids::default();
        let mut title = String::new();
        let mut sections = vec![Section::default()];
        let mut body = Vec::with_capacity(events.len());
        let summary = first_sentence(&events);
        let (mut drops_link, mut is_heading) = (false, false);
        let mut at = 0;
        while at < events.len() {
            let event = std::mem::replace(&mut events[at], Event::SoftBreak);
            at += 1;
            match event {
                Event::Start(Tag::Heading { level, .. }) => {
                    let heading = heading_text(&events[at..]);
                    if level == HeadingLevel::H1 {
                        at += 1 + length_until_heading_ends(&events[at..]);
                        title = heading;
                        continue;
                    }
                    is_heading = true;
                    let id = ids.next(&heading);
                    body.push(heading_start(level, &id));
                    sections.push(Section {
                        id,
                        heading,
                        is_chapter: level == HeadingLevel::H2,
                        text: String::new(),
                    });
                }
                Event::Start(Tag::Link { dest_url, .. }) => {
                    match link(&dest_url, events.get_mut(at)) {
                        Some(link) => body.push(link),
                        None => drops_link = true,
                    }
                }
                Event::End(TagEnd::Link) if drops_link => drops_link = false,
                // The policy of the page allows no inline style, which an alignment becomes.
                Event::Start(Tag::Table(columns)) => {
                    let plain = vec![pulldown_cmark::Alignment::None; columns.len()];
                    body.push(Event::Start(Tag::Table(plain)));
                }
                // Markup within Markdown is shown as text.
                Event::Html(markup) | Event::InlineHtml(markup) => body.push(Event::Text(markup)),
                event => {
                    is_heading &= !matches!(event, Event::End(TagEnd::Heading(_)));
                    if let Some(section) = sections.last_mut().filter(|_| !is_heading) {
                        collect(&event, &mut section.text);
                    }
                    body.push(event);
                }
            }
        }
        wide_tables::name_cells(&mut body);
        let mut rendered = String::with_capacity(text.len() * 3 / 2);
        html::push_html(&mut rendered, body.into_iter());
        Self {
            name,
            audience,
            title,
            summary,
            html: rendered,
            sections,
        }
    }

    /// Returns the headings of the second level.
    pub fn chapters(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(|section| section.is_chapter)
    }
}

/// The first sentence of the first paragraph. A document may begin with code.
fn first_sentence(events: &[Event<'_>]) -> String {
    let is_start = |event: &Event<'_>| matches!(event, Event::Start(Tag::Paragraph));
    let start = events.iter().position(is_start).unwrap_or(events.len());
    let mut text = String::new();
    for event in &events[start..] {
        match event {
            // As in the document itself, which names others by their titles.
            Event::Text(file) if file.ends_with(".md") => {
                text.push_str(&super::title_of(file).unwrap_or_default());
            }
            event => collect(event, &mut text),
        }
        if matches!(event, Event::End(TagEnd::Paragraph)) {
            break;
        }
    }
    let end = text.find(". ").map_or(text.trim_end().len(), |end| end + 1);
    text.truncate(end);
    text
}

/// The link to `target`, if the console has that. `inside` is the first event of the link: one that
/// is the name of a file becomes the title of the document.
fn link<'a>(target: &str, inside: Option<&mut Event<'a>>) -> Option<Event<'a>> {
    let dest_url = address(target)?;
    if let (Some(Event::Text(shown)), Some(title)) = (inside, super::title_of(target))
        && **shown == *target
    {
        *shown = CowStr::from(title);
    }
    Some(Event::Start(Tag::Link {
        link_type: LinkType::Inline,
        dest_url: CowStr::from(dest_url),
        title: CowStr::Borrowed(""),
        id: CowStr::Borrowed(""),
    }))
}

fn heading_start(level: HeadingLevel, id: &str) -> Event<'static> {
    Event::Start(Tag::Heading {
        level,
        id: Some(CowStr::from(id.to_owned())),
        classes: Vec::new(),
        attrs: Vec::new(),
    })
}

/// The text of the heading whose inner events these are.
fn heading_text(events: &[Event<'_>]) -> String {
    let inner = &events[..length_until_heading_ends(events)];
    let mut text = String::new();
    for event in inner {
        if let Event::Text(part) | Event::Code(part) = event {
            text.push_str(part);
        }
    }
    text
}

fn length_until_heading_ends(events: &[Event<'_>]) -> usize {
    let is_end = |event: &Event<'_>| matches!(event, Event::End(TagEnd::Heading(_)));
    events.iter().position(is_end).unwrap_or(events.len())
}

/// Adds the text of an event to that of its section.
fn collect(event: &Event<'_>, text: &mut String) {
    match event {
        Event::Text(part) | Event::Code(part) => {
            for word in part.split_inclusive(char::is_whitespace) {
                text.push_str(word.trim_end());
                if word.ends_with(char::is_whitespace) {
                    space(text);
                }
            }
        }
        Event::SoftBreak
        | Event::HardBreak
        | Event::End(TagEnd::Paragraph | TagEnd::TableCell | TagEnd::Item | TagEnd::CodeBlock) => {
            space(text);
        }
        _ => {}
    }
}

fn space(text: &mut String) {
    if !text.is_empty() && !text.ends_with(' ') {
        text.push(' ');
    }
}

/// The address in the console of what a document links to. Files of the project other than documents
/// have none.
pub(super) fn address(link: &str) -> Option<String> {
    if link.starts_with('#') || link.starts_with("https://") || link.starts_with("http://") {
        return Some(link.to_owned());
    }
    let (file, place) = link.split_once('#').unwrap_or((link, ""));
    let name = file.strip_suffix(".md")?;
    let is_document = super::SOURCES.iter().any(|source| source.name == name);
    let place = match place {
        "" => String::new(),
        place => format!("#{place}"),
    };
    is_document.then(|| format!("{}/{name}{place}", platform_protocol::paths::DOCUMENT_PAGES))
}

/// Ids of headings, made as GitHub makes them, so that links work there as well.
#[derive(Default)]
struct Ids(HashMap<String, usize>);

impl Ids {
    fn next(&mut self, heading: &str) -> String {
        let id: String = heading
            .to_lowercase()
            .chars()
            .filter_map(|char| match char {
                ' ' => Some('-'),
                '-' | '_' => Some(char),
                char => char.is_alphanumeric().then_some(char),
            })
            .collect();
        let used = self.0.entry(id.clone()).or_default();
        *used += 1;
        match *used {
            1 => id,
            more => format!("{id}-{}", more - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document::new("cli", Audience::Makers, text)
    }

    #[test]
    fn headings_have_the_ids_that_links_on_github_use() {
        let document =
            document("# T\n\nOne. Two.\n\n## Who may `sign in`?\n\na\n\n### A\n\n## A\n");
        assert_eq!(document.title, "T");
        assert_eq!(document.summary, "One.");
        let ids: Vec<_> = document
            .sections
            .iter()
            .map(|one| one.id.as_str())
            .collect();
        assert_eq!(ids, ["", "who-may-sign-in", "a", "a-1"]);
        let chapters: Vec<_> = document
            .chapters()
            .map(|one| one.heading.as_str())
            .collect();
        assert_eq!(chapters, ["Who may sign in?", "A"]);
        assert!(document.html.contains("<h2 id=\"who-may-sign-in\">"));
        assert!(
            !document.html.contains("<h1"),
            "the page shows the title itself"
        );
    }

    #[test]
    fn links_lead_to_documents_and_other_files_are_only_named() {
        let html = document(
            "# T\n\n[a](deploying.md#limits) [b](#here) [c](../template/x.ts) [d](dependencies.md) \
             [e](https://a.test/)\n",
        )
        .html;
        assert!(
            html.contains("<a href=\"/docs/deploying#limits\">a</a>"),
            "{html}"
        );
        assert!(html.contains("<a href=\"#here\">b</a>"), "{html}");
        assert!(html.contains(" c d "), "{html}");
        assert!(html.contains("<a href=\"https://a.test/\">e</a>"), "{html}");
    }

    #[test]
    fn neither_markup_nor_inline_style_reaches_the_page() {
        let html = document("# T\n\n<b>x</b>\n\n<script>1</script>\n\n| a |\n|--:|\n| b |\n").html;
        assert!(
            !html.contains("<b>") && !html.contains("<script>"),
            "{html}"
        );
        assert!(!html.contains("style="), "{html}");
        assert!(html.contains("<table>"), "{html}");
    }
}
