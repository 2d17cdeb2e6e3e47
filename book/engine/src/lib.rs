//! Draws the book from its sources and records, serves it, and runs its chapters.
//!
//! A page is Markdown with directives (`{{#lab …}}`); [`directive`] reads them, [`mod@reference`], [`claim`] and [`code`] resolve
//! what they name, [`html`] and [`plot`] draw it. [`preprocess`] plugs that into mdBook, [`static_book`] runs mdBook on it,
//! [`check`] judges it, [`serve`] shows it. [`run`] runs chapters, [`bundle`] and [`import`] carry them to a GPU machine and back.
//! Building a page runs no chapter code.

pub mod root;

pub mod records;
pub mod reference;

pub mod claim;
pub mod code;
pub mod diff;
pub mod directive;
pub mod html;
pub mod plot;
pub mod tabs;

pub mod preprocess;
pub mod static_book;

pub mod check;
pub mod serve;

pub mod bundle;
pub mod exercise;
pub mod import;
pub mod run;
