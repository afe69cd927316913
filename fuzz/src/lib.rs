//! What several fuzz targets use: a key that signs what they make up, and check sums that no mutation
//! keeps.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};

/// The key set with the public key of [`sign`]: the example in RFC 7515, appendix A.3.1.
pub const KEYS: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","kid":"k","alg":"ES256","use":"sig",
"x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;
/// A member of the public key that no other key has.
pub const PUBLIC_X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
/// The header of a token that this key signs.
pub const HEADER: &str = r#"{"alg":"ES256","typ":"JWT","kid":"k"}"#;

const PRIVATE: &str = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI";

/// Returns a compact JWS (RFC 7515 §3.1) with this header and payload. The signature depends on
/// nothing else (RFC 6979).
pub fn sign(header: &[u8], payload: &[u8]) -> String {
    let private = URL_SAFE_NO_PAD
        .decode(PRIVATE)
        .expect("the key is base64url");
    let key = SigningKey::from_slice(&private).expect("the key is valid");
    let header = URL_SAFE_NO_PAD.encode(header);
    let payload = URL_SAFE_NO_PAD.encode(payload);
    let input = format!("{header}.{payload}");
    let signature: Signature = key.sign(input.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(signature.normalize_s().to_bytes());
    format!("{input}.{signature}")
}

/// The size of a block of a tar file.
const BLOCK: usize = 512;

/// Returns a tar file with the check sums that its headers should have.
pub fn with_check_sums(tar: &[u8]) -> Vec<u8> {
    let mut tar = tar.to_vec();
    let mut at = 0;
    while let Some(header) = tar.get_mut(at..at + BLOCK) {
        at += BLOCK;
        if header.iter().all(|byte| *byte == 0) {
            continue;
        }
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let digits = header[124..136]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        let size = digits.fold(0_usize, |size, digit| {
            size.saturating_mul(8)
                .saturating_add(usize::from(digit & 7))
        });
        at = at.saturating_add(size.checked_next_multiple_of(BLOCK).unwrap_or(usize::MAX));
        if at > tar.len() {
            break;
        }
    }
    tar
}
