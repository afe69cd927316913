//! Whether `index.html` loads the runtime as it should: with
//! `<script defer src="/__platform/runtime.js"></script>`, in `<head>`, before
//! the game's own scripts.
//!
//! What counts is what a browser does with the page, not how it is written: a tag in a comment, in
//! `<noscript>` or in a `<template>` loads nothing; a page without a `<head>` tag still gets a
//! head; and `<base>` changes where a path leads.

use std::cell::RefCell;
use std::rc::Rc;

use lol_html::html_content::{Element, TextType};
use lol_html::{HtmlRewriter, Settings, doc_text, element, end_tag};
use percent_encoding::percent_decode_str;
use platform_protocol::paths::RUNTIME_JS;
use url::Url;

use crate::early::uses_platform;
use crate::place::{Place, is_blank};
use crate::private::name_warnings;
use crate::script::{Kind, Script, Timing};

/// The base address where the page's own is not known: no tag can name this host.
const ANYWHERE: &str = "https://page.invalid/";
/// The maximum number of characters of an address in a warning.
const MAX_NAME_CHARS: usize = 200;
/// The maximum number of bytes of an inline script that are read.
const MAX_INLINE_BYTES: usize = 1024 * 1024;
/// The maximum number of scripts of a page that are looked into.
const MAX_EARLY_SCRIPTS: usize = 16;
const SVG: &str = "http://www.w3.org/2000/svg";
const HTML: &str = "http://www.w3.org/1999/xhtml";

/// What is wrong with how a page loads the runtime, or with what is deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WarningCode {
    /// No tag of the page loads the runtime from the game's own address.
    NotLoaded,
    /// The tag ends up in `<body>`.
    InBody,
    /// The tag has `async`.
    Async,
    /// The tag has no `defer`.
    NotDeferred,
    /// Other scripts run before it.
    AfterScripts,
    /// A file has a name that is typical of files with secrets.
    PrivateFile,
    /// A file is source code, not what was built from it.
    SourceFile,
}

impl WarningCode {
    /// Every code.
    pub const ALL: [WarningCode; 7] = [
        WarningCode::NotLoaded,
        WarningCode::InBody,
        WarningCode::Async,
        WarningCode::NotDeferred,
        WarningCode::AfterScripts,
        WarningCode::PrivateFile,
        WarningCode::SourceFile,
    ];

    /// The code as the API returns it, such as `runtime-not-loaded`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            WarningCode::NotLoaded => "runtime-not-loaded",
            WarningCode::InBody => "runtime-in-body",
            WarningCode::Async => "runtime-async",
            WarningCode::NotDeferred => "runtime-not-deferred",
            WarningCode::AfterScripts => "runtime-after-scripts",
            WarningCode::PrivateFile => "private-file",
            WarningCode::SourceFile => "source-file",
        }
    }

    /// The whole sentence. For files: the part that follows their names.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            WarningCode::NotLoaded => {
                "index.html does not load the platform's runtime: add <script defer src=\"/__platform/runtime.js\"></script> to <head>, before the game's own scripts."
            }
            WarningCode::InBody => {
                "index.html loads the platform's runtime in <body>, where it can run after the game's own scripts: move its tag into <head>, before them."
            }
            WarningCode::Async => {
                "index.html loads the platform's runtime with async, so it can run after the game's own scripts: use defer instead."
            }
            WarningCode::NotDeferred => {
                "index.html loads the platform's runtime without defer, so that the page waits for it: add defer to its tag."
            }
            WarningCode::AfterScripts => {
                "index.html loads the platform's runtime after other scripts, which can run before it: move its tag in front of every other script."
            }
            WarningCode::PrivateFile => {
                "should probably not be public, by the name, and everybody can read what is deployed: remove it, deploy again, and replace every secret in it."
            }
            WarningCode::SourceFile => {
                "should probably not be public: it is source code or belongs to a build, and no browser needs it. Deploy the folder with the built game."
            }
        }
    }
}

/// One thing that is wrong with a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Which warning it is.
    pub code: WarningCode,
    /// A sentence that says what to do.
    pub message: String,
}

/// Returns the text of a deployment's file, at a path, if it has such a file.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> Option<String>;

/// For pages without their files.
const NO_FILES: ReadFile<'static> = &|_| None;

/// Returns what is wrong with how a page loads the runtime, at any address. Empty if nothing is
/// wrong.
#[must_use]
pub fn warnings(index_html: &str) -> Vec<Warning> {
    warnings_at(index_html, ANYWHERE, NO_FILES)
}

/// Like [`warnings`], for a page with scripts that can be read.
#[must_use]
pub fn warnings_with(index_html: &str, files: ReadFile<'_>) -> Vec<Warning> {
    warnings_at(index_html, ANYWHERE, files)
}

/// Like [`warnings_with`], for the page at `address`, an absolute URL: a tag may name it.
#[must_use]
pub fn warnings_at(index_html: &str, address: &str, files: ReadFile<'_>) -> Vec<Warning> {
    let found = read(index_html, address);
    let Some(first) = found.tags.first() else {
        let message = match &found.elsewhere {
            Some(src) => format!(
                "index.html loads the platform's runtime from {src:?}, which is not the game's own address: write src=\"{RUNTIME_JS}\"."
            ),
            None => WarningCode::NotLoaded.sentence().to_owned(),
        };
        return vec![Warning {
            code: WarningCode::NotLoaded,
            message,
        }];
    };
    // Loading the runtime twice does no harm, so one good tag is enough.
    let best = found
        .tags
        .iter()
        .find(|tag| tag.is_empty())
        .unwrap_or(first);
    let mut warnings: Vec<Warning> = best
        .iter()
        .map(|code| Warning {
            code: *code,
            message: match (&found.before, code) {
                (Some(script), WarningCode::AfterScripts) => {
                    let script = script.named(index_html);
                    format!("{} The first of them is {script}.", code.sentence())
                }
                _ => code.sentence().to_owned(),
            },
        })
        .collect();
    if !best.contains(&WarningCode::NotDeferred)
        && !best.contains(&WarningCode::AfterScripts)
        && let Some(early) = found.early.iter().find(|script| script.uses(files))
    {
        warnings.push(Warning {
            code: WarningCode::AfterScripts,
            message: early.sentence(index_html),
        });
    }
    warnings
}

/// A script of a page that runs before a deferred one may.
#[derive(Clone, Debug)]
struct EarlyScript {
    /// Where its tag begins.
    at: usize,
    /// Its address as it is written, if it has one.
    src: Option<String>,
    /// The path of its file, if it is one of the deployment's.
    path: Option<String>,
    /// Whether its own text uses `platform`.
    uses_platform: bool,
    is_async: bool,
}

impl EarlyScript {
    /// A script with a tag at `at`, and nothing else.
    const fn at(at: usize, timing: Timing) -> Self {
        Self {
            at,
            src: None,
            path: None,
            uses_platform: false,
            is_async: matches!(timing, Timing::Async),
        }
    }

    fn uses(&self, files: ReadFile<'_>) -> bool {
        let of_file = || self.path.as_deref().and_then(files);
        self.uses_platform || of_file().is_some_and(|text| uses_platform(&text))
    }

    /// Its name and its line.
    fn named(&self, page: &str) -> String {
        let before = page.as_bytes().get(..self.at).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        match &self.src {
            Some(src) => {
                let src: String = src.trim().chars().take(MAX_NAME_CHARS).collect();
                format!("{src:?} in line {line}")
            }
            None => format!("the one in line {line}"),
        }
    }

    fn sentence(&self, page: &str) -> String {
        let (named, next) = match (&self.src, self.is_async) {
            (None, _) => (
                format!("an inline script, {},", self.named(page)),
                "give it type=\"module\"",
            ),
            (Some(_), true) => (
                format!("the script {} with async,", self.named(page)),
                "write defer in place of async",
            ),
            (Some(_), false) => (
                format!("the script {} without defer,", self.named(page)),
                "add defer to its tag",
            ),
        };
        format!(
            "index.html runs {named} before the platform's runtime, and the script uses `platform`, which is not there by then: {next}."
        )
    }
}

/// The warnings of a whole deployment: its page, and the names of its files.
#[must_use]
pub fn warnings_of<'a>(
    index_html: &str,
    address: &str,
    files: ReadFile<'_>,
    paths: impl IntoIterator<Item = &'a str>,
) -> Vec<Warning> {
    let mut warnings = warnings_at(index_html, address, files);
    warnings.extend(name_warnings(paths));
    warnings
}

/// The addresses of the page's module scripts as they are written, in their order. A script that
/// cannot run, such as one in a comment, is left out.
#[must_use]
pub fn module_scripts(index_html: &str) -> Vec<String> {
    read(index_html, ANYWHERE).modules
}

/// What was found on the page so far.
#[derive(Debug, Default)]
struct Found {
    place: Place,
    /// How many `<template>` elements are open: scripts in them do not run.
    templates: usize,
    /// The first script other than the runtime that runs.
    before: Option<EarlyScript>,
    /// The scripts after a tag of the runtime that may run before a deferred one.
    early: Vec<EarlyScript>,
    /// The previous element, if it was a script that runs if it has a text.
    inline: Option<Inline>,
    /// The base URL of paths on the page.
    base: Option<Url>,
    /// Each tag that loads the runtime, with what is wrong with it.
    tags: Vec<Vec<WarningCode>>,
    /// The address of a tag that loads a runtime from another place.
    elsewhere: Option<String>,
    /// The address of each module script, as it is written.
    modules: Vec<String>,
}

/// A script with a text of its own.
#[derive(Debug)]
struct Inline {
    at: usize,
    timing: Timing,
    text: String,
}

fn read(index_html: &str, address: &str) -> Found {
    let page = Url::parse(address).ok();
    let found = Rc::new(RefCell::new(Found::default()));
    let (elements, texts) = (Rc::clone(&found), Rc::clone(&found));
    let settings = Settings::new()
        // Ambiguous markup is no reason to stop here.
        .with_strict(false)
        .append_element_content_handler(element!("*", move |element| {
            let is_template = elements.borrow_mut().start_tag(element, page.as_ref());
            if is_template {
                let elements = Rc::clone(&elements);
                element.on_end_tag(end_tag!(move |_| {
                    elements.borrow_mut().templates -= 1;
                    Ok(())
                }))?;
            } else if element.tag_name() == "head" {
                let elements = Rc::clone(&elements);
                element.on_end_tag(end_tag!(move |_| {
                    elements.borrow_mut().end_head();
                    Ok(())
                }))?;
            }
            Ok(())
        }))
        .append_document_content_handler(doc_text!(move |text| {
            texts.borrow_mut().text(text.as_str(), text.text_type());
            Ok(())
        }));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    // A byte order mark is not part of the page's text (WHATWG Encoding, "decode").
    let html = index_html.strip_prefix('\u{feff}').unwrap_or(index_html);
    // Fails only at a memory limit. What was read until then counts.
    if rewriter.write(html.as_bytes()).is_ok() {
        let _ = rewriter.end();
    } else {
        drop(rewriter);
    }
    let mut found = found.take();
    found.end_inline();
    found
}

impl Found {
    /// Handles a start tag. Returns whether it opened a template.
    fn start_tag(&mut self, element: &Element<'_, '_>, page: Option<&Url>) -> bool {
        self.end_inline();
        let name = element.tag_name();
        let in_html = element.namespace_uri() == HTML;
        if self.templates == 0 {
            self.place = self.place.after_start_tag(&name);
        }
        match name.as_str() {
            "template" if in_html => {
                self.templates += 1;
                return true;
            }
            _ if self.templates > 0 || self.place == Place::Frames => {}
            "base" if in_html && self.base.is_none() => self.base(element, page),
            "script" if in_html => {
                self.script(
                    &script(element),
                    element.source_location().bytes().start,
                    page,
                );
            }
            "script" if element.namespace_uri() == SVG => self.svg_script(element, page),
            _ => {}
        }
        false
    }

    fn end_head(&mut self) {
        if self.place == Place::Head {
            self.place = Place::AfterHead;
        }
    }

    fn text(&mut self, text: &str, text_type: TextType) {
        match text_type {
            TextType::ScriptData => {
                if let Some(inline) = &mut self.inline
                    && inline.text.len() < MAX_INLINE_BYTES
                {
                    inline.text.push_str(text);
                }
            }
            TextType::Data | TextType::PlainText if self.templates == 0 => {
                self.place = self.place.after_text(text);
            }
            _ => {}
        }
    }

    /// Only the first `<base>` with an `href` counts, and only for what follows it.
    fn base(&mut self, element: &Element<'_, '_>, page: Option<&Url>) {
        if let Some(href) = attribute(element, "href") {
            let url = page.and_then(|page| page.join(&href).ok());
            self.base = url
                .filter(|url| !matches!(url.scheme(), "data" | "javascript"))
                .or_else(|| page.cloned());
        }
    }

    /// Handles the text of the previous element, if it was a script.
    fn end_inline(&mut self) {
        let Some(Inline { at, timing, text }) = self.inline.take() else {
            return;
        };
        if is_blank(&text) {
            return;
        }
        let script = EarlyScript {
            uses_platform: uses_platform(&text),
            ..EarlyScript::at(at, timing)
        };
        self.other(script, timing);
    }

    /// Keeps a script other than the runtime.
    fn other(&mut self, script: EarlyScript, timing: Timing) {
        let can_use = script.uses_platform || script.path.is_some();
        if !self.tags.is_empty()
            && timing != Timing::Deferred
            && can_use
            && self.early.len() < MAX_EARLY_SCRIPTS
        {
            self.early.push(script.clone());
        }
        self.before.get_or_insert(script);
    }

    fn script(&mut self, script: &Script, at: usize, page: Option<&Url>) {
        let Some(kind) = script.runs() else { return };
        let timing = script.timing(kind);
        let Some(src) = &script.src else {
            let text = String::new();
            self.inline = Some(Inline { at, timing, text });
            return;
        };
        if kind == Kind::Module {
            self.modules.push(src.clone());
        }
        match self.loads(src, page) {
            Loads::Nothing => {}
            Loads::Other(path) => {
                let script = EarlyScript {
                    src: Some(src.clone()),
                    path,
                    ..EarlyScript::at(at, timing)
                };
                self.other(script, timing);
            }
            Loads::Runtime => self.runtime(timing),
        }
    }

    /// A script in SVG has `href` in place of `src`, and no `defer`.
    fn svg_script(&mut self, element: &Element<'_, '_>, page: Option<&Url>) {
        let href = attribute(element, "href").or_else(|| attribute(element, "xlink:href"));
        match href.map(|href| self.loads(&href, page)) {
            Some(Loads::Runtime) => self.runtime(Timing::Blocking),
            Some(Loads::Nothing) => {}
            Some(Loads::Other(_)) | None => {
                let at = element.source_location().bytes().start;
                self.other(EarlyScript::at(at, Timing::Blocking), Timing::Blocking);
            }
        }
    }

    fn runtime(&mut self, timing: Timing) {
        let mut wrong = Vec::new();
        if self.place == Place::Body {
            wrong.push(WarningCode::InBody);
        }
        match timing {
            Timing::Async => wrong.push(WarningCode::Async),
            Timing::Blocking => wrong.push(WarningCode::NotDeferred),
            Timing::Deferred => {}
        }
        if self.before.is_some() {
            wrong.push(WarningCode::AfterScripts);
        }
        self.tags.push(wrong);
    }

    /// What a script with this address loads, at this point of the page.
    fn loads(&mut self, src: &str, page: Option<&Url>) -> Loads {
        let Some(page) = page.filter(|_| !src.is_empty()) else {
            return Loads::Nothing;
        };
        let Ok(url) = self.base.as_ref().unwrap_or(page).join(src) else {
            return Loads::Nothing;
        };
        let is_own = url.origin() == page.origin();
        if !url.path().ends_with(RUNTIME_JS) {
            let path = percent_decode_str(url.path().trim_start_matches('/')).decode_utf8();
            return Loads::Other(path.ok().filter(|_| is_own).map(Into::into));
        }
        if is_own && url.path() == RUNTIME_JS {
            return Loads::Runtime;
        }
        self.elsewhere
            .get_or_insert_with(|| src.trim().chars().take(MAX_NAME_CHARS).collect());
        Loads::Other(None)
    }
}

/// What a script's address leads to.
#[derive(Clone, Debug)]
enum Loads {
    /// It is not a valid address, so nothing runs.
    Nothing,
    /// The runtime, from the game's own address.
    Runtime,
    /// Something else; its path, if it is at the game's own address.
    Other(Option<String>),
}

fn script(element: &Element<'_, '_>) -> Script {
    let has = |name| element.has_attribute(name);
    Script {
        kind: attribute(element, "type"),
        language: attribute(element, "language"),
        src: attribute(element, "src"),
        is_async: has("async"),
        is_deferred: has("defer"),
        no_module: has("nomodule"),
        event_and_for: attribute(element, "event").zip(attribute(element, "for")),
    }
}

/// An attribute's value, with its character references resolved.
fn attribute(element: &Element<'_, '_>, name: &str) -> Option<String> {
    let value = element.get_attribute(name)?;
    Some(htmlize::unescape_attribute(value).into_owned())
}

#[cfg(test)]
mod tests;
