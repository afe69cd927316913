//! `POST /__platform/logs` on a game's address: receives log records of a page.
//!
//! The records are only written to the store: what a game logs is its own business, and our log
//! never repeats it.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use platform_frontend_logs::entries::entries_of;
use platform_frontend_logs::sanitize::mend_text;
use platform_protocol::limits::{LOG_RECORDS, LOG_REQUEST_BYTES};
use platform_protocol::log::LogBatch;
use platform_protocol::problem::ProblemCode;
use serde_json::value::RawValue;

use crate::auth::panes::PaneSession;
use crate::domain::log::{LogEntry, NewLogRecords};
use crate::domain::page::PageId;
use crate::games::catalogue::Game;
use crate::games::panes::Pane;
use crate::logs::LogsState;
use crate::logs::{LogRates, WAITING};
use crate::store::StoreError;
use crate::web::api_error::ApiError;
use crate::web::client_address::Network;
use crate::web::json;
use crate::web::limiter::too_many_requests;
use crate::web::request_context::Context;

/// The maximum number of repetitions that the records of one request may count in addition to
/// themselves: about as many as a page can produce in the seconds in which it collects them. A
/// larger number would distort the count of a game's errors.
const MOST_REPEATS: u32 = 5_000;
/// The additional cost of a request whose token is not cached: verifying it costs more than
/// everything else.
const NEW_TOKEN: NonZeroU32 = NonZeroU32::MIN.saturating_add(19);
/// When the client should retry while the store is overloaded.
const BUSY: Duration = Duration::from_secs(5);

/// Returns 204 once the records are on the disk.
///
/// # Errors
/// `not-allowed`, `unsupported-media-type`, `payload-too-large`, `invalid-request`,
/// `too-many-requests`; errors of the store.
pub async fn handle(
    State(state): State<Arc<LogsState>>,
    Extension(game): Extension<Arc<Game>>,
    pane: (Option<Extension<Pane>>, Option<Extension<PaneSession>>),
    context: Context,
    headers: HeaderMap,
    request_body: Body,
) -> Result<Response, ApiError> {
    json::refuse_cross_site(&headers)?;
    let bytes = json::read(&headers, request_body, LOG_REQUEST_BYTES).await?;
    // Before any work that is more expensive.
    let (requests, network) = (
        &state.limits.requests_by_address,
        Network::of(context.client),
    );
    requests.count(&network).await.map_err(too_many_requests)?;
    let batch: LogBatch<Box<RawValue>> = json::parse(&mend_text(&bytes))?;
    let many = batch.records.len();
    let kept = keep(
        &state,
        &game,
        pane,
        &context,
        (&headers, bytes.len()),
        batch,
    )
    .await;
    state.platform.metrics.log_records(kept.is_ok(), many);
    kept
}

/// Checks the records of a request, and stores them.
async fn keep(
    state: &LogsState,
    game: &Arc<Game>,
    pane: (Option<Extension<Pane>>, Option<Extension<PaneSession>>),
    context: &Context,
    (headers, bytes): (&HeaderMap, usize),
    batch: LogBatch<Box<RawValue>>,
) -> Result<Response, ApiError> {
    let (requests, network) = (
        &state.limits.requests_by_address,
        Network::of(context.client),
    );
    let page = PageId::parse(&batch.page).ok_or(ProblemCode::InvalidRequest)?;
    if batch.records.len() > LOG_RECORDS {
        return Err(ProblemCode::PayloadTooLarge.into());
    }
    state.platform.disk.refuse(0)?;
    let received_at = state.platform.clock.now();
    // If the rest of the limit does not allow a verification, the records count as a stranger's.
    let affordable = !state.auth.tokens.are_new(headers)
        || requests.count_many(&network, NEW_TOKEN).await.is_ok();
    let player = match &pane.1 {
        // The player is known even if the page has no token, or an invalid one.
        Some(Extension(session)) => Some(Arc::clone(&session.player)),
        None => affordable
            .then(|| state.auth.tokens.of(headers, &game.audience))
            .flatten(),
    };
    // Anybody can send records without a token and with any count.
    let repeats = if player.is_some() { MOST_REPEATS } else { 0 };
    let entries = entries_of(batch.records, received_at, repeats)?;
    let entries: Vec<_> = match &pane.0 {
        Some(Extension(pane)) => {
            let entries = entries.into_iter();
            entries.map(|entry| as_in_dev(entry, pane)).collect()
        }
        None => entries,
    };
    let rates = match player {
        Some(_) => &state.limits.players,
        None => &state.limits.strangers,
    };
    // A record that counts several times uses up the limit several times; otherwise one token would
    // be enough to make up any number of errors.
    let weight = entries.iter().map(|entry| entry.count as usize).sum();
    let counted = count(rates, game, context, (weight, bytes)).await;
    counted.map_err(too_many_requests)?;

    let records = NewLogRecords {
        slug: game.slug.clone(),
        environment: game.environment,
        deployment: game.deployment.as_ref().map(|deployment| deployment.id),
        player: player.map(|token| token.player),
        page,
        received_at,
        entries,
    };
    let waiting = &state.limits.waiting;
    let waiting = waiting.take(Arc::clone(&game.audience), WAITING);
    let _waiting = waiting.ok_or_else(|| too_many_requests(BUSY))?;
    match state.platform.store.add_log_records(records).await {
        Ok(()) => {
            state.streams.announce(&game.slug, game.environment);
            Ok(json::nothing())
        }
        Err(StoreError::Busy) => Err(too_many_requests(BUSY)),
        Err(error) => Err(error.into()),
    }
}

/// Counts the records, at least one, and the bytes against the limits of the address and of the
/// game, so that neither one player nor one game can use up shared resources.
///
/// # Errors
/// How long to wait, if a limit is reached.
async fn count(
    rates: &LogRates,
    game: &Game,
    context: &Context,
    (records, bytes): (usize, usize),
) -> Result<(), Duration> {
    let many = |count: usize| {
        let many = u32::try_from(count).ok().and_then(NonZeroU32::new);
        many.unwrap_or(NonZeroU32::MIN)
    };
    let (records, bytes) = (many(records), many(bytes));
    let network = Network::of(context.client);
    rates.by_address.count_many(&network, records).await?;
    rates.bytes_by_address.count_many(&network, bytes).await?;
    rates.by_game.count_many(&game.audience, records).await?;
    rates.bytes_by_game.count_many(&game.audience, bytes).await
}

/// Returns a record of a pane with the address of the dev environment, so that its scripts are found
/// and its errors are the same errors.
fn as_in_dev(entry: LogEntry, pane: &Pane) -> LogEntry {
    let rename = |text: String| text.replace(&pane.origin, &pane.game.origin);
    LogEntry {
        stack: entry.stack.map(rename),
        url: entry.url.map(rename),
        ..entry
    }
}
