//! Whether a page has the tag, however it is written.

use super::*;

const THERE: &[Case] = &[
    (
        "as documented",
        "<!doctype html><html><head>TAG</head><body></body></html>",
        &[],
    ),
    (
        "upper case",
        r#"<HTML><HEAD><SCRIPT DEFER SRC="/__platform/runtime.js"></SCRIPT></HEAD>"#,
        &[],
    ),
    (
        "unquoted",
        "<head><script defer src=/__platform/runtime.js></script></head>",
        &[],
    ),
    (
        "single quotes",
        "<head><script src='/__platform/runtime.js' defer></script></head>",
        &[],
    ),
    (
        "defer with a value",
        r#"<head><script defer="false" src="/__platform/runtime.js"></script></head>"#,
        &[],
    ),
    (
        "over several lines",
        "<head>\n<script\n  defer\n  src=\"/__platform/runtime.js\"\n></script>\n</head>",
        &[],
    ),
    (
        "space around the address",
        "<head><script defer src=\" \n/__platform/runtime.js \"></script></head>",
        &[],
    ),
    (
        "character references",
        r#"<head><script defer src="&#x2f;&lowbar;_platform&sol;runtime.js"></script></head>"#,
        &[],
    ),
    (
        "backslashes are slashes",
        r#"<head><script defer src="\__platform\runtime.js"></script></head>"#,
        &[],
    ),
    (
        "dots are resolved",
        r#"<head><script defer src="/x/../__platform/./runtime.js"></script></head>"#,
        &[],
    ),
    (
        "a query",
        r#"<head><script defer src="/__platform/runtime.js?v=2"></script></head>"#,
        &[],
    ),
    (
        "a fragment",
        r#"<head><script defer src="/__platform/runtime.js#x"></script></head>"#,
        &[],
    ),
    (
        "a relative path of the start page",
        r#"<head><script defer src="__platform/runtime.js"></script></head>"#,
        &[],
    ),
    (
        "the same with ./",
        r#"<head><script defer src="./__platform/runtime.js"></script></head>"#,
        &[],
    ),
    (
        "type text/javascript",
        r#"<head><script type="Text/JavaScript" defer src="/__platform/runtime.js"></script></head>"#,
        &[],
    ),
    (
        "an empty type",
        r#"<head><script type="" defer src="/__platform/runtime.js"></script></head>"#,
        &[],
    ),
    (
        "an old language",
        r#"<head><script language="JavaScript1.2" defer src="/__platform/runtime.js"></script></head>"#,
        &[],
    ),
    (
        "a module is deferred by itself",
        r#"<head><script type="module" src="/__platform/runtime.js"></script></head>"#,
        &[],
    ),
    (
        "attributes of bundlers",
        r#"<head><script defer vite-ignore data-cfasync="false" crossorigin src="/__platform/runtime.js"></script></head>"#,
        &[],
    ),
    (
        "a byte order mark",
        "\u{feff}<!doctype html><title>x</title>TAG",
        &[],
    ),
    (
        "old browsers' event",
        r#"<head><script defer for=window event=" onload() " src="/__platform/runtime.js"></script></head>"#,
        &[],
    ),
    (
        "a second attribute of that name is none",
        r#"<head><script defer src="/__platform/runtime.js" src="x.js"></script></head>"#,
        &[],
    ),
    (
        "a tag that is never closed",
        r#"<head><script defer src="/__platform/runtime.js">"#,
        &[],
    ),
    (
        "a text inside is not run",
        r#"<head><script defer src="/__platform/runtime.js">x()</script></head>"#,
        &[],
    ),
    (
        "with a comment before",
        "<!-- hello --><!doctype html><!-- TAG --><head>TAG</head>",
        &[],
    ),
    ("twice", "<head>TAG TAG</head>", &[]),
    (
        "twice, the second in the body",
        "<head>TAG</head><body>TAG</body>",
        &[],
    ),
    (
        "twice, the first of them async",
        r#"<head><script async src="/__platform/runtime.js"></script>TAG</head>"#,
        &[],
    ),
];

#[test]
fn a_tag_that_is_there_is_found_however_it_is_written() {
    check(THERE);
}

const NOT_THERE: &[Case] = &[
    ("an empty page", "", &[NotLoaded]),
    (
        "no tag",
        "<head><script type=module src=/main.js></script></head><canvas></canvas>",
        &[NotLoaded],
    ),
    ("in a comment", "<head><!-- TAG --></head>", &[NotLoaded]),
    (
        "in a comment that never ends",
        "<head><!-- TAG </head>",
        &[NotLoaded],
    ),
    (
        "in noscript",
        "<head><noscript>TAG</noscript></head>",
        &[NotLoaded],
    ),
    (
        "in a noscript of the body",
        "<body><noscript>TAG</noscript></body>",
        &[NotLoaded],
    ),
    (
        "in a template",
        "<head><template>TAG</template></head>",
        &[NotLoaded],
    ),
    (
        "in a template of a template",
        "<head><template><template></template>TAG</template></head>",
        &[NotLoaded],
    ),
    (
        "in a title",
        "<head><title>TAG</title></head>",
        &[NotLoaded],
    ),
    (
        "in a textarea",
        "<body><textarea>TAG</textarea></body>",
        &[NotLoaded],
    ),
    (
        "in a style",
        "<head><style>TAG</style></head>",
        &[NotLoaded],
    ),
    (
        "in another script",
        "<head><script>const tag = `<script defer src=\"/__platform/runtime.js\">`;</script></head>",
        &[NotLoaded],
    ),
    (
        "in an iframe",
        "<body><iframe>TAG</iframe></body>",
        &[NotLoaded],
    ),
    (
        "as text",
        "<body>&lt;script defer src=\"/__platform/runtime.js\"&gt;</body>",
        &[NotLoaded],
    ),
    (
        "preloaded alone",
        r#"<head><link rel=preload as=script href="/__platform/runtime.js"></head>"#,
        &[NotLoaded],
    ),
    (
        "in data-src",
        r#"<head><script defer data-src="/__platform/runtime.js"></script></head>"#,
        &[NotLoaded],
    ),
    (
        "for browsers without modules",
        r#"<head><script nomodule defer src="/__platform/runtime.js"></script></head>"#,
        &[NotLoaded],
    ),
    (
        "as data",
        r#"<head><script type="text/plain" src="/__platform/runtime.js"></script></head>"#,
        &[NotLoaded],
    ),
    (
        "a type with parameters is unknown",
        r#"<head><script type="text/javascript; charset=utf-8" src="/__platform/runtime.js"></script></head>"#,
        &[NotLoaded],
    ),
    (
        "another language",
        r#"<head><script language="vbscript" src="/__platform/runtime.js"></script></head>"#,
        &[NotLoaded],
    ),
    (
        "another event",
        r#"<head><script for=button event=onclick src="/__platform/runtime.js"></script></head>"#,
        &[NotLoaded],
    ),
    (
        "an empty address",
        r#"<head><script defer src=""></script></head>"#,
        &[NotLoaded],
    ),
    (
        "an address that is none",
        r#"<head><script defer src="http://[/__platform/runtime.js"></script></head>"#,
        &[NotLoaded],
    ),
    (
        "another host",
        r#"<head><script defer src="//cdn.example/__platform/runtime.js"></script></head>"#,
        &[NotLoaded],
    ),
    (
        "another host, in full",
        r#"<head><script defer src="https://demo.example/__platform/runtime.js"></script></head>"#,
        &[NotLoaded],
    ),
    (
        "a path in upper case",
        r#"<head><script defer src="/__PLATFORM/runtime.js"></script></head>"#,
        &[NotLoaded],
    ),
    (
        "a path that is encoded",
        r#"<head><script defer src="/__platform/%72untime.js"></script></head>"#,
        &[NotLoaded],
    ),
    (
        "another file",
        r#"<head><script defer src="/__platform/runtime.js.map"></script></head>"#,
        &[NotLoaded],
    ),
    (
        "a folder before",
        r#"<head><script defer src="/game/__platform/runtime.js"></script></head>"#,
        &[NotLoaded],
    ),
    (
        "a drawing's script has no src",
        r#"<body><svg><script src="/__platform/runtime.js"></script></svg></body>"#,
        &[NotLoaded],
    ),
    (
        "in a frameset",
        "<head></head><frameset>TAG</frameset>",
        &[NotLoaded],
    ),
];

#[test]
fn a_tag_that_loads_nothing_is_none() {
    check(NOT_THERE);
}

const WITH_A_BASE: &[Case] = &[
    (
        "another host",
        "<head><base href='https://cdn.example/'>TAG</head>",
        &[NotLoaded],
    ),
    (
        "a folder, and an absolute path",
        "<head><base href='/game/'>TAG</head>",
        &[],
    ),
    (
        "a folder, and a relative path",
        "<head><base href='/game/'><script defer src=__platform/runtime.js></script></head>",
        &[NotLoaded],
    ),
    (
        "a base for links only",
        "<head><base target=_blank>TAG</head>",
        &[],
    ),
    (
        "the first counts",
        "<head><base href='/'><base href='https://cdn.example/'>TAG</head>",
        &[],
    ),
    (
        "a base that comes later",
        "<head>TAG<base href='https://cdn.example/'></head>",
        &[],
    ),
    (
        "a base in a template",
        "<head><template><base href='https://cdn.example/'></template>TAG</head>",
        &[],
    ),
    (
        "a base that browsers refuse",
        "<head><base href='data:text/plain,'>TAG</head>",
        &[],
    ),
];

#[test]
fn a_base_changes_where_a_path_leads() {
    check(WITH_A_BASE);
}
