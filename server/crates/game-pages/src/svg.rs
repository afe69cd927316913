//! Which SVG lists may show. A browser draws it anew in every list, on one thread, without a limit of time;
//! so it may contain only what is drawn in a time that its length bounds.
//!
//! A document is measured in bytes: those of each element, once for each time that it is drawn. Elements
//! that need a picture of their own while they are drawn, such as masks, count for more.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use roxmltree::{Document, Node, NodeId, ParsingOptions};

/// The maximum number of bytes of a cover in SVG.
pub const MAX_SVG_BYTES: usize = 64 * 1024;
/// The maximum number of bytes that are drawn, where an element that is drawn twice counts twice.
const MAX_DRAWN_BYTES: usize = 128 * 1024;
/// What a picture of its own adds to an element: for opacity, blending, a mask, or a reference.
const LAYER_BYTES: usize = 256;
/// The maximum depth of elements, including those that others refer to.
const MAX_DEPTH: usize = 64;
/// The maximum number of nodes that are read.
const MAX_NODES: u32 = 64 * 1024;

const NAMESPACE: &str = "http://www.w3.org/2000/svg";

/// The elements that may be drawn. Filters take a second for each primitive; markers draw their content at
/// every point of a path; animations never end; `image`, `style` and `foreignObject` contain what is not
/// measured here.
const ELEMENTS: [&str; 27] = [
    "a",
    "circle",
    "clipPath",
    "defs",
    "desc",
    "ellipse",
    "g",
    "line",
    "linearGradient",
    "mask",
    "metadata",
    "path",
    "pattern",
    "polygon",
    "polyline",
    "radialGradient",
    "rect",
    "stop",
    "svg",
    "switch",
    "symbol",
    "text",
    "textPath",
    "title",
    "tspan",
    "use",
    "view",
];

/// Parts of names of properties for which an element is drawn into a picture of its own.
const LAYER_PROPERTIES: [&str; 5] = ["opacity", "mask", "clip-path", "blend", "isolation"];
/// Properties that are named like others, but belong to a colour, or to filters that are not there.
const HARMLESS_PROPERTIES: [&str; 4] = [
    "fill-opacity",
    "stroke-opacity",
    "stop-opacity",
    "color-interpolation-filters",
];

/// Why SVG is not shown.
const NOT_WELL_FORMED: &str = "is SVG that is not well-formed XML";
const TOO_MUCH: &str =
    "is SVG that takes long to draw: its elements are nested or repeated too often";

/// Returns the reason why SVG must not be shown, if there is one.
pub(crate) fn refuse(content: &[u8]) -> Option<&'static str> {
    if content.len() > MAX_SVG_BYTES {
        return Some("is SVG of more than 64 KiB");
    }
    let Ok(text) = std::str::from_utf8(content) else {
        return Some("is SVG in another encoding than UTF-8");
    };
    refuse_words(text).or_else(|| refuse_drawing(text))
}

/// Returns the reason why the text of a document must not be shown. What this refuses, no parser needs to
/// understand.
fn refuse_words(text: &str) -> Option<&'static str> {
    // Some encodings, which a document may declare for itself, leave such characters out: they would
    // hide every word. In UTF-8 they make no SVG (XML 1.0 §2.2).
    let is_blank = |char| matches!(char, '\t' | '\n' | '\r');
    if text.contains(|char: char| char.is_control() && !is_blank(char)) {
        return Some("is SVG with control characters");
    }
    // In attributes, characters may be written as references; and addresses are read without line
    // breaks and tabs.
    let text = htmlize::unescape(text).replace(is_blank, "");
    let text = text.to_ascii_lowercase();
    let within = [
        "<image",
        ":image",
        "feimage",
        "foreignobject",
        "<!entity",
        // Gives attributes to elements that do not have them.
        "<!attlist",
        "<style",
        ":style",
        "<?xml-stylesheet",
        "@import",
        "data:",
        // Style sheets write any character so.
        "\\",
    ];
    let is_elsewhere = |rest: &str| {
        let address = rest.trim_start().trim_start_matches(['"', '\'']);
        !address.starts_with('#')
    };
    let mut addresses = text.split("url(").skip(1);
    (within.iter().any(|name| text.contains(name)) || addresses.any(is_elsewhere))
        .then_some("is SVG that contains images, style sheets, entities or other documents")
}

/// Returns the reason why a document takes too long to draw.
fn refuse_drawing(text: &str) -> Option<&'static str> {
    let options = ParsingOptions {
        allow_dtd: true,
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    let Ok(document) = Document::parse_with_options(text, options) else {
        return Some(NOT_WELL_FORMED);
    };
    let mut ids = HashMap::new();
    for element in document.descendants().filter(Node::is_element) {
        if let Some(why) = refuse_element(&element) {
            return Some(why);
        }
        for id in element.attributes().filter(|one| one.name() == "id") {
            if !id.value().chars().all(is_of_id) {
                return Some(
                    "is SVG with an id that has other signs than letters, digits and _.:-",
                );
            }
            // A document with an id twice may be drawn with either.
            if ids.insert(id.value(), element.id()).is_some() {
                return Some("is SVG with an id that two elements have");
            }
        }
    }
    let mut drawing = Drawing {
        document: &document,
        ids,
        measured: HashMap::new(),
    };
    let drawn = drawing.measure(document.root_element(), 0);
    drawn
        .is_none_or(|drawn| drawn.bytes > MAX_DRAWN_BYTES)
        .then_some(TOO_MUCH)
}

/// Returns the reason why an element must not be drawn at all.
fn refuse_element(element: &Node<'_, '_>) -> Option<&'static str> {
    let name = element.tag_name();
    match name.namespace() {
        Some(NAMESPACE) if !ELEMENTS.contains(&name.name()) => {
            return Some(
                "is SVG with filters, markers, animations or other elements that take long to draw",
            );
        }
        Some("http://www.w3.org/1999/xhtml") => return Some("is SVG that contains HTML"),
        // Programs that draw add elements of their own, which browsers do not show.
        _ => {}
    }
    // A browser makes a million dashes of a line if it is told to.
    let is_refused = |name: &str| name.contains("filter") || name.contains("dasharray");
    let has_refused = properties(element).iter().any(|name| is_refused(name));
    has_refused.then_some("is SVG with filters or dashed lines, which take long to draw")
}

/// Returns the names of an element's properties that have an effect: its attributes, and the declarations
/// of its `style`.
fn properties(element: &Node<'_, '_>) -> Vec<String> {
    if element.tag_name().namespace() != Some(NAMESPACE) {
        return Vec::new();
    }
    let has_effect = |(name, value): &(&str, &str)| {
        !matches!(*value, "none" | "1" | "normal" | "auto") && !HARMLESS_PROPERTIES.contains(name)
    };
    let mut names = Vec::new();
    for attribute in element.attributes().filter(|one| one.namespace().is_none()) {
        let value = attribute.value().to_ascii_lowercase();
        let name = attribute.name().to_ascii_lowercase();
        let declarations = if name == "style" { &*value } else { "" };
        let declarations = declarations
            .split(';')
            .filter_map(|declaration| declaration.split_once(':'));
        let pairs = declarations.chain([(&*name, &*value)]);
        let pairs = pairs.map(|(name, value)| (name.trim(), value.trim()));
        names.extend(pairs.filter(has_effect).map(|(name, _)| name.to_owned()));
    }
    names
}

/// Whether an id may contain a character. It then stands in every reference as it is, or percent-encoded.
fn is_of_id(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '.' | ':' | '-')
}

/// What an element draws, together with what is in it and what it refers to.
#[derive(Clone, Copy, Debug)]
struct DrawingCost {
    bytes: usize,
    depth: usize,
}

/// A document that is being measured.
struct Drawing<'a, 'text> {
    document: &'a Document<'text>,
    ids: HashMap<&'a str, NodeId>,
    /// The elements that were begun; `None` until they are complete.
    measured: HashMap<NodeId, Option<DrawingCost>>,
}

impl<'a, 'text> Drawing<'a, 'text> {
    /// Returns what an element draws that is at `depth`; `None` if that is too much: it is too deep, or
    /// contains itself.
    fn measure(&mut self, element: Node<'a, 'text>, depth: usize) -> Option<DrawingCost> {
        let before = self.measured.get(&element.id()).copied();
        let drawn = match before {
            Some(complete) => complete?,
            None if depth > MAX_DEPTH => return None,
            None => {
                self.measured.insert(element.id(), None);
                let drawn = self.measure_anew(element, depth)?;
                self.measured.insert(element.id(), Some(drawn));
                drawn
            }
        };
        (depth + drawn.depth <= MAX_DEPTH && drawn.bytes <= MAX_DRAWN_BYTES).then_some(drawn)
    }

    fn measure_anew(&mut self, element: Node<'a, 'text>, depth: usize) -> Option<DrawingCost> {
        let mut drawn = DrawingCost {
            bytes: element.range().len() + LAYER_BYTES * layers(&element),
            depth: 0,
        };
        let mut add = |part: DrawingCost| {
            drawn.bytes += part.bytes;
            drawn.depth = drawn.depth.max(part.depth + 1);
        };
        for child in element.children().filter(Node::is_element) {
            let mut part = self.measure(child, depth + 1)?;
            // Its own text is counted with that of this element.
            part.bytes -= child.range().len();
            add(part);
        }
        for id in element.attributes().flat_map(|one| references(one.value())) {
            if let Some(target) = self.ids.get(&*id) {
                let target = self.document.get_node(*target)?;
                let mut part = self.measure(target, depth + 1)?;
                part.bytes += LAYER_BYTES;
                add(part);
            }
        }
        Some(drawn)
    }
}

/// Returns how many pictures of its own an element needs.
fn layers(element: &Node<'_, '_>) -> usize {
    let is_layer = |name: &&String| LAYER_PROPERTIES.iter().any(|part| name.contains(part));
    properties(element).iter().filter(is_layer).count()
}

/// Returns the ids that the value of an attribute may refer to: a colour looks like one.
fn references(value: &str) -> Vec<String> {
    // Addresses are read without these, and decoded.
    let value = value.replace(['\t', '\n', '\r'], "");
    let value = percent_decode_str(&value).decode_utf8_lossy();
    let parts = value.split('#').skip(1);
    parts
        .map(|part| {
            part.trim_start()
                .chars()
                .take_while(|char| is_of_id(*char))
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg(inside: &str) -> String {
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' xmlns:s='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'>{inside}</svg>"
        )
    }

    fn is_shown(inside: &str) -> bool {
        refuse(svg(inside).as_bytes()).is_none()
    }

    /// As many copies of a text as fit into a document.
    fn many(part: &str) -> String {
        part.repeat((MAX_SVG_BYTES - 4_096) / part.len())
    }

    #[test]
    fn a_drawing_is_shown() {
        for inside in [
            "<circle r='9'/><use href='#a'/>",
            "<g fill='url(#a)' mask=\"url('#b')\" clip-path='url(&quot;#c&quot;)'/>\r\n\t<title>&#xe4; filter</title>",
            "<metadata><x:y xmlns:x='urn:inkscape' style='filter'/></metadata>",
            &many(
                "<path style='opacity:1;filter:none;stroke-dasharray:none;color-interpolation-filters:auto'/>",
            ),
            "<linearGradient id='a'><stop offset='1'/></linearGradient><rect fill='url(#a)'/>",
            &many("<path fill='#aabbcc' stroke='#fff' fill-opacity='.5' d='M0 0L99 99'/>"),
            &"<use href='#a'/>".repeat(64),
            &("<g>".repeat(50) + &"</g>".repeat(50)),
        ] {
            assert_eq!(refuse(svg(inside).as_bytes()), None, "{inside:.200}");
        }
        let doctype = "<?xml version='1.0'?><!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' 'http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd'>";
        assert_eq!(refuse((doctype.to_owned() + &svg("")).as_bytes()), None);
    }

    #[test]
    fn svg_is_short_and_contains_no_images() {
        assert!(!is_shown(&" ".repeat(MAX_SVG_BYTES)));
        for inside in [
            "<image href='data:image/png;base64,AA'/>",
            "<s:IMAGE href='a.png'/>",
            "<filter><feImage href='a.png'/></filter>",
            "<foreignObject/>",
            "<!ENTITY a 'b'>",
            "<style>*{background:url(a.png)}</style>",
            "<g style='background-image:url(data:image/webp;base64,AA)'/>",
            "<g style='background-image: URL( \"a.webp\")'/>",
            "<g style='background-image:\\75rl(a.webp)'/>",
            "<?xml-stylesheet href='a.css'?>",
            "<g style='background:&#117;rl(a.webp)'/>",
            "<g style='background:image-set(\"&#x64;ata:image/webp;base64,AA\")'/>",
            "<g style='background:image-set(\"da&#9;ta:image/webp;base64,AA\")'/>",
            "<g style='background:&#92;75rl(a.webp)'/>",
            // In ISO-2022-JP this is an image.
            "<i\u{1b}(Bmage/>",
            "<h:link xmlns:h='http://www.w3.org/1999/xhtml' rel='stylesheet' href='a.css'/>",
        ] {
            assert!(!is_shown(inside), "{inside}");
        }
        let wide: Vec<u8> = "<svg/>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(refuse(&[b"\xff\xfe".to_vec(), wide].concat()).is_some());
        let attributes = "<!DOCTYPE svg [<!ATTLIST rect filter CDATA 'url(#f)'>]>".to_owned();
        assert!(refuse((attributes + &svg("")).as_bytes()).is_some());
        assert!(refuse(b"<svg xmlns='http://www.w3.org/2000/svg'><g></svg>").is_some());
    }

    /// Each of these took a browser seconds, some of them more than a minute.
    #[test]
    fn what_takes_long_to_draw_is_not_shown() {
        let rect = "<rect width='640' height='360'/>";
        let fan = |level: u32| {
            let uses = format!("<use href='#a{level}'/>").repeat(4);
            format!("<g id='a{}'>{uses}</g>", level + 1)
        };
        let nested = |open: &str, inside: &str| open.repeat(400) + inside + &"</g>".repeat(400);
        for inside in [
            format!(
                "<filter id='f'>{}</filter>",
                many("<feGaussianBlur stdDeviation='9'/>")
            ),
            "<s:filter/>".to_owned(),
            "<feTurbulence numOctaves='9'/>".to_owned(),
            "<rect filter='blur(9px)'/>".to_owned(),
            "<rect style='Filter:drop-shadow(0 0 9px red)'/>".to_owned(),
            "<g style='backdrop-filter:blur(9px)'/>".to_owned(),
            "<path stroke-dasharray='.001' d='M0 0h9999'/>".to_owned(),
            "<path style='stroke-dasharray:.001' d='M0 0h9999'/>".to_owned(),
            "<marker id='m'/><path marker-mid='url(#m)'/>".to_owned(),
            "<rect><animate attributeName='x'/></rect>".to_owned(),
            "<set/>".to_owned(),
            // What others refer to is drawn again and again.
            format!(
                "<g id='a0'>{}</g>{}",
                rect.repeat(100),
                (0..4).map(fan).collect::<String>()
            ),
            format!(
                "<mask id='m'>{}</mask>{}",
                rect.repeat(30),
                "<g mask='url(#m)'/>".repeat(200)
            ),
            format!(
                "<pattern id='m'>{rect}</pattern>{}",
                many("<rect fill='url( &#39;#%6d&#39; )'/>")
            ),
            format!(
                "<linearGradient id='a'>{}</linearGradient>{}",
                "<stop/>".repeat(3_000),
                "<rect fill='url(#a)'/>".repeat(99)
            ),
            format!(
                "<g id='ab'>{}</g>{}",
                rect.repeat(99),
                "<use xlink:href='#a&#9;b'/>".repeat(99)
            ),
            format!(
                "<g id='a'>{}</g>{}",
                rect.repeat(99),
                "<use href='a.svg#a'/>".repeat(99)
            ),
            // Pictures of their own.
            many("<g opacity='.9'><rect/></g>"),
            many("<g style='mix-blend-mode:hue'/>"),
            nested("<g opacity='.9'>", rect),
            nested("<g>", rect),
            "<g id='a'><use href='#a'/></g>".to_owned(),
            "<g id='a'/><g id='a'/>".to_owned(),
            "<g id='a b'/>".to_owned(),
            (0..200)
                .map(|at| format!("<g id='b{at}'><use href='#b{}'/></g>", at + 1))
                .collect(),
        ] {
            assert!(!is_shown(&inside), "{inside:.200}");
        }
    }
}
