//! `GET /api/admin/nodes`: the servers that run the platform.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::AdminCaller;
use crate::admin::AdminState;
use crate::config::show::OPERATIONS;
use crate::domain::date::rfc3339;
use crate::domain::node::{Lease, Node, NodeReport};
use crate::web::api::ApiJson;
use crate::web::api_error::ApiError;

/// The servers that run the platform.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Nodes)]
pub struct NodesView {
    /// Whether several servers can share the store. If not, there is one node.
    pub shared: bool,
    /// The newest version of what nodes keep in memory.
    pub newest: i64,
    /// The nodes, in the order of their starts. One that ended without saying so is listed for an
    /// hour.
    pub nodes: Vec<NodeView>,
    /// Settings that must be the same on every live node and are not.
    pub differing_settings: Vec<DifferingSettingView>,
    /// Whether the database acknowledges a write only once a standby has it; null if this is not
    /// known, or if the store is embedded.
    pub waits_for_standby: Option<bool>,
}

/// A node.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Node)]
pub struct NodeView {
    /// Its id, which changes with every start.
    pub id: String,
    /// The name of its machine, and the port on which it listens.
    pub address: String,
    /// Whether it answered this request.
    pub this: bool,
    /// The version of its program.
    pub version: String,
    /// When it started (RFC 3339); null if it is the only one.
    pub started_at: Option<String>,
    /// Whether it has reported within the last five seconds.
    pub live: bool,
    /// Seconds since its last report.
    pub silent_seconds: i64,
    /// The newest version that it has applied.
    pub applied: i64,
    /// How far its clock is ahead of the store's, in milliseconds; null if that is not known.
    pub clock_offset: Option<i64>,
    /// What works less well on it.
    pub degraded: Vec<String>,
    /// The work that only this node does.
    pub leases: Vec<String>,
}

/// A setting that is not the same on every live node.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DifferingSetting)]
pub struct DifferingSettingView {
    /// The setting.
    pub name: String,
    /// Its values.
    pub values: Vec<SettingValueView>,
}

/// One value of a setting.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SettingValue)]
pub struct SettingValueView {
    /// The value as `platform-server config` shows it; null if it is not set.
    pub value: Option<String>,
    /// The addresses of the nodes that have it.
    pub nodes: Vec<String>,
}

/// Returns the servers that run the platform, what they have applied, and where their settings
/// differ.
///
/// # Errors
/// `not-allowed`.
#[utoipa::path(
    get,
    path = "/api/admin/nodes",
    operation_id = "listNodes",
    responses((status = 200, description = "The nodes.", body = NodesView))
)]
pub async fn handle(
    State(state): State<Arc<AdminState>>,
    _admin: AdminCaller,
) -> Result<ApiJson<NodesView>, ApiError> {
    let (store, own) = (&state.platform.store, &state.platform.nodes);
    let newest = store.newest_change().await?;
    if !store.is_shared() {
        let alone = view(own.about(), newest, &[], own.id());
        return Ok(ApiJson(NodesView {
            shared: false,
            newest,
            nodes: vec![alone],
            differing_settings: Vec::new(),
            waits_for_standby: None,
        }));
    }
    let (nodes, leases) = (store.list_nodes().await?, store.list_leases().await?);
    let differing_settings = differing(&nodes);
    let nodes = nodes.into_iter().map(|node| NodeView {
        started_at: Some(rfc3339(node.started_at)),
        live: node.is_live(),
        silent_seconds: node.silent.max(0) / 1_000,
        ..view(node.report, newest, &leases, own.id())
    });
    Ok(ApiJson(NodesView {
        shared: true,
        newest,
        nodes: nodes.collect(),
        differing_settings,
        waits_for_standby: own.waits_for_standby(),
    }))
}

fn view(report: NodeReport, newest: i64, leases: &[Lease], own: uuid::Uuid) -> NodeView {
    let held = leases
        .iter()
        .filter(|lease| lease.holder == report.id && lease.left > 0);
    NodeView {
        id: report.id.to_string(),
        this: report.id == own,
        version: report.binary,
        started_at: None,
        live: true,
        silent_seconds: 0,
        // A node that starts reads the newest version of everything.
        applied: report.applied.min(newest),
        clock_offset: report.clock_offset,
        degraded: report.degraded,
        leases: held.map(|lease| lease.name.clone()).collect(),
        address: report.address,
    }
}

/// Returns the settings that are not the same on every live node. A node of another version may
/// have settings that others do not know.
fn differing(nodes: &[Node]) -> Vec<DifferingSettingView> {
    type Values = BTreeMap<Option<String>, Vec<String>>;
    let live: Vec<(&NodeReport, BTreeMap<String, String>)> = nodes
        .iter()
        .filter(|node| node.is_live())
        .map(|node| {
            let settings = serde_json::from_str(&node.report.settings);
            (&node.report, settings.unwrap_or_default())
        })
        .collect();
    let mut names: Vec<&String> = live.iter().flat_map(|(_, all)| all.keys()).collect();
    // Each node has its own.
    names.retain(|name| *name != OPERATIONS);
    names.sort();
    names.dedup();
    let values = |name: &String| {
        let mut values = Values::new();
        for (node, settings) in &live {
            let value = settings.get(name).filter(|value| !value.is_empty());
            let nodes = values.entry(value.cloned()).or_default();
            nodes.push(node.address.clone());
        }
        values
    };
    names
        .into_iter()
        .map(|name| (name, values(name)))
        .filter(|(_, values)| values.len() > 1)
        .map(|(name, values)| DifferingSettingView {
            name: name.clone(),
            values: values
                .into_iter()
                .map(|(value, nodes)| SettingValueView { value, nodes })
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::node::LIVE_MILLIS;

    fn node(address: &str, settings: &str, silent: i64) -> Node {
        Node {
            report: NodeReport {
                id: uuid::Uuid::nil(),
                address: address.into(),
                binary: String::new(),
                settings: settings.into(),
                applied: 0,
                clock_offset: None,
                degraded: Vec::new(),
            },
            started_at: 0,
            silent,
        }
    }

    #[test]
    fn settings_differ_if_live_nodes_have_different_values() {
        let nodes = [
            node(
                "a:1",
                r#"{"token_seconds":"900","admins":"[]","operations_listen":"0.0.0.0:9"}"#,
                0,
            ),
            node("b:1", r#"{"token_seconds":"600","admins":"[]"}"#, 100),
            node("c:1", r#"{"token_seconds":"900"}"#, LIVE_MILLIS),
            node(
                "gone:1",
                r#"{"token_seconds":"7","log_quota_mib":"1"}"#,
                LIVE_MILLIS + 1,
            ),
        ];
        let found: Vec<_> = differing(&nodes)
            .into_iter()
            .map(|setting| {
                let values = setting.values.into_iter();
                let values = values.map(|of| (of.value, of.nodes.join(" ")));
                (setting.name, values.collect::<Vec<_>>())
            })
            .collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [
                (
                    "admins".to_owned(),
                    vec![(None, "c:1".to_owned()), (some("[]"), "a:1 b:1".to_owned())]
                ),
                (
                    "token_seconds".to_owned(),
                    vec![
                        (some("600"), "b:1".to_owned()),
                        (some("900"), "a:1 c:1".to_owned())
                    ]
                ),
            ]
        );
        assert!(differing(&nodes[..1]).is_empty());
    }
}
