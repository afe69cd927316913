//! The TypeScript declarations of the template are correct.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::path::Path;
use std::process::Output;

use platform_protocol::problem::ProblemCode;
use platform_tests::{npm, poll, settings};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

/// Problems that no server sends: the runtime detects them in the page.
const OF_THE_PAGE: [&str; 2] = ["runtime-unavailable", "unsupported-context"];

/// Returns the compiler's output for the project in `folder`.
async fn compile(folder: &Path) -> Output {
    let compiler = npm::packages("npm")
        .await
        .join("node_modules/typescript/bin/tsc");
    let compiling = Command::new(settings::program("NODE", &["node"]))
        .arg(compiler)
        .arg("--project")
        .arg(folder)
        .kill_on_drop(true)
        .output();
    poll::within("the TypeScript compiler", compiling)
        .await
        .unwrap()
}

/// Compiles a module together with the declarations, as strictly as the others.
async fn compile_module(text: &str) -> Output {
    let folder = TempDir::with_prefix("platform-tests-").unwrap();
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = json!({
        "extends": crate_folder.join("npm/types/tsconfig.json"),
        "files": [crate_folder.join("../template/platform.d.ts"), "module.ts"],
    });
    std::fs::write(folder.path().join("tsconfig.json"), config.to_string()).unwrap();
    std::fs::write(folder.path().join("module.ts"), text).unwrap();
    compile(folder.path()).await
}

/// A module that compiles only if `slugs` are exactly the problems.
fn problems(slugs: &[&str]) -> String {
    let members: Vec<String> = slugs.iter().map(|slug| format!("{slug:?}: true")).collect();
    format!(
        "export const problems: Record<platform.Problem, true> = {{ {} }};",
        members.join(", ")
    )
}

#[tokio::test]
async fn right_use_of_the_runtime_compiles_and_no_misuse_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("npm/types");
    let output = compile(&folder).await;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[tokio::test]
async fn the_declarations_name_every_problem_and_no_other() {
    let mut slugs: Vec<&str> = ProblemCode::ALL.iter().map(|slug| slug.as_str()).collect();
    slugs.extend(OF_THE_PAGE);
    let exact = compile_module(&problems(&slugs)).await;
    assert!(
        exact.status.success(),
        "{}",
        String::from_utf8_lossy(&exact.stdout)
    );

    // The compiler does check: one problem less, or one more, is an error.
    let fewer = compile_module(&problems(&slugs[1..])).await;
    let said = String::from_utf8_lossy(&fewer.stdout);
    assert!(said.contains("TS2741"), "{said}");
    slugs.push("out-of-coins");
    let more = compile_module(&problems(&slugs)).await;
    let said = String::from_utf8_lossy(&more.stdout);
    assert!(said.contains("TS2353"), "{said}");
}
