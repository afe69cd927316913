//! The bucket of deployed files: `s3://<bucket>/<prefix>`, and the variables `AWS_*` that other
//! programs use as well.

use std::collections::HashMap;

use url::Url;

use super::{S3Settings, Secret, SettingError};

/// What the variables begin with.
const VARIABLES: &str = "AWS_";
/// The variables that name a server other than that of AWS.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
/// The two halves of a key.
const KEY: [&str; 2] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];

/// Parses `s3://<bucket>/<prefix>`. Credentials do not belong into it.
pub(super) fn address(text: &str) -> Result<S3Settings, String> {
    const FORM: &str = "write s3://<bucket>/<prefix>, and the key into AWS_ACCESS_KEY_ID and \
                        AWS_SECRET_ACCESS_KEY";
    let rest = text.strip_prefix("s3://").ok_or(FORM)?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let is_name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = bucket.as_bytes();
    // https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
    if !(3..=63).contains(&bytes.len())
        || !bytes.iter().copied().all(is_name)
        || !ends(bytes.first())
        || !ends(bytes.last())
    {
        return Err(format!("the bucket's name is not one of S3; {FORM}"));
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let is_part = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !part.is_empty() && part != "." && part != ".." && part.bytes().all(plain)
    };
    if !prefix.is_empty() && !prefix.split('/').all(is_part) {
        return Err(
            "a prefix has letters, digits and `._-`, with `/` between its parts".to_owned(),
        );
    }
    Ok(S3Settings {
        bucket: bucket.to_owned(),
        prefix: prefix.to_owned(),
        ..S3Settings::default()
    })
}

/// Reads how to reach the bucket, which `named_by` names, from the environment.
pub(super) fn read_variables(
    settings: &mut S3Settings,
    named_by: &str,
    environment: &HashMap<String, String>,
) -> Result<(), SettingError> {
    let ours = environment
        .iter()
        .filter(|(name, value)| name.starts_with(VARIABLES) && !value.is_empty());
    settings.variables = ours
        .map(|(name, value)| (name.clone(), Secret::new(value.clone())))
        .collect();
    let given = |name: &&str| settings.variables.contains_key(*name);
    if let Some(name) = ENDPOINTS.iter().find(|name| given(name))
        && let Some(value) = settings.variables.get(*name)
    {
        check_endpoint(value.expose()).map_err(|problem| SettingError::new(*name, problem))?;
    } else if !["AWS_REGION", "AWS_DEFAULT_REGION"].iter().any(given) {
        return Err(SettingError::new(
            named_by,
            "set AWS_REGION to the bucket's region, or AWS_ENDPOINT_URL to the S3 server",
        ));
    }
    match KEY.map(|name| given(&name)) {
        [true, false] => Err(SettingError::new(
            KEY[1],
            "set it as well, or remove AWS_ACCESS_KEY_ID",
        )),
        [false, true] => Err(SettingError::new(
            KEY[0],
            "set it as well, or remove AWS_SECRET_ACCESS_KEY",
        )),
        _ => Ok(()),
    }
}

/// Checks the address of an S3 server. It is not repeated, since it may contain a password.
fn check_endpoint(text: &str) -> Result<(), &'static str> {
    const FORM: &str =
        "write http://<host>:<port> or https://<host>, without a user, a path or a query";
    let url = Url::parse(text).map_err(|_| FORM)?;
    let plain = url.username().is_empty() && url.password().is_none();
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if matches!(url.scheme(), "http" | "https") && url.has_host() && plain && bare {
        Ok(())
    } else {
        Err(FORM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<S3Settings, String> {
        let mut settings = address("s3://games/files").unwrap();
        let environment = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let read = read_variables(&mut settings, "files_url", &environment);
        read.map(|()| settings).map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_names_a_bucket_and_a_prefix() {
        for (text, bucket, prefix) in [
            ("s3://games", "games", ""),
            ("s3://games/", "games", ""),
            ("s3://my.games-1/a/b_c/", "my.games-1", "a/b_c"),
        ] {
            let found = address(text).unwrap();
            assert_eq!((&*found.bucket, &*found.prefix), (bucket, prefix));
        }
        for text in [
            "s3://",
            "s3:///files",
            "s3://ab",
            "s3://Games",
            "s3://key:hunter2@games/files",
            "s3://games/../x",
            "s3://games//x",
            "s3://games/x?y",
            "s3://-games",
        ] {
            let problem = address(text).unwrap_err();
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }

    #[test]
    fn the_variables_are_those_of_other_programs_and_stay_secret() {
        let key = ("AWS_ACCESS_KEY_ID", "id");
        let secret = ("AWS_SECRET_ACCESS_KEY", "hunter2");
        let endpoint = ("AWS_ENDPOINT_URL", "http://127.0.0.1:3900");
        let read_all = read(&[key, secret, endpoint, ("PATH", "/bin")]).unwrap();
        assert_eq!(read_all.variables.len(), 3);
        assert_eq!(read_all.endpoint(), Some("http://127.0.0.1:3900"));
        assert!(!format!("{read_all:?}").contains("hunter2"));
        assert!(read(&[("AWS_REGION", "eu-central-1")]).is_ok());
        for (variables, said) in [
            (vec![key, secret], "files_url: set AWS_REGION"),
            (vec![key, endpoint], "AWS_SECRET_ACCESS_KEY: set it"),
            (vec![secret, endpoint], "AWS_ACCESS_KEY_ID: set it"),
            (
                vec![("AWS_ENDPOINT_URL", "http://x:hunter2@s3")],
                "AWS_ENDPOINT_URL: write http://",
            ),
            (
                vec![("AWS_ENDPOINT_URL_S3", "s3")],
                "AWS_ENDPOINT_URL_S3: write",
            ),
        ] {
            let problem = read(&variables).unwrap_err();
            assert!(problem.starts_with(said), "{problem}");
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }
}
