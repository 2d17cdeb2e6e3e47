//! What the engine promises, on small repositories made for each test.

mod fixture;

mod bundles;
mod checks;
mod claims;
mod directives;
mod protocol;
mod running;
mod staleness;
