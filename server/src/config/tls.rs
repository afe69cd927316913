//! The settings of TLS of the platform's own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use super::contradiction::contradiction;
use super::{Config, Secret, SettingError};
use crate::origin::PlatformOrigin;

/// Who speaks TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// A proxy in front of the server, or nobody.
    #[default]
    Off,
    /// The server, with certificates from files.
    Files,
    /// The server, with certificates from an ACME server.
    Acme,
}

impl TlsMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::Files, Self::Acme];

    /// Returns the name in the settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Files => "files",
            Self::Acme => "acme",
        }
    }
}

/// The settings of the ACME server.
#[derive(Clone, Debug)]
pub struct AcmeSettings {
    /// The address of its directory (RFC 8555 §7.1.1).
    pub directory: String,
    /// The address at which it may reach the operator.
    pub email: Option<String>,
    /// The file of the root certificates that verify the server itself, in place of the machine's.
    pub ca: Option<PathBuf>,
    /// The most orders of all nodes in an hour.
    pub orders_per_hour: u32,
    /// The program that publishes TXT records.
    pub dns_command: Option<PathBuf>,
    /// The identifier of the key of an account at the authority, to which the ACME account is bound
    /// (RFC 8555 §7.3.4).
    pub eab_kid: Option<String>,
    /// That key, base64url.
    pub eab_key: Option<Secret>,
}

impl AcmeSettings {
    /// Returns the account at the authority to which the ACME account is bound, if there is one: the
    /// identifier of its key, and the key.
    #[must_use]
    pub fn external_account(&self) -> Option<(String, Zeroizing<Vec<u8>>)> {
        let (id, key) = (self.eab_kid.clone()?, self.eab_key.as_ref()?);
        let key = URL_SAFE_NO_PAD.decode(key.expose()).ok()?;
        Some((id, Zeroizing::new(key)))
    }

    /// Returns the name of a setting that does not have its default.
    fn first_changed(&self) -> Option<&'static str> {
        let usual = Self::default();
        let changed = [
            (self.directory != usual.directory, "acme_directory"),
            (self.email.is_some(), "acme_email"),
            (self.ca.is_some(), "acme_ca"),
            (
                self.orders_per_hour != usual.orders_per_hour,
                "acme_orders_per_hour",
            ),
            (self.dns_command.is_some(), "acme_dns_command"),
            (self.eab_kid.is_some(), "acme_eab_kid"),
            (self.eab_key.is_some(), "acme_eab_key"),
        ];
        let mut changed = changed.into_iter().filter(|(is_changed, _)| *is_changed);
        changed.next().map(|(_, name)| name)
    }
}

impl Default for AcmeSettings {
    fn default() -> Self {
        Self {
            directory: "https://acme-v02.api.letsencrypt.org/directory".to_owned(),
            email: None,
            ca: None,
            orders_per_hour: 50,
            dns_command: None,
            eab_kid: None,
            eab_key: None,
        }
    }
}

/// The settings.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// Who speaks TLS.
    pub mode: TlsMode,
    /// The files of the certificates.
    pub certificates: Vec<PathBuf>,
    /// The files of their keys.
    pub keys: Vec<PathBuf>,
    /// The socket on which plain HTTP is redirected.
    pub redirect_listen: Option<SocketAddr>,
    /// The ACME server.
    pub acme: AcmeSettings,
}

impl TlsSettings {
    /// Returns each certificate's file with that of its key.
    pub fn pairs(&self) -> impl Iterator<Item = (&Path, &Path)> {
        let certificates = self.certificates.iter().map(PathBuf::as_path);
        certificates.zip(self.keys.iter().map(PathBuf::as_path))
    }
}

/// Checks combinations of settings that are valid on their own.
///
/// # Errors
/// The first one that is not valid.
pub(super) fn check(config: &Config) -> Result<(), SettingError> {
    let tls = &config.tls;
    let wrong = |names: &[&'static str], problem: &str| Err(contradiction(config, names, problem));
    check_unused(config)?;
    if tls.mode == TlsMode::Off {
        return Ok(());
    }
    if !config
        .origin
        .as_ref()
        .is_some_and(PlatformOrigin::is_secure)
    {
        return wrong(
            &["tls", "origin"],
            "with TLS, set origin to the https address of the platform, such as https://play.example",
        );
    }
    if tls.mode == TlsMode::Files && tls.certificates.is_empty() {
        return wrong(
            &["tls_certificates", "tls"],
            "it is not set; name the file of the certificate, with its chain",
        );
    }
    if tls.certificates.len() != tls.keys.len() {
        return wrong(
            &["tls_keys", "tls_certificates"],
            "name as many files as in tls_certificates, in the same order",
        );
    }
    let others = [Some(config.listen), config.operations_listen];
    let shares = |socket: SocketAddr| socket.port() != 0 && others.contains(&Some(socket));
    if tls.redirect_listen.is_some_and(shares) {
        return wrong(
            &["redirect_listen", "listen", "operations_listen"],
            "it is the socket of listen or of operations_listen; use one of its own",
        );
    }
    if tls.mode == TlsMode::Acme {
        check_acme(config)?;
    }
    Ok(())
}

/// Refuses settings that have no effect with this mode.
fn check_unused(config: &Config) -> Result<(), SettingError> {
    let tls = &config.tls;
    let wrong = |key: &'static str, problem: &str| {
        let names = [key, "tls"];
        Err(contradiction(config, &names, problem))
    };
    let not_files = tls.mode != TlsMode::Files;
    let unused = [
        (
            not_files && !tls.certificates.is_empty(),
            "tls_certificates",
        ),
        (not_files && !tls.keys.is_empty(), "tls_keys"),
    ];
    if let Some((_, key)) = unused.into_iter().find(|(is_set, _)| *is_set) {
        return wrong(
            key,
            "it is only used with certificates from files; set tls to files, or remove it",
        );
    }
    let changed = tls.acme.first_changed();
    if let Some(key) = changed.filter(|_| tls.mode != TlsMode::Acme) {
        return wrong(
            key,
            "it is only used with an ACME server; set tls to acme, or remove it",
        );
    }
    if tls.mode == TlsMode::Off && tls.redirect_listen.is_some() {
        return wrong(
            "redirect_listen",
            "it is only used with TLS; set tls to files or acme, or remove it",
        );
    }
    Ok(())
}

/// Refuses what no ACME server can do for the platform's names.
fn check_acme(config: &Config) -> Result<(), SettingError> {
    let acme = &config.tls.acme;
    if acme.eab_kid.is_some() != acme.eab_key.is_some() {
        let (key, other) = match acme.eab_kid {
            Some(_) => ("acme_eab_kid", "acme_eab_key"),
            None => ("acme_eab_key", "acme_eab_kid"),
        };
        let problem = format!("set {other} as well: the certificate authority gives both");
        return Err(contradiction(config, &[key, other], problem));
    }
    // Another ACME server may be the operator's, who may prove any name at any port.
    if acme.directory != AcmeSettings::default().directory {
        return Ok(());
    }
    let origins = [
        ("origin", &config.origin),
        ("games_origin", &config.games_origin),
    ];
    let origins = origins
        .into_iter()
        .filter_map(|(key, origin)| Some((key, origin.as_ref()?)));
    for (key, origin) in origins {
        if origin.is_local() {
            let problem = "no public ACME server issues certificates for names under localhost; use a name \
                           that you own, set tls to files, or name an ACME server of yours with acme_directory";
            return Err(contradiction(
                config,
                &[key, "tls", "acme_directory"],
                problem,
            ));
        }
        if origin.port() != 443 && acme.dns_command.is_none() {
            let problem = format!(
                "its port is {}, but the ACME server proves names at port 443; leave the port out, prove \
                 names by DNS with acme_dns_command, or set tls to files",
                origin.port()
            );
            return Err(contradiction(
                config,
                &[key, "tls", "acme_dns_command"],
                problem,
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::load::from_parts;

    fn refusal(settings: &[(&str, &str)]) -> Option<String> {
        let name = |name: &str| format!("PLATFORM_{}", name.to_ascii_uppercase());
        let settings: HashMap<String, String> = settings
            .iter()
            .map(|(key, value)| (name(key), (*value).to_owned()))
            .collect();
        from_parts(None, &settings)
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn settings_of_tls_that_do_not_belong_together_are_refused() {
        let origin = ("origin", "https://play.example");
        let files = ("tls", "files");
        let (one, two) = (
            ("tls_certificates", "a.pem"),
            ("tls_certificates", "a.pem, b.pem"),
        );
        let acme = ("tls", "acme");
        let email = ("acme_email", "me@play.example");
        let (key, keys) = (("tls_keys", "a.key"), ("tls_keys", "a.key,b.key"));
        for right in [
            &[origin, files, one, key][..],
            &[origin, files, two, keys],
            &[origin],
            &[origin, acme],
            &[origin, acme, email, ("redirect_listen", "0.0.0.0:80")],
        ] {
            assert_eq!(refusal(right), None, "{right:?}");
        }
        let port = ("redirect_listen", "0.0.0.0:80");
        for (wrong, said) in [
            (&[("tls", "on")][..], "neither off, files nor acme"),
            (&[files, one, key], "tls: with TLS, set origin"),
            (&[origin, files], "tls_certificates: it is not set"),
            (&[origin, files, two, key], "tls_keys: name as many"),
            (&[origin, one], "tls_certificates: it is only used"),
            (&[origin, acme, one], "tls_certificates: it is only used"),
            (&[origin, acme, key], "tls_keys: it is only used"),
            (&[acme], "tls: with TLS, set origin"),
            (&[origin, email], "acme_email: it is only used"),
            (
                &[origin, files, one, key, email],
                "acme_email: it is only used",
            ),
            (
                &[origin, acme, ("acme_email", "me")],
                "is not an address such as operator@",
            ),
            (
                &[origin, acme, ("acme_directory", "http://ca.example/dir")],
                "is not an address such as https://",
            ),
            (
                &[origin, acme, ("acme_orders_per_hour", "0")],
                "is not a whole number from 1",
            ),
            (&[origin, port], "redirect_listen: it is only used"),
            (
                &[origin, files, one, key, port, ("listen", "0.0.0.0:80")],
                "redirect_listen: it is the socket",
            ),
        ] {
            let problem = refusal(wrong).unwrap();
            assert!(problem.contains(said), "{problem}");
        }
    }

    #[test]
    fn what_no_acme_server_can_do_for_the_names_of_a_platform_is_refused() {
        let (origin, acme) = (("origin", "https://play.example"), ("tls", "acme"));
        let kid = ("acme_eab_kid", "kid-1");
        let mac = (
            "acme_eab_key",
            "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nME",
        );
        let other_port = ("origin", "https://play.example:8443");
        let local = ("origin", "https://platform.localhost");
        let own = ("acme_directory", "https://ca.example/dir");
        for right in [
            &[origin, acme, kid, mac][..],
            // By DNS, or by an ACME server of the operator's, any port can be proved.
            &[other_port, acme, ("acme_dns_command", "/bin/true")],
            &[other_port, acme, own],
            &[local, acme, own],
        ] {
            assert_eq!(refusal(right), None, "{right:?}");
        }
        for (wrong, said) in [
            (&[origin, kid, mac][..], "acme_eab_kid: it is only used"),
            (
                &[origin, acme, kid],
                "acme_eab_kid: set acme_eab_key as well",
            ),
            (
                &[origin, acme, mac],
                "acme_eab_key: set acme_eab_kid as well",
            ),
            (
                &[origin, acme, kid, ("acme_eab_key", "zWNDZM6e+/")],
                "is not the base64url text",
            ),
            (&[local, acme], "origin: no public ACME server"),
            (&[other_port, acme], "origin: its port is 8443, but"),
            (
                &[origin, acme, ("games_origin", "https://games.example:444")],
                "games_origin: its port is 444, but",
            ),
        ] {
            let problem = refusal(wrong).unwrap();
            assert!(problem.contains(said), "{problem}");
        }
    }
}
