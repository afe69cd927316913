//! Brotli (RFC 7932). It is a crate of its own because the encoder is generic and is therefore
//! compiled in the crate that uses it. Without optimisation it takes two seconds; with it, a tenth
//! of a second. The workspace's `Cargo.toml` optimises this crate in every profile.

use std::io;

use brotli::enc::BrotliEncoderParams;

/// The best quality, for what is compressed once and sent often.
pub const BEST: u8 = 11;

/// The window for files of up to 64 kB, such as `runtime.js`: a larger one only costs memory.
pub const SMALL: u8 = 16;

/// Compresses `bytes` with a quality from 0 to [`BEST`] and a window of
/// 2<sup>`window`</sup> bytes, 10 to 24.
///
/// # Errors
/// Only if the encoder fails: writing to memory cannot.
pub fn brotli(bytes: &[u8], quality: u8, window: u8) -> io::Result<Vec<u8>> {
    let params = BrotliEncoderParams {
        quality: quality.into(),
        lgwin: window.into(),
        size_hint: bytes.len(),
        ..Default::default()
    };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut &*bytes, &mut compressed, &params)?;
    Ok(compressed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test reports by failing")]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn what_is_compressed_comes_back() {
        let text = "the same line again\n".repeat(1_000);
        for (quality, window) in [(0, 10), (5, 18), (BEST, 24)] {
            let compressed = brotli(text.as_bytes(), quality, window).unwrap();
            assert!(compressed.len() < text.len() / 10);
            let mut back = String::new();
            let mut decoder = brotli::Decompressor::new(&*compressed, 4_096);
            decoder.read_to_string(&mut back).unwrap();
            assert_eq!(back, text);
        }
    }
}
