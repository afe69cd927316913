//! The certificate that answers a challenge (RFC 8737 §3). Every node makes its own from the digest in the
//! store, so its key is nobody's secret.

use std::sync::Arc;

use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

/// Returns a certificate for this name alone that contains the digest. `None` if the name cannot be in a
/// certificate.
pub(super) fn answer(name: &str, digest: &[u8; 32]) -> Option<Arc<CertifiedKey>> {
    let mut params = CertificateParams::new([name.to_owned()]).ok()?;
    params.distinguished_name = DistinguishedName::new();
    let extension = CustomExtension::new_acme_identifier(digest);
    params.custom_extensions.push(extension);
    let key = KeyPair::generate().ok()?;
    let certificate = params.self_signed(&key).ok()?;
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let private = ring::sign::any_supported_type(&private).ok()?;
    let chain = vec![certificate.der().clone()];
    Some(Arc::new(CertifiedKey::new(chain, private)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_the_digest_and_the_name() {
        let answer = answer("demo.play.example", &[7; 32]).unwrap();
        let der: &[u8] = &answer.cert[0];
        let holds = |needle: &[u8]| der.windows(needle.len()).any(|window| window == needle);
        // id-pe-acmeIdentifier, critical, as an octet string of 32 bytes (RFC 8737 §3).
        let begin = b"\x2b\x06\x01\x05\x05\x07\x01\x1f\x01\x01\xff\x04\x22\x04\x20";
        assert!(holds(&[&begin[..], &[7; 32]].concat()));
        assert!(holds(b"demo.play.example"));
    }
}
