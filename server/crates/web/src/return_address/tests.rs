//! Tables of hostile and unusual addresses.

use super::*;

/// Checks an address with the origins of a platform on this machine and of one on the internet.
fn check(given: &str) -> Option<String> {
    const KNOWN: [&str; 6] = [
        "http://platform.localhost:8787",
        "http://demo.platform.localhost:8787",
        "http://dev-demo.platform.localhost:8787",
        "https://games.example",
        "https://chess.games.example",
        "https://dev-chess.games.example",
    ];
    canonical(given, |origin| KNOWN.contains(&origin))
}

const HOSTILE: &[&str] = &[
    // No address at all, or not an absolute one.
    "",
    "/",
    "/level",
    "level",
    "?redirect",
    "#start",
    "demo.platform.localhost:8787",
    "demo.platform.localhost:8787/level",
    // Relative to a scheme, in the forms that browsers accept.
    "//evil.example/",
    "///evil.example/",
    "////evil.example/",
    "//demo.platform.localhost:8787/",
    "/\\evil.example/",
    "\\\\evil.example\\",
    "/\t/evil.example/",
    // Other origins.
    "http://evil.example/",
    "https://evil.example/",
    "http://localhost:8787/",
    "http://auth.platform.localhost:8787/",
    "https://auth.games.example/login",
    "http://nobody.platform.localhost:8787/",
    "http://dev-nobody.platform.localhost:8787/",
    // Other ports and schemes.
    "http://demo.platform.localhost/",
    "http://demo.platform.localhost:80/",
    "http://demo.platform.localhost:8788/",
    "http://demo.platform.localhost:87870/",
    "http://demo.platform.localhost:99999/",
    "http://demo.platform.localhost:-1/",
    "http://demo.platform.localhost:8787:8787/",
    "https://demo.platform.localhost:8787/",
    "http://chess.games.example/",
    "http://chess.games.example:443/",
    "https://chess.games.example:444/",
    "https://chess.games.example:80/",
    "ftp://demo.platform.localhost:8787/",
    "ws://demo.platform.localhost:8787/",
    "file://demo.platform.localhost:8787/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "javascript://demo.platform.localhost:8787/%0aalert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "data://demo.platform.localhost:8787/,x",
    "vbscript:msgbox(1)",
    "blob:http://demo.platform.localhost:8787/6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "filesystem:http://demo.platform.localhost:8787/temporary/x.html",
    "view-source:http://demo.platform.localhost:8787/",
    "about:blank",
    "mailto:me@demo.platform.localhost",
    // Schemes without their slashes, or with too many.
    "http:demo.platform.localhost:8787/",
    "http:/demo.platform.localhost:8787/",
    "http:///demo.platform.localhost:8787/",
    "http:////demo.platform.localhost:8787/",
    "http:evil.example",
    "http:/evil.example",
    "http:///evil.example",
    // User names.
    "http://demo.platform.localhost:8787@evil.example/",
    "http://me@demo.platform.localhost:8787/",
    "http://me:secret@demo.platform.localhost:8787/",
    "http://@demo.platform.localhost:8787/",
    "http://:@demo.platform.localhost:8787/",
    "http://evil.example%40demo.platform.localhost:8787/",
    "http://evil.example#@demo.platform.localhost:8787/",
    "http://evil.example?@demo.platform.localhost:8787/",
    "http://evil.example/@demo.platform.localhost:8787/",
    // Backslashes.
    "http:\\\\demo.platform.localhost:8787\\",
    "http:/\\demo.platform.localhost:8787/",
    "http://evil.example\\@demo.platform.localhost:8787/",
    "http://evil.example\\.demo.platform.localhost:8787/",
    "http://demo.platform.localhost:8787\\@evil.example/",
    "http://demo.platform.localhost:8787/\\evil.example/",
    "http://demo.platform.localhost:8787/a\\..\\b",
    // Control characters and white space, which some parsers drop.
    " http://demo.platform.localhost:8787/",
    "http://demo.platform.localhost:8787/ ",
    "http://demo.platform.localhost:8787/a b",
    "http://demo.platform.localhost:8787/\n",
    "http://demo.platform.localhost:8787/\r\nSet-Cookie: a=1",
    "ht\ntp://demo.platform.localhost:8787/",
    "http://demo.plat\tform.localhost:8787/",
    "http:\t//demo.platform.localhost:8787/",
    "http://demo.platform.localhost:8787/\0",
    "\0http://demo.platform.localhost:8787/",
    "\u{1}javascript:alert(1)",
    "http://demo.platform.localhost:8787/\u{7f}",
    "http://demo.platform.localhost:8787/\u{85}",
    "\u{feff}http://demo.platform.localhost:8787/",
    "\u{a0}http://demo.platform.localhost:8787/",
    // Encoded hosts.
    "http://demo%2eplatform.localhost:8787/",
    "http://%64emo.platform.localhost:8787/",
    "http://evil.example%2fdemo.platform.localhost:8787/",
    "http://evil.example%23.demo.platform.localhost:8787/",
    "http://evil.example%00.demo.platform.localhost:8787/",
    "http://evil.example%5c.demo.platform.localhost:8787/",
    "http%3a%2f%2fdemo.platform.localhost%3a8787%2f",
    // Hosts that become ours by mapping (UTS 46), or that look like ours.
    "http://demo\u{3002}platform.localhost:8787/",
    "http://demo.platform\u{ff0e}localhost:8787/",
    "http://demo.platform\u{ff61}localhost:8787/",
    "http://\u{ff44}emo.platform.localhost:8787/",
    "http://\u{24d3}emo.platform.localhost:8787/",
    "http://de\u{ad}mo.platform.localhost:8787/",
    "http://de\u{200b}mo.platform.localhost:8787/",
    "http://d\u{435}mo.platform.localhost:8787/",
    "http://xn--dmo-qdd.platform.localhost:8787/",
    "https://evil.example\u{2044}chess.games.example/",
    "https://evil.example\u{ff0f}chess.games.example/",
    "https://evil.example\u{ff1f}chess.games.example/",
    "https://evil.example\u{ff20}chess.games.example/",
    // Too many dots, and names that contain ours.
    "http://demo.platform.localhost.:8787/",
    "http://platform.localhost.:8787/",
    "https://chess.games.example./",
    "http://.demo.platform.localhost:8787/",
    "http://demo..platform.localhost:8787/",
    "http://x.demo.platform.localhost:8787/",
    "http://demo.platform.localhost:8787.evil.example/",
    "http://demo.platform.localhost.evil.example:8787/",
    "http://evildemo.platform.localhost:8787/",
    "http://demo-platform.localhost:8787/",
    "http://demoplatform.localhost:8787/",
    "https://evilgames.example/",
    "https://games.example.evil.example/",
    "https://games.exampl/",
    "https://games.examples/",
    // This machine by its numeric addresses.
    "http://127.0.0.1:8787/",
    "http://127.1:8787/",
    "http://2130706433:8787/",
    "http://0x7f000001:8787/",
    "http://0177.0.0.1:8787/",
    "http://0:8787/",
    "http://[::1]:8787/",
    "http://[::ffff:127.0.0.1]:8787/",
    // An address of ours inside another one.
    "http://evil.example/?redirect=http://demo.platform.localhost:8787/",
    "http://evil.example/http://demo.platform.localhost:8787/",
    "http://evil.example#http://demo.platform.localhost:8787/",
    "http://http://demo.platform.localhost:8787/",
    "http://demo.platform.localhost:8787,http://evil.example/",
    "http://demo.platform.localhost:8787;evil.example/",
    "http://demo.platform.localhost:8787&evil.example/",
    "http://*.platform.localhost:8787/",
    "null",
    "://demo.platform.localhost:8787/",
    "http://",
    "http://:8787/",
    "http://?demo.platform.localhost:8787",
];

#[test]
fn no_hostile_address_passes() {
    const { assert!(HOSTILE.len() >= 60) };
    for given in HOSTILE {
        assert_eq!(check(given), None, "{given:?}");
    }
}

#[test]
fn good_addresses_pass_in_one_spelling() {
    for (given, expected) in [
        (
            "http://demo.platform.localhost:8787/level?n=1#start",
            "http://demo.platform.localhost:8787/level?n=1#start",
        ),
        (
            "http://demo.platform.localhost:8787",
            "http://demo.platform.localhost:8787/",
        ),
        (
            "HTTP://Demo.Platform.LocalHost:8787/Level",
            "http://demo.platform.localhost:8787/Level",
        ),
        (
            "http://demo.platform.localhost:8787?n=1",
            "http://demo.platform.localhost:8787/?n=1",
        ),
        (
            "http://demo.platform.localhost:8787#start",
            "http://demo.platform.localhost:8787/#start",
        ),
        (
            "http://demo.platform.localhost:08787/",
            "http://demo.platform.localhost:8787/",
        ),
        (
            "http://demo.platform.localhost:8787/a/./b/../c",
            "http://demo.platform.localhost:8787/a/c",
        ),
        (
            "http://dev-demo.platform.localhost:8787/",
            "http://dev-demo.platform.localhost:8787/",
        ),
        (
            "http://platform.localhost:8787/",
            "http://platform.localhost:8787/",
        ),
        (
            "https://CHESS.games.example:443",
            "https://chess.games.example/",
        ),
        (
            "https://chess.games.example:/play",
            "https://chess.games.example/play",
        ),
        (
            "https://games.example/?next=https://evil.example/#//evil.example",
            "https://games.example/?next=https://evil.example/#//evil.example",
        ),
        (
            "https://games.example//evil.example/@x",
            "https://games.example//evil.example/@x",
        ),
        (
            "https://games.example/%2f%5c%00?%0d%0a",
            "https://games.example/%2f%5c%00?%0d%0a",
        ),
        (
            "https://games.example/\u{e9}t\u{e9}?q=\u{e9}#\u{e9}",
            "https://games.example/%C3%A9t%C3%A9?q=%C3%A9#%C3%A9",
        ),
        (
            "https://games.example/?a=\\b#c\\d",
            "https://games.example/?a=%5Cb#c%5Cd",
        ),
    ] {
        assert_eq!(check(given).as_deref(), Some(expected), "{given:?}");
        assert_eq!(check(expected).as_deref(), Some(expected), "once more");
    }
}

#[test]
fn an_address_has_at_most_2048_bytes() {
    let start = "https://games.example/";
    let longest = format!("{start}{}", "x".repeat(MAX_BYTES - start.len()));
    assert_eq!(longest.len(), 2_048);
    assert_eq!(check(&longest), Some(longest.clone()));
    assert_eq!(check(&format!("{longest}x")), None);
    // Two bytes a letter as given, six as written.
    let grows = format!("{start}{}", "\u{e9}".repeat(800));
    assert!(grows.len() <= MAX_BYTES);
    assert_eq!(check(&grows), None);
}

#[test]
fn of_the_auth_service_only_the_page_for_devices_is_an_address_to_go_back_to() {
    const AUTH: &str = "https://auth.games.example";
    for page in [
        "https://auth.games.example/device",
        "https://auth.games.example/device?user_code=BCDF-GHJK",
        "https://auth.games.example/device?user_code=BCDF-GHJK&proof=17.aB-_",
    ] {
        assert_eq!(device_page(AUTH, page).as_deref(), Some(page));
    }
    for other in [
        "",
        "/device",
        "http://auth.games.example/device",
        "https://auth.games.example",
        "https://auth.games.example/",
        "https://auth.games.example/device/",
        "https://auth.games.example/device?",
        "https://auth.games.example/device#",
        "https://auth.games.example/device#user_code=BCDF-GHJK",
        "https://auth.games.example/device?user_code=",
        "https://auth.games.example/device?user_code=BCDFGHJK",
        "https://auth.games.example/device?user_code=bcdf-ghjk",
        "https://auth.games.example/device?user_code=BCDF-GHJA",
        "https://auth.games.example/device?user_code=BCDF-GHJK&done=approve",
        "https://auth.games.example/device?user_code=BCDF-GHJK#",
        "https://auth.games.example/device?user_code=BCDF-GHJK ",
        "https://auth.games.example/device?user_code=BCDF-GHJK&proof=",
        "https://auth.games.example/device?user_code=BCDF-GHJK&proof=a%20b",
        "https://auth.games.example/device?user_code=BCDF-GHJK&proof=a&proof=a",
        "https://auth.games.example/device?user_code=BCDF-GHJK&proof=a#b",
        "https://auth.games.example/device?proof=a&user_code=BCDF-GHJK",
        "https://auth.games.example/device?proof=a",
        "https://auth.games.example/device?done=approve",
        "https://auth.games.example/device?user%5Fcode=BCDF-GHJK",
        "https://auth.games.example/device/token?user_code=BCDF-GHJK",
        "https://auth.games.example/./device",
        "https://auth.games.example//device",
        "https://auth.games.example:443/device",
        "https://AUTH.games.example/device",
        "https://auth.games.example@evil.example/device",
        "https://auth.games.example.evil.example/device",
        "https://evil.example/device?user_code=BCDF-GHJK",
        "https://auth.games.example/profile",
        "https://auth.games.example/sign-out",
    ] {
        assert_eq!(device_page(AUTH, other), None, "{other}");
    }
}
