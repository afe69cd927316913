//! Tokens that must be refused, each with the check that refuses it, after RFC 8725; and tokens
//! that must be accepted.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use hmac::{Hmac, KeyInit as _, Mac as _};
use p256::ecdsa::Signature;
use p256::ecdsa::signature::Signer as _;
use p256::pkcs8::{EncodePublicKey as _, LineEnding};
use platform_verifier::VerifyError;
use platform_verifier::error::Part;
use serde_json::{Value, json};
use sha2::Sha256;
use support::{AUDIENCE, ISSUER, Key, KeySetServer, ManualClock, NOW, claims, encode, with};

/// One token and the expected error.
struct Row {
    name: String,
    token: String,
    expected: VerifyError,
}

struct Table<'a> {
    key: &'a Key,
    rows: Vec<Row>,
}

impl Table<'_> {
    fn row(&mut self, name: impl Into<String>, token: impl Into<String>, expected: VerifyError) {
        self.rows.push(Row {
            name: name.into(),
            token: token.into(),
            expected,
        });
    }

    /// A correctly signed token with these changes in its header.
    fn header(&mut self, name: &str, changes: Value, expected: VerifyError) {
        let token = self.key.token(&with(self.key.header(), changes), &claims());
        self.row(name, token, expected);
    }

    /// A correctly signed token with these changes in its claims.
    fn claim(&mut self, name: impl Into<String>, changes: Value, expected: VerifyError) {
        let token = self.key.token(&self.key.header(), &with(claims(), changes));
        self.row(name, token, expected);
    }

    /// The good token with another third part.
    fn signature(&mut self, name: &str, signature: &[u8], expected: VerifyError) {
        let good = self.key.good_token();
        let (input, _) = good.rsplit_once('.').unwrap();
        self.row(name, format!("{input}.{}", encode(signature)), expected);
    }

    fn algorithms(&mut self) {
        for alg in ["none", "None", "NONE", "nOnE"] {
            let header = with(self.key.header(), json!({ "alg": alg }));
            let token = format!(
                "{}.{}.",
                encode(header.to_string()),
                encode(claims().to_string())
            );
            self.row(
                format!("alg {alg}, no signature"),
                token,
                VerifyError::Algorithm,
            );
        }
        self.header(
            "alg ES384",
            json!({ "alg": "ES384" }),
            VerifyError::Algorithm,
        );
        self.header(
            "alg es256",
            json!({ "alg": "es256" }),
            VerifyError::Algorithm,
        );
        self.header(
            "alg array",
            json!({ "alg": ["ES256"] }),
            VerifyError::Algorithm,
        );
        self.header("alg absent", json!({ "alg": null }), VerifyError::Algorithm);
        let public = p256::PublicKey::from(self.key.signing.verifying_key());
        let pem = public.to_public_key_pem(LineEnding::LF).unwrap();
        let secrets = [
            ("PEM", pem.into_bytes()),
            ("DER", public.to_public_key_der().unwrap().into_vec()),
            ("JWK", self.key.jwk().to_string().into_bytes()),
        ];
        for (form, secret) in secrets {
            let header = with(self.key.header(), json!({ "alg": "HS256" }));
            let input = format!(
                "{}.{}",
                encode(header.to_string()),
                encode(claims().to_string())
            );
            let mut mac = Hmac::<Sha256>::new_from_slice(&secret).unwrap();
            mac.update(input.as_bytes());
            let token = format!("{input}.{}", encode(mac.finalize().into_bytes()));
            self.row(
                format!("HS256 with the key as {form}"),
                token,
                VerifyError::Algorithm,
            );
        }
    }

    fn signatures(&mut self) {
        let good = self.key.good_token();
        let (input, signature) = good.rsplit_once('.').unwrap();
        self.row(
            "signature empty",
            format!("{input}."),
            VerifyError::SignatureForm,
        );
        self.row("signature absent", input, VerifyError::Parts);
        let signature: Signature = {
            let parsed: Signature = self.key.signing.sign(input.as_bytes());
            let parsed = parsed.normalize_s();
            assert_eq!(
                encode(Signature::to_bytes(&parsed)),
                signature,
                "signing is deterministic"
            );
            parsed
        };
        let bytes = signature.to_bytes();
        let halves = |r: &[u8], s: &[u8]| [r, s].concat();
        let (r, s) = bytes.split_at(32);
        let form = VerifyError::SignatureForm;
        self.signature("zero r", &halves(&[0; 32], s), form.clone());
        self.signature("zero s", &halves(r, &[0; 32]), form.clone());
        self.signature("r and s zero", &[0; 64], form.clone());
        self.signature("r and s all ones", &[0xFF; 64], form.clone());
        self.signature(
            "DER in place of r and s",
            signature.to_der().as_bytes(),
            form.clone(),
        );
        self.signature("one byte short", &bytes[..63], form.clone());
        self.signature("one byte more", &halves(&bytes, &[0]), form.clone());
        // It verifies as well (FIPS 186-5 §6.4.2), and is a second spelling.
        let (r_half, s_half) = signature.split_scalars();
        let twin = Signature::from_scalars(r_half.to_bytes(), (-*s_half).to_bytes()).unwrap();
        assert_ne!(twin.to_bytes(), bytes);
        self.signature("high s", &twin.to_bytes(), form);
        self.signature("r and s exchanged", &halves(s, r), VerifyError::Signature);
        let mut flipped = bytes.to_vec();
        flipped[63] ^= 1;
        self.signature("one bit of the signature", &flipped, VerifyError::Signature);
        // Another player's claims with the signature of these.
        let others = with(
            claims(),
            json!({ "sub": "0197a1c0-7e3b-7c3e-9f4a-ffffffffffff" }),
        );
        let forged = self.key.token(&self.key.header(), &others);
        let (forged, _) = forged.rsplit_once('.').unwrap();
        let token = format!("{forged}.{}", encode(bytes));
        self.row("claims exchanged", token, VerifyError::Signature);
        let stranger = Key::new(9, &self.key.kid);
        self.row(
            "another key, same kid",
            stranger.good_token(),
            VerifyError::Signature,
        );
    }

    fn headers(&mut self) {
        let own = Key::new(9, "own").jwk();
        let members = [
            ("jku", json!("http://evil.example/jwks.json")),
            ("x5u", json!("http://evil.example/cert.pem")),
            ("jwk", own),
            ("x5c", json!(["MIIB"])),
            ("b64", json!(false)),
            ("zip", json!("DEF")),
            ("enc", json!("A128GCM")),
        ];
        for (name, value) in members {
            self.header(
                name,
                json!({ name: value }),
                VerifyError::HeaderMember(name),
            );
        }
        let crit = VerifyError::HeaderMember("crit");
        self.header(
            "crit unknown",
            json!({ "crit": ["exp2"], "exp2": 1 }),
            crit.clone(),
        );
        self.header("crit empty", json!({ "crit": [] }), crit);
        self.header("kid blank", json!({ "kid": " " }), VerifyError::KeyId);
        self.header("kid empty", json!({ "kid": "" }), VerifyError::KeyId);
        self.header(
            "kid path",
            json!({ "kid": "../../../dev/null" }),
            VerifyError::UnknownKey,
        );
        self.header(
            "kid unknown",
            json!({ "kid": "unknown" }),
            VerifyError::UnknownKey,
        );
        self.header(
            "kid SQL",
            json!({ "kid": "' OR 1=1 --" }),
            VerifyError::UnknownKey,
        );
        self.header(
            "kid huge",
            json!({ "kid": "k".repeat(4096) }),
            VerifyError::KeyId,
        );
        self.header(
            "kid array",
            json!({ "kid": [self.key.kid] }),
            VerifyError::KeyId,
        );
        self.header("kid absent", json!({ "kid": null }), VerifyError::KeyId);
        self.header(
            "kid with NUL",
            json!({ "kid": "a\u{0}b" }),
            VerifyError::KeyId,
        );
        self.header("typ other", json!({ "typ": "at+jwt" }), VerifyError::Type);
        self.header("typ absent", json!({ "typ": null }), VerifyError::Type);
        let kid = &self.key.kid;
        let twice = format!(r#"{{"alg":"none","alg":"ES256","typ":"JWT","kid":"{kid}"}}"#);
        let token = self.key.sign(&twice, &claims().to_string());
        self.row(
            "duplicate header member",
            token,
            VerifyError::Json(Part::Header),
        );
        let token = self.key.sign(r#"["ES256"]"#, &claims().to_string());
        self.row("header an array", token, VerifyError::Json(Part::Header));
        let two = format!("{}{{}}", self.key.header());
        let token = self.key.sign(&two, &claims().to_string());
        self.row(
            "something after the header",
            token,
            VerifyError::Json(Part::Header),
        );
    }

    fn encodings(&mut self) {
        let good = self.key.good_token();
        let (header, payload) = (
            encode(self.key.header().to_string()),
            encode(claims().to_string()),
        );
        // 64 bytes leave four unused bits in the last character.
        let last = good.chars().last().unwrap();
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let next = alphabet
            .chars()
            .nth(alphabet.find(last).unwrap() + 1)
            .unwrap();
        let twin = format!("{}{next}", &good[..good.len() - 1]);
        self.row(
            "non-canonical base64",
            twin,
            VerifyError::Base64(Part::Signature),
        );
        self.row(
            "padding",
            format!("{good}=="),
            VerifyError::Base64(Part::Signature),
        );
        self.row(
            "white space before",
            format!(" {good}"),
            VerifyError::Base64(Part::Header),
        );
        self.row(
            "a newline after",
            format!("{good}\n"),
            VerifyError::Base64(Part::Signature),
        );
        let token = self.key.sign_encoded(&header, &format!("{payload}="));
        self.row(
            "padding that is signed",
            token,
            VerifyError::Base64(Part::Payload),
        );
        let standard = token_in_standard_alphabet(self.key);
        self.row(
            "standard alphabet",
            standard,
            VerifyError::Base64(Part::Payload),
        );
        self.row(
            "four parts",
            format!("{good}.{payload}"),
            VerifyError::Parts,
        );
        self.row("five parts", format!("{good}.a.b"), VerifyError::Parts);
        self.row(
            "two parts",
            format!("{header}.{payload}"),
            VerifyError::Parts,
        );
        self.row("one part", header, VerifyError::Parts);
        self.row("empty", "", VerifyError::Parts);
        self.row("dots alone", "..", VerifyError::Json(Part::Header));
        self.row("not ASCII", "é.é.é", VerifyError::Base64(Part::Header));
        self.row("a megabyte", "a".repeat(1 << 20), VerifyError::TooLong);
    }

    fn times(&mut self) {
        for name in ["exp", "nbf", "iat"] {
            let malformed = [
                ("string", json!((NOW + 900).to_string())),
                ("negative", json!(-1)),
                ("float", json!(1_767_226_500.5)),
                ("huge", json!(u64::MAX)),
                ("beyond the year 9999", json!(253_402_300_800_u64)),
                ("of exponent 300", json!(1e300)),
                ("boolean", json!(true)),
                ("array", json!([NOW])),
            ];
            for (kind, value) in malformed {
                let changes = json!({ name: value });
                self.claim(format!("{name} {kind}"), changes, VerifyError::Claim(name));
            }
        }
        self.claim(
            "exp absent",
            json!({ "exp": null }),
            VerifyError::Claim("exp"),
        );
        self.claim(
            "iat absent",
            json!({ "iat": null }),
            VerifyError::Claim("iat"),
        );
        self.claim(
            "exp a minute ago",
            json!({ "exp": NOW - 60 }),
            VerifyError::Expired,
        );
        self.claim("exp zero", json!({ "exp": 0 }), VerifyError::Expired);
        self.claim(
            "nbf to come",
            json!({ "nbf": NOW + 61 }),
            VerifyError::NotYetValid,
        );
        self.claim(
            "iat to come",
            json!({ "iat": NOW + 61 }),
            VerifyError::IssuedInFuture,
        );
        self.claim(
            "a life of more than a day",
            json!({ "exp": NOW + 86_401 }),
            VerifyError::Lifetime,
        );
        self.claim(
            "a life of years, mostly behind it",
            json!({ "iat": 1, "exp": NOW + 900 }),
            VerifyError::Lifetime,
        );
    }

    fn names(&mut self) {
        for (kind, audience) in [
            ("other", json!("game:other")),
            ("dev environment", json!("game:dev-demo")),
            ("other case", json!("Game:demo")),
            ("console", json!("platform:console")),
            ("a space after", json!("game:demo ")),
            ("empty", json!("")),
        ] {
            self.claim(
                format!("aud {kind}"),
                json!({ "aud": audience }),
                VerifyError::Audience,
            );
        }
        let malformed = VerifyError::Claim("aud");
        self.claim("aud array", json!({ "aud": [AUDIENCE] }), malformed.clone());
        self.claim(
            "aud array of two",
            json!({ "aud": [AUDIENCE, "x"] }),
            malformed.clone(),
        );
        self.claim("aud absent", json!({ "aud": null }), malformed);
        for (kind, issuer) in [
            ("other", "https://evil.example".to_owned()),
            ("trailing slash", format!("{ISSUER}/")),
            ("other case", ISSUER.to_uppercase()),
            ("https", ISSUER.replace("http:", "https:")),
        ] {
            self.claim(
                format!("iss {kind}"),
                json!({ "iss": issuer }),
                VerifyError::Issuer,
            );
        }
        self.claim(
            "iss absent",
            json!({ "iss": null }),
            VerifyError::Claim("iss"),
        );
        for name in ["sub", "username", "is_anon", "principal_kind", "jti"] {
            let absent = json!({ name: null });
            self.claim(format!("{name} absent"), absent, VerifyError::Claim(name));
            let number = json!({ name: 7 });
            self.claim(format!("{name} a number"), number, VerifyError::Claim(name));
        }
        self.claim(
            "sub blank",
            json!({ "sub": " " }),
            VerifyError::Claim("sub"),
        );
        let kind = json!({ "principal_kind": "admin" });
        self.claim(
            "principal_kind unknown",
            kind,
            VerifyError::Claim("principal_kind"),
        );
        let text = claims().to_string();
        let twice = text.replacen('{', r#"{"sub":"someone-else","#, 1);
        let token = self.key.sign(&self.key.header().to_string(), &twice);
        self.row("duplicate claim", token, VerifyError::Json(Part::Payload));
        let token = self.key.sign(&self.key.header().to_string(), "null");
        self.row("payload null", token, VerifyError::Json(Part::Payload));
    }
}

/// A token whose payload is signed in base64 with `+` and `/`.
fn token_in_standard_alphabet(key: &Key) -> String {
    let payload = encode(with(claims(), json!({ "username": "~~~???>>>" })).to_string());
    let standard = payload.replace('-', "+").replace('_', "/");
    assert_ne!(
        payload, standard,
        "the payload has a character that differs"
    );
    key.sign_encoded(&encode(key.header().to_string()), &standard)
}

#[tokio::test]
async fn every_hostile_token_is_refused_by_the_check_meant_for_it() {
    let key = Key::new(7, "signing-key");
    let server = KeySetServer::start(&[&key]).await;
    let verifier = server.verifier(ManualClock::new());
    let mut table = Table {
        key: &key,
        rows: Vec::new(),
    };
    table.algorithms();
    table.signatures();
    table.headers();
    table.encodings();
    table.times();
    table.names();
    assert!(table.rows.len() >= 46);
    let mut wrong = Vec::new();
    for Row {
        name,
        token,
        expected,
    } in &table.rows
    {
        let outcome = verifier.verify(token).await;
        if outcome.as_ref() != Err(expected) {
            wrong.push(format!("{name}: expected {expected:?}, got {outcome:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        table.rows.len(),
        wrong.join("\n")
    );
    // The table proves something only if the token that it varies is good.
    verifier.verify(&key.good_token()).await.unwrap();
}

#[tokio::test]
async fn good_tokens_are_accepted_and_say_who_plays() {
    let key = Key::new(7, "signing-key");
    let server = KeySetServer::start(&[&key]).await;
    let verifier = server.verifier(ManualClock::new());
    let player = verifier.verify(&key.good_token()).await.unwrap();
    assert_eq!(serde_json::to_value(player).unwrap(), claims());
    let good = [
        ("an account", json!({ "is_anon": false })),
        ("a test user", json!({ "principal_kind": "test_user" })),
        ("expired within the leeway", json!({ "exp": NOW - 59 })),
        ("issued within the leeway", json!({ "iat": NOW + 60 })),
        ("nbf within the leeway", json!({ "nbf": NOW + 60 })),
        ("a life of a whole day", json!({ "exp": NOW + 86_400 })),
        ("a claim of tomorrow", json!({ "locale": "cs" })),
    ];
    for (name, changes) in good {
        let token = key.token(&key.header(), &with(claims(), changes));
        assert!(verifier.verify(&token).await.is_ok(), "{name}");
    }
    // RFC 7515 §4: members that are not understood are ignored.
    let header = with(key.header(), json!({ "cty": "player" }));
    assert!(
        verifier
            .verify(&key.token(&header, &claims()))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_client_is_told_the_same_whatever_check_failed() {
    let details = [
        VerifyError::Signature,
        VerifyError::Expired,
        VerifyError::Audience,
    ]
    .map(|error| error.client_detail());
    assert!(details.iter().all(|detail| *detail == details[0]));
}
