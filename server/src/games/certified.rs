//! The names for which the platform obtains a certificate: those that it serves. Everybody can ask for any
//! name in a handshake of TLS, and each certificate costs an order at the certificate authority.

use crate::games::catalogue::Catalogue;

/// The maximum length of a name (RFC 1035 §2.3.4).
const LONGEST_NAME: usize = 253;
/// The maximum length of a label.
const LONGEST_LABEL: usize = 63;

/// Whether the platform serves this name, and so may have a certificate for it: the console, the auth
/// service, the addresses of existing games, previews and panes, and domains in service. The name is in lower case, and has no
/// port.
#[must_use]
pub fn may_have_certificate(name: &str, catalogue: &Catalogue) -> bool {
    is_host_name(name) && catalogue.answers_at(name)
}

/// Whether this is a host name in lower case, as certificates contain it.
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= LONGEST_NAME && name.contains('.') && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::PlatformOrigin;

    #[test]
    fn only_names_that_are_served_may_have_a_certificate() {
        let origin: PlatformOrigin = "https://play.example:8443".parse().unwrap();
        let catalogue = Catalogue::new(origin, "https://games.example".parse().unwrap());
        for (name, expected) in [
            ("play.example", true),
            ("auth.play.example", true),
            ("nobody.play.example", false),
            ("dev-nobody.play.example", false),
            ("pane-1--dev-nobody.play.example", false),
            ("x.auth.play.example", false),
            ("AUTH.play.example", false),
            ("play.example.", false),
            (".play.example", false),
            ("-.play.example", false),
            ("play.example:8443", false),
            ("*.play.example", false),
            ("notplay.example", false),
            ("evil.example", false),
            ("example", false),
            ("", false),
        ] {
            let may = may_have_certificate(name, &catalogue);
            assert_eq!(may, expected, "{name}");
        }
        let long = format!("{}.play.example", "a".repeat(64));
        assert!(!may_have_certificate(&long, &catalogue));
    }
}
