//! Which platform handed this program out: the platform's installer writes its origin beside the
//! credentials. So the first command needs no `--origin`.

use serde::Deserialize;

use crate::environment::ProcessEnvironment;
use crate::origin::PlatformOrigin;

/// The file's name, which `www/pages/install.sh` has as well.
const FILE_NAME: &str = "installed.toml";

#[derive(Debug, Deserialize)]
struct Installed {
    origin: String,
}

/// Returns the origin of the platform that this program was installed from. A file that cannot be
/// used counts as none: it only saves an option.
pub(crate) fn origin(environment: &ProcessEnvironment) -> Option<String> {
    let path = environment.config_folder()?.join(FILE_NAME);
    let text = std::fs::read_to_string(path).ok()?;
    let installed: Installed = toml::from_str(&text).ok()?;
    installed.origin.parse::<PlatformOrigin>().ok()?;
    Some(installed.origin)
}
