//! The template's backend in Rust, started as a program.

use std::process::Command;

#[test]
fn a_backend_that_is_not_told_whose_tokens_it_takes_does_not_start() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_platform-template-backend"));
    let output = program.env_clear().output().expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("AUTH_ISSUER"), "{said}");
}
