//! Opens pages in the user's browser.

/// Tries to open a page in a browser. It runs in parallel, and a failure does not matter.
pub(crate) fn open(address: &str) {
    let address = address.to_owned();
    let _ = std::thread::Builder::new().spawn(move || {
        let mut options = webbrowser::BrowserOptions::new();
        options.with_suppress_output(true);
        webbrowser::open_browser_with_options(webbrowser::Browser::Default, &address, &options)
    });
}
