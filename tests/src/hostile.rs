//! Malicious frontend log records, which try to harm their readers: markup, `javascript:`
//! addresses, terminal control sequences, characters that reverse, hide or move the surrounding
//! text.

use serde_json::{Value, json};

/// Returns the texts, one for each kind of attack.
///
/// # Panics
/// Panics if the table next to this crate is invalid.
#[must_use]
pub fn texts() -> Vec<String> {
    serde_json::from_str(include_str!("../hostile_texts.json")).expect("a list of texts")
}

/// Returns a record for each of them, which contains it in every text member. Each message starts
/// with its number.
#[must_use]
pub fn records() -> Vec<Value> {
    let all = texts().into_iter().enumerate();
    all.map(|(number, text)| {
        json!({
            "time": 0,
            "level": "error",
            "source": "report",
            "message": format!("{number}: {text}"),
            "stack": stack(&text),
            "url": text,
            "line": 1,
            "column": 2,
            "metadata": {
                &text: [&text, { "__proto__": &text, "constructor": &text, "toString": &text }],
                "innerHTML": &text, "href": &text, "srcdoc": &text, "style": &text,
            },
        })
    })
    .collect()
}

/// Returns a stack with the text as the title, as a function name, and as an address, in the
/// formats that engines use for frames.
fn stack(text: &str) -> String {
    format!(
        "Error: {text}\n    at {text} (javascript:hurt=1:1:2)\n    at f (https://evil.example/{text}:3:4)\n\
         {text}@https://evil.example/a.js:5:6\ng@data:text/html,{text}:7:8\n    at {text}"
    )
}
