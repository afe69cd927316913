//! What the log says of an order that failed: the ACME server's own words (RFC 8555 §6.7), and what the
//! operator can do.

use instant_acme::{ChallengeType, Error, Problem};

use super::authority::AuthorityError;
use crate::domain::errors::chain;

/// What the types of all problems begin with.
const TYPES: &str = "urn:ietf:params:acme:error:";
/// How much of the server's words is repeated.
const REPEATED: usize = 1_000;

/// Whether a problem is of this type.
pub(super) fn is(problem: &Problem, name: &str) -> bool {
    let found = problem.r#type.as_deref();
    found.and_then(|found| found.strip_prefix(TYPES)) == Some(name)
}

/// Returns a problem in the server's words, with its type, in one line.
pub(super) fn said(problem: &Problem) -> String {
    let kind = problem.r#type.as_deref().unwrap_or("no type");
    let kind = kind.strip_prefix(TYPES).unwrap_or(kind);
    let detail = problem.detail.as_deref().unwrap_or("no reason");
    let parts = problem.subproblems.iter().map(ToString::to_string);
    let parts: String = parts.map(|part| format!("; {part}")).collect();
    let text = format!("{detail} ({kind}){parts}");
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(REPEATED).collect()
}

/// Returns the name of a challenge, as the standards have it.
pub(super) const fn challenge_name(challenge: &ChallengeType) -> &'static str {
    match challenge {
        ChallengeType::TlsAlpn01 => "tls-alpn-01",
        ChallengeType::Dns01 => "dns-01",
        ChallengeType::Http01 => "http-01",
        _ => "another challenge",
    }
}

/// Returns why there is no certificate, and what the operator can do if it is known.
pub(super) fn explain(error: &AuthorityError) -> String {
    let AuthorityError::Acme(Error::Api(problem)) = error else {
        return chain(error);
    };
    let said = said(problem);
    match advice(problem) {
        Some(advice) => format!("the ACME server refused: {said}; {advice}"),
        None => format!("the ACME server refused: {said}"),
    }
}

/// Returns what the operator can do about a refusal.
fn advice(problem: &Problem) -> Option<&'static str> {
    let known = [
        (
            "externalAccountRequired",
            "set PLATFORM_ACME_EAB_KID and PLATFORM_ACME_EAB_KEY to what the certificate authority gives you",
        ),
        (
            "caa",
            "a CAA record forbids it: let it name this certificate authority",
        ),
        (
            "rejectedIdentifier",
            "the certificate authority issues none for this name",
        ),
        (
            "userActionRequired",
            "the certificate authority wants you to do something first, such as to agree to new terms",
        ),
    ];
    let found = known.into_iter().find(|(name, _)| is(problem, name));
    found.map(|(_, advice)| advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(json: &str) -> Problem {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_refusal_has_the_servers_words_its_type_and_what_to_do() {
        let refused = problem(
            r#"{"type": "urn:ietf:params:acme:error:externalAccountRequired",
                "detail": "bring an\naccount", "status": 403}"#,
        );
        let explained = explain(&AuthorityError::Acme(refused.into()));
        assert!(
            explained.starts_with(
                "the ACME server refused: bring an account (externalAccountRequired); set PLATFORM_ACME_EAB_KID"
            ),
            "{explained}"
        );
        let limited = problem(
            r#"{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "retry after noon"}"#,
        );
        let explained = explain(&AuthorityError::Acme(limited.into()));
        assert_eq!(
            explained,
            "the ACME server refused: retry after noon (rateLimited)"
        );
    }

    #[test]
    fn a_problem_about_several_names_says_each_and_is_bounded() {
        let several = problem(
            r#"{"type": "urn:ietf:params:acme:error:compound", "detail": "two names",
                "subproblems": [
                    {"identifier": {"type": "dns", "value": "a.example"}, "detail": "no address"},
                    {"identifier": {"type": "dns", "value": "b.example"}, "detail": "forbidden"}]}"#,
        );
        let text = said(&several);
        for part in [
            "two names (compound)",
            "a.example",
            "no address",
            "b.example",
            "forbidden",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let long = problem(&format!(r#"{{"detail": "{}"}}"#, "x".repeat(5_000)));
        assert_eq!(said(&long).len(), REPEATED);
        assert_eq!(said(&problem("{}")), "no reason (no type)");
    }
}
