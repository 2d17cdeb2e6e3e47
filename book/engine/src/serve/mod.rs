//! `cargo book serve`: the book at once, chapters run in the background, pages that refresh.
//!
//! Three threads share one state ([`state`]): one answers requests, one rebuilds the book when a file changes ([`watch`]), one
//! runs chapters ([`runner`]). Pages wait for news at `/__live` and are told of every change; see `book/theme/live.js`. Who may
//! start a run is decided in [`guard`].

mod guard;
mod http;
mod runner;
mod site;
mod state;
mod terminal;
mod watch;

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::html::escape;
use crate::root::Root;
use guard::Asker;
use http::{Answer, Request};
use site::File;
use state::Shared;
use terminal::Terminal;

/// What the reader asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The port on 127.0.0.1; 0 takes one that is free.
    pub port: u16,
    /// Open a browser.
    pub open: bool,
    /// Run the default chapters in the background.
    pub run: bool,
}

/// Serves until Ctrl-C.
///
/// # Errors
/// When the port is taken.
pub fn serve(root: &Root, options: &Options) -> Result<()> {
    let server = Server::start(root, options)?;
    let address = format!("http://{}/", server.address());
    server.terminal.say(&format!("The book is at {address} (Ctrl-C stops it)"));
    if options.open {
        open(&address, &server.terminal);
    }
    let shared = Arc::clone(&server.shared);
    ctrlc::set_handler(move || shared.change(|state| state.stop = true)).context("catching Ctrl-C")?;
    server.wait();
    Ok(())
}

/// A running server. It ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    terminal: Arc<Terminal>,
    threads: Vec<JoinHandle<()>>,
    folder: PathBuf,
}

impl Server {
    /// Builds the book from the committed records, and starts to serve it.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn start(root: &Root, options: &Options) -> Result<Server> {
        let listener = http::listen(options.port)?;
        let address = listener.local_addr().context("asking for the address that is served")?;
        let shared = Arc::new(Shared::new(guard::new_token()?, address.port()));
        let terminal = Arc::new(Terminal::new());
        // Noted first: what changes during the build is built next.
        let stamp = watch::stamp(root, None);
        watch::build(root, &shared, &terminal);
        if options.run {
            let due = runner::due(root);
            shared.change(|state| state.waiting = due);
        }

        let mut threads = Vec::new();
        let mut start = |work: Box<dyn FnOnce() + Send>| threads.push(std::thread::spawn(work));
        {
            let (root, shared, terminal) = (root.clone(), Arc::clone(&shared), Arc::clone(&terminal));
            start(Box::new(move || watch::watch(&root, &shared, &terminal, stamp)));
        }
        {
            let (root, shared, terminal) = (root.clone(), Arc::clone(&shared), Arc::clone(&terminal));
            start(Box::new(move || runner::work(&root, &shared, &terminal)));
        }
        {
            let (root, shared, asked) = (root.clone(), Arc::clone(&shared), Arc::clone(&shared));
            start(Box::new(move || {
                http::answer_all(
                    &listener,
                    move || asked.state().stop,
                    move |request| answer(&root, &shared, request),
                );
            }));
        }
        let folder = watch::folder(root, address.port());
        Ok(Server { address, shared, terminal, threads, folder })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until somebody ends it.
    pub fn wait(self) {
        self.shared.wait_for(|_| None::<()>);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.change(|state| state.stop = true);
        // The thread that answers waits for a connection; this is one.
        let _ = TcpStream::connect(self.address);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
        // If it stays, the next server on this port writes over it.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Opens the reader's browser, or says that it could not.
fn open(address: &str, terminal: &Terminal) {
    let openers = ["xdg-open", "wslview", "open"];
    let opened = openers.iter().any(|opener| {
        Command::new(opener).arg(address).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
    });
    if !opened {
        terminal.say(
            "No program to open a browser with was found (xdg-open, wslview): open the address yourself.",
        );
    }
}

/// How long a page waits for news before it asks again.
const PATIENCE: Duration = Duration::from_secs(25);

fn answer(root: &Root, shared: &Shared, request: &Request) -> Answer {
    let asker = Asker {
        host: request.header("Host"),
        origin: request.header("Origin"),
        token: request.header(guard::TOKEN_HEADER),
    };
    if let Err(why) = guard::may_read(&asker, shared.port) {
        return Answer::sentence(403, why);
    }
    let run = request.path.strip_prefix("/__run").map(|rest| rest.strip_prefix('/').unwrap_or(rest));
    match (request.method.as_str(), run) {
        ("POST" | "DELETE", Some(chapter)) => match guard::may_run(&asker, shared.port, &shared.token) {
            Err(why) => Answer::sentence(403, why),
            Ok(()) if request.method == "POST" => start_run(root, shared, chapter),
            Ok(()) => stop_run(shared),
        },
        _ if !request.is_read() => Answer::sentence(405, "pages are read by GET and HEAD"),
        (_, Some(_)) => Answer::sentence(405, "runs are started by POST and stopped by DELETE"),
        (_, None) if request.path == "/__live" => {
            let seen = request.query.strip_prefix("seen=").and_then(|seen| seen.parse().ok()).unwrap_or(0);
            Answer::new(200, "application/json", shared.news(seen, PATIENCE))
        }
        (_, None) => page(shared, &request.path),
    }
}

fn start_run(root: &Root, shared: &Shared, name: &str) -> Answer {
    // The whole name, as pages have it; anything else is no chapter.
    let Some(chapter) = root.chapters.iter().find(|chapter| chapter.name == name) else {
        return Answer::sentence(404, "there is no such chapter");
    };
    shared.change(|state| match (&state.run, state.waiting.front()) {
        (None, None) => {
            state.waiting.push_back(chapter.name.clone());
            Answer::sentence(202, format!("{name} will run"))
        }
        (Some(run), _) => {
            Answer::sentence(409, format!("{} is running: wait for it or stop it first", run.chapter))
        }
        (None, Some(next)) => {
            Answer::sentence(409, format!("{next} is about to run: wait for it or stop it first"))
        }
    })
}

fn stop_run(shared: &Shared) -> Answer {
    shared.change(|state| {
        if state.run.is_none() && state.waiting.is_empty() {
            return Answer::sentence(404, "nothing is running");
        }
        state.cancel = true;
        state.waiting.clear();
        Answer::sentence(202, "stopping")
    })
}

fn page(shared: &Shared, path: &str) -> Answer {
    let (site, builds) = {
        let state = shared.state();
        (Arc::clone(&state.site), state.builds)
    };
    let (status, file) = match (site.file(path), site.not_found()) {
        (Some(file), _) => (200, file),
        (None, Some(file)) => (404, file),
        (None, None) if builds == 0 => {
            let problem = shared.state().problem.clone().unwrap_or_default();
            return Answer::sentence(503, problem);
        }
        (None, None) => return Answer::sentence(404, "there is no such page"),
    };
    let body = if file.is_page() { alive(file, &shared.token, builds) } else { file.bytes.clone() };
    Answer::new(status, file.content_type, body).tagged(&file.tag)
}

/// A page that knows that it is served here; see `live.js`.
fn alive(file: &File, token: &str, builds: u64) -> Vec<u8> {
    let page = String::from_utf8_lossy(&file.bytes);
    let meta = format!(
        "<meta name=\"lab-live\" data-token=\"{}\" data-page=\"{}\" data-pages=\"{builds}\">\n</head>",
        escape(token),
        escape(&file.tag)
    );
    page.replacen("</head>", &meta, 1).into_bytes()
}
