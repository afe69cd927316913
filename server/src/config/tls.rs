//! The settings of TLS of the platform's own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::{Config, SettingError};

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
}

impl AcmeSettings {
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
    let wrong = |key: &str, problem: &str| Err(SettingError::new(key, problem));
    let not_files = tls.mode != TlsMode::Files;
    let not_acme = tls.mode != TlsMode::Acme;
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
    if let Some(key) = tls.acme.first_changed().filter(|_| not_acme) {
        return wrong(
            key,
            "it is only used with an ACME server; set tls to acme, or remove it",
        );
    }
    if tls.mode == TlsMode::Off {
        return match tls.redirect_listen {
            Some(_) => wrong(
                "redirect_listen",
                "it is only used with TLS; set tls to files or acme, or remove it",
            ),
            None => Ok(()),
        };
    }
    if !config
        .origin
        .as_ref()
        .is_some_and(|origin| origin.is_secure())
    {
        return wrong(
            "tls",
            "with TLS, set origin to the https address of the platform, such as https://play.example",
        );
    }
    if tls.mode == TlsMode::Files && tls.certificates.is_empty() {
        return wrong(
            "tls_certificates",
            "it is not set; name the file of the certificate, with its chain",
        );
    }
    if tls.certificates.len() != tls.keys.len() {
        return wrong(
            "tls_keys",
            "name as many files as in tls_certificates, in the same order",
        );
    }
    let others = [Some(config.listen), config.operations_listen];
    let shares = |socket: SocketAddr| socket.port() != 0 && others.contains(&Some(socket));
    if tls.redirect_listen.is_some_and(shares) {
        return wrong(
            "redirect_listen",
            "it is the socket of listen or of operations_listen; use one of its own",
        );
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
}
