//! Statements that the records must bear out.
