//! What is in this machine, and will my program load on it?
