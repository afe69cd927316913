//! Names of deployed files in the file store and in backups. A file is named after the SHA-256 of its
//! content, and is kept in one of 256 folders: a single folder for all files would be slow.

/// Whether a text is a SHA-256 in lower-case hex.
#[must_use]
pub fn is_sha256(text: &str) -> bool {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 64 && text.bytes().all(hex)
}

/// Returns the folder and the name of the file with this SHA-256.
#[must_use]
pub fn folder_and_name(sha256: &str) -> (&str, &str) {
    sha256.split_at(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_64_digits_in_lower_case() {
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert!(is_sha256(sha256));
        assert_eq!(folder_and_name(sha256), ("ba", &sha256[2..]));
        for other in ["", "ba", &sha256.to_uppercase(), &sha256[1..]] {
            assert!(!is_sha256(other), "{other}");
        }
    }
}
