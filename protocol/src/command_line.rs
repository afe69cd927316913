//! The command line that a platform hands out: a release brings its files and a list of them.

use serde::{Deserialize, Serialize};

/// In the answers of the project API: the version of the command line that the platform hands out.
pub const VERSION_HEADER: &str = "x-platform-cli";
/// The file with the list: a [`Release`] in JSON.
pub const LIST: &str = "version.json";
/// The file that npm installs.
pub const NPM_PACKAGE: &str = "platform.tgz";
/// The plugin for Vite, which npm installs into a game.
pub const VITE_PLUGIN: &str = "vite-plugin-platform.tgz";

/// The list of the files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The version of the program (<https://semver.org/>).
    pub version: String,
    /// The files, without the list.
    pub files: Vec<ReleaseFile>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseFile {
    /// Its name, which is also the last segment of its address.
    pub name: String,
    /// The machine that it is for; none for the npm packages, which are for all of them.
    #[serde(flatten)]
    pub machine: Option<Machine>,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, in lower-case hexadecimal.
    pub sha256: String,
}

/// A kind of machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its operating system.
    pub os: Os,
    /// Its processor.
    pub cpu: Cpu,
}

/// An operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Os {
    /// Linux of any distribution.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Os {
    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::MacOs => "macOS",
            Self::Windows => "Windows",
        }
    }
}

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cpu {
    /// x86-64.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl Cpu {
    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "64-bit ARM",
        }
    }
}

impl Release {
    /// Whether every name, sum and the version can be written into an address and into a shell
    /// script as they are.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let plain = |text: &str| {
            let char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
            text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(char)
        };
        let sum = |text: &str| {
            let digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
            text.len() == 64 && text.chars().all(digit)
        };
        let file = |file: &ReleaseFile| plain(&file.name) && sum(&file.sha256);
        plain(&self.version) && self.files.iter().all(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release() -> Release {
        let sha256 = "0123456789abcdef".repeat(4);
        Release {
            version: "1.2.3-rc.1".into(),
            files: vec![
                ReleaseFile {
                    name: "platform-linux-x86_64.tar.gz".into(),
                    machine: Some(Machine {
                        os: Os::Linux,
                        cpu: Cpu::X86_64,
                    }),
                    bytes: 7,
                    sha256: sha256.clone(),
                },
                ReleaseFile {
                    name: NPM_PACKAGE.into(),
                    machine: None,
                    bytes: 8,
                    sha256,
                },
            ],
        }
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let text = serde_json::to_string(&release()).unwrap();
        assert!(
            text.contains(r#""os":"linux","cpu":"x86_64","bytes":7"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Release>(&text).unwrap(), release());
    }

    #[test]
    fn only_a_list_that_a_shell_takes_literally_is_plain() {
        assert!(release().is_plain());
        for name in ["../platform", ".platform", "a/b", "$(id)", "a b", "", "ä"] {
            let mut list = release();
            name.clone_into(&mut list.files[0].name);
            assert!(!list.is_plain(), "{name}");
            let mut list = release();
            name.clone_into(&mut list.version);
            assert!(!list.is_plain(), "{name}");
        }
        for sum in ["", "ABCDEF", &"A".repeat(64), &"g".repeat(64)] {
            let mut list = release();
            (*sum).clone_into(&mut list.files[1].sha256);
            assert!(!list.is_plain(), "{sum}");
        }
    }
}
