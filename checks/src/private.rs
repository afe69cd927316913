//! Files that should hardly be public, by their names: secrets, keys, what a
//! tool keeps beside the sources, and the sources themselves.
//!
//! Anybody who guesses the path of a deployed file can read it, and attackers try these paths
//! first. A name proves nothing, so such a file is deployed all the same, with a [`Warning`] that
//! names it.

use crate::page::{Warning, WarningCode};

/// How many names one warning lists.
const NAMED: usize = 5;
/// How many characters of a name a warning shows.
const SHOWN: usize = 120;

/// Folders of tools that hold the history of the sources, or credentials.
const FOLDERS: [&str; 10] = [
    ".git", ".hg", ".svn", ".bzr", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker",
];
/// Files of tools that hold credentials.
const NAMES: [&str; 19] = [
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".netrc",
    "_netrc",
    ".htpasswd",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".dockercfg",
    ".vault-token",
    ".env",
    "credentials",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "terraform.tfstate",
];
/// What the names of files with secrets begin with, before their extension.
const STEMS: [&str; 9] = [
    "secret",
    "secrets",
    "credential",
    "credentials",
    "password",
    "passwords",
    "service-account",
    "service_account",
    "serviceaccount",
];
/// Extensions of settings, for the names in [`STEMS`].
const SETTINGS: [&str; 9] = [
    "json",
    "toml",
    "yml",
    "yaml",
    "ini",
    "conf",
    "txt",
    "properties",
    "xml",
];
/// Extensions of keys, and of settings files that hold only secrets.
const EXTENSIONS: [&str; 14] = [
    "env",
    "pem",
    "key",
    "p12",
    "pfx",
    "jks",
    "keystore",
    "ppk",
    "p8",
    "kdbx",
    "ovpn",
    "tfvars",
    "tfstate",
    "mobileprovision",
];
/// Endings of sample files, which are meant to be read.
const SAMPLES: [&str; 4] = ["example", "sample", "template", "dist"];
/// Extensions of sources that no browser runs.
const SOURCES: [&str; 24] = [
    "ts", "mts", "cts", "tsx", "jsx", "vue", "svelte", "scss", "sass", "less", "rs", "go", "java",
    "kt", "swift", "cs", "c", "cc", "cpp", "h", "hpp", "php", "rb", "coffee",
];
/// Files of build tools, in any folder.
const BUILD_FILES: [&str; 9] = [
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "tsconfig.json",
    "cargo.toml",
    "cargo.lock",
    "dockerfile",
    "docker-compose.yml",
    "makefile",
];

/// Why a file should hardly be public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Private {
    /// It belongs to a tool that keeps history or credentials in it.
    Tool,
    /// It has a name that is typical of secrets or keys.
    Secret,
}

/// Why the file at this path should hardly be public, judged by its name alone; `None` if there is
/// no reason. Source code is not secret: see [`is_source`].
#[must_use]
pub fn judge(path: &str) -> Option<Private> {
    let path = path.to_ascii_lowercase();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
    if folders.split('/').any(|folder| FOLDERS.contains(&folder)) || FOLDERS.contains(&name) {
        return Some(Private::Tool);
    }
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    if SAMPLES.contains(&extension) {
        return None;
    }
    let secret = NAMES.contains(&name)
        || name.starts_with(".env.")
        || EXTENSIONS.contains(&extension)
        || SETTINGS.contains(&extension) && is_stem_of_secrets(stem)
        || name.starts_with("id_") && extension.is_empty() && name.len() > "id_".len();
    secret.then_some(Private::Secret)
}

/// `secrets`, `secrets.production`, `client_secret_1234` and what Google calls the keys of
/// its services.
fn is_stem_of_secrets(stem: &str) -> bool {
    let first = stem.split('.').next().unwrap_or(stem);
    STEMS.contains(&first)
        || stem.starts_with("client_secret")
        || stem.contains("firebase-adminsdk")
        || stem.starts_with("service-account")
}

/// Whether the file at this path is source code, or belongs to a build.
#[must_use]
pub fn is_source(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    // Declaration files are published with modules.
    let declares = stem.ends_with(".d") && matches!(extension, "ts" | "mts" | "cts");
    let at_the_top = folders.is_empty() && name == "package.json";
    let config = name.starts_with("vite.config.") || name.starts_with("webpack.config.");
    at_the_top
        || config
        || BUILD_FILES.contains(&name)
        || folders.split('/').any(|folder| folder == "node_modules")
        || SOURCES.contains(&extension) && !declares
}

/// The warnings about the names of a deployment's files.
#[must_use]
pub fn name_warnings<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<Warning> {
    let (mut private, mut sources) = (Named::default(), Named::default());
    let (mut streams, mut segments) = (false, Named::default());
    for path in paths {
        let lower = path.to_ascii_lowercase();
        streams |= lower.ends_with(".m3u8");
        if judge(path).is_some() {
            private.add(path);
        } else if lower.ends_with(".ts") && is_source(path) {
            segments.add(path);
        } else if is_source(path) {
            sources.add(path);
        }
    }
    // Beside a playlist `.ts` is video (RFC 8216 §3.2), not TypeScript.
    if !streams {
        sources.join(segments);
    }
    [
        (WarningCode::PrivateFile, private),
        (WarningCode::SourceFile, sources),
    ]
    .into_iter()
    .filter_map(|(code, named)| named.warning(code))
    .collect()
}

/// A list of paths for a warning: names the first ones and counts the others.
#[derive(Debug, Default)]
struct Named {
    first: Vec<String>,
    all: usize,
}

impl Named {
    fn add(&mut self, path: &str) {
        self.all += 1;
        if self.first.len() < NAMED {
            self.first.push(path.chars().take(SHOWN).collect());
        }
    }

    fn join(&mut self, other: Self) {
        self.all += other.all;
        let room = NAMED - self.first.len();
        self.first.extend(other.first.into_iter().take(room));
    }

    fn warning(self, code: WarningCode) -> Option<Warning> {
        let more = match self.all - self.first.len() {
            0 if self.all == 0 => return None,
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!("{}{more} {}", self.first.join(", "), code.sentence());
        Some(Warning { code, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_should_not_be_public_is_known_by_its_name() {
        for path in [
            "secrets.env",
            ".env",
            ".env.production",
            "config/.env",
            "prod.env",
            "server.pem",
            "tls/server.KEY",
            "id_rsa",
            "keys/id_ed25519",
            "id_work",
            ".npmrc",
            ".git/config",
            "a/.git/HEAD",
            ".git",
            ".ssh/known_hosts",
            ".aws/credentials",
            "secrets.json",
            "Secrets.production.yaml",
            "client_secret_12.json",
            "my-firebase-adminsdk-x.json",
            "service-account-prod.json",
            "store.keystore",
            "terraform.tfstate",
            ".htpasswd",
        ] {
            assert!(judge(path).is_some(), "{path}");
        }
        for path in [
            "index.html",
            "game.js",
            "assets/key.png",
            "monkey.json",
            "keyboard.js",
            "keys.json",
            "id_card.png",
            "id_",
            "secret-level.json",
            "secrets.png",
            "secrets.js",
            ".env.example",
            ".well-known/security.txt",
            "environment.hdr",
            "levels/passwords.js",
            "gitlog.txt",
            "assets/index-DAkgGDa_.js",
            "env.js",
        ] {
            assert_eq!(judge(path), None, "{path}");
        }
    }

    #[test]
    fn sources_are_what_no_browser_runs() {
        for path in [
            "src/main.ts",
            "App.tsx",
            "style.scss",
            "server/main.rs",
            "node_modules/a/index.js",
            "package.json",
            "tsconfig.json",
            "vite.config.js",
            "Dockerfile",
            "api.php",
        ] {
            assert!(is_source(path), "{path}");
        }
        for path in [
            "game.js",
            "game.js.map",
            "pkg/game.d.ts",
            "pkg/package.json",
            "a.wasm",
            "main.py",
            "shader.glsl",
            "game.mjs",
            "index.pck",
        ] {
            assert!(!is_source(path), "{path}");
        }
    }

    #[test]
    fn a_warning_names_the_files_and_says_what_to_do() {
        let warnings = name_warnings(["a.js", "secrets.env", "src/main.ts", "x/id_rsa"]);
        let [private, source] = warnings.try_into().unwrap();
        assert_eq!(private.code.as_str(), "private-file");
        assert!(
            private.message.starts_with("secrets.env, x/id_rsa "),
            "{private:?}"
        );
        assert!(private.message.contains("replace"), "{private:?}");
        assert_eq!(source.code.as_str(), "source-file");
        assert!(source.message.starts_with("src/main.ts "), "{source:?}");

        let many: Vec<String> = (0..9).map(|number| format!("{number}.pem")).collect();
        let [warning] = name_warnings(many.iter().map(String::as_str))
            .try_into()
            .unwrap();
        assert!(
            warning
                .message
                .starts_with("0.pem, 1.pem, 2.pem, 3.pem, 4.pem and 4 more ")
        );
    }

    #[test]
    fn segments_of_a_video_are_no_typescript() {
        assert_eq!(
            name_warnings(["intro/all.m3u8", "intro/0.ts", "intro/1.ts"]),
            []
        );
        assert_eq!(name_warnings(["intro/0.ts"]).len(), 1);
        assert_eq!(name_warnings(["intro/all.m3u8", "a.tsx"]).len(), 1);
    }
}
