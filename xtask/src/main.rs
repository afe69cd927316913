//! Build, run, test, bench, tidy.
fn main() {}
