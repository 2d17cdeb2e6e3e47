//! The directives of a page: `{{#lab NAME ARGUMENTS}}`, found outside code and expanded to HTML.
