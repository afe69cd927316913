//! Previews of a project: their names, addresses and limits.

/// How many previews a project may have at one time.
pub const PER_PROJECT: usize = 20;
/// After how many days without any use a preview is removed.
pub const UNUSED_DAYS: u16 = 14;
/// What separates a preview's name from the project's slug in its address.
const SEPARATOR: &str = "--";
/// The maximum length of a part of a host name (RFC 1035 §2.3.4).
const LABEL: usize = 63;
/// Before `--`, this makes a label that browsers decode as a name in another script (RFC 5890).
const ENCODED: &str = "xn";

/// Why a preview's name was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewNameError {
    /// It is not lower-case letters, digits and single hyphens between them.
    Form,
    /// With the slug, it is too long for an address.
    Length {
        /// The length that would be possible.
        most: usize,
    },
    /// It is `xn`, which would make an address that browsers do not open.
    Encoded,
}

impl std::fmt::Display for PreviewNameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Form => f.write_str(
                "A preview's name has lower-case letters, digits and single hyphens, and starts and ends with a letter or digit.",
            ),
            Self::Length { most } => write!(
                f,
                "A preview of this project has a name of at most {most} characters, because it is a part of the address."
            ),
            Self::Encoded => f.write_str(
                "A preview cannot be named xn, because browsers read its address as an encoded name in another alphabet.",
            ),
        }
    }
}

/// The longest possible name of a preview of the project `slug`.
#[must_use]
pub const fn longest_name(slug: &str) -> usize {
    LABEL.saturating_sub(slug.len() + SEPARATOR.len())
}

/// Checks a preview's name for the project `slug`.
///
/// # Errors
/// The first rule that it breaks.
pub fn check_name(name: &str, slug: &str) -> Result<(), PreviewNameError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let well_formed = !name.is_empty()
        && name.bytes().all(|byte| plain(byte) || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains(SEPARATOR);
    let most = longest_name(slug);
    if !well_formed {
        Err(PreviewNameError::Form)
    } else if name.len() > most {
        Err(PreviewNameError::Length { most })
    } else if name == ENCODED {
        Err(PreviewNameError::Encoded)
    } else {
        Ok(())
    }
}

/// The host label of a preview: `<name>--<slug>`.
#[must_use]
pub fn label(name: &str, slug: &str) -> String {
    format!("{name}{SEPARATOR}{slug}")
}

/// Makes a preview's name of any other name, such as that of a branch: `feature/Rings_2` becomes
/// `feature-rings-2`. A name that has to be cut gets a checksum at its end, so that two long
/// names with the same beginning stay apart. Returns `None` if no letter or digit is left.
#[must_use]
pub fn name_of(text: &str, slug: &str) -> Option<String> {
    let mut name = String::new();
    for char in text.chars() {
        let char = char.to_ascii_lowercase();
        if char.is_ascii_alphanumeric() {
            name.push(char);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let mut name = name.trim_end_matches('-').to_owned();
    let most = longest_name(slug);
    if name.len() > most {
        let checksum = format!("-{:08x}", checksum(text));
        name.truncate(most.saturating_sub(checksum.len()));
        name = name.trim_end_matches('-').to_owned() + &checksum;
    }
    if name == ENCODED {
        name.push_str("-1");
    }
    check_name(&name, slug).is_ok().then_some(name)
}

/// FNV-1a of 32 bits, which is enough to tell the branches of one repository apart.
fn checksum(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_host_name() {
        for good in ["a", "main", "pr-12", "0x0", "dev", "xn-1"] {
            assert_eq!(check_name(good, "demo"), Ok(()), "{good}");
        }
        for bad in ["", "-a", "a-", "a--b", "A", "a_b", "a.b", "a/b", "é"] {
            assert_eq!(
                check_name(bad, "demo"),
                Err(PreviewNameError::Form),
                "{bad}"
            );
        }
        assert_eq!(check_name("xn", "demo"), Err(PreviewNameError::Encoded));
        let longest = "a".repeat(57);
        assert_eq!(label(&longest, "demo").len(), 63);
        assert_eq!(check_name(&longest, "demo"), Ok(()));
        let most = 57;
        assert_eq!(
            check_name(&"a".repeat(58), "demo"),
            Err(PreviewNameError::Length { most })
        );
        assert_eq!(longest_name(&"a".repeat(40)), 21);
    }

    #[test]
    fn a_branch_becomes_a_name() {
        let name = |branch| name_of(branch, "demo");
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(name("main"), some("main"));
        assert_eq!(name("feature/Rings_2"), some("feature-rings-2"));
        assert_eq!(name("--wip--"), some("wip"));
        assert_eq!(name("größer"), some("gr-er"));
        assert_eq!(name("xn"), some("xn-1"));
        assert_eq!((name(""), name("///"), name("日本")), (None, None, None));
    }

    #[test]
    fn long_branches_with_one_beginning_stay_apart() {
        let slug = "a".repeat(40);
        let names: Vec<String> = ["7.26.0", "7.26.1"]
            .iter()
            .filter_map(|version| name_of(&format!("dependabot/npm/babel/core-{version}"), &slug))
            .collect();
        assert_eq!(names.len(), 2);
        assert_ne!(names[0], names[1]);
        for name in names {
            assert!(name.starts_with("dependabot-"), "{name}");
            assert_eq!(check_name(&name, &slug), Ok(()));
        }
    }
}
