//! Brotli (RFC 7932), in a crate of its own for one reason: the encoder is
//! generic, so it is compiled in the crate that uses it, and without
//! optimisation it takes two seconds for what takes a tenth of one with it. The
//! workspace's `Cargo.toml` has this crate optimised in every profile.

use std::io;

use brotli::enc::BrotliEncoderParams;

/// The best quality, for what is compressed once and sent often.
pub const BEST: u8 = 11;

/// The window of files of up to 64 kB, such as `runtime.js`: a larger one only
/// costs memory.
pub const SMALL: u8 = 16;

/// Compresses `bytes` with a quality from 0 to [`BEST`] and a window of
/// 2<sup>`window`</sup> bytes, 10 to 24.
///
/// # Errors
/// Only if the encoder fails; memory takes whatever it writes.
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
