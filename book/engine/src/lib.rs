//! Draws the book.
