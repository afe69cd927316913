//! Reads the forms of a page as a browser would: their targets and their hidden fields.

use std::collections::BTreeMap;

/// One form of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Where it is submitted.
    pub action: String,
    /// The hidden fields, in their order.
    pub hidden: Vec<(String, String)>,
}

impl Form {
    /// Returns the value of the hidden field `name`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.hidden.iter();
        fields
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Returns every form of a page.
#[must_use]
pub fn forms(html: &str) -> Vec<Form> {
    let mut forms: Vec<Form> = Vec::new();
    for tag in html.split('<').skip(1) {
        let Some(tag) = tag.split('>').next() else {
            continue;
        };
        let Some((name, rest)) = tag.split_once(char::is_whitespace) else {
            continue;
        };
        let attributes = attributes(rest);
        let attribute = |name| attributes.get(name).cloned().unwrap_or_default();
        if name == "form" {
            forms.push(Form {
                action: attribute("action"),
                hidden: Vec::new(),
            });
        } else if name == "input"
            && attribute("type") == "hidden"
            && let Some(form) = forms.last_mut()
        {
            form.hidden.push((attribute("name"), attribute("value")));
        }
    }
    forms
}

/// Returns the attributes of a tag. Values are quoted, as askama's templates write them.
fn attributes(mut rest: &str) -> BTreeMap<String, String> {
    let mut attributes = BTreeMap::new();
    while let Some((name, after)) = rest.split_once("=\"") {
        let Some((value, after)) = after.split_once('"') else {
            break;
        };
        let name = name.split_whitespace().last().unwrap_or_default();
        attributes.insert(name.to_owned(), unescape(value));
        rest = after;
    }
    attributes
}

/// Decodes the character references in a text.
fn unescape(text: &str) -> String {
    let mut pieces = text.split('&');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (reference, rest) = piece.split_once(';').unwrap_or((piece, ""));
        let number = reference.strip_prefix('#').and_then(|number| {
            number
                .strip_prefix('x')
                .map_or(number.parse(), |number| u32::from_str_radix(number, 16))
                .ok()
        });
        let named = match reference {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            _ => number.and_then(char::from_u32),
        };
        plain.push(named.unwrap_or('\u{fffd}'));
        plain.push_str(rest);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_with_their_hidden_fields() {
        let html = r#"<p>a &lt; b</p><form method="post" action="/login/a">
            <input type="hidden" name="csrf" value="x&#38;y&quot;&#x3c;">
            <input name="typed" value="no"><button>Go</button></form>
            <form action="/b"></form>"#;
        let forms = forms(html);
        assert_eq!(forms.len(), 2);
        assert_eq!(forms[0].action, "/login/a");
        assert_eq!(forms[0].hidden, [("csrf".into(), "x&y\"<".into())]);
        assert_eq!(forms[0].field("csrf"), Some("x&y\"<"));
        assert_eq!(forms[0].field("typed"), None);
        assert_eq!(forms[1].action, "/b");
    }
}
