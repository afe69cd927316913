//! Games on a site of their own: how their visitors become players, and who cannot become one.

mod attacks;
mod browser;
mod lasting;
mod profile;
mod sessions;
mod together;
mod visits;
