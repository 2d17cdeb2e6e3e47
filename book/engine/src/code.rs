//! Named anchors of real, compiled source.
