//! The query of an address and a form's body: every field is found once or refused, and a query
//! survives being written again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use platform_server::web::form::Form;
use platform_server::web::seal::may_be_seal;

fuzz_target!(|text: &str| {
    let form = Form::of_query(Some(text));
    for name in ["redirect", "state", "code", "csrf", ""] {
        if let Ok(Some(value)) = form.field(name) {
            let _ = may_be_seal(value);
        }
    }
});
