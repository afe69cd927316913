//! Usernames: how guests get theirs. (Rules for chosen ones follow with the
//! profile page.)
