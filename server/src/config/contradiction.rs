//! Settings that are valid on their own and not together, named as the operator has written them.

use std::fmt;

use super::names::SETTINGS;
use super::{Config, SaidBy, SettingError};

/// Creates the error that the first one of these settings does not go with the others. If one of them is a
/// variable, the variables are named as well.
pub(super) fn contradiction(
    config: &Config,
    names: &[&'static str],
    problem: impl fmt::Display,
) -> SettingError {
    let key = names.first().copied().unwrap_or_default();
    let by_variable = |name: &&str| config.said_by.get(*name) == Some(&SaidBy::Variable);
    if !names.iter().any(by_variable) {
        return SettingError::new(key, problem);
    }
    let rows = names
        .iter()
        .filter_map(|name| SETTINGS.iter().find(|row| row.name == *name));
    let variables: Vec<String> = rows.map(super::names::Setting::variable).collect();
    let problem = format!("{problem} (as variables: {})", variables.join(", "));
    SettingError::new(key, problem)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::load::from_parts;

    #[test]
    fn settings_that_do_not_go_together_are_named_as_they_are_written() {
        let said = |file: Option<&str>, variables: &[(&str, &str)]| {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let variables: HashMap<String, String> = variables.iter().map(owned).collect();
            from_parts(file, &variables).unwrap_err().to_string()
        };
        let file = "listen = \"127.0.0.1:80\"\noperations_listen = \"127.0.0.1:80\"\n";
        let in_file = said(Some(file), &[]);
        assert!(
            in_file.starts_with("operations_listen: it is the socket of listen"),
            "{in_file}"
        );
        assert!(!in_file.contains("PLATFORM_"), "{in_file}");
        let by_variable = said(Some(file), &[("PLATFORM_LISTEN", "127.0.0.1:80")]);
        let end = " (as variables: PLATFORM_OPERATIONS_LISTEN, PLATFORM_LISTEN)";
        assert_eq!(by_variable, format!("{in_file}{end}"));
    }
}
