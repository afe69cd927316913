//! Frontend logs: what becomes a record, and the content of a record.

use platform_protocol::log::{LogLevel, LogSource};
use platform_tests::browser::{Engine, Stage};
use platform_tests::runtime_requests::Record;
use platform_tests::world::{PageBuilder, World};
use serde_json::{Value, json};

platform_tests::browser_tests![
    an_error_in_the_first_statement_after_the_tag_is_recorded,
    the_last_lines_before_leaving_arrive,
    uncaught_errors_of_module_scripts_and_workers_are_recorded,
    rejections_are_recorded_whatever_their_reason,
    resources_that_do_not_load_are_recorded,
    what_failed_to_load_before_the_runtime_ran_is_recorded_once,
    every_console_method_is_recorded_with_its_level,
    the_game_s_own_console_gets_every_argument_unchanged,
    a_reported_error_has_its_metadata_and_never_rejects,
    hostile_arguments_neither_throw_nor_hang_nor_recurse,
    failures_of_extensions_are_nobody_s_records,
];

/// Opens `page`, whose clock the test moves.
pub(crate) async fn open(stage: &Stage, page: PageBuilder) -> World {
    let world = World::start().await;
    stage.open(&world.publish(page.clock()).await).await;
    world
}

/// Returns the messages of `records`, in their order.
pub(crate) fn messages(records: &[Record]) -> Vec<&str> {
    records
        .iter()
        .map(|record| record.message.as_str())
        .collect()
}

async fn an_error_in_the_first_statement_after_the_tag_is_recorded(stage: Stage) {
    let world = World::start().await;
    let page = PageBuilder::new()
        .after(r#"<script defer src="first.js"></script>"#)
        .file("first.js", "throw new RangeError('deliberately first');\n")
        .file("other.html", &PageBuilder::new().html());
    stage.expect_log("deliberately first", 1);
    let began = stage.run("return Date.now()").await.as_f64().unwrap();
    let address = world.publish(page).await;
    stage.open(&address).await;
    stage.hears("deliberately first").await;
    stage.open(&world.url("arena", "/other.html")).await;
    let kept = world.kept("deliberately first").await;
    assert_eq!((kept.line, kept.level), (Some(1), LogLevel::Error));
    let record = world.record("deliberately first").await;
    assert_eq!(
        (record.source, record.level),
        (LogSource::Error, LogLevel::Error)
    );
    assert!(record.message.contains("RangeError"), "{record:?}");
    let stack = record.stack.unwrap();
    assert!(
        stack.starts_with("RangeError: deliberately first"),
        "{stack}"
    );
    assert!(stack.contains("first.js"), "{stack}");
    assert_eq!(record.url, Some(format!("{address}first.js")));
    assert_eq!(record.line, Some(1));
    assert!(record.column.is_some_and(|column| column > 0));
    assert_eq!((record.metadata, record.count), (None, None));
    assert!((began..began + 60_000.0).contains(&record.time));
}

async fn the_last_lines_before_leaving_arrive(stage: Stage) {
    let world = World::start().await;
    let page = PageBuilder::new().file("other.html", &PageBuilder::new().html());
    stage.open(&world.publish(page).await).await;
    stage
        .run(
            "setTimeout(() => {
                console.log('before leaving');
                console.info('the very last line');
                location.href = '/other.html';
                console.debug('after the last line');
            });",
        )
        .await;
    stage.arrives_at(&world.url("arena", "/other.html")).await;
    world.kept("after the last line").await;
    assert_eq!(
        messages(&world.records()),
        [
            "before leaving",
            "the very last line",
            "after the last line"
        ]
    );
    assert_eq!(world.batches().len(), 1);
}

async fn uncaught_errors_of_module_scripts_and_workers_are_recorded(stage: Stage) {
    stage.tolerate_log("deliberate");
    let page = PageBuilder::new()
        .after(r#"<script type="module" src="module.js"></script>"#)
        .file("module.js", "\nthrow new Error('deliberate in a module');")
        .file(
            "worker.js",
            "\n\nthrow new Error('deliberate in a worker');",
        );
    let world = open(&stage, page).await;
    // The page's error event comes after the worker's own event, which is this one.
    stage
        .run(
            "const worker = new Worker('worker.js');
            await new Promise(failed => worker.onerror = failed);
            await new Promise(turn => setTimeout(turn));",
        )
        .await;
    let records = world.flushed(&stage).await;
    assert_eq!(records.len(), 2, "{records:?}");
    for (record, file, line) in [(&records[0], "module", 2), (&records[1], "worker", 3)] {
        assert!(record.message.contains(&format!("deliberate in a {file}")));
        assert_eq!(
            (record.source, record.level),
            (LogSource::Error, LogLevel::Error)
        );
        assert_eq!(record.url, Some(world.url("arena", &format!("/{file}.js"))));
        assert_eq!(record.line, Some(line));
    }
    assert!(records[0].stack.as_ref().unwrap().contains("module.js"));
}

async fn rejections_are_recorded_whatever_their_reason(stage: Stage) {
    stage.tolerate_log("");
    let world = open(&stage, PageBuilder::new()).await;
    stage
        .run(
            "const handled = Promise.reject(new Error('handled at once'));
            handled.catch(() => {});
            const late = Promise.reject(new Error('handled late'));
            Promise.reject(new TypeError('deliberate error'));
            Promise.reject('deliberate text');
            Promise.reject();
            Promise.reject({ code: 7 });
            Promise.reject(null);
            Promise.reject(new platform.PlatformError(502, 'No backend', 'https://a.example/problems/backend-unreachable', 'a1'));
            await new Promise(turn => setTimeout(turn, 50));
            late.catch(() => {});",
        )
        .await;
    let records = world.flushed(&stage).await;
    let expected = [
        "Error: handled late",
        "TypeError: deliberate error",
        "deliberate text",
        "undefined",
        "{code: 7}",
        "null",
        "PlatformError: No backend",
    ];
    assert_eq!(messages(&records), expected);
    for record in &records {
        assert_eq!(record.source, LogSource::UnhandledRejection);
        assert_eq!(record.level, LogLevel::Error);
    }
    let stack = records[1].stack.as_ref().unwrap();
    assert!(
        stack.starts_with("TypeError: deliberate error\n"),
        "{stack}"
    );
    assert!(records[2..6].iter().all(|record| record.stack.is_none()));
    let told = |record: &Record| record.metadata.clone();
    assert!(records[..6].iter().all(|record| told(record).is_none()));
    let problem = "https://a.example/problems/backend-unreachable";
    assert_eq!(
        told(&records[6]),
        Some(json!({ "status": 502, "type": problem }))
    );
}

async fn resources_that_do_not_load_are_recorded(stage: Stage) {
    stage.tolerate_log("missing");
    let world = open(&stage, PageBuilder::new()).await;
    let add = |html: &str| {
        format!(
            "const template = document.createElement('template'); template.innerHTML = `{html}`;
            const element = template.content.firstElementChild;
            const failed = new Promise(failed => element.addEventListener('error', failed));
            const clone = element.localName == 'script'
                ? Object.assign(document.createElement('script'), {{ src: element.src }}) : element;
            if (clone !== element) {{ await new Promise(failed => {{ clone.onerror = failed; document.body.append(clone) }}) }}
            else {{ document.body.append(element); await failed }}"
        )
    };
    for html in [
        r#"<img src="/missing.png">"#,
        r#"<script src="/missing.js"></script>"#,
        r#"<link rel="stylesheet" href="/missing.css">"#,
        r#"<audio src="/missing.ogg"></audio>"#,
    ] {
        stage.run(&add(html)).await;
    }
    let records = world.flushed(&stage).await;
    let urls: Vec<_> = records
        .iter()
        .map(|record| record.url.clone().unwrap())
        .collect();
    let expected =
        ["png", "js", "css", "ogg"].map(|kind| world.url("arena", &format!("/missing.{kind}")));
    assert_eq!(urls, expected);
    for (record, name) in records.iter().zip(["img", "script", "link", "audio"]) {
        assert_eq!(
            (record.source, record.level),
            (LogSource::Resource, LogLevel::Error)
        );
        assert!(record.message.contains(name) && record.message.contains("missing"));
    }
}

async fn what_failed_to_load_before_the_runtime_ran_is_recorded_once(stage: Stage) {
    stage.tolerate_log("missing");
    stage.tolerate_log("heartbeat");
    // It has failed, and its event is over, before the deferred scripts run.
    let page = PageBuilder::new().before(
        r#"<script src="/missing.js"></script>
        <script>{
            const ask = new XMLHttpRequest();
            ask.open('GET', '/missing.json', false);
            ask.send();
            ask.open('POST', '/__platform/heartbeat', false);
            ask.send();
        }</script>"#,
    );
    let world = open(&stage, page).await;
    stage.run("console.log('deliberate'); await pass(6)").await;
    let records = world.flushed(&stage).await;
    // WebKit keeps no status, so this cannot be known there.
    let kept = usize::from(stage.engine() != Engine::WebKit);
    let failed: Vec<_> = records
        .iter()
        .filter(|record| record.source == LogSource::Resource)
        .collect();
    assert_eq!(failed.len(), kept, "{records:?}");
    for record in failed {
        let url = world.url("arena", "/missing.js");
        assert_eq!(record.message, format!("<script> failed to load {url}"));
        assert_eq!(
            (record.level, record.count, record.url.as_deref()),
            (LogLevel::Error, None, Some(url.as_str()))
        );
    }
}

async fn every_console_method_is_recorded_with_its_level(stage: Stage) {
    stage.tolerate_log("");
    let world = open(&stage, PageBuilder::new()).await;
    stage
        .run(
            "for (const method of ['debug', 'trace', 'log', 'info', 'warn', 'error'])
                console[method](`deliberate ${method}`, 1, true, null, undefined, [1, 'two'], { a: { b: 3 } });
            console.assert(true, 'never said');
            console.assert(1 > 2, 'deliberate', { left: 1 });
            console.assert(false);
            console.table([{ a: 1 }]);",
        )
        .await;
    let records = world.flushed(&stage).await;
    let levels: Vec<_> = records.iter().map(|record| record.level).collect();
    use LogLevel::{Debug, Error, Info, Warn};
    assert_eq!(
        levels,
        [Debug, Debug, Info, Info, Warn, Error, Error, Error]
    );
    assert_eq!(
        records[2].message,
        r#"deliberate log 1 true null undefined [1, "two"] {a: {b: 3}}"#
    );
    assert_eq!(records[6].message, "Assertion failed: deliberate {left: 1}");
    assert!(records[7].message.starts_with("Assertion failed"));
    assert!(
        records
            .iter()
            .all(|record| record.source == LogSource::Console)
    );
    assert!(
        records
            .iter()
            .all(|record| record.url.is_none() && record.stack.is_none())
    );
    // The player's own console shows all of them as well.
    stage.settle().await;
    let said: Vec<_> = stage.log().into_iter().map(|entry| entry.text).collect();
    for method in ["debug", "trace", "log", "info", "warn", "error"] {
        let line = format!("deliberate {method}");
        assert_eq!(
            said.iter().filter(|text| text.contains(&line)).count(),
            1,
            "{line}"
        );
    }
}

/// Keeps what the browser's own console receives, without printing it.
pub(crate) const QUIET: &str = "<script>
    window.said = [];
    for (const method of ['debug', 'trace', 'log', 'info', 'warn', 'error', 'assert']) {
        const native = console[method];
        console[method] = (...values) => {
            said.push([method, ...values]);
            if (String(values[0]).startsWith('settled ')) native(...values);
        };
    }
</script>";

async fn the_game_s_own_console_gets_every_argument_unchanged(stage: Stage) {
    let _world = open(&stage, PageBuilder::new().before(QUIET)).await;
    let same = stage
        .run(
            "const values = [{}, [], Symbol('s'), 10n, document.body, new Proxy({}, {}), undefined, '%s', -0];
            said.length = 0;
            for (const method of ['debug', 'trace', 'log', 'info', 'warn', 'error'])
                if (console[method](...values) !== undefined) return method;
            console.assert(false, ...values);
            console.assert(true, ...values);
            return said.map(([method, ...rest]) => [method, rest.length,
                rest.slice(method == 'assert').every((value, index) => Object.is(value, values[index]))])",
        )
        .await;
    let expected = json!([
        ["debug", 9, true],
        ["trace", 9, true],
        ["log", 9, true],
        ["info", 9, true],
        ["warn", 9, true],
        ["error", 9, true],
        ["assert", 10, true],
        ["assert", 10, true]
    ]);
    assert_eq!(same, expected);
}

async fn a_reported_error_has_its_metadata_and_never_rejects(stage: Stage) {
    let world = open(&stage, PageBuilder::new()).await;
    let calls = stage
        .run(
            "const circle = {}; circle.self = circle;
            const unreadable = { toString() { throw new Error('no') } };
            const arguments = [
                ['with metadata', { level: 3, items: ['sword', null], deep: { a: { b: { c: { d: 1 } } } } }],
                ['without metadata'], ['null', null], ['zero', 0], ['false', false], ['text', 'why'],
                ['cyclic', circle], ['bigint', { n: 10n }], ['function', () => 1],
                ['huge', { text: 'x'.repeat(1_000_000) }],
                ['half a pair', { text: '\\ud800' }], ['half \\udc00 a pair'],
                ['thrower', { toJSON() { throw new Error('no') } }],
                [unreadable], [Symbol('symbol')], [Object.create(null)], [undefined], [],
                [new Error('an error itself')],
            ];
            const results = [];
            for (const call of arguments) {
                const promise = platform.reportError(...call);
                results.push(promise instanceof Promise && (await promise) === undefined);
            }
            const later = { before: 1 };
            platform.reportError('changed later', later);
            Object.defineProperty(later, 'after', { enumerable: true, get() { throw new Error('no') } });
            return results",
        )
        .await;
    assert_eq!(calls, json!(vec![true; 19]));
    let records = world.flushed(&stage).await;
    let find = |message: &str| {
        let found = records.iter().find(|record| record.message == message);
        found.unwrap_or_else(|| panic!("no record of {message:?} in {:?}", messages(&records)))
    };
    let full = find("with metadata");
    assert_eq!(
        (full.source, full.level),
        (LogSource::Report, LogLevel::Error)
    );
    let metadata = json!({ "level": 3, "items": ["sword", null], "deep": { "a": { "b": { "c": { "d": 1 } } } } });
    assert_eq!(full.metadata, Some(metadata));
    assert!(full.stack.as_ref().unwrap().contains("with metadata"));
    for (message, metadata) in [
        ("without metadata", None),
        ("null", None),
        ("zero", Some(json!(0))),
        ("false", Some(json!(false))),
        ("text", Some(json!("why"))),
    ] {
        assert_eq!(find(message).metadata, metadata, "{message}");
    }
    // A value that cannot be written as JSON is described, and the report is still sent.
    for message in ["cyclic", "bigint", "huge", "thrower"] {
        let metadata = find(message).metadata.as_ref();
        assert!(
            metadata.is_some_and(Value::is_string),
            "{message}: {metadata:?}"
        );
    }
    assert_eq!(find("changed later").metadata, Some(json!({ "before": 1 })));
    assert_eq!(
        find("half a pair").metadata,
        Some(json!({ "text": "\u{fffd}" }))
    );
    find("half \u{fffd} a pair");
    find("Symbol(symbol)");
    find("Error: an error itself");
}

/// Arguments that break careless loggers.
const HOSTILE: &str = "
    const circle = { name: 'circle' }; circle.self = circle;
    const revoked = Proxy.revocable({}, {}); revoked.revoke();
    const hostile = () => { throw new Error('trap') };
    const traps = new Proxy({}, { get: hostile, has: hostile, ownKeys: hostile, getPrototypeOf: hostile, getOwnPropertyDescriptor: hostile });
    const deep = {}; let inner = deep; for (let i = 0; i < 100_000; i++) inner = inner.next = {};
    const wide = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => ['key' + i, i]));
    const talkative = { get member() { console.log('from a getter'); return 1 } };
    const error = new Error('with a stack'); Object.defineProperty(error, 'stack', { get: hostile });
    const endless = Object.assign(new Error('long'), { stack: 'x'.repeat(1_000_000) });
    const values = {
        cyclic: circle, getter: { get broken() { throw new Error('no') }, fine: 1 }, bigint: 10n, symbol: Symbol('s'),
        'registered symbol': Symbol.for('s'), element: document.documentElement, document, window,
        'typed array': new Uint8Array(50_000_000), 'float array': new Float64Array(1_000), view: new DataView(new ArrayBuffer(8)),
        buffer: new ArrayBuffer(100_000_000), proxy: new Proxy({ a: 1 }, {}), revoked: revoked.proxy, traps,
        text: 'ü☃'.repeat(5_000_000), toJSON: { toJSON: hostile }, toString: { toString: hostile, valueOf: hostile },
        primitive: { [Symbol.toPrimitive]: hostile }, talkative, deep, wide, sparse: new Array(4_000_000_000), error, endless,
        bare: Object.create(null), constructor: { constructor: null }, tag: { get [Symbol.toStringTag]() { throw 1 } },
        map: new Map([[1, 2]]), date: new Date(NaN), function: hostile, class: class Ship {}, surrogate: '\\ud800',
        nul: '\\u0000', weak: new WeakMap, promise: Promise.resolve(), nan: NaN, 'object in array': [[[[[[1]]]]]],
    };";

async fn hostile_arguments_neither_throw_nor_hang_nor_recurse(stage: Stage) {
    let world = open(&stage, PageBuilder::new().before(QUIET)).await;
    let times = stage
        .run(&format!(
            "{HOSTILE}
            const slow = [];
            for (const [name, value] of Object.entries(values)) {{
                const before = Date.now();
                console.log(name + ':', value);
                const took = Date.now() - before;
                if (took > 500) slow.push([name, took]);
            }}
            console.log('all of them:', ...Object.values(values));
            return [slow, Object.keys(values).length]"
        ))
        .await;
    assert_eq!(times[0], json!([]), "milliseconds for one argument");
    let records = world.flushed(&stage).await;
    let count = usize::try_from(times[1].as_u64().unwrap()).unwrap();
    assert_eq!(records.len(), count + 1, "{:?}", messages(&records));
    let said = |name: &str| {
        let start = format!("{name}: ");
        let found = records
            .iter()
            .find_map(|record| record.message.strip_prefix(&start));
        found.unwrap_or_else(|| panic!("no record of {name}: {:?}", messages(&records)))
    };
    assert_eq!(said("cyclic"), r#"{name: "circle", self: [Circular]}"#);
    assert_eq!(said("getter"), "{broken: [unreadable], fine: 1}");
    assert_eq!(said("bigint"), "10n");
    assert_eq!(said("symbol"), "Symbol(s)");
    assert_eq!(said("element"), "<html>");
    assert_eq!(said("typed array"), "[Uint8Array 50000000]");
    assert_eq!(said("proxy"), "{a: 1}");
    assert_eq!(said("talkative"), "{member: 1}");
    assert!(!messages(&records).contains(&"from a getter"));
    assert!(said("text").len() > 1_000 && said("text").len() <= 8_192);
    assert_eq!(said("nan"), "NaN");
    // After all this, the log still works.
    stage.run("console.log('as before')").await;
    assert!(messages(&world.flushed(&stage).await).contains(&"as before"));
}

async fn failures_of_extensions_are_nobody_s_records(stage: Stage) {
    stage.tolerate_log("extension");
    let world = open(&stage, PageBuilder::new()).await;
    stage
        .run(
            "const fail = (scheme, own) => Object.assign(new Error('of an extension'), {
                stack: `Error: of an extension\\n    at f (${scheme}://abcdef/content.js:1:2)` + own });
            for (const scheme of ['chrome-extension', 'moz-extension', 'safari-web-extension']) {
                Promise.reject(fail(scheme, ''));
                dispatchEvent(new ErrorEvent('error', { message: 'of an extension',
                    filename: `${scheme}://abcdef/content.js`, error: fail(scheme, '') }));
            }
            Promise.reject(fail('moz-extension', `\\n    at game (${location.origin}/game.js:3:4)`));
            await new Promise(turn => setTimeout(turn, 50));",
        )
        .await;
    let records = world.flushed(&stage).await;
    assert_eq!(
        records.len(),
        1,
        "only the one that went through the game: {records:?}"
    );
    assert!(records[0].stack.as_ref().unwrap().contains("game.js"));
}
