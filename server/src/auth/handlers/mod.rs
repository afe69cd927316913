//! The endpoints of the auth service, one per file.

pub mod callback;
pub mod demo_provider;
pub mod device;
mod guest;
mod held;
mod hurried;
pub mod key_set;
mod leave;
pub mod login;
pub mod metadata;
pub mod new_guest;
mod own_form;
pub mod profile;
pub mod restore_guest;
mod return_link;
pub mod sign_in;
pub mod sign_out;
pub mod token;
mod visitor;
