//! `GET /api/admin/guests`: the guests that count for addresses.

use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::{IntoParams, ToSchema};

use super::caller::AdminCaller;
use super::views::PlayerView;
use crate::admin::AdminState;
use crate::domain::administration::HoldingAddress;
use crate::domain::date::rfc3339;
use crate::web::api::query::Within;
use crate::web::api::{ApiJson, ApiQuery};
use crate::web::api_error::ApiError;
use crate::web::client_address::Network;

/// The default number of addresses, or guests, in a response.
const ENTRIES: usize = 100;

/// Whose guests are asked for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GuestsQuery {
    /// Only the guests of this address: an IPv4 or IPv6 address, or an IPv6 /64.
    #[serde(deserialize_with = "network")]
    #[param(value_type = Option<String>)]
    address: Option<Network>,
    /// The maximum number of entries; default 100.
    #[param(inline)]
    limit: Option<Within<1, 1_000>>,
}

fn network<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Network>, D::Error> {
    let network = String::deserialize(from)?.parse();
    let sentence = "This is not an IPv4 address, an IPv6 address or an IPv6 /64 network.";
    network.map(Some).map_err(|_| de::Error::custom(sentence))
}

/// The guests of network addresses.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HeldGuests)]
pub struct HeldGuestsView {
    /// The maximum number of guests per address; null if there is no maximum.
    pub cap: Option<u32>,
    /// The addresses, those with the most guests first; empty if the request named an address.
    pub addresses: Vec<HoldingAddressView>,
    /// The guests of the requested address, newest first.
    pub guests: Vec<PlayerView>,
}

/// A network address and the number of its guests.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HoldingAddress)]
pub struct HoldingAddressView {
    /// IPv4, or IPv6 /64.
    pub address: String,
    /// The number of guests.
    pub guests: u32,
    /// The latest use of any of them (RFC 3339).
    pub seen_at: String,
}

/// Returns the addresses with the most guests, or the guests of one address.
///
/// # Errors
/// `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/admin/guests",
    operation_id = "listHeldGuests",
    params(GuestsQuery),
    responses((status = 200, description = "Addresses and guests.", body = HeldGuestsView))
)]
pub async fn handle(
    State(state): State<Arc<AdminState>>,
    _admin: AdminCaller,
    ApiQuery(query): ApiQuery<GuestsQuery>,
) -> Result<ApiJson<HeldGuestsView>, ApiError> {
    let most = query.limit.map_or(ENTRIES, Within::count);
    let since = state.platform.clock.now() - state.platform.config.guest_idle();
    let store = &state.platform.store;
    let (addresses, guests) = match query.address {
        None => (store.list_holding_addresses(since, most).await?, Vec::new()),
        Some(address) => (
            Vec::new(),
            store
                .list_held_guests(&address.to_string(), since, most)
                .await?,
        ),
    };
    let cap = state.platform.config.guests_per_address;
    Ok(ApiJson(HeldGuestsView {
        cap: (cap > 0).then_some(cap),
        addresses: addresses
            .into_iter()
            .map(HoldingAddressView::from)
            .collect(),
        guests: guests.into_iter().map(PlayerView::from).collect(),
    }))
}

impl From<HoldingAddress> for HoldingAddressView {
    fn from(holding: HoldingAddress) -> Self {
        Self {
            address: holding.address,
            guests: holding.guests,
            seen_at: rfc3339(holding.seen_at),
        }
    }
}
