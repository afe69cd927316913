//! TLS to other servers: rustls with ring, and the machine's own certificates, or roots that the operator
//! names.

use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt as _;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};

/// Returns the settings of a client. If it is not `trusting`, it trusts no certificate, and the
/// machine need not have any.
///
/// # Errors
/// Returns an error if the machine's certificates cannot be read.
pub fn client(trusting: bool) -> Result<ClientConfig, rustls::Error> {
    let builder = builder()?;
    let builder = if trusting {
        builder.try_with_platform_verifier()?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}

/// Returns the settings of a client that trusts these root certificates alone, in PEM.
///
/// # Errors
/// Returns an error if there is none, or if one cannot be read.
pub fn client_of_roots(roots: &[u8]) -> Result<ClientConfig, rustls::Error> {
    let unreadable = || rustls::Error::General("there is no root certificate in PEM".to_owned());
    let mut store = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(roots) {
        store.add(root.map_err(|_| unreadable())?)?;
    }
    if store.is_empty() {
        return Err(unreadable());
    }
    let builder = builder()?.with_root_certificates(store);
    Ok(builder.with_no_client_auth())
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_must_be_there_and_readable() {
        let made = rcgen::generate_simple_self_signed(["ca.example".to_owned()]).unwrap();
        assert!(client_of_roots(made.cert.pem().as_bytes()).is_ok());
        for wrong in ["", "no certificate", &made.signing_key.serialize_pem()] {
            assert!(client_of_roots(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
