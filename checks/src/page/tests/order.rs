//! Where in a page the tag ends up, when it runs, and what runs before it.

use super::WarningCode::{AfterScripts, Async, InBody, NotDeferred};
use super::*;

const PLACES: &[Case] = &[
    ("in body", "<head></head><body>TAG</body>", &[InBody]),
    (
        "at the end of body",
        "<head></head><body><canvas></canvas>TAG</body>",
        &[InBody],
    ),
    (
        "no head is written",
        "<!doctype html><meta charset=utf-8><title>x</title>TAG<canvas></canvas>",
        &[],
    ),
    ("nothing is written", "TAG", &[]),
    (
        "no head is written, after a body",
        "<!doctype html><title>x</title><canvas></canvas>TAG",
        &[InBody],
    ),
    (
        "an element of the body in head",
        "<head><div></div>TAG</head>",
        &[InBody],
    ),
    ("text in head", "<head>hello TAG</head>", &[InBody]),
    (
        "a drawing in head",
        "<head><svg></svg>TAG</head>",
        &[InBody],
    ),
    (
        "between head and body",
        "<head></head>TAG<body></body>",
        &[],
    ),
    (
        "after a noscript in head",
        "<head><noscript><img src=x></noscript>TAG</head>",
        &[],
    ),
    (
        "after a noscript behind head",
        "<head></head><noscript></noscript>TAG<body></body>",
        &[InBody],
    ),
    (
        "after body",
        "<head></head><body></body>TAG</html>",
        &[InBody],
    ),
    (
        "after html",
        "<head></head><body></body></html>TAG",
        &[InBody],
    ),
    (
        "in a second head",
        "<head></head><body></body><head>TAG</head>",
        &[InBody],
    ),
    (
        "after what a template holds",
        "<head><template><div>text</div></template>TAG</head>",
        &[],
    ),
    (
        "in a drawing, as it may be",
        r#"<body><svg><script href="/__platform/runtime.js"/></svg></body>"#,
        &[InBody, NotDeferred],
    ),
];

#[test]
fn where_the_tag_ends_up_is_what_counts() {
    check(PLACES);
}

const MOMENTS: &[Case] = &[
    (
        "async",
        r#"<head><script async src="/__platform/runtime.js"></script></head>"#,
        &[Async],
    ),
    (
        "async wins over defer",
        r#"<head><script defer async src="/__platform/runtime.js"></script></head>"#,
        &[Async],
    ),
    (
        "an async module",
        r#"<head><script type=module async src="/__platform/runtime.js"></script></head>"#,
        &[Async],
    ),
    (
        "neither",
        r#"<head><script src="/__platform/runtime.js"></script></head>"#,
        &[NotDeferred],
    ),
    (
        "neither, in body",
        r#"<body><script src="/__platform/runtime.js"></script></body>"#,
        &[InBody, NotDeferred],
    ),
    (
        "async, in body",
        r#"<body><script async src="/__platform/runtime.js"></script></body>"#,
        &[InBody, Async],
    ),
];

#[test]
fn when_the_tag_runs_is_what_counts() {
    check(MOMENTS);
}

const SCRIPTS_BEFORE: &[Case] = &[
    (
        "after a script",
        "<head><script src=game.js></script>TAG</head>",
        &[AfterScripts],
    ),
    (
        "after a deferred one",
        "<head><script defer src=game.js></script>TAG</head>",
        &[AfterScripts],
    ),
    (
        "after a module",
        "<head><script type=module src=game.js></script>TAG</head>",
        &[AfterScripts],
    ),
    (
        "after an async one",
        "<head><script async src=game.js></script>TAG</head>",
        &[AfterScripts],
    ),
    (
        "after an inline one",
        "<head><script>start()</script>TAG</head>",
        &[AfterScripts],
    ),
    (
        "after an inline module",
        "<head><script type=module>start()</script>TAG</head>",
        &[AfterScripts],
    ),
    (
        "after one of another host",
        "<head><script src=https://cdn.example/engine.js></script>TAG</head>",
        &[AfterScripts],
    ),
    (
        "after another platform's runtime",
        "<head><script src=//cdn.example/__platform/runtime.js></script>TAG</head>",
        &[AfterScripts],
    ),
    (
        "after scripts in body",
        "<body><script src=game.js></script>TAG</body>",
        &[InBody, AfterScripts],
    ),
    (
        "everything at once",
        r#"<body><script>start()</script><script async src="/__platform/runtime.js"></script></body>"#,
        &[InBody, Async, AfterScripts],
    ),
    (
        "after a script in a drawing",
        "<body><svg><script>start()</script></svg>TAG</body>",
        &[InBody, AfterScripts],
    ),
    (
        "before scripts",
        "<head>TAG<script type=module src=game.js></script><script>start()</script></head>",
        &[],
    ),
    (
        "after data",
        r#"<head><script type="application/json">{"a":1}</script>TAG</head>"#,
        &[],
    ),
    (
        "after an import map",
        r#"<head><script type="importmap">{"imports":{}}</script>TAG</head>"#,
        &[],
    ),
    (
        "after a shader",
        "<head><script type=x-shader/x-vertex>void main() {}</script>TAG</head>",
        &[],
    ),
    (
        "after a script for old browsers",
        "<head><script nomodule src=old.js></script>TAG</head>",
        &[],
    ),
    (
        "after an empty script",
        "<head><script> </script><script src=''></script>TAG</head>",
        &[],
    ),
    (
        "after a script in a template",
        "<head><template><script src=game.js></script></template>TAG</head>",
        &[],
    ),
    (
        "after a script in a comment",
        "<head><!-- <script src=game.js></script> -->TAG</head>",
        &[],
    ),
];

#[test]
fn a_script_that_runs_before_the_tag_is_one_too_many() {
    check(SCRIPTS_BEFORE);
}

/// What a page with two files of its own is told.
fn messages(html: &str) -> Vec<String> {
    let files = |path: &str| match path {
        "game.js" => Some("platform.fetch('/api/me');".to_owned()),
        "a b/engine.js" => Some("start();".to_owned()),
        _ => None,
    };
    let html = html.replace("TAG", TAG);
    let warnings = warnings_with(&html, &files).into_iter();
    warnings
        .map(|warning| {
            assert_eq!(warning.code, AfterScripts);
            warning.message
        })
        .collect()
}

#[test]
fn a_script_that_uses_platform_before_the_runtime_is_named_with_its_line() {
    for (html, named) in [
        (
            "<head>TAG\n<script>platform.player()</script></head>",
            "in line 2",
        ),
        (
            "<head>TAG\n\n<script async src=game.js></script>",
            "\"game.js\" in line 3 with async",
        ),
        (
            "<head>TAG</head>\n<script src='/game.js?v=2'></script>",
            "\"/game.js?v=2\" in line 2",
        ),
        (
            "<head>TAG<script type=module async>await platform.player()</script>",
            "in line 1",
        ),
        (
            "<head>\n<script src=x.js></script>TAG",
            "The first of them is \"x.js\" in line 2.",
        ),
        (
            "<head>\n\n<script>start()</script>TAG",
            "The first of them is the one in line 3.",
        ),
    ] {
        let said = messages(html);
        assert_eq!(said.len(), 1, "{html}: {said:?}");
        assert!(said[0].contains(named), "{html}: {said:?}");
    }
    for html in [
        "TAG<script defer src=game.js></script>",
        "TAG<script type=module>platform.player()</script>",
        "TAG<script type=module src=game.js></script>",
        "TAG<script src='a%20b/engine.js'></script><script async src=other.js></script>",
        "TAG<script>addEventListener('load', () => platform.player())</script>",
        "TAG<script src=https://cdn.example/game.js></script>",
        "TAG<template><script>platform.player()</script></template>",
    ] {
        assert_eq!(messages(html), [""; 0], "{html}");
    }
    let many = format!("TAG{}", "\n<script>platform.x</script>".repeat(50_000));
    assert_eq!(messages(&many).len(), 1);
}
