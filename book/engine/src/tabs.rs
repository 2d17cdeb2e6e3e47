//! The same step in several languages, side by side.
