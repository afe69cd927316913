//! Where traces and log lines are sent: OpenTelemetry's protocol OTLP, over HTTP.

use std::collections::HashMap;

use axum::http::{HeaderName, HeaderValue, header};
use percent_encoding::percent_decode_str;
use platform_loopback::is_localhost;
use url::{Host, Url};

use super::{Secret, SettingError};

/// OpenTelemetry's own variable for the name of a service.
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";

/// Where traces and log lines are sent.
#[derive(Clone, Debug)]
pub struct OtlpSettings {
    /// The address of the receiver; without one, nothing is sent.
    pub endpoint: Option<Url>,
    /// Headers of every request to it.
    pub headers: Vec<(HeaderName, Secret)>,
    /// The share of requests that are traced, 0 to 1.
    pub sample: f64,
    /// The name of this service, if it is another one.
    pub service: Option<String>,
}

impl Default for OtlpSettings {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: Vec::new(),
            sample: 0.05,
            service: None,
        }
    }
}

impl OtlpSettings {
    /// Whether headers, which may contain a key, go over the network without TLS.
    #[must_use]
    pub fn shows_headers(&self) -> bool {
        let plain = self.endpoint.as_ref();
        let plain = plain.filter(|url| url.scheme() == "http" && !self.headers.is_empty());
        plain.is_some_and(|url| match url.host() {
            Some(Host::Domain(name)) => !is_localhost(name),
            Some(Host::Ipv4(address)) => !address.is_loopback(),
            Some(Host::Ipv6(address)) => !address.is_loopback(),
            None => false,
        })
    }
}

/// Parses the address of a receiver. It is not repeated: it may contain a key.
pub(super) fn endpoint(text: &str) -> Result<Url, String> {
    let is_plain = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    };
    let url = Url::parse(text).ok().filter(is_plain);
    url.ok_or_else(|| {
        "it is not an address such as http://127.0.0.1:4318 or https://otlp.example; a key belongs \
         to otlp_headers"
            .to_owned()
    })
}

/// Parses headers as OpenTelemetry writes them, `<name>=<value>,<name>=<value>` (OpenTelemetry
/// Specification, "Protocol Exporter"). No value is repeated in an error.
pub(super) fn headers(text: &str) -> Result<Vec<(HeaderName, Secret)>, String> {
    let parts = text.split(',').map(str::trim);
    let parts = parts.filter(|part| !part.is_empty()).enumerate();
    let read = |(before, part): (usize, &str)| {
        let number = before + 1;
        let Some((name, value)) = part.split_once('=') else {
            return Err(format!("header {number} is not <name>=<value>"));
        };
        let name = HeaderName::try_from(name.trim())
            .map_err(|_| format!("header {number} has no name that a header can have"))?;
        if [header::CONTENT_LENGTH, header::CONTENT_TYPE, header::HOST].contains(&name) {
            return Err(format!("`{name}` is set by the server itself; remove it"));
        }
        let value = percent_decode_str(value.trim()).decode_utf8();
        let value = value
            .ok()
            .filter(|value| HeaderValue::from_str(value).is_ok());
        let value = value.ok_or_else(|| format!("`{name}` has no value that a header can have"))?;
        Ok((name, Secret::new(value.into_owned())))
    };
    parts.map(read).collect()
}

/// Parses a share.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok();
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("`{text}` is not a share from 0 to 1, such as 0.05"))
}

/// Returns the name of this service that the environment gives.
pub(super) fn service_name(environment: &HashMap<String, String>) -> Option<String> {
    let name = environment.get(SERVICE_NAME)?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// Checks that headers are sent to somebody.
pub(super) fn check(settings: &OtlpSettings) -> Result<(), SettingError> {
    if settings.endpoint.is_none() && !settings.headers.is_empty() {
        return Err(SettingError::new(
            "otlp_headers",
            "without otlp_endpoint, nothing is sent; set it as well, or leave this out",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_an_http_address_without_a_key() {
        for good in [
            "http://127.0.0.1:4318",
            "https://otlp.example",
            "https://otlp.example/a/b/",
            "http://[::1]:4318/",
        ] {
            assert!(endpoint(good).is_ok(), "{good}");
        }
        for wrong in [
            "",
            "127.0.0.1:4318",
            "grpc://otlp.example",
            "https://user:word@otlp.example",
            "https://otlp.example/?key=word",
            "https://otlp.example/#word",
        ] {
            let error = endpoint(wrong).unwrap_err();
            assert!(!error.contains("word"), "{error}");
        }
    }

    #[test]
    fn headers_are_read_as_opentelemetry_writes_them() {
        let read = headers("Authorization=Bearer%20word, x-team = games,").unwrap();
        let read: Vec<_> = read
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose()))
            .collect();
        assert_eq!(
            read,
            [("authorization", "Bearer word"), ("x-team", "games")]
        );
        for wrong in [
            "word",
            "=word",
            "a b=word",
            "a=word%0a",
            "a=word%ff",
            "Host=word",
        ] {
            let error = headers(wrong).unwrap_err();
            assert!(!error.contains("word"), "{error}");
        }
    }

    #[test]
    fn a_share_is_from_0_to_1() {
        for (text, read) in [("0", 0.0), ("1", 1.0), ("0.05", 0.05), ("1e-3", 0.001)] {
            assert_eq!(share(text), Ok(read));
        }
        for wrong in ["", "-0.1", "1.1", "NaN", "inf", "5%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn headers_without_tls_are_for_this_machine() {
        for (address, shows) in [
            ("http://127.0.0.1:4318", false),
            ("http://[::1]:4318", false),
            ("http://collector.localhost", false),
            ("https://otlp.example", false),
            ("http://otlp.example", true),
            ("http://10.0.0.1:4318", true),
        ] {
            let mut settings = OtlpSettings {
                endpoint: endpoint(address).ok(),
                ..OtlpSettings::default()
            };
            assert!(!settings.shows_headers(), "{address}");
            settings.headers = headers("key=word").unwrap();
            assert_eq!(settings.shows_headers(), shows, "{address}");
        }
    }
}
