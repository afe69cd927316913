//! Small files that are kept in memory in every content coding.

use std::io::Write as _;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use headers::{HeaderMapExt as _, IfNoneMatch};
use platform_compression::{BEST, SMALL, brotli};
use sha2::{Digest as _, Sha256};

use super::encoding::{self, Coding};

/// Characters of the hash in an `ETag`, 132 bits.
const ETAG_CHARS: usize = 22;

/// A file in every content coding that we offer.
#[derive(Debug)]
pub struct Asset {
    identity: Variant,
    gzip: Variant,
    brotli: Variant,
    content_type: HeaderValue,
    cache_control: HeaderValue,
    cross_origin: bool,
}

#[derive(Debug)]
struct Variant {
    bytes: Bytes,
    etag: HeaderValue,
}

/// A file's bytes in every content coding.
#[derive(Clone, Debug)]
pub struct Packed {
    /// Uncompressed.
    pub plain: Bytes,
    /// In gzip (RFC 1952).
    pub gzip: Bytes,
    /// In brotli (RFC 7932).
    pub brotli: Bytes,
}

impl Packed {
    /// Compresses `plain`, which takes a moment.
    ///
    /// # Errors
    /// Returns an error only if a compressor fails.
    pub fn new(plain: Bytes) -> std::io::Result<Self> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&plain)?;
        Ok(Self {
            gzip: gzip.finish()?.into(),
            brotli: brotli(&plain, BEST, SMALL)?.into(),
            plain,
        })
    }
}

/// Embeds a file that the build script of the calling crate has compressed, by its name.
#[macro_export]
macro_rules! packed {
    ($name:literal) => {
        $crate::asset::Packed {
            plain: bytes::Bytes::from_static(include_bytes!(concat!(env!("OUT_DIR"), "/", $name))),
            gzip: bytes::Bytes::from_static(include_bytes!(concat!(
                env!("OUT_DIR"),
                "/",
                $name,
                ".gz"
            ))),
            brotli: bytes::Bytes::from_static(include_bytes!(concat!(
                env!("OUT_DIR"),
                "/",
                $name,
                ".br"
            ))),
        }
    };
}
pub use packed;

impl Asset {
    /// Creates a file with these bytes and headers.
    #[must_use]
    pub fn new(packed: Packed, content_type: &'static str, cache_control: &'static str) -> Self {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&packed.plain));
        let digest = digest.get(..ETAG_CHARS).unwrap_or(&digest);
        // A strong ETag names one sequence of bytes, so each coding has its own
        // (RFC 9110 §8.8.3.3).
        let variant = |bytes: Bytes, coding: &str| {
            let etag = HeaderValue::from_str(&format!("\"{digest}{coding}\""));
            Variant {
                bytes,
                etag: etag.unwrap_or(HeaderValue::from_static("\"\"")),
            }
        };
        Self {
            identity: variant(packed.plain, ""),
            gzip: variant(packed.gzip, "-gzip"),
            brotli: variant(packed.brotli, "-br"),
            content_type: HeaderValue::from_static(content_type),
            cache_control: HeaderValue::from_static(cache_control),
            cross_origin: false,
        }
    }

    /// Allows pages of any origin to load it.
    #[must_use]
    pub fn for_any_origin(mut self) -> Self {
        self.cross_origin = true;
        self
    }

    /// Responds to a `GET` or `HEAD` with these headers.
    #[must_use]
    pub fn answer(&self, request: &HeaderMap) -> Response {
        let coding = encoding::choose(request, |_| true);
        let variant = match coding {
            Coding::Identity => &self.identity,
            Coding::Gzip => &self.gzip,
            Coding::Brotli => &self.brotli,
        };
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        headers.insert(header::ETAG, variant.etag.clone());
        headers.insert(header::CACHE_CONTROL, self.cache_control.clone());
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        if self.cross_origin {
            headers.insert(
                HeaderName::from_static("cross-origin-resource-policy"),
                HeaderValue::from_static("cross-origin"),
            );
        }
        if is_unchanged(request, &variant.etag) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        headers.insert(header::CONTENT_TYPE, self.content_type.clone());
        if coding != Coding::Identity {
            headers.insert(
                header::CONTENT_ENCODING,
                HeaderValue::from_static(coding.as_str()),
            );
        }
        *response.body_mut() = Body::from(variant.bytes.clone());
        response
    }
}

/// Whether `If-None-Match` names this `ETag` (RFC 9110 §13.1.2).
#[must_use]
pub fn is_unchanged(request: &HeaderMap, etag: &HeaderValue) -> bool {
    // Most requests contain exactly the `ETag` that they received.
    match request.get(header::IF_NONE_MATCH) {
        None => return false,
        Some(named) if named == etag => return true,
        Some(_) => {}
    }
    let Some(condition) = request.typed_get::<IfNoneMatch>() else {
        return false;
    };
    let Ok(etag) = etag.to_str() else {
        return false;
    };
    etag.parse::<headers::ETag>()
        .is_ok_and(|etag| !condition.precondition_passes(&etag))
}
