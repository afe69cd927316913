//! Frontend log records of somebody who means harm to whoever reads them: markup,
//! addresses that are scripts, commands to terminals, marks that turn, hide or
//! move the text around them.

use serde_json::{Value, json};

/// The texts, one kind of harm each.
///
/// # Panics
/// When the table beside this crate is none.
#[must_use]
pub fn texts() -> Vec<String> {
    serde_json::from_str(include_str!("../hostile_texts.json")).expect("a list of texts")
}

/// A record for each of them, which has it in every member that takes a text.
/// In front of each message stands its number.
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

/// A stack with it as the title, as a call, and as an address, in the ways in
/// which engines write frames.
fn stack(text: &str) -> String {
    format!(
        "Error: {text}\n    at {text} (javascript:hurt=1:1:2)\n    at f (https://evil.example/{text}:3:4)\n\
         {text}@https://evil.example/a.js:5:6\ng@data:text/html,{text}:7:8\n    at {text}"
    )
}
