//! The certificates of the platform's own TLS: read from PEM, chosen by the name that a visitor asks
//! for, and replaced while connections go on.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::https::ChoosesCertificates;

/// Why a certificate cannot be used: a phrase for the operator.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The file has none.
    #[error("there is no certificate in PEM (`-----BEGIN CERTIFICATE-----`)")]
    NoCertificate,
    /// The certificate is damaged.
    #[error("the certificate cannot be read")]
    Unreadable,
    /// The file of the key has none.
    #[error("there is no private key in PEM (`-----BEGIN PRIVATE KEY-----`, without a password)")]
    NoKey,
    /// The key is of a kind that TLS does not use, or damaged.
    #[error("the private key is neither ECDSA, Ed25519 nor RSA with 2048 bits or more")]
    Key,
    /// The key belongs to another certificate.
    #[error("the private key belongs to another certificate")]
    OtherKey,
}

/// A certificate with its chain and its private key.
#[derive(Clone, Debug)]
pub struct Certificate {
    key: Arc<CertifiedKey>,
    valid: (i64, i64),
}

impl Certificate {
    /// Reads the chain, the certificate of the server first, and its private key.
    ///
    /// # Errors
    /// [`CertificateError`]
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|_| CertificateError::Unreadable)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| CertificateError::NoKey)?;
        Self::new(chain, &key)
    }

    /// Reads the chain in PEM, the certificate of the server first, and uses its private key in DER
    /// (PKCS#8).
    ///
    /// # Errors
    /// [`CertificateError`]
    pub fn from_chain(chain: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|_| CertificateError::Unreadable)?;
        let key = PrivatePkcs8KeyDer::from(key.to_vec());
        Self::new(chain, &key.into())
    }

    /// Uses a chain and a private key in DER.
    ///
    /// # Errors
    /// [`CertificateError`]
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'static>,
    ) -> Result<Self, CertificateError> {
        let first = chain.first().ok_or(CertificateError::NoCertificate)?;
        let (_, parsed) =
            x509_parser::parse_x509_certificate(first).map_err(|_| CertificateError::Unreadable)?;
        let validity = parsed.validity();
        let valid = (
            validity.not_before.timestamp(),
            validity.not_after.timestamp(),
        );
        ParsedCertificate::try_from(first).map_err(|_| CertificateError::Unreadable)?;
        let key = ring::sign::any_supported_type(key).map_err(|_| CertificateError::Key)?;
        let key = CertifiedKey::new(chain, key);
        key.keys_match().map_err(|_| CertificateError::OtherKey)?;
        Ok(Self {
            key: Arc::new(key),
            valid,
        })
    }

    /// Returns from when to when it is valid, in seconds since 1970.
    #[must_use]
    pub const fn valid(&self) -> (i64, i64) {
        self.valid
    }

    /// Whether it is for this name.
    #[must_use]
    pub fn is_for(&self, name: &str) -> bool {
        let Ok(name) = ServerName::try_from(name) else {
            return false;
        };
        let parsed = self.key.cert.first().map(ParsedCertificate::try_from);
        let Some(Ok(parsed)) = parsed else {
            return false;
        };
        verify_server_name(&parsed, &name).is_ok()
    }

    /// Whether it is for this name, or for all names one label below a host, written `*.<host>`.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        match name.strip_prefix('*') {
            // Any label stands for all.
            Some(rest) => self.is_for(&format!("any{rest}")),
            None => self.is_for(name),
        }
    }

    /// Returns the chain and the key, as `rustls` uses them.
    #[must_use]
    pub fn key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.key)
    }
}

/// The certificates in use.
#[derive(Debug, Default)]
pub struct Certificates(RwLock<Arc<[Certificate]>>);

impl Certificates {
    /// Starts with these.
    #[must_use]
    pub fn new(certificates: Vec<Certificate>) -> Self {
        Self(RwLock::new(certificates.into()))
    }

    /// Uses these for new connections.
    pub fn replace(&self, certificates: Vec<Certificate>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *all = certificates.into();
    }

    /// Returns those in use.
    #[must_use]
    pub fn all(&self) -> Arc<[Certificate]> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the first one for this name. A visitor who asks for no name, or for one that none is
    /// for, gets the first of all.
    #[must_use]
    pub fn find(&self, name: Option<&str>) -> Option<Certificate> {
        let all = self.all();
        let found = match name {
            Some(name) if all.len() > 1 => all.iter().find(|one| one.is_for(name)),
            Some(_) | None => None,
        };
        found.or_else(|| all.first()).cloned()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.find(hello.server_name()).map(|found| found.key)
    }
}

impl ChoosesCertificates for Certificates {
    fn is_misdirected(&self, shown: &str, host: &str) -> bool {
        // Most platforms have one certificate, and nothing to compare.
        if self.all().len() < 2 {
            return false;
        }
        let [shown, own] = [shown, host].map(|name| self.find(Some(name)));
        let is_for = |one: Option<Certificate>| one.is_some_and(|one| one.is_for(host));
        !is_for(shown) && is_for(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate for these names and its key, in PEM.
    fn pem(names: &[&str]) -> (String, String) {
        let names = names.iter().map(|name| (*name).to_owned());
        let made = rcgen::generate_simple_self_signed(names.collect::<Vec<_>>()).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    fn certificate(names: &[&str]) -> Certificate {
        let (chain, key) = pem(names);
        Certificate::from_pem(chain.as_bytes(), key.as_bytes()).unwrap()
    }

    #[test]
    fn a_request_is_misdirected_where_another_certificate_is_for_its_host() {
        let all = Certificates::new(vec![
            certificate(&["play.example", "*.play.example"]),
            certificate(&["game.example"]),
        ]);
        for (shown, host, expected) in [
            ("play.example", "auth.play.example", false),
            ("play.example", "game.example", true),
            ("game.example", "play.example", true),
            // No certificate is for it: the platform says that there is no such game.
            ("play.example", "other.example", false),
            ("other.example", "game.example", true),
        ] {
            assert_eq!(all.is_misdirected(shown, host), expected, "{shown} {host}");
        }
        let alone = Certificates::new(vec![certificate(&["play.example"])]);
        assert!(!alone.is_misdirected("play.example", "game.example"));
    }

    #[test]
    fn the_first_certificate_for_a_name_is_chosen() {
        let all = Certificates::new(vec![
            certificate(&["play.example"]),
            certificate(&["*.play.example"]),
            certificate(&["auth.play.example", "other.example"]),
        ]);
        let chosen = |name: &str| {
            let found = all.find(Some(name)).unwrap();
            let same = |one: &Certificate| Arc::ptr_eq(&one.key, &found.key);
            all.all().iter().position(same).unwrap()
        };
        for (name, index) in [
            ("play.example", 0),
            ("auth.play.example", 1),
            ("AUTH.play.example", 1),
            ("other.example", 2),
            ("a.b.play.example", 0),
            ("unknown.example", 0),
            ("not a name", 0),
        ] {
            assert_eq!(chosen(name), index, "{name}");
        }
        assert!(all.find(None).is_some());
        all.replace(vec![certificate(&["play.example"])]);
        assert_eq!(all.all().len(), 1);
        assert!(Certificates::default().find(None).is_none());
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_the_reason() {
        let (chain, key) = pem(&["play.example"]);
        let (other, _) = pem(&["play.example"]);
        let refusal = |chain: &str, key: &str| {
            let read = Certificate::from_pem(chain.as_bytes(), key.as_bytes());
            read.unwrap_err().to_string()
        };
        assert!(refusal("", &key).contains("no certificate"));
        assert!(refusal(&key, &key).contains("no certificate"));
        assert!(refusal(&chain, "").contains("no private key"));
        assert!(refusal(&chain, &chain).contains("no private key"));
        assert!(refusal(&other, &key).contains("another certificate"));
        let damaged = chain.replacen("MII", "AAA", 1);
        assert!(refusal(&damaged, &key).contains("cannot be read"));
    }

    #[test]
    fn it_is_known_until_when_a_certificate_is_valid() {
        let mut params = rcgen::CertificateParams::new(["play.example".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 4, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let read = Certificate::from_pem(pem.as_bytes(), key.serialize_pem().as_bytes());
        assert_eq!(read.unwrap().valid(), (1_767_225_600, 1_775_001_600));
    }
}
