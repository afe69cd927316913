//! The commands that a section of a document shows.

/// The section of `docs/hosting.md`.
pub(super) const SECTION: &str = "From a new machine to a game over https";

/// Returns the commands in the blocks of shell of one section, each as a shell reads it, without comments.
///
/// # Panics
/// There is no such section.
pub(super) fn commands(document: &str, section: &str) -> Vec<String> {
    let lines = document.lines();
    let mut lines = lines.skip_while(|line| line.trim_start_matches('#') != format!(" {section}"));
    assert!(lines.next().is_some(), "there is no section {section}");
    let (mut commands, mut is_shell) = (Vec::new(), false);
    let mut begun = String::new();
    for line in lines.take_while(|line| is_shell_or_text(line)) {
        if line.starts_with("```") {
            is_shell = line == "```sh";
        } else if is_shell {
            let line = line.split(" #").next().unwrap_or_default().trim();
            match line.strip_suffix('\\') {
                Some(part) => begun += part,
                None => commands.push(std::mem::take(&mut begun) + line),
            }
        }
    }
    commands.retain(|command| !command.is_empty());
    commands
}

/// Whether a line is none that begins the next section. Comments of shell begin with a single `#`.
fn is_shell_or_text(line: &str) -> bool {
    !line.starts_with("## ")
}

#[test]
fn commands_are_those_of_one_section_with_their_continuations() {
    let document = "## One\n```sh\nno\n```\n## Two\ntext\n\n```sh\na --b   # says what\nc \\\n  d\n```\n\
                    ```toml\nx = 1\n```\n```sh\ne\n```\n## Three\n```sh\nno\n```\n";
    assert_eq!(commands(document, "Two"), ["a --b", "c d", "e"]);
}
