//! The traces that `platform.fetch` begins for a game's backend (W3C Trace Context §3.2).

use std::collections::BTreeSet;

use platform_tests::backend::{Answer, Call};
use platform_tests::browser::Stage;
use platform_tests::world::{PageBuilder, World};

platform_tests::browser_tests![
    in Chromium, because "random ids and headers of requests are the same in every engine":
    each_call_of_a_traced_game_begins_a_trace_of_its_own,
];

/// A trace that a game has begun itself.
const OWN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// Returns the ids of the trace and of the span in a call, which says that it is to be kept.
fn ids(call: &Call) -> (String, String) {
    assert_eq!(call.headers.get_all("traceparent").iter().count(), 1);
    let header = call.headers["traceparent"].to_str().expect("text");
    let parts: Vec<&str> = header.split('-').collect();
    let [version, trace, span, flags] = parts[..] else {
        panic!("{header}");
    };
    assert_eq!((version, flags), ("00", "01"), "{header}");
    for (id, length) in [(trace, 32), (span, 16)] {
        let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        assert!(id.len() == length && id.bytes().all(is_hex), "{header}");
        assert!(id.bytes().any(|byte| byte != b'0'), "{header}");
    }
    (trace.to_owned(), span.to_owned())
}

async fn each_call_of_a_traced_game_begins_a_trace_of_its_own(stage: Stage) {
    let world = World::start().await;
    let game = world.publish(PageBuilder::new()).await;
    world.trace_requests().await;
    let refused = Answer {
        status: 401,
        headers: &[],
        body: "",
    };
    world.backend.answer("/api/refused", [refused]);
    stage.open(&game).await;
    let calls = format!(
        "for (const body of ['a', 'b', 'c'])
            await platform.fetch('/api/call', {{ method: 'POST', body, headers: {{ 'X-Level': '3' }} }});
        await Promise.all([platform.fetch('/api/call'), platform.fetch('/api/call')]);
        await platform.fetch('/api/refused');
        await platform.fetch('/api/own', {{ headers: {{ traceparent: '{OWN}' }} }});
        await fetch('/api/plain')"
    );
    stage.run(&calls).await;

    let seen: Vec<_> = world.backend.calls("/api/call").iter().map(ids).collect();
    assert_eq!(seen.len(), 5);
    let traces: BTreeSet<_> = seen.iter().map(|(trace, _)| trace).collect();
    let spans: BTreeSet<_> = seen.iter().map(|(_, span)| span).collect();
    assert_eq!((traces.len(), spans.len()), (5, 5), "{seen:?}");
    // The same call with another token is the same trace, and no earlier one.
    let again: Vec<_> = world
        .backend
        .calls("/api/refused")
        .iter()
        .map(ids)
        .collect();
    assert!(again.len() == 2 && again[0] == again[1], "{again:?}");
    assert!(!traces.contains(&again[0].0), "{again:?}");
    let own = &world.backend.calls("/api/own")[0].headers["traceparent"];
    assert_eq!(own, OWN, "the game's own stays");
    let plain = &world.backend.calls("/api/plain")[0].headers;
    assert_eq!(plain.get("traceparent"), None, "it is the platform's fetch");
}
