//! `GET /api/admin/guests`: the guests that addresses hold.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::caller::AdminCaller;
use super::views::PlayerView;
use crate::admin::AdminState;
use crate::domain::administration::HoldingAddress;
use crate::domain::date::rfc3339;
use crate::http::api::query::limit;
use crate::http::api::{answer, invalid};
use crate::http::api_error::ApiError;
use crate::http::client_address::Network;

/// Addresses, or guests, of one answer where nothing else is asked for.
const ENTRIES: usize = 100;
/// Addresses, or guests, of one answer, at most.
const MAX_ENTRIES: usize = 1_000;

/// The guests that addresses hold.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HeldGuests)]
pub struct HeldGuestsView {
    /// How many guests one address may hold; null for any number.
    pub cap: Option<u32>,
    /// The addresses, those with most guests first; none where one was asked for.
    pub addresses: Vec<HoldingAddressView>,
    /// The guests of the address that was asked for, last one first.
    pub guests: Vec<PlayerView>,
}

/// An address with the guests that it holds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HoldingAddress)]
pub struct HoldingAddressView {
    /// IPv4, or IPv6 /64.
    pub address: String,
    /// How many guests.
    pub guests: u32,
    /// When the last of them was last here (RFC 3339).
    pub seen_at: String,
}

/// Answers the addresses that hold most guests, or the guests of one.
///
/// # Errors
/// `not-allowed`, `invalid-request`.
#[utoipa::path(
    get,
    path = "/api/admin/guests",
    operation_id = "listHeldGuests",
    params(
        ("address" = Option<String>, Query, description = "The guests of this address alone: an IPv4 or IPv6 address, or an IPv6 /64."),
        ("limit" = Option<u32>, Query, description = "100 if not given.", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "Addresses and guests.", body = HeldGuestsView))
)]
pub async fn handle(
    State(state): State<Arc<AdminState>>,
    _admin: AdminCaller,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let (mut address, mut most) = (None, ENTRIES);
    let query = query.unwrap_or_default();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "address" => {
                let network: Network = value
                    .parse()
                    .map_err(|_| invalid("That is no IPv4 or IPv6 address, and no IPv6 /64."))?;
                address = Some(network.to_string());
            }
            "limit" => most = limit(&value, MAX_ENTRIES).map_err(invalid)?,
            _ => return Err(invalid("The query may have address and limit.")),
        }
    }
    let since = state.platform.clock.now() - state.platform.config.guest_idle();
    let store = &state.platform.store;
    let (addresses, guests) = match address {
        None => (store.list_holding_addresses(since, most).await?, Vec::new()),
        Some(address) => (
            Vec::new(),
            store.list_held_guests(&address, since, most).await?,
        ),
    };
    let cap = state.platform.config.guests_per_address;
    let view = HeldGuestsView {
        cap: (cap > 0).then_some(cap),
        addresses: addresses
            .into_iter()
            .map(HoldingAddressView::from)
            .collect(),
        guests: guests.into_iter().map(PlayerView::from).collect(),
    };
    answer(StatusCode::OK, &view)
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
