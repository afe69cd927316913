//! The endpoints of the auth service, one per file.

mod browser_session;
pub mod callback;
mod confirm_sign_in;
pub mod demo_provider;
pub mod device;
pub mod frame;
pub mod game_continue;
pub mod game_token;
mod guest;
pub mod hand_off;
pub mod key_set;
mod leave;
pub mod metadata;
pub mod new_guest;
mod own_form;
mod page_visitor;
pub mod pane;
pub mod profile;
pub mod restore_guest;
mod return_link;
pub mod sign_in_page;
pub mod sign_out;
pub mod sign_out_page;
pub mod start_sign_in;
pub mod token;
