//! Settings: an invalid value stops the start with one line that names the key.

use std::collections::HashMap;

use platform_server::config::{Config, load::from_parts, names, show};

fn environment(variables: &[(&str, &str)]) -> HashMap<String, String> {
    variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn read(file: Option<&str>, variables: &[(&str, &str)]) -> Result<Config, String> {
    from_parts(file, &environment(variables)).map_err(|error| error.to_string())
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
    let file = r#"
        origin = "https://games.example"
        token_seconds = 600
        guests_per_address = "7"
        trusted_proxies = ["10.0.0.0/8", "192.0.2.1"]
        admins = "019a2b3c-0000-7000-8000-000000000001"

        [[identity_provider]]
        id = "google"
        name = "Google"
        issuer = "https://accounts.google.com"
        client_id = "c"
        client_secret_env = "GOOGLE_SECRET"
        scopes = ["openid"]
    "#;
    let config = read(
        Some(file),
        &[
            ("PLATFORM_TOKEN_SECONDS", "300"),
            ("GOOGLE_SECRET", "hush"),
            ("OTHER", "x"),
        ],
    )
    .unwrap();
    assert_eq!(
        config.origin.as_ref().unwrap().to_string(),
        "https://games.example"
    );
    assert_eq!(config.token_seconds, 300);
    assert_eq!(config.guests_per_address, 7);
    assert_eq!(config.trusted_proxies.len(), 2);
    assert_eq!(config.admins.len(), 1);
    assert_eq!(config.heartbeat_seconds, 30);
    assert_eq!(config.identity_providers[0].client_secret.expose(), "hush");
}

#[test]
fn variables_of_the_command_line_tool_pass() {
    read(
        None,
        &[("PLATFORM_TOKEN", "x"), ("PLATFORM_PROJECT", "demo")],
    )
    .unwrap();
}

/// A variable, an invalid value, and a part of the advice.
const WRONG_VARIABLES: [(&str, &str, &str); 34] = [
    ("PLATFORM_ORIGIN", "http://games.example", "https"),
    ("PLATFORM_ORIGIN", "games.example", "https://"),
    ("PLATFORM_LISTEN", "8787", "127.0.0.1:8787"),
    ("PLATFORM_LISTEN", "", "leave it out"),
    ("PLATFORM_LISTN", "x", "did you mean `PLATFORM_LISTEN`"),
    ("PLATFORM_COLOUR", "x", "config --docs"),
    ("PLATFORM_DATABASE_URL", "mysql://db/x", "sqlite://"),
    ("PLATFORM_LOGS_DATABASE_URL", "sqlite://x", "postgres://"),
    ("PLATFORM_DATABASE_URL", "platform.db", "sqlite://"),
    (
        "PLATFORM_DATABASE_URL",
        "platform:hunter2@db/x",
        "postgres://",
    ),
    ("PLATFORM_REDIS_URL", "http://r", "redis://"),
    ("PLATFORM_FILES_URL", "files", "file://"),
    ("PLATFORM_FILES_URL", "gs://bucket", "file://"),
    ("PLATFORM_FILES_URL", "s3://Bucket", "s3://<bucket>"),
    ("PLATFORM_FILE_DISK_CACHE_MIB", "100", "1024"),
    ("PLATFORM_TRUSTED_PROXIES", "10.0.0.0/99", "10.0.0.0/8"),
    ("PLATFORM_ADMINS", "me", "UUID"),
    ("PLATFORM_TOKEN_SECONDS", "0", "5 to 86400"),
    ("PLATFORM_TOKEN_SECONDS", "1.5", "whole number"),
    ("PLATFORM_GUESTS_PER_ADDRESS", "-1", "from 0"),
    ("PLATFORM_GUEST_RATE", "many", "60/m, burst 30"),
    ("PLATFORM_HEARTBEAT_SECONDS", "76", "75"),
    ("PLATFORM_LOG_FORMAT", "xml", "json"),
    ("PLATFORM_LOG", "a=b=c", "filter"),
    ("PLATFORM_KEY_SECRET", "hunter2", "32"),
    ("PLATFORM_KEY_SECRET_OLD", "hunter2", "32"),
    ("PLATFORM_FORWARDED_HOST", "yes", "true"),
    ("PLATFORM_KEEP_COOKIES", "cf clearance", "cf_clearance"),
    ("PLATFORM_KEEP_COOKIES", "platform-session", "remove it"),
    ("PLATFORM_RESOLVER", "dns.example", "dns.example"),
    ("PLATFORM_DOMAIN_ADDRESSES", "192.0.2.0/33", "192.0.2.0/33"),
    ("PLATFORM_SECURITY_CONTACT", "me@games.example", "mailto:"),
    ("PLATFORM_SECURITY_CONTACT", "mailto:a b", "mailto:"),
    (
        "PLATFORM_SECURITY_CONTACT",
        "http://games.example",
        "https://",
    ),
];

/// A file, its invalid key, and a part of the advice.
const WRONG_FILES: [(&str, &str, &str); 10] = [
    ("colour = 1", "colour", "remove"),
    (
        "tokne_second = 5",
        "tokne_second",
        "did you mean `token_seconds`",
    ),
    ("token_seconds = \"x\"", "token_seconds", "whole number"),
    ("token_seconds = [1", "platform.toml", ""),
    ("[origin]\na = 1", "origin", "string"),
    (
        "key_secret_old = \"12345678901234567890123456789012\"",
        "key_secret_old",
        "key_secret",
    ),
    ("forwarded_host = true", "forwarded_host", "trusted_proxies"),
    (
        "trusted_proxies = [\"0.0.0.0/0\"]",
        "trusted_proxies",
        "list your proxies",
    ),
    (
        "database_url = \"sqlite://x\"\nfiles_url = \"file://x\"",
        "files_url",
        "separate directory",
    ),
    (
        "[[identity_provider]]\nid = \"a\"",
        "identity_provider",
        "name",
    ),
];

/// The rest of a provider's table, its invalid member, and a part of the advice.
const WRONG_PROVIDERS: [(&str, &str, &str); 11] = [
    (
        "issuer = \"https://me@a.example\"\nclient_secret = \"s\"",
        "issuer",
        "https",
    ),
    (
        "issuer = \" https://a.example\"\nclient_secret = \"s\"",
        "issuer",
        "https",
    ),
    (
        "issuer = \"https://a.example?tenant=1\"\nclient_secret = \"s\"",
        "issuer",
        "https",
    ),
    (
        "issuer = \"https://a.example\"\nclient_secret = \"\"",
        "client_secret",
        "empty",
    ),
    (
        "issuer = \"https://a.example\"\nclient_secret = \"s\"\nscopes = [\"openid email\"]",
        "scopes",
        "openid",
    ),
    (
        "issuer = \"https://a.example\"\nclient_secret = \"s\"\nscopes = [\"openid\", \"a b\"]",
        "scopes",
        "valid scope",
    ),
    (
        "issuer = \"http://a.example\"\nclient_secret = \"s\"",
        "issuer",
        "https",
    ),
    (
        "issuer = \"https://a.example\"",
        "client_secret",
        "exactly one",
    ),
    (
        "issuer = \"https://a.example\"\nclient_secret_env = \"NOT_SET\"",
        "client_secret_env",
        "set it",
    ),
    (
        "issuer = \"https://a.example\"\nclient_secret = \"s\"\nscopes = []",
        "scopes",
        "openid",
    ),
    (
        "issuer = \"https://a.example\"\nclient_secret = \"s\"\ncolour = 1",
        "identity_provider",
        "colour",
    ),
];

fn assert_refused(file: Option<&str>, variables: &[(&str, &str)], key: &str, advice: &str) {
    let error = read(file, variables).unwrap_err();
    assert!(
        error.contains(key),
        "{file:?} {variables:?} names {key}: {error}"
    );
    assert!(
        error.contains(advice),
        "{file:?} {variables:?} says {advice}: {error}"
    );
    assert!(!error.contains('\n'), "one line: {error}");
    assert!(!error.contains("hunter2"), "a secret is not repeated");
}

#[test]
fn a_wrong_setting_is_named_with_what_to_do() {
    for (name, value, advice) in WRONG_VARIABLES {
        assert_refused(None, &[(name, value)], name, advice);
    }
    for (file, key, advice) in WRONG_FILES {
        assert_refused(Some(file), &[], key, advice);
    }
    let provider = "[[identity_provider]]\nid = \"a\"\nname = \"A\"\nclient_id = \"c\"\n";
    for (rest, member, advice) in WRONG_PROVIDERS {
        assert_refused(Some(&format!("{provider}{rest}")), &[], member, advice);
    }
}

const GOOD_PROVIDER: &str = "[[identity_provider]]\nid = \"a\"\nname = \"A\"\n\
                             client_id = \"c\"\nclient_secret = \"s\"\n";

#[test]
fn an_issuer_stays_as_it_is_written() {
    for issuer in [
        "https://accounts.example",
        "https://accounts.example/",
        "https://login.example/Tenant/v2.0",
        "http://127.0.0.1:8080/realms/play",
        "http://keycloak.localhost",
    ] {
        let file = format!("{GOOD_PROVIDER}issuer = \"{issuer}\"");
        let config = read(Some(&file), &[]).unwrap();
        assert_eq!(config.identity_providers[0].issuer, issuer);
    }
}

#[test]
fn ids_and_names_of_providers_fit_a_path_and_a_button() {
    let long = "x".repeat(65);
    for (id, name, member) in [
        ("A", "A", "id"),
        ("a/b", "A", "id"),
        ("", "A", "id"),
        (&*long, "A", "id"),
        ("demo", "A", "id"),
        ("a", "", "name"),
        ("a", "  ", "name"),
        ("a", "a\\u0007", "name"),
        ("a", &*long, "name"),
    ] {
        let file = format!(
            "[[identity_provider]]\nid = \"{id}\"\nname = \"{name}\"\nclient_id = \"c\"\n\
             client_secret = \"s\"\nissuer = \"https://a.example\""
        );
        let key = format!("identity_provider.{member} of");
        assert_refused(Some(&file), &[], &key, "");
    }
    let good = format!("{GOOD_PROVIDER}issuer = \"https://a.example\"\n");
    assert_refused(
        Some(&format!("{good}{good}")),
        &[],
        "identity_provider.id",
        "twice",
    );
}

#[test]
fn a_platform_that_others_see_has_no_provider_on_this_machine() {
    let file = format!("{GOOD_PROVIDER}issuer = \"http://localhost:8080\"");
    let seen = [("PLATFORM_ORIGIN", "https://games.example")];
    assert_refused(
        Some(&file),
        &seen,
        "identity_provider.issuer of `a`",
        "localhost",
    );
    let own = [("PLATFORM_ORIGIN", "http://platform.localhost:1")];
    read(Some(&file), &own).unwrap();
}

#[test]
fn a_fault_of_the_file_is_one_readable_line_without_its_values() {
    for (file, expected) in [
        (
            "listen = \"127.0.0.1:0\"\ntoken_seconds = [1",
            "platform.toml: line 2, `token_seconds`: unclosed array, expected `]`",
        ),
        (
            "key_secret = \"hunter2",
            "platform.toml: line 1, `key_secret`: invalid basic string, expected `\"`",
        ),
        (
            "key_secret \"hunter2\"",
            "platform.toml: line 1: key with no value, expected `=`",
        ),
        (
            "origin = \"https://a.example\"\norigin = \"https://b.example\"",
            "platform.toml: line 2, `origin`: duplicate key",
        ),
        (
            "[[identity_provider]]\nid = \"a\"",
            "identity_provider: identity provider 1 has no `name`",
        ),
    ] {
        assert_eq!(read(Some(file), &[]).unwrap_err(), expected, "{file}");
    }
}

#[test]
fn secrets_are_hidden_wherever_settings_are_shown() {
    let file = "[[identity_provider]]\nid = \"a\"\nname = \"A\"\nissuer = \"https://a.example\"\n\
                client_id = \"c\"\nclient_secret = \"correct-horse\"";
    let secret = "0123456789abcdef0123456789abcdef";
    let config = read(Some(file), &[("PLATFORM_KEY_SECRET", secret)]).unwrap();
    for shown in [show::settings_in_force(&config), format!("{config:?}")] {
        assert!(
            !shown.contains(secret) && !shown.contains("correct-horse"),
            "{shown}"
        );
        assert!(shown.contains("hidden"), "{shown}");
    }
}

#[test]
fn what_is_shown_can_be_read_again() {
    let config = read(None, &[("PLATFORM_ORIGIN", "https://games.example")]).unwrap();
    let shown = |config: &Config| -> Vec<String> {
        let shown = show::settings_in_force(config);
        let values = shown.lines().map(|line| line.split("  # ").next().unwrap());
        values.map(str::to_owned).collect()
    };
    let again = read(Some(&show::settings_in_force(&config)), &[]).unwrap();
    assert_eq!(shown(&again), shown(&config));
}

#[test]
fn each_setting_is_shown_with_its_resolved_value_and_where_it_comes_from() {
    let file = "token_seconds = 600\nheartbeat_seconds = 20\n";
    let variables = [
        ("PLATFORM_LISTEN", "127.0.0.1:9000"),
        ("PLATFORM_HEARTBEAT_SECONDS", "10"),
    ];
    let shown = show::settings_in_force(&read(Some(file), &variables).unwrap());
    for line in [
        "origin = \"http://platform.localhost:9000\"  # default",
        "listen = \"127.0.0.1:9000\"  # PLATFORM_LISTEN",
        "token_seconds = 600  # the file of --config",
        "heartbeat_seconds = 10  # PLATFORM_HEARTBEAT_SECONDS",
        "private_backends = true  # default",
        "# key_secret is not set",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    let public = read(None, &[("PLATFORM_ORIGIN", "https://games.example")]).unwrap();
    let shown = show::settings_in_force(&public);
    assert!(
        shown.contains("private_backends = false  # default"),
        "{shown}"
    );
}

#[test]
fn the_documentation_of_the_settings_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        written,
        names::documentation(),
        "run `cargo run -p platform-server -- config --docs > docs/settings.md`"
    );
}
