//! Where in the document the parser is: what a browser puts into `<head>` and what into `<body>`,
//! whatever tags were written (HTML, "tree construction").

/// The part of the document that the next element goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// In `<head>`, written or not, or before it.
    #[default]
    Head,
    /// After `</head>`. Scripts are put into `<head>` all the same.
    AfterHead,
    /// In `<body>`, written or not, or after it.
    Body,
    /// In `<frameset>`, where no script runs.
    Frames,
}

impl Place {
    /// Where the parser is after the start tag of this element.
    pub(crate) fn after_start_tag(self, name: &str) -> Self {
        match (self, name) {
            (Place::Body | Place::Frames, _) => self,
            (_, "frameset") => Place::Frames,
            (_, "html" | "head" | "base" | "basefont" | "bgsound" | "link" | "meta")
            | (_, "noframes" | "script" | "style" | "template" | "title")
            | (Place::Head, "noscript") => self,
            _ => Place::Body,
        }
    }

    /// Where the parser is after this text.
    pub(crate) fn after_text(self, text: &str) -> Self {
        match self {
            Place::Head | Place::AfterHead if !is_blank(text) => Place::Body,
            _ => self,
        }
    }
}

/// Whether the text is only what HTML calls ASCII whitespace.
pub(crate) fn is_blank(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c'))
}
