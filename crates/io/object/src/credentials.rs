//! Keys from the files of AWS' own tools, which `object_store` does not read.
//!
//! Environment variables come first (`AWS_ACCESS_KEY_ID`, roles of containers and web identities),
//! then the profile named by `AWS_PROFILE`, or `default`, in `~/.aws/credentials` and
//! `~/.aws/config`. If there is none, the machine's metadata gives a role's keys on EC2. Profiles
//! that need another service (single sign-on, assumed roles) are not supported.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::PathBuf;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};

use crate::error::ObjectError;

/// Adds keys and a region from the files to a builder that lacks them.
pub(crate) fn complete(mut builder: AmazonS3Builder) -> Result<AmazonS3Builder, ObjectError> {
    let elsewhere = [
        Key::AccessKeyId,
        Key::SecretAccessKey,
        Key::WebIdentityTokenFile,
        Key::ContainerCredentialsRelativeUri,
        Key::ContainerCredentialsFullUri,
    ];
    let known = |key: &Key| builder.get_config_value(key).is_some();
    let unsigned = builder.get_config_value(&Key::SkipSignature).as_deref() == Some("true");
    if unsigned || elsewhere.iter().any(known) {
        return Ok(builder);
    }
    let named = env::var("AWS_PROFILE").ok();
    let profile = profile(named.as_deref().unwrap_or("default"));
    let Some(profile) = profile else {
        return match named {
            Some(name) => Err(ObjectError::Settings(format!(
                "AWS_PROFILE is {name}, but ~/.aws has no such profile; correct the name, or set \
                 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            ))),
            None => Ok(builder),
        };
    };
    let values = [
        ("aws_access_key_id", Key::AccessKeyId),
        ("aws_secret_access_key", Key::SecretAccessKey),
        ("aws_session_token", Key::Token),
        ("region", Key::Region),
    ];
    for (name, key) in values {
        if let (Some(value), None) = (profile.get(name), builder.get_config_value(&key)) {
            builder = builder.with_config(key, value);
        }
    }
    Ok(builder)
}

/// The values of a profile; `None` if neither file has it.
fn profile(name: &str) -> Option<HashMap<String, String>> {
    let read = |variable: &str, file: &str| {
        let path = env::var_os(variable).map(PathBuf::from);
        let home = || env::home_dir().map(|home| home.join(".aws").join(file));
        path.or_else(home)
            .and_then(|path| fs::read_to_string(path).ok())
            .unwrap_or_default()
    };
    let config = read("AWS_CONFIG_FILE", "config");
    let credentials = read("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    let heading = match name {
        "default" => name.to_owned(),
        _ => format!("profile {name}"),
    };
    match (section(&config, &heading), section(&credentials, name)) {
        (None, None) => None,
        (one, two) => {
            let mut all = one.unwrap_or_default();
            all.extend(two.unwrap_or_default());
            Some(all)
        }
    }
}

/// The values under a heading in brackets; `None` if there is none.
fn section(text: &str, heading: &str) -> Option<HashMap<String, String>> {
    let mut found = None;
    let mut here = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            here = name.trim() == heading;
            if here {
                found.get_or_insert_with(HashMap::new);
            }
        } else if let (true, Some((name, value)), false) =
            (here, line.split_once('='), line.starts_with(['#', ';']))
        {
            let entry = (name.trim().to_lowercase(), value.trim().to_owned());
            found.get_or_insert_with(HashMap::new).extend([entry]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::section;

    #[test]
    fn a_section_ends_where_the_next_begins() {
        let text = "# keys\n[default]\nA = 1\n; B = 2\n\n[ profile x ]\na=3\nregion = eu = 1\n";
        let default = section(text, "default").expect("there");
        assert_eq!(default.len(), 1);
        assert_eq!(default["a"], "1");
        let named = section(text, "profile x").expect("there");
        assert_eq!(
            (named["a"].as_str(), named["region"].as_str()),
            ("3", "eu = 1")
        );
        assert_eq!(section(text, "x"), None);
        assert!(section("[empty]", "empty").expect("there").is_empty());
    }
}
