//! Two kernel steps, as a diff.
