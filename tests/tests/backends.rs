//! The backends of the documents: each gives the same verdicts as the verifier, and the page shows
//! exactly the tested files.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports by failing"
)]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use platform_server::clock::{Clock, SystemClock};
use platform_tests::signer::{KeySetServer, Signer, encode, signing_input, with, with_lower_s};
use platform_tests::snippets::{Language, Program, Verdict};
use platform_tests::{npm, poll, settings};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

const ISSUER: &str = "https://auth.platform.example";
const AUDIENCE: &str = "game:dev-rings";
const SUB: &str = "0197a1c0-7e3b-7c3e-9f4a-1f2e3d4c5b6a";

/// Seconds since the epoch.
fn now() -> i64 {
    SystemClock.now() / 1_000
}

/// The claims of a good token.
fn claims() -> Value {
    let now = now();
    json!({
        "sub": SUB, "username": "swift-otter-4821", "aud": AUDIENCE, "iss": ISSUER,
        "is_anon": true, "principal_kind": "test_user",
        "exp": now + 900, "iat": now, "jti": "0197a1c0-7e3b-7c3e-9f4a-000000000001",
    })
}

/// Lets `mint.js` create a token with these claims.
async fn mint_with_jose(key: &Signer, claims: &Value) -> Value {
    let mut node = Command::new(settings::program("NODE", &["node"]))
        .arg("mint.js")
        .current_dir(npm::packages("npm").await)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let question = json!({ "key": key.private_jwk(), "claims": claims }).to_string();
    let mut input = node.stdin.take().unwrap();
    input.write_all(question.as_bytes()).await.unwrap();
    drop(input);
    let output = poll::within("node", node.wait_with_output()).await.unwrap();
    assert!(output.status.success(), "mint.js failed");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A token, and whether it must pass.
struct Case {
    name: String,
    token: Token,
    passes: bool,
}

/// Where a case's token comes from.
enum Token {
    /// It was minted when the cases were listed.
    Minted(String),
    /// It is minted when it is sent, with [`claims`] changed by what the function returns for the
    /// current time. A token that is 20 seconds from a limit would otherwise be on its other side
    /// before a busy machine came to it.
    Fresh(fn(i64) -> Value),
}

impl Token {
    /// Returns the token to send now. `key` signs it if it is minted now.
    fn now(&self, key: &Signer) -> String {
        match self {
            Self::Minted(token) => token.clone(),
            Self::Fresh(change) => key.token(&key.header(), &with(&claims(), &change(now()))),
        }
    }
}

fn case(name: impl Into<String>, token: String, passes: bool) -> Case {
    Case {
        name: name.into(),
        token: Token::Minted(token),
        passes,
    }
}

/// The order of the curve P-256 (FIPS 186-5), which is 0 as `r` or `s`.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6,
    0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

/// The two numbers of a signature.
fn r_and_s(signature: &str) -> ([u8; 32], [u8; 32]) {
    let bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let (r, s) = bytes.split_at(32);
    (r.try_into().unwrap(), s.try_into().unwrap())
}

fn halves(r: [u8; 32], s: [u8; 32]) -> Vec<u8> {
    [r, s].concat()
}

/// Tokens whose header or signature differs from a valid one's.
fn forms(key: &Signer) -> Vec<Case> {
    let (header, claims) = (key.header(), claims());
    let good = key.token(&header, &claims);
    let (input, signature) = good.rsplit_once('.').unwrap();
    let other = Signer::new(2, "first");
    let bent = if signature.starts_with('A') { "B" } else { "A" };
    let none = signing_input(&with(&header, &json!({ "alg": "none" })), &claims);
    let richer = signing_input(&header, &with(&claims, &json!({ "sub": "somebody-else" })));
    let mut cases = vec![
        case("good", good.clone(), true),
        case(
            "bent signature",
            format!("{input}.{bent}{}", &signature[1..]),
            false,
        ),
        case("another key", other.token(&header, &claims), false),
        case("DER", key.token_in_der(&header, &claims), false),
        case("no signature", format!("{input}."), false),
        case(
            "zero signature",
            format!("{input}.{}", encode([0; 64])),
            false,
        ),
        case(
            "r is 0",
            format!("{input}.{}", encode(halves([0; 32], r_and_s(signature).1))),
            false,
        ),
        case(
            "s is 0",
            format!("{input}.{}", encode(halves(r_and_s(signature).0, [0; 32]))),
            false,
        ),
        case(
            "r and s are the order",
            format!("{input}.{}", encode(halves(ORDER, ORDER))),
            false,
        ),
        case("other payload", format!("{richer}.{signature}"), false),
        case("alg none", format!("{none}."), false),
        case("alg none, signed", format!("{none}.{signature}"), false),
        case("two parts", input.to_owned(), false),
        case("four parts", format!("{good}.x"), false),
        case("no token", "nonsense".to_owned(), false),
    ];
    for (name, change) in [
        ("alg es256", json!({ "alg": "es256" })),
        ("alg RS256", json!({ "alg": "RS256" })),
        ("alg ES384", json!({ "alg": "ES384" })),
        ("no alg", json!({ "alg": null })),
        ("no typ", json!({ "typ": null })),
        ("typ at+jwt", json!({ "typ": "at+jwt" })),
        ("unknown kid", json!({ "kid": "unknown" })),
        ("no kid", json!({ "kid": null })),
        ("empty kid", json!({ "kid": "" })),
        ("kid is a number", json!({ "kid": 1 })),
        ("crit", json!({ "crit": ["exp"] })),
    ] {
        cases.push(case(
            name,
            key.token(&with(&header, &change), &claims),
            false,
        ));
    }
    cases
}

/// A correctly signed token with these claims changed.
fn changed(key: &Signer, (name, change, passes): (&str, Value, bool)) -> Case {
    let token = key.token(&key.header(), &with(&claims(), &change));
    case(name, token, passes)
}

/// Correctly signed tokens for or from somebody else.
fn names(key: &Signer) -> Vec<Case> {
    let changes = [
        ("an account", json!({ "is_anon": false }), true),
        (
            "iss of another",
            json!({ "iss": "https://auth.example" }),
            false,
        ),
        (
            "iss with a slash",
            json!({ "iss": format!("{ISSUER}/") }),
            false,
        ),
        ("no iss", json!({ "iss": null }), false),
        ("aud of production", json!({ "aud": "game:rings" }), false),
        (
            "aud of another game",
            json!({ "aud": "game:dev-other" }),
            false,
        ),
        (
            "aud longer",
            json!({ "aud": format!("{AUDIENCE}-2") }),
            false,
        ),
        (
            "aud in capitals",
            json!({ "aud": AUDIENCE.to_uppercase() }),
            false,
        ),
        ("aud empty", json!({ "aud": "" }), false),
        ("aud list of it", json!({ "aud": [AUDIENCE] }), false),
        (
            "aud list with it",
            json!({ "aud": ["game:other", AUDIENCE] }),
            false,
        ),
        (
            "aud list of others",
            json!({ "aud": ["game:other"] }),
            false,
        ),
        ("aud empty list", json!({ "aud": [] }), false),
        ("no aud", json!({ "aud": null }), false),
    ];
    changes.map(|change| changed(key, change)).into()
}

fn fresh(name: &str, change: fn(i64) -> Value, passes: bool) -> Case {
    Case {
        name: name.into(),
        token: Token::Fresh(change),
        passes,
    }
}

/// Correctly signed tokens at the limits of the clock, and with unusual claims.
fn times() -> Vec<Case> {
    vec![
        fresh(
            "expired within the leeway",
            |now| json!({ "exp": now - 40 }),
            true,
        ),
        fresh("expired", |now| json!({ "exp": now - 61 }), false),
        fresh("expired long ago", |_| json!({ "exp": 1 }), false),
        fresh(
            "exp is text",
            |now| json!({ "exp": (now + 900).to_string() }),
            false,
        ),
        fresh("no exp", |_| json!({ "exp": null }), false),
        fresh(
            "issued ahead within the leeway",
            |now| json!({ "iat": now + 50 }),
            true,
        ),
        fresh("issued ahead", |now| json!({ "iat": now + 150 }), false),
        fresh("iat is text", |_| json!({ "iat": "now" }), false),
        fresh("no iat", |_| json!({ "iat": null }), false),
        fresh(
            "a life of a day",
            |now| json!({ "exp": now + 86_400 }),
            true,
        ),
        fresh(
            "a life of more than a day",
            |now| json!({ "exp": now + 86_500 }),
            false,
        ),
        fresh(
            "a life of years, mostly behind it",
            |_| json!({ "iat": 1 }),
            false,
        ),
        fresh("nbf past", |now| json!({ "nbf": now - 5 }), true),
        fresh(
            "nbf within the leeway",
            |now| json!({ "nbf": now + 50 }),
            true,
        ),
        fresh("nbf ahead", |now| json!({ "nbf": now + 150 }), false),
        fresh("nbf is text", |_| json!({ "nbf": "soon" }), false),
        fresh("no sub", |_| json!({ "sub": null }), false),
        fresh("sub empty", |_| json!({ "sub": "" }), false),
        fresh("sub is a number", |_| json!({ "sub": 7 }), false),
        fresh("no username", |_| json!({ "username": null }), false),
        fresh("is_anon is text", |_| json!({ "is_anon": "true" }), false),
    ]
}

/// Returns what is wrong with a verdict, if anything.
fn complaint(verdict: &Verdict, status: u16) -> Option<String> {
    let Verdict {
        status: given,
        kind,
        challenge,
        body,
    } = verdict;
    if *given != status {
        return Some(format!("{given} instead of {status}: {body}"));
    }
    if status == 200 {
        let right = body["sub"] == SUB && body["username"] == "swift-otter-4821";
        return (!right).then(|| format!("not the player: {body}"));
    }
    let problem = kind.starts_with("application/problem+json")
        && body["status"] == status
        && body["type"].is_string()
        && body["detail"].is_string();
    let challenged = (status == 401) == challenge.starts_with("Bearer");
    (!problem || !challenged).then(|| format!("no problem: {kind} {challenge:?} {body}"))
}

/// Sends `token` until it passes, as it must within a minute, and returns how often it was refused
/// before.
async fn until_it_passes(program: &Program, token: &str) -> usize {
    let asking = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(250));
        for refused in 0.. {
            ticks.tick().await;
            if program.ask(&format!("Bearer {token}")).await.status == 200 {
                return refused;
            }
        }
        usize::MAX
    };
    let passed = tokio::time::timeout(Duration::from_secs(60), asking).await;
    passed.unwrap_or_else(|_| panic!("{:?} never takes the key", program.language))
}

/// Returns everything that a program gets wrong, one line each.
async fn judge(program: Program, keys: KeySetServer, cases: &[Case]) -> Vec<String> {
    let language = program.language;
    let (first, second) = (Signer::new(1, "first"), Signer::new(3, "second"));
    let mut complaints = Vec::new();
    let mut check = |name: &str, verdict: Verdict, status| {
        let found = complaint(&verdict, status);
        complaints.extend(found.map(|found| format!("{language:?}: {name}: {found}")));
    };
    let good = first.token(&first.header(), &claims());
    let bearer = format!("Bearer {good}");
    check("no key set", program.ask(&bearer).await, 503);
    check("no bearer", program.ask("Basic abc").await, 401);
    check("nothing after Bearer", program.ask("Bearer").await, 401);

    keys.publish(&[&first]);
    until_it_passes(&program, &good).await;
    let before = keys.hits();
    for Case {
        name,
        token,
        passes,
    } in cases
    {
        let token = token.now(&first);
        let verdict = program.ask(&format!("Bearer {token}")).await;
        check(name, verdict, if *passes { 200 } else { 401 });
    }
    check(
        "scheme in capitals",
        program.ask(&format!("BEARER {good}")).await,
        200,
    );

    // The key set is unreachable: known keys still work, and are not forgotten.
    keys.fail();
    let rotated = second.token(&second.header(), &claims());
    check("outage, known key", program.ask(&bearer).await, 200);
    let verdict = program.ask(&format!("Bearer {rotated}")).await;
    check("outage, unknown key", verdict, 401);
    check("after the outage", program.ask(&bearer).await, 200);

    // A new key is accepted, but without a fetch for every token.
    keys.publish(&[&first, &second]);
    let refused = until_it_passes(&program, &rotated).await;
    let fetched = keys.hits() - before;
    if refused > 20 && fetched > 4 {
        complaints.push(format!(
            "{language:?}: {fetched} fetches for {refused} tokens"
        ));
    }
    if fetched == 0 {
        complaints.push(format!("{language:?}: it knew a key that nobody gave it"));
    }
    complaints
}

#[tokio::test(flavor = "multi_thread")]
async fn every_language_gives_the_verdicts_of_the_verifier() {
    // Sequentially, so that each installation or compilation has the machine for itself.
    let mut programs = Vec::new();
    for language in Language::ALL {
        let keys = KeySetServer::listen().await;
        let program = language.start(ISSUER, AUDIENCE, &keys.url).await;
        programs.push((program, keys));
    }
    let key = Signer::new(1, "first");
    let mut cases = forms(&key);
    cases.extend(names(&key));
    cases.extend(times());
    let minted = mint_with_jose(&key, &claims()).await;
    for (name, passes) in [("es256", true), ("hs256_pem", false), ("hs256_jwk", false)] {
        let token = minted[name].as_str().unwrap();
        // The verifier accepts no other form, and the platform produces none.
        let token = if passes {
            with_lower_s(token)
        } else {
            token.to_owned()
        };
        cases.push(case(format!("jose {name}"), token, passes));
    }
    let judged = programs
        .into_iter()
        .map(|(program, keys)| judge(program, keys, &cases));
    let complaints = join_all(judged).await.concat();
    assert_eq!(complaints, [""; 0], "{}", complaints.join("\n"));
}

/// A party that can redirect the request, or answer it, does not choose the keys, and takes no memory.
#[tokio::test(flavor = "multi_thread")]
async fn no_program_follows_a_redirect_or_reads_a_key_set_of_any_size() {
    let key = Signer::new(1, "first");
    let bearer = format!("Bearer {}", key.token(&key.header(), &claims()));
    for language in Language::ALL {
        let (keys, elsewhere) = (KeySetServer::listen().await, KeySetServer::listen().await);
        elsewhere.publish(&[&key]);
        let program = language.start(ISSUER, AUDIENCE, &keys.url).await;
        // A program asks again after a second at the earliest, as long as it has no keys.
        let refuses = async |what: &str| {
            let before = keys.hits();
            poll::until(&format!("{language:?} to ask again: {what}"), async || {
                let verdict = program.ask(&bearer).await;
                assert_eq!(complaint(&verdict, 503), None, "{language:?}: {what}");
                (keys.hits() > before + 1).then_some(())
            })
            .await;
        };
        keys.redirect(&elsewhere.url);
        refuses("a redirect").await;
        assert_eq!(elsewhere.hits(), 0, "{language:?} went elsewhere");
        keys.publish_too_much(&[&key]);
        refuses("too much").await;
        for text in [
            "[".repeat(60_000),
            "[]".to_owned(),
            "null".to_owned(),
            r#"{"keys":7}"#.to_owned(),
        ] {
            keys.publish_text(&text);
            refuses(&format!("{text:.9}")).await;
        }
        keys.publish(&[&key]);
        until_it_passes(&program, bearer.trim_start_matches("Bearer ")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_set_whose_name_cannot_be_resolved_is_named_in_the_log() {
    let key = Signer::new(1, "first");
    let token = key.token(&key.header(), &claims());
    for language in [
        Language::Node,
        Language::Python,
        Language::Go,
        Language::Java,
    ] {
        let keys = "http://auth.nowhere.invalid/.well-known/jwks.json";
        let program = language.start(ISSUER, AUDIENCE, keys).await;
        let verdict = program.ask(&format!("Bearer {token}")).await;
        assert_eq!(complaint(&verdict, 503), None, "{language:?}");
        let said = program.said();
        let cause = "could not resolve auth.nowhere.invalid: ";
        assert!(said.contains(cause), "{language:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_languages_program_forgets_a_key_that_was_taken_back() {
    let (old, new) = (Signer::new(1, "first"), Signer::new(3, "second"));
    for language in Language::ALL {
        let Some(copy) = language.hurried() else {
            continue;
        };
        let keys = KeySetServer::listen().await;
        keys.publish(&[&old]);
        let program = language.start_from(copy.path(), ISSUER, AUDIENCE, &keys.url);
        let program = program.await;
        let token = old.token(&old.header(), &claims());
        until_it_passes(&program, &token).await;
        keys.publish(&[&new]);
        // The program never receives a token of the new key.
        poll::until(&format!("{language:?} to forget the key"), async || {
            let verdict = program.ask(&format!("Bearer {token}")).await;
            (verdict.status == 401).then_some(())
        })
        .await;
    }
}

#[test]
fn the_page_shows_each_program_as_it_is() {
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = std::fs::read_to_string(documents.join("backends.md")).unwrap();
    for (language, file) in [
        ("js", "node/server.js"),
        ("python", "python/server.py"),
        ("go", "go/main.go"),
        ("java", "java/Server.java"),
    ] {
        let text = std::fs::read_to_string(documents.join("backends").join(file)).unwrap();
        assert!(
            page.contains(&format!("```{language}\n{text}```\n")),
            "docs/backends.md shows another {file}"
        );
    }
}
