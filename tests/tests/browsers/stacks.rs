//! How the console parses stacks in the format of each engine.

use platform_tests::browser::Stage;
use platform_tests::platform::Platform;
use platform_tests::poll;
use serde_json::{Value, json};

platform_tests::browser_tests![
    stacks_of_every_engine_are_read_alike,
    frames_of_the_runtime_are_told_from_those_of_a_game_s_module,
    only_short_names_are_replaced_by_those_of_the_sources,
];

/// Opens the console, with the module that parses stacks as `window.reader`. The policy of its
/// pages does not allow new scripts, so this uses scripts that already exist.
async fn console(stage: &Stage) -> Platform {
    let platform = Platform::start(&[]).await;
    stage.open(&format!("{}/build", platform.site.origin)).await;
    let begin = "import('/static/console/any/frames.js').then(module => window.reader = module)";
    stage.look(begin, vec![]).await;
    poll::until("the module is there", async || {
        let there = stage.look("return !!window.reader", vec![]).await;
        (there == true).then_some(())
    })
    .await;
    platform
}

/// Returns frames as `[call, file, line, column, whether it is the platform's]`.
async fn frames(stage: &Stage, stack: &str) -> Value {
    let read = "return window.reader.framesOf(arguments[0])
        .map(({ call, file, line, column, isOurs }) => [call, file, line, column, isOurs])";
    stage.look(read, vec![json!(stack)]).await
}

async fn stacks_of_every_engine_are_read_alike(stage: Stage) {
    let _platform = console(&stage).await;
    let chromium = "TypeError: the ship\n    at Ship.lose (https://a.example/a.js:3:14)\n    \
                    at async https://a.example/b.js:1:2\n    at new <anonymous> (https://a.example/c.js:5:6)";
    let others = "lose@https://a.example/a.js:3:14\nasync*@https://a.example/b.js:1:2\n@https://a.example/c.js:5:6\n";
    let places = |calls: [&str; 3]| {
        json!([
            [calls[0], "https://a.example/a.js", 3, 14, false],
            [calls[1], "https://a.example/b.js", 1, 2, false],
            [calls[2], "https://a.example/c.js", 5, 6, false],
        ])
    };
    for (stack, calls) in [
        (chromium, ["Ship.lose", "", "new <anonymous>"]),
        (others, ["lose", "async*", ""]),
    ] {
        assert_eq!(frames(&stage, stack).await, places(calls));
    }
    // WebKit's stacks end without a line break, and their columns are those after the expression.
    let behind = "const { countsBehind } = window.reader;
        return [countsBehind('f@https://a.example/a.js:1:2'), countsBehind('f@https://a.example/a.js:1:2\\n'),
            countsBehind('Error: no\\n    at f (https://a.example/a.js:1:2)'), countsBehind('')]";
    assert_eq!(
        stage.look(behind, vec![]).await,
        json!([true, false, false, false])
    );
}

async fn frames_of_the_runtime_are_told_from_those_of_a_game_s_module(stage: Stage) {
    let _platform = console(&stage).await;
    let runtime = "https://a.example/__platform/runtime.js";
    let stack = format!(
        "Error: no\n    at wasm://wasm/0a1b:wasm-function[7]:0x1234\n    at settle ({runtime}:1:900)\n    \
         at wasm://wasm/0a1b:wasm-function[9]:0x2345\n    at save (https://a.example/a.js:2:3)\n    \
         at wasm://wasm/9f8e:wasm-function[1]:0x10\n    at https://a.example/game_bg.js:1:1"
    );
    let read = frames(&stage, &stack).await;
    let ours: Vec<_> = read
        .as_array()
        .unwrap()
        .iter()
        .map(|frame| frame[4].as_bool().unwrap())
        .collect();
    assert_eq!(ours, [true, true, true, false, false, false], "{read}");
}

async fn only_short_names_are_replaced_by_those_of_the_sources(stage: Stage) {
    let _platform = console(&stage).await;
    for (call, called, expected) in [
        ("t", "lose", "lose"),
        ("e.t", "lose", "e.lose"),
        ("async t", "lose", "async lose"),
        ("t", "", "t"),
        ("", "lose", ""),
        ("Ship.start", "lose", "Ship.start"),
        ("new <anonymous>", "lose", "new <anonymous>"),
    ] {
        let read = "return window.reader.renamed(arguments[0], arguments[1])";
        let name = stage.look(read, vec![json!(call), json!(called)]).await;
        assert_eq!(name, expected, "{call}");
    }
}
