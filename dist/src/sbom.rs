//! The bill of materials: CycloneDX 1.6 in JSON (ECMA-424), without a serial number: a random one
//! would differ each time.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::linked_crates::Crate;

/// The bill of a release made at `seconds` (Unix).
///
/// # Errors
/// The time is not valid in the calendar.
pub(crate) fn bill(crates: &[Crate], version: &str, seconds: u64) -> Result<String> {
    let time = OffsetDateTime::from_unix_timestamp(i64::try_from(seconds)?)?;
    let time = time.format(&Rfc3339).context("the commit's time")?;
    let whole = format!("pkg:generic/platform@{version}");
    let programs = [
        "platform-cli",
        "platform-runtime",
        "platform-server",
        "platform-upload",
    ];
    let roots = crates.iter().filter(|one| programs.contains(&&*one.name));
    let mut uses = vec![json!({
        "ref": whole,
        "dependsOn": roots.map(Crate::url).collect::<Vec<_>>(),
    })];
    uses.extend(crates.iter().map(|one| {
        let used: Vec<String> = one.uses.iter().map(|place| crates[*place].url()).collect();
        json!({ "ref": one.url(), "dependsOn": used })
    }));
    let bill = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time,
            "component": {
                "type": "application",
                "bom-ref": whole,
                "name": "platform",
                "version": version,
                "purl": whole,
                "licenses": [{ "expression": env!("CARGO_PKG_LICENSE") }],
            },
        },
        "components": crates.iter().map(component).collect::<Vec<_>>(),
        "dependencies": uses,
    });
    Ok(format!("{bill:#}\n"))
}

fn component(one: &Crate) -> Value {
    let url = one.url();
    let mut component = json!({
        "type": "library",
        "bom-ref": url,
        "name": one.name,
        "version": one.version,
        "scope": "required",
        "purl": url,
    });
    if let Some(licence) = &one.licence {
        // Older manifests separate alternatives with `/`, which is not valid SPDX.
        let expression = licence.replace('/', " OR ");
        component["licenses"] = json!([{ "expression": expression }]);
    }
    if let Some(checksum) = &one.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = &one.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_names_each_crate_its_licence_and_what_it_uses() {
        let server = Crate {
            name: "platform-server".into(),
            version: "1.2.3".into(),
            licence: Some("MIT".into()),
            uses: vec![1],
            ..Crate::default()
        };
        let serde = Crate {
            name: "serde".into(),
            version: "1.0.1".into(),
            licence: Some("MIT/Apache-2.0".into()),
            checksum: Some("00ff".into()),
            repository: Some("https://serde.example".into()),
            ..Crate::default()
        };
        let crates = [server, serde];
        let bill = bill(&crates, "1.2.3", 1_700_000_000).unwrap();
        let bill: Value = serde_json::from_str(&bill).unwrap();
        assert_eq!(bill["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
        let serde = &bill["components"][1];
        assert_eq!(serde["purl"], "pkg:cargo/serde@1.0.1");
        assert_eq!(serde["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(serde["hashes"][0]["content"], "00ff");
        assert!(bill["components"][0].get("hashes").is_none());
        let whole = "pkg:generic/platform@1.2.3";
        let server = "pkg:cargo/platform-server@1.2.3";
        assert_eq!(
            bill["dependencies"],
            json!([
                { "ref": whole, "dependsOn": [server] },
                { "ref": server, "dependsOn": ["pkg:cargo/serde@1.0.1"] },
                { "ref": "pkg:cargo/serde@1.0.1", "dependsOn": [] },
            ])
        );
    }
}
