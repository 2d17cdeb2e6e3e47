//! The mdBook preprocessor `lab`.
