//! TLS to other servers: rustls with ring, and the machine's own certificates.

use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt as _;
use rustls::{ClientConfig, RootCertStore};

/// Returns the settings of a client. If it is not `trusting`, it trusts no certificate, and the
/// machine need not have any.
///
/// # Errors
/// Returns an error if the machine's certificates cannot be read.
pub fn client(trusting: bool) -> Result<ClientConfig, rustls::Error> {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions()?;
    let builder = if trusting {
        builder.try_with_platform_verifier()?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}
