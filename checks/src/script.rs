//! What a browser makes of one script element (HTML, "prepare the script
//! element").

/// The essences of JavaScript's media types (WHATWG MIME Sniffing, "JavaScript
/// MIME type").
const JAVASCRIPT: [&str; 16] = [
    "application/ecmascript",
    "application/javascript",
    "application/x-ecmascript",
    "application/x-javascript",
    "text/ecmascript",
    "text/javascript",
    "text/javascript1.0",
    "text/javascript1.1",
    "text/javascript1.2",
    "text/javascript1.3",
    "text/javascript1.4",
    "text/javascript1.5",
    "text/jscript",
    "text/livescript",
    "text/x-ecmascript",
    "text/x-javascript",
];

/// How a script element is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As a classic script.
    Classic,
    /// As a module.
    Module,
}

/// When a script is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// Where it stands; the parser waits for it.
    Blocking,
    /// After parsing, in the order of the document.
    Deferred,
    /// As soon as it has arrived.
    Async,
}

/// The attributes of a script element, as far as they decide whether and when
/// it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) kind: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) src: Option<String>,
    pub(crate) is_async: bool,
    pub(crate) is_deferred: bool,
    pub(crate) no_module: bool,
    pub(crate) event_and_for: Option<(String, String)>,
}

impl Script {
    /// How it is run; none for data, and for what today's browsers leave out.
    pub(crate) fn runs(&self) -> Option<Kind> {
        let kind = match (self.kind.as_deref(), self.language.as_deref()) {
            (Some(""), _) | (None, None | Some("")) => Kind::Classic,
            (Some(kind), _) => by_type(kind)?,
            (None, Some(language)) => by_type(&format!("text/{language}"))?,
        };
        if kind == Kind::Module {
            return Some(Kind::Module);
        }
        let other_event = self.event_and_for.as_ref().is_some_and(|(event, target)| {
            let event = event.trim_ascii();
            !target.trim_ascii().eq_ignore_ascii_case("window")
                || !["onload", "onload()"]
                    .iter()
                    .any(|load| event.eq_ignore_ascii_case(load))
        });
        (!self.no_module && !other_event).then_some(Kind::Classic)
    }

    /// When it is run, if it is.
    pub(crate) fn timing(&self, kind: Kind) -> Timing {
        match (kind, self.is_async, self.is_deferred) {
            (_, true, _) if self.src.is_some() || kind == Kind::Module => Timing::Async,
            (Kind::Module, ..) => Timing::Deferred,
            (Kind::Classic, _, true) if self.src.is_some() => Timing::Deferred,
            (Kind::Classic, ..) => Timing::Blocking,
        }
    }
}

fn by_type(kind: &str) -> Option<Kind> {
    let kind = kind.trim_ascii().to_ascii_lowercase();
    if kind == "module" {
        Some(Kind::Module)
    } else {
        JAVASCRIPT.contains(&kind.as_str()).then_some(Kind::Classic)
    }
}
