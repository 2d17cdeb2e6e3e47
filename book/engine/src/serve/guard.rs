//! Who may ask this server for what.
//!
//! The server can start programs on the reader's machine, and any page that is open in the reader's browser can send requests
//! to 127.0.0.1. So it listens on the loopback address alone; the `Host` must be its own, which keeps out names that somebody
//! lets resolve to 127.0.0.1; and to start or stop a run, the `Origin` must be its own as well, and the request must carry a
//! token that is drawn at each start and stands only in the pages that are served here. A page says which chapter, by name:
//! nothing in a request is run.

use std::io::Read as _;

use anyhow::{Context, Result};

/// The header that carries the token. A header of one's own makes a browser ask before another site may send it.
pub(super) const TOKEN_HEADER: &str = "X-Lab-Token";

/// What a request says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asker<'a> {
    pub(super) host: Option<&'a str>,
    pub(super) origin: Option<&'a str>,
    pub(super) token: Option<&'a str>,
}

/// Whether a request may read pages; otherwise why not.
pub(super) fn may_read(asker: &Asker<'_>, port: u16) -> Result<(), &'static str> {
    match asker.host {
        Some(host) if names(port).iter().any(|name| name == host) => Ok(()),
        _ => Err("this book answers to 127.0.0.1 and localhost only, with its port"),
    }
}

/// Whether a request may start or stop a run; otherwise why not.
pub(super) fn may_run(asker: &Asker<'_>, port: u16, token: &str) -> Result<(), &'static str> {
    may_read(asker, port)?;
    let own =
        |origin: &str| names(port).iter().any(|name| origin.strip_prefix("http://") == Some(name.as_str()));
    match (asker.origin, asker.token) {
        (Some(origin), _) if !own(origin) => Err("only the pages of this book may run its chapters"),
        (None, _) => {
            Err("only the pages of this book may run its chapters, and they say so by an Origin header")
        }
        (Some(_), Some(given)) if given == token => Ok(()),
        (Some(_), _) => Err("this page was served by an earlier start of the server: load it again"),
    }
}

/// A token that nobody can guess.
pub(super) fn new_token() -> Result<String> {
    let mut bytes = [0; 16];
    let mut random = std::fs::File::open("/dev/urandom").context("opening /dev/urandom")?;
    random.read_exact(&mut bytes).context("reading /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn names(port: u16) -> [String; 2] {
    [format!("127.0.0.1:{port}"), format!("localhost:{port}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Asker<'_> =
        Asker { host: Some("localhost:3000"), origin: Some("http://localhost:3000"), token: Some("secret") };

    #[track_caller]
    fn check(asker: Asker<'_>, read: bool, run: bool) {
        assert_eq!(may_read(&asker, 3000).is_ok(), read, "{asker:?}");
        assert_eq!(may_run(&asker, 3000, "secret").is_ok(), run, "{asker:?}");
    }

    #[test]
    fn own_pages_may_read_and_run() {
        check(OWN, true, true);
        check(
            Asker { host: Some("127.0.0.1:3000"), origin: Some("http://127.0.0.1:3000"), ..OWN },
            true,
            true,
        );
    }

    #[test]
    fn names_that_only_resolve_to_this_machine_may_not_even_read() {
        for host in [
            None,
            Some("evil.test:3000"),
            Some("localhost"),
            Some("localhost:3001"),
            Some("localhost:3000.evil.test"),
        ] {
            check(Asker { host, ..OWN }, false, false);
        }
    }

    #[test]
    fn other_sites_may_not_run() {
        for origin in [
            None,
            Some("null"),
            Some("http://evil.test"),
            Some("https://localhost:3000"),
            Some("http://localhost:3001"),
        ] {
            check(Asker { origin, ..OWN }, true, false);
        }
    }

    #[test]
    fn without_the_token_nobody_may_run() {
        for token in [None, Some(""), Some("secre"), Some("Secret")] {
            check(Asker { token, ..OWN }, true, false);
        }
        assert_ne!(new_token().expect("a token"), new_token().expect("another"));
    }
}
