//! The console's pages for developers: they are the same for everybody, and the scripts fill them.

use crate::support::{TestApp, send};

#[tokio::test]
async fn the_build_page_runs_its_own_modules_and_frames_the_game_alone() {
    let app = TestApp::start().await;
    let page = send(app.get("", "/build/some-game")).await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    let auth = app.origin("auth");
    let panes = (1..=4).map(|number| app.origin(&format!("pane-{number}--dev-some-game")));
    let games: Vec<_> = std::iter::once(app.origin("dev-some-game"))
        .chain(panes)
        .collect();
    let games = games.join(" ");
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src \
             'self' {auth} {games}; frame-src {games}; form-action 'none'; base-uri 'none'; \
             frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
        )
    );
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let html = page.text();
    for inline in ["<style", " style=", " onclick=", "<script>"] {
        assert!(!html.contains(inline), "{inline}");
    }
    let back = app
        .origin("")
        .replace("//.", "//")
        .replace(':', "%3A")
        .replace('/', "%2F");
    let sign_in = format!("{auth}/login?redirect={back}%2Fbuild%2Fsome-game");
    assert!(html.contains(&sign_in), "{sign_in}");
    let list = send(app.get("", "/build")).await;
    let policy = list.header("content-security-policy").unwrap();
    assert!(policy.contains("frame-src 'none'"), "{policy}");
}

#[tokio::test]
async fn the_project_page_runs_its_own_modules_and_frames_nothing() {
    let app = TestApp::start().await;
    // The tabs with an upload may run its module, and no other page.
    let errors = send(app.get("", "/projects/some-game/errors")).await;
    let policy = errors.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'; "), "{policy}");
    let page = send(app.get("", "/projects/some-game")).await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    let origin = |label| app.origin(label);
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' blob:; \
             connect-src 'self' {} {} {}; form-action 'none'; base-uri 'none'; frame-ancestors \
             'none'; require-trusted-types-for 'script'; trusted-types 'none'",
            origin("auth"),
            origin("dev-some-game"),
            origin("some-game")
        )
    );
    let html = page.text();
    for inline in ["<style", " style=", " onclick=", "<script>"] {
        assert!(!html.contains(inline), "{inline}");
    }
    assert!(html.contains("%2Fprojects%2Fsome-game"), "the way back");
}

#[tokio::test]
async fn each_tab_of_a_project_has_an_address_and_marks_itself() {
    let app = TestApp::start().await;
    for (path, name) in [
        ("", "Overview"),
        ("/errors", "Errors"),
        ("/logs", "Logs"),
        ("/players", "Players"),
        ("/deployments", "Deployments"),
        ("/settings", "Settings"),
    ] {
        let page = send(app.get("", &format!("/projects/some-game{path}"))).await;
        assert_eq!(page.status, 200, "{name}");
        let html = page.text();
        let marked =
            format!("<a href=\"/projects/some-game{path}\" aria-current=\"page\">{name}</a>");
        assert!(html.contains(&marked), "{html}");
        assert_eq!(html.matches("aria-current").count(), 1, "{name}");
        let back = format!("%2Fprojects%2Fsome-game{}\"", path.replace('/', "%2F"));
        assert!(html.contains(&back), "{name}: the way back");
    }
    let unknown = send(app.get("", "/projects/some-game/nothing")).await;
    assert_eq!(unknown.problem(), "not-found");
}

#[tokio::test]
async fn what_can_be_no_project_has_no_build_page() {
    let app = TestApp::start().await;
    for path in [
        "/build/",
        "/build/a",
        "/build/No",
        "/build/dev-game",
        "/build/%3Cb%3E",
        "/build/%ff",
        "/projects/a",
        "/projects/a/logs",
        "/projects/dev-game",
        "/projects/%3Cb%3E",
        "/projects/%ff",
    ] {
        let answer = send(app.get("", path)).await;
        assert!(answer.status.is_client_error(), "{path}");
        assert!(!answer.text().contains("<b>"), "{path}");
    }
}

#[tokio::test]
async fn a_page_names_the_version_of_its_scripts_which_browsers_keep() {
    let app = TestApp::start().await;
    let page = send(app.get("", "/build/some-game")).await;
    let html = page.text();
    let (_, rest) = html.split_once("src=\"/static/console/").unwrap();
    let (script, _) = rest.split_once('"').unwrap();
    let (version, name) = script.split_once('/').unwrap();
    assert_eq!(name, "build.js");
    for file in ["session.js", "dom.js", "console.css"] {
        let address = format!("href=\"/static/console/{version}/{file}\"");
        assert!(html.contains(&address), "{address}");
    }
    let module = send(app.get("", &format!("/static/console/{script}"))).await;
    assert_eq!(
        module.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    let kept = "public, max-age=31536000, immutable";
    assert_eq!(module.header("cache-control"), Some(kept));
    // A page of another version gets these as well, and its browser does not keep them.
    let other = send(app.get("", "/static/console/other/build.js")).await;
    assert_eq!(other.status, 200);
    assert_eq!(other.header("cache-control"), Some("no-cache"));
    assert!(other.header("etag").is_some());
    for path in [
        "/static/console/other/nothing.js",
        "/static/console/other/..%2fplatform.css",
        "/static/console/build.js",
    ] {
        assert_eq!(
            send(app.get("", path)).await.problem(),
            "not-found",
            "{path}"
        );
    }
    let elsewhere = send(app.get("auth", &format!("/static/console/{script}"))).await;
    assert_eq!(elsewhere.problem(), "not-found");
}

#[tokio::test]
async fn the_console_alone_reads_the_files_of_games() {
    let app = TestApp::start().await;
    let console = app.running.origin.clone();
    let allowed = async |label: &str, origin: &str| {
        let answer = send(app.get(label, "/").header("origin", origin)).await;
        assert_eq!(answer.status, 200, "{label}");
        let allowed = answer.header("access-control-allow-origin");
        allowed.map(str::to_owned)
    };
    for label in ["dev-demo", "demo"] {
        assert_eq!(allowed(label, &console).await, Some(console.clone()));
        for other in [app.origin("demo"), app.origin("auth"), "null".to_owned()] {
            assert_eq!(allowed(label, &other).await, None, "{other}");
        }
    }
    // A cache must not use a stored response to another origin for the console.
    let anybody = send(app.get("dev-demo", "/")).await;
    let mut vary = anybody.headers.get_all("vary").iter();
    assert!(vary.any(|name| name == "Origin"), "{anybody:?}");
}
