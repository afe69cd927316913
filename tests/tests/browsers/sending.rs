//! Frontend logs: how much is sent, when, and the effect of failures.

use platform_protocol::limits::LOG_REQUEST_BYTES;
use platform_protocol::log::{LogLevel, LogSource};
use platform_tests::browser::Stage;
use platform_tests::gateway::Fault;
use platform_tests::poll;
use platform_tests::world::PageBuilder;
use reqwest::Method;
use serde_json::json;

use crate::logs::{QUIET, messages, open};

platform_tests::browser_tests![
    ten_thousand_equal_lines_are_one_record,
    ten_thousand_different_lines_are_a_budget_and_a_number,
    what_was_left_out_is_told_when_the_page_goes_away,
    five_seconds_or_fifty_records_or_sixteen_kilobytes_send_a_batch,
    the_runtime_s_own_requests_are_no_records;
    in Chromium, because "what is sent when is the runtime's own rule":
    errors_get_through_after_a_talkative_minute,
    large_records_stay_within_the_size_of_a_request,
    a_token_in_hand_comes_with_the_records,
    after_a_429_nothing_is_sent_until_it_may_be_and_nothing_is_lost,
    records_that_got_no_answer_are_sent_again,
];

async fn ten_thousand_equal_lines_are_one_record(stage: Stage) {
    let world = open(&stage, PageBuilder::new().before(QUIET)).await;
    let said = stage
        .run("for (let i = 0; i < 10_000; i++) console.warn('frame', { late: true }); return said.length")
        .await;
    assert_eq!(said, json!(10_000), "the browser's console has all of them");
    let records = world.flushed(&stage).await;
    assert_eq!(messages(&records), ["frame {late: true}"]);
    assert_eq!(records[0].count, Some(10_000));
    // Equal lines in another second are another record.
    stage
        .run("console.warn('frame'); await pass(2); console.warn('frame'); console.warn('frame')")
        .await;
    let counts: Vec<_> = world.flushed(&stage).await[1..]
        .iter()
        .map(|record| record.count)
        .collect();
    assert_eq!(counts, [None, Some(2)]);
}

async fn ten_thousand_different_lines_are_a_budget_and_a_number(stage: Stage) {
    let world = open(&stage, PageBuilder::new().before(QUIET)).await;
    let said = stage
        .run("for (let i = 0; i < 10_000; i++) console.log('line', i); return said.length")
        .await;
    assert_eq!(said, json!(10_000));
    let records = world.flushed(&stage).await;
    let lines: Vec<String> = (0..80).map(|line| format!("line {line}")).collect();
    assert_eq!(messages(&records[..80]), lines);
    assert_eq!(
        messages(&records[80..]),
        ["9920 more records were left out"]
    );
    assert_eq!(records[80].level, LogLevel::Warn);
    // Another minute has another budget.
    stage
        .run("await pass(60); for (let i = 0; i < 90; i++) console.log('later', i)")
        .await;
    let records = world.flushed(&stage).await.split_off(81);
    assert_eq!(records.len(), 81, "{:?}", messages(&records));
    assert!(messages(&records).contains(&"10 more records were left out"));
}

async fn what_was_left_out_is_told_when_the_page_goes_away(stage: Stage) {
    let page = PageBuilder::new()
        .before(QUIET)
        .file("other.html", &PageBuilder::new().html());
    let world = open(&stage, page).await;
    stage
        .run("for (let i = 0; i < 80; i++) console.log('line', i); await pass(6)")
        .await;
    world.record("line 79").await;
    stage
        .run("for (let i = 0; i < 7; i++) console.log('too much', i)")
        .await;
    stage.open(&world.url("arena", "/other.html")).await;
    world.record("7 more records were left out").await;
}

async fn errors_get_through_after_a_talkative_minute(stage: Stage) {
    stage.tolerate_log("deliberate");
    let world = open(&stage, PageBuilder::new().before(QUIET)).await;
    stage
        .run(
            "for (let i = 0; i < 1_000; i++) console.error('line', i);
            setTimeout(() => { throw new Error('deliberate error') });
            Promise.reject(new Error('deliberate rejection'));
            await platform.reportError('deliberate report');
            await new Promise(turn => setTimeout(turn, 50));",
        )
        .await;
    let records = world.flushed(&stage).await;
    let count = |source| {
        records
            .iter()
            .filter(|record| record.source == source)
            .count()
    };
    assert_eq!(count(LogSource::Error), 1);
    assert_eq!(count(LogSource::UnhandledRejection), 1);
    assert_eq!(count(LogSource::Report), 1);
    assert_eq!(count(LogSource::Console), 81);
    // Errors have a budget too.
    stage
        .run("for (let i = 0; i < 1_000; i++) platform.reportError('deliberate ' + i); await pass(6)")
        .await;
    let record = world.record("deliberate 15").await;
    assert_eq!(record.source, LogSource::Report);
    stage.run("await pass(60)").await;
    let records = world.flushed(&stage).await;
    assert!(records.len() <= 103, "{}", records.len());
}

async fn large_records_stay_within_the_size_of_a_request(stage: Stage) {
    // The browser does not report errors that the game handles, but they are recorded.
    let handled =
        "<script>addEventListener('unhandledrejection', event => event.preventDefault())</script>";
    let page = PageBuilder::new()
        .before(QUIET)
        .before(handled)
        .file("other.html", &PageBuilder::new().html());
    let world = open(&stage, page).await;
    stage
        .run(
            "const texts = ['x', '☃', '\\u0001', '\"', '🎮', '\\ud800'];
            for (const text of texts) {
                const much = text.repeat(10_000);
                console.log(much, much, much, much, much);
                platform.reportError(much, { much: text.repeat(8_000) });
                platform.reportError(text.repeat(2_000), { much: text.repeat(8_000) });
                Promise.reject(new Error(much));
                dispatchEvent(new ErrorEvent('error', { message: much, filename: location + much }));
                const image = new Image(); image.src = 'data:image/png,' + much; image.name = much;
                await new Promise(failed => { image.onerror = failed; document.body.append(image) });
                await new Promise(turn => setTimeout(turn, 20));
            }",
        )
        .await;
    stage.tolerate_log("");
    let records = world.flushed(&stage).await;
    // Each request was checked when it arrived; these are the largest.
    let sizes: Vec<usize> = world
        .gateway
        .seen(&Method::POST, "/__platform/logs")
        .iter()
        .map(|request| request.body.len())
        .collect();
    assert!(
        sizes.iter().all(|size| *size <= LOG_REQUEST_BYTES),
        "{sizes:?}"
    );
    for source in [
        LogSource::Console,
        LogSource::Report,
        LogSource::Error,
        LogSource::Resource,
    ] {
        let count = records
            .iter()
            .filter(|record| record.source == source)
            .count();
        assert!(count >= 5, "{count} records of {source:?}");
    }
    // The maximum amount, sent when the page is left.
    stage
        .run("await pass(61); for (let i = 0; i < 70; i++) console.log(i + '☃'.repeat(250)); console.log('the end')")
        .await;
    stage.open(&world.url("arena", "/other.html")).await;
    world.record("the end").await;
}

async fn five_seconds_or_fifty_records_or_sixteen_kilobytes_send_a_batch(stage: Stage) {
    let world = open(&stage, PageBuilder::new().before(QUIET)).await;
    let arrived = async |part: &str| {
        world.record(part).await;
        world.batches().len()
    };
    stage
        .run("console.log('first'); await pass(4); console.log('second')")
        .await;
    stage.run("await (await fetch('/?early')).text()").await;
    assert_eq!(
        world.batches().len(),
        0,
        "nothing is sent before five seconds"
    );
    stage.run("await pass(2)").await;
    assert_eq!(arrived("second").await, 1);
    stage
        .run("for (let i = 1; i <= 50; i++) console.log('many', i)")
        .await;
    assert_eq!(arrived("many 50").await, 2);
    stage.run("await pass(60); for (let i = 1; i <= 9; i++) console.log('large', i, 'x'.repeat(1_990))").await;
    assert_eq!(arrived("large 8").await, 3);
    // A page that is hidden may never return.
    stage
        .run(
            "console.log('hiding');
            Object.defineProperty(document, 'hidden', { value: true, configurable: true });
            document.dispatchEvent(new Event('visibilitychange'));",
        )
        .await;
    assert_eq!(arrived("hiding").await, 4);
}

async fn a_token_in_hand_comes_with_the_records(stage: Stage) {
    let world = open(&stage, PageBuilder::new()).await;
    stage.run("console.log('before'); await pass(4)").await;
    stage
        .run("dispatchEvent(new PageTransitionEvent('pagehide'))")
        .await;
    world.record("before").await;
    assert_eq!(world.batches()[0].token, None);
    assert_eq!(
        world.gateway.token_requests(),
        0,
        "no guest is made for a log record"
    );
    let token = stage
        .run("const token = await platform.getAccessToken(); console.log('after'); await pass(6); return token")
        .await;
    world.record("after").await;
    assert_eq!(world.batches()[1].token.as_deref(), token.as_str());
    assert_eq!(
        world.batches()[0].page,
        world.batches()[1].page,
        "a page has one id"
    );
}

async fn after_a_429_nothing_is_sent_until_it_may_be_and_nothing_is_lost(stage: Stage) {
    let world = open(&stage, PageBuilder::new()).await;
    let answer = Fault::Answer {
        status: 429,
        headers: vec![("retry-after", "90".to_owned())],
        body: Vec::new(),
    };
    world
        .gateway
        .spoil(Method::POST, "/__platform/logs", answer, 1);
    stage.run("console.log('first'); await pass(6)").await;
    world.record("first").await;
    poll::until("the answer", async || {
        let requests = world.gateway.seen(&Method::POST, "/__platform/logs");
        requests[0].status.is_some().then_some(())
    })
    .await;
    // The response has arrived; the page has it once a later request of its own has completed.
    stage
        .run("await (await fetch('/?later')).text(); for (let i = 0; i < 60; i++) console.log('meanwhile', i); await pass(88)")
        .await;
    stage
        .run("document.dispatchEvent(new Event('visibilitychange')); await (await fetch('/?still')).text()")
        .await;
    assert_eq!(
        world.batches().len(),
        1,
        "nothing is sent before the time is over"
    );
    stage.run("await pass(4)").await;
    world.record("meanwhile 59").await;
    let batches = world.batches();
    assert_eq!(batches.len(), 2);
    let expected: Vec<String> = ["first".to_owned()]
        .into_iter()
        .chain((0..60).map(|line| format!("meanwhile {line}")))
        .collect();
    assert_eq!(messages(&batches[1].records), expected);
    assert_eq!(
        batches[0].records[0], batches[1].records[0],
        "with its own time"
    );
}

async fn records_that_got_no_answer_are_sent_again(stage: Stage) {
    stage.tolerate_log("/__platform/logs");
    let world = open(&stage, PageBuilder::new()).await;
    world
        .gateway
        .spoil(Method::POST, "/__platform/logs", Fault::Drop, 1);
    stage.run("console.log('once'); await pass(6)").await;
    world.record("once").await;
    // The page cannot report when it knows, so time passes until it has tried again.
    poll::until("the second attempt", async || {
        stage.run("await pass(10)").await;
        (world.batches().len() > 1).then_some(())
    })
    .await;
    stage.run("console.log('after it'); await pass(6)").await;
    world.record("after it").await;
    let batches = world.batches();
    assert_eq!(messages(&batches[0].records), ["once"]);
    assert_eq!(messages(&batches[1].records), ["once"]);
    let last = &batches.last().unwrap().records;
    assert_eq!(last.last().unwrap().message, "after it");
    assert!(batches.len() <= 3, "it is not sent a third time");
}

async fn the_runtime_s_own_requests_are_no_records(stage: Stage) {
    stage.tolerate_log("");
    let world = open(&stage, PageBuilder::new()).await;
    for path in ["/__platform/logs", "/__platform/heartbeat", "/token"] {
        world.gateway.spoil(Method::POST, path, Fault::Drop, 1);
    }
    stage
        .run(
            "console.log('one line');
            await platform.getAccessToken().catch(() => {});
            await pass(40); await platform.fetch('/api/any').catch(() => {}); await pass(40);
            await platform.fetch('https://example.com/').catch(() => {});",
        )
        .await;
    world.gateway.heal();
    let records = world.flushed(&stage).await;
    assert!(
        messages(&records)
            .iter()
            .all(|message| *message == "one line"),
        "{records:?}"
    );
}
