//! The Public Suffix List. Its crate is a function of megabytes that is compiled wherever it is called, so
//! it is called here alone: what uses it compiles in a tenth of the time.

/// Returns the domain that somebody can register in a host's name, such as `example.co.uk`; `None` for a
/// public suffix.
#[must_use]
#[inline(never)]
pub fn registrable_domain(name: &str) -> Option<&str> {
    psl::domain_str(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_suffix_is_no_domain_to_register() {
        assert_eq!(registrable_domain("a.example.co.uk"), Some("example.co.uk"));
        assert_eq!(registrable_domain("co.uk"), None);
    }
}
