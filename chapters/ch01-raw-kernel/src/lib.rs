//! What are the four steps of every CUDA program?
