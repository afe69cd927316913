//! Errors in words, whatever they are errors of.

use std::error::Error;

/// An error with everything that caused it, for the log.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The innermost cause of an error. Where a library wraps an error several times,
/// it alone says what happened.
#[must_use]
pub fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the file cannot be read")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("the disk is gone")]
    struct Inner;

    #[test]
    fn an_error_is_told_with_its_causes_or_by_the_innermost_alone() {
        let error = Outer(Inner);
        assert_eq!(chain(&error), "the file cannot be read: the disk is gone");
        assert_eq!(chain(&Inner), "the disk is gone");
        assert_eq!(innermost(&error).to_string(), "the disk is gone");
        assert_eq!(innermost(&Inner).to_string(), "the disk is gone");
    }
}
