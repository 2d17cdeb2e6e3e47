//! `cargo book import`: brings a bundle's results back, after checking them against its manifest.
