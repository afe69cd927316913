//! The documents that a platform shows: their list, each of them, and searching them.

use crate::pages::assert_is_page;
use crate::support::{TestApp, send};

#[tokio::test]
async fn every_document_of_the_list_is_a_page_with_this_platforms_addresses() {
    let app = TestApp::start().await;
    let list = send(app.get("", "/docs")).await;
    assert_eq!(list.status, 200);
    assert_is_page(&list, "the list");
    let mut pages = 0;
    for part in list.text().split("href=\"/docs/").skip(1) {
        let (name, _) = part.split_once('"').unwrap();
        let page = send(app.get("", &format!("/docs/{name}"))).await;
        assert_eq!(page.status, 200, "{name}");
        assert_is_page(&page, name);
        assert!(page.text().contains("aria-current=\"page\""), "{name}");
        pages += 1;
    }
    assert!(pages >= 15, "{pages}");
    let command_line = send(app.get("", "/docs/cli")).await;
    let installer = format!("{}/cli/install.sh", app.origin("game").replace("game.", ""));
    assert!(command_line.text().contains(&installer), "{installer}");
}

#[tokio::test]
async fn words_are_found_in_the_documents_and_shown_as_text() {
    let app = TestApp::start().await;
    let found = send(app.get("", "/docs?q=accepted+archives")).await;
    assert_is_page(&found, "what was found");
    assert!(
        found
            .text()
            .contains("href=\"/docs/deploying#accepted-archives\"")
    );
    for query in ["%3Cscript%3E", "%22%3E%3Cb%3E", "&q=", "%FF", "zzzzzz"] {
        let none = send(app.get("", &format!("/docs?q={query}"))).await;
        if none.status == 200 {
            assert_is_page(&none, query);
            assert!(!none.text().contains("<b>"), "{query}");
        } else {
            assert_eq!(none.problem(), "invalid-request", "{query}");
        }
    }
    assert!(
        send(app.get("", "/docs?q=zzzzzz"))
            .await
            .text()
            .contains("Nothing has all these words")
    );
}

#[tokio::test]
async fn an_unknown_document_leads_to_the_list() {
    let app = TestApp::start().await;
    for name in ["nothing", "dependencies", "..%2FREADME", "cli.md"] {
        let answer = send(app.get("", &format!("/docs/{name}"))).await;
        assert_eq!(answer.problem(), "not-found", "{name}");
        assert!(answer.text().contains("/docs"), "{name}");
    }
}
