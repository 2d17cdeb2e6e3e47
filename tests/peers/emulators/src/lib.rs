//! Only benches: see `benches/emulators.rs`.
