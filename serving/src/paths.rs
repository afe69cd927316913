//! Decides which paths belong to a backend, and which to the platform, however they are spelled.

use percent_encoding::percent_decode_str;
use platform_protocol::paths::PREFIX;

/// How often a path is decoded: a backend that decodes twice must not find a path that was not
/// checked.
const DECODINGS: usize = 3;

/// Whether a path is under `prefix`: `/api` includes `/api` and `/api/x`, but not `/apix`; `/api/`
/// only includes paths after the slash.
#[must_use]
pub fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path leads under `/__platform`, in any spelling that a backend might interpret so:
/// percent-encoded, with repeated slashes or backslashes, with dot segments, in capitals, with
/// parameters in a segment (RFC 3986 §3.3, §6.2).
#[must_use]
pub fn is_reserved(path: &str) -> bool {
    let reserved = PREFIX.trim_matches('/').as_bytes();
    let is_plain = !path.contains(['%', '\\', ';']) && !path.contains("/.");
    if is_plain {
        // This decides nearly all paths.
        let first = path.split('/').find(|segment| !segment.is_empty());
        return first.is_some_and(|first| first.as_bytes().eq_ignore_ascii_case(reserved));
    }
    leads_below(path, &[&[reserved]])
}

/// Whether a path leads to where certificate authorities look for a proof of control over a domain:
/// `/.well-known/acme-challenge` (RFC 8555 §8.3) and `/.well-known/pki-validation` (CA/Browser Forum, Baseline
/// Requirements, 3.2.2.4.18), in any spelling that a backend might interpret so.
#[must_use]
pub fn is_domain_validation(path: &str) -> bool {
    // The full stop of the first segment may be encoded.
    let may_be = path.contains(['%', '\\']) || path.contains("/.");
    may_be
        && leads_below(
            path,
            &[&[b".well-known"], &[b"acme-challenge", b"pki-validation"]],
        )
}

/// Whether a path begins with these segments, where each may be one of several, in any spelling.
fn leads_below(path: &str, prefix: &[&[&[u8]]]) -> bool {
    decodings(path).iter().any(|plain| {
        let mut segments: Vec<&[u8]> = Vec::new();
        for segment in plain.split(|byte| matches!(byte, b'/' | b'\\')) {
            let name = segment.split(|byte| *byte == b';').next();
            match name.unwrap_or_default() {
                b"" | b"." => {}
                b".." => drop(segments.pop()),
                name => segments.push(name),
            }
        }
        let begins = |(segment, names): (&&[u8], &&[&[u8]])| {
            names.iter().any(|name| segment.eq_ignore_ascii_case(name))
        };
        segments.len() >= prefix.len() && segments.iter().zip(prefix).all(begins)
    })
}

/// Whether a path could lead out of its prefix: a backend might resolve `..`, and then serve a path
/// outside of it.
#[must_use]
pub fn leads_out(path: &str) -> bool {
    let encoded_slash = |segment: &str| {
        percent_decode_str(segment).any(|byte| matches!(byte, b'/' | b'\\' | b'\0'))
    };
    path.split('/').any(encoded_slash)
        || decodings(path).iter().any(|plain| {
            let mut segments = plain.split(|byte| matches!(byte, b'/' | b'\\'));
            segments.any(|segment| {
                let name = segment.split(|byte| *byte == b';').next();
                matches!(name, Some(b"." | b".."))
            })
        })
}

/// Returns the path unchanged, and decoded once, twice, and so on until nothing changes.
fn decodings(path: &str) -> Vec<Vec<u8>> {
    let mut found = vec![path.as_bytes().to_vec()];
    for _ in 0..DECODINGS {
        let Some(last) = found.last().filter(|last| last.contains(&b'%')) else {
            break;
        };
        let plain: Vec<u8> = percent_encoding::percent_decode(last).collect();
        if plain == *last {
            break;
        }
        found.push(plain);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_a_segment_ends() {
        for (path, prefix, below) in [
            ("/api/x", "/api/", true),
            ("/api/", "/api/", true),
            ("/api", "/api/", false),
            ("/apix", "/api/", false),
            ("/api", "/api", true),
            ("/api/x", "/api", true),
            ("/apix", "/api", false),
            ("/api%2fx", "/api", false),
            ("/API/x", "/api", false),
            ("/anything", "/", true),
        ] {
            assert_eq!(is_below(path, prefix), below, "{path} {prefix}");
        }
    }

    #[test]
    fn the_platforms_paths_are_known_in_every_spelling() {
        for path in [
            "/__platform",
            "/__platform/",
            "/__platform/logs",
            "/%5f%5fplatform/logs",
            "/%5F_platform/logs",
            "/%255f%255fplatform/logs",
            "/__%70latform/logs",
            "//__platform/logs",
            "/./__platform/logs",
            "/%2e/__platform/logs",
            "/api/../__platform/logs",
            "/api/%2e%2e/__platform/logs",
            "/api/..%2f__platform/logs",
            "/api/..;/__platform/logs",
            "/%2f__platform/logs",
            "/\\__platform/logs",
            "/%5c__platform/logs",
            "/__platform%2flogs",
            "/__platform;a=b/logs",
            "/__PLATFORM/logs",
            "/../__platform",
        ] {
            assert!(is_reserved(path), "{path}");
        }
        for path in [
            "/",
            "/api/__platform/x",
            "/__platformer/x",
            "/x__platform",
            "/a/b/../__platform",
            "/%",
            "/%zz",
        ] {
            assert!(!is_reserved(path), "{path}");
        }
    }

    #[test]
    fn where_authorities_look_for_proofs_is_known_in_every_spelling() {
        for path in [
            "/.well-known/acme-challenge/token",
            "/.well-known/acme-challenge",
            "/.well-known/pki-validation/file.txt",
            "/.Well-Known/ACME-challenge/token",
            "/%2ewell-known/acme-challenge/token",
            "/%252ewell-known/acme%2Dchallenge/token",
            "//.well-known//acme-challenge/token",
            "/a/../.well-known/acme-challenge/token",
            "/.well-known/x/../pki-validation/file.txt",
            "/.well-known;a=b/acme-challenge;c/token",
            "/\\.well-known\\acme-challenge\\token",
        ] {
            assert!(is_domain_validation(path), "{path}");
        }
        for path in [
            "/",
            "/.well-known",
            "/.well-known/security.txt",
            "/well-known/acme-challenge/token",
            "/a/.well-known/acme-challenge/token",
            "/.well-known/acme-challenges/token",
            "/acme-challenge/.well-known",
        ] {
            assert!(!is_domain_validation(path), "{path}");
        }
    }

    #[test]
    fn what_leads_out_of_a_path_is_seen() {
        for path in [
            "/api/../x",
            "/api/./x",
            "/api/%2e%2e/x",
            "/api/%252e%252e/x",
            "/api/..;a/x",
            "/api/a%2f..%2fb",
            "/api/a%5cb",
            "/api/a%00b",
        ] {
            assert!(leads_out(path), "{path}");
        }
        for path in ["/api/x", "/api/.x/..y/z..", "/api/a%20b", "/api/100%"] {
            assert!(!leads_out(path), "{path}");
        }
    }
}
