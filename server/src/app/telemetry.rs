//! The receiver of traces and log lines that the settings name.

use axum::http::HeaderValue;
use platform_telemetry::{OpenError, Receiver, Telemetry};

use crate::config::Config;
use crate::web::tls;

/// Why traces and log lines cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// TLS is not available: the machine's certificates cannot be read.
    #[error("otlp_endpoint: TLS cannot be set up ({0}); install the machine's CA certificates")]
    Tls(rustls::Error),
    /// The address cannot be used.
    #[error("otlp_endpoint: {0}")]
    Open(#[from] OpenError),
}

/// Returns what sends traces and log lines to the receiver of the settings; nothing if they name none.
///
/// # Errors
/// [`TelemetryError`]
pub fn open(config: &Config) -> Result<Telemetry, TelemetryError> {
    let settings = &config.otlp;
    let Some(endpoint) = &settings.endpoint else {
        return Ok(Telemetry::default());
    };
    let secure = endpoint.scheme() == "https";
    let headers = settings.headers.iter().filter_map(|(name, value)| {
        // The settings were read, so it can be a header.
        let mut value = HeaderValue::from_str(value.expose()).ok()?;
        value.set_sensitive(true);
        Some((name.clone(), value))
    });
    Ok(Telemetry::open(&Receiver {
        endpoint: endpoint.to_string(),
        headers: headers.collect(),
        sample: settings.sample,
        service: settings.service.clone(),
        version: env!("CARGO_PKG_VERSION"),
        tls: tls::client(secure).map_err(TelemetryError::Tls)?,
    })?)
}

/// Warns if a key for the receiver can be read on its way.
pub(in crate::app) fn warn_of_plain(config: &Config) {
    if config.otlp.shows_headers() {
        tracing::warn!(
            "otlp_headers are sent without TLS, and whoever is between this machine and the \
             receiver can read them; use https for otlp_endpoint"
        );
    }
}
