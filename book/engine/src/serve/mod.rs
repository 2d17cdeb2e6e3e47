//! `cargo book serve`: the book at once, chapters run in the background, pages that refresh.
//!
//! Three threads share one state ([`state`]): one answers requests, one rebuilds the book when a file changes ([`watch`]), one
//! runs chapters ([`runner`]). Pages wait for news at `/__live` and are told of every change; see `book/theme/live.js`. Who may
//! start a run is decided in [`guard`].

mod guard;
mod runner;
mod site;
mod state;
mod terminal;
mod watch;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tiny_http::{Header, Method, Request, Response};

use crate::html::escape;
use crate::root::Root;
use guard::Asker;
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
    http: Arc<tiny_http::Server>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Builds the book from the committed records, and starts to serve it.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn start(root: &Root, options: &Options) -> Result<Server> {
        let http = Arc::new(listen(options.port)?);
        let address = http.server_addr().to_ip().context("asking for the address that is served")?;
        let shared = Arc::new(Shared::new(guard::new_token()?, address.port()));
        let terminal = Arc::new(Terminal::new());
        watch::build(root, &shared, &terminal);
        if options.run {
            let due = runner::due(root);
            shared.change(|state| state.waiting = due);
        }

        let mut threads = Vec::new();
        let mut start = |work: Box<dyn FnOnce() + Send>| threads.push(std::thread::spawn(work));
        {
            let (root, shared, terminal) = (root.clone(), Arc::clone(&shared), Arc::clone(&terminal));
            start(Box::new(move || watch::watch(&root, &shared, &terminal)));
        }
        {
            let (root, shared, terminal) = (root.clone(), Arc::clone(&shared), Arc::clone(&terminal));
            start(Box::new(move || runner::work(&root, &shared, &terminal)));
        }
        {
            let (root, shared, http) = (root.clone(), Arc::clone(&shared), Arc::clone(&http));
            start(Box::new(move || answer_all(&root, &shared, &http)));
        }
        Ok(Server { address, shared, terminal, http, threads })
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
        self.http.unblock();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

fn listen(port: u16) -> Result<tiny_http::Server> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match tiny_http::Server::http(address) {
        Ok(server) => Ok(server),
        Err(error) => {
            let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            match kind {
                Some(std::io::ErrorKind::AddrInUse) => bail!(
                    "port {port} is taken, perhaps by another `cargo book serve`: stop that one, or choose another port by --port {}",
                    port.saturating_add(1)
                ),
                Some(std::io::ErrorKind::PermissionDenied) => {
                    bail!(
                        "port {port} needs rights that this user does not have: choose one above 1023 by --port"
                    )
                }
                _ => bail!("listening on {address}: {error}"),
            }
        }
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

fn answer_all(root: &Root, shared: &Arc<Shared>, http: &tiny_http::Server) {
    for request in http.incoming_requests() {
        if shared.state().stop {
            return;
        }
        let url = request.url().to_owned();
        let (path, query) = url.split_once('?').unwrap_or((&url, ""));
        let is_read = matches!(request.method(), Method::Get | Method::Head);
        if is_read && path == "/__live" && guard::may_read(&asker(&request), shared.port).is_ok() {
            let seen = query.strip_prefix("seen=").and_then(|seen| seen.parse().ok()).unwrap_or(0);
            let shared = Arc::clone(shared);
            // It waits; others must not wait behind it.
            std::thread::spawn(move || {
                let news = Answer::new(200, "application/json", shared.news(seen, PATIENCE));
                respond(request, news);
            });
            continue;
        }
        let answer = answer(root, shared, &request, path);
        respond(request, answer);
    }
}

/// What is sent back.
struct Answer {
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
    tag: Option<String>,
}

impl Answer {
    fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status, content_type, body: body.into(), tag: None }
    }

    /// A sentence that a page shows as it is.
    fn sentence(status: u16, sentence: impl Into<String>) -> Answer {
        Answer::new(status, "text/plain; charset=utf-8", sentence.into())
    }
}

fn answer(root: &Root, shared: &Shared, request: &Request, path: &str) -> Answer {
    let asker = asker(request);
    if let Err(why) = guard::may_read(&asker, shared.port) {
        return Answer::sentence(403, why);
    }
    let run = path.strip_prefix("/__run").map(|rest| rest.strip_prefix('/').unwrap_or(rest));
    match (request.method(), run) {
        (Method::Post | Method::Delete, Some(chapter)) => {
            match guard::may_run(&asker, shared.port, &shared.token) {
                Err(why) => Answer::sentence(403, why),
                Ok(()) if *request.method() == Method::Post => start_run(root, shared, chapter),
                Ok(()) => stop_run(shared),
            }
        }
        (Method::Get | Method::Head, None) => page(shared, path),
        (Method::Get | Method::Head, Some(_)) => {
            Answer::sentence(405, "runs are started by POST and stopped by DELETE")
        }
        _ => Answer::sentence(405, "pages are read by GET and HEAD"),
    }
}

fn asker(request: &Request) -> Asker<'_> {
    let header = |name: &'static str| {
        let mut found = request.headers().iter().filter(|header| header.field.equiv(name));
        match (found.next(), found.next()) {
            (Some(header), None) => Some(header.value.as_str()),
            // Two of them could be read differently by someone between us.
            _ => None,
        }
    };
    Asker { host: header("Host"), origin: header("Origin"), token: header(guard::TOKEN_HEADER) }
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
    Answer { status, content_type: file.content_type, body, tag: Some(file.tag.clone()) }
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

/// Everything comes from this server, and nobody else may show these pages in a frame of theirs.
const POLICY: &str = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

fn respond(request: Request, answer: Answer) {
    let mut response = Response::from_data(answer.body).with_status_code(answer.status);
    let tag = answer.tag.map(|tag| format!("\"{tag}\""));
    let headers = [
        ("Content-Type", answer.content_type),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Content-Security-Policy", POLICY),
    ];
    for (name, value) in headers.into_iter().chain(tag.as_deref().map(|tag| ("ETag", tag))) {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    // A reader who has gone away needs no answer.
    let _ = request.respond(response);
}
