//! `cargo book serve`: who may ask it for what, and what it tells.

use book::root::Root;
use book::serve::{Options, Server};
use record::Status;

use crate::fixture::{Fixture, ask, news, token};

#[test]
fn pages_are_served_fresh_and_nothing_else() {
    let fixture = Fixture::new("pages");
    let server = fixture.serve(false);
    let address = server.address();

    let page = ask(address, "GET", "/", &[]);
    assert_eq!(page.status, 200);
    assert!(page.body.contains("Words."), "{}", page.body);
    assert_eq!(page.header("Content-Type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("Cache-Control"), Some("no-store"));
    let policy = page.header("Content-Security-Policy").expect("a policy");
    assert!(policy.starts_with("default-src 'self';"), "{policy}");

    let head = ask(address, "HEAD", "/", &[]);
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(head.header("ETag"), page.header("ETag"));

    // The introduction, which has no records, asks for no run.
    assert_eq!(ask(address, "GET", "/nothing.html", &[]).status, 404);
    assert_eq!(ask(address, "PUT", "/index.html", &[]).status, 405);
    for path in [
        "/../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "/..%2fCargo.toml",
        "//etc/passwd",
        "/book/../../../etc/passwd",
    ] {
        let reply = ask(address, "GET", path, &[]);
        assert_eq!(reply.status, 404, "{path}");
        assert!(!reply.body.contains("[workspace]") && !reply.body.contains("root:"), "{path}");
    }
}

#[test]
fn only_its_own_pages_may_run_chapters() {
    let fixture = Fixture::new("guard");
    let server = fixture.serve(false);
    let address = server.address();
    let token = token(address);
    let own = format!("http://{address}");
    let run = format!("/__run/{}", fixture.chapter);
    let foreign = [("Origin", "http://evil.test"), ("X-Lab-Token", token.as_str())];
    let wrong = [("Origin", own.as_str()), ("X-Lab-Token", "00000000000000000000000000000000")];
    let right = [("Origin", own.as_str()), ("X-Lab-Token", token.as_str())];

    // A name that somebody lets resolve to 127.0.0.1 gets neither a page, with its token, nor news.
    for path in ["/", "/index.html", "/__live", &run] {
        assert_eq!(ask(address, "GET", path, &[("Host", "evil.test")]).status, 403, "{path}");
        assert_eq!(ask(address, "GET", path, &[("Host", "evil.test:3000")]).status, 403, "{path}");
    }
    assert_eq!(ask(address, "POST", &run, &[("Host", "evil.test"), right[0], right[1]]).status, 403);
    assert_eq!(ask(address, "POST", &run, &foreign).status, 403);
    assert_eq!(ask(address, "POST", &run, &wrong).status, 403);
    assert_eq!(ask(address, "POST", &run, &right[..1]).status, 403);
    assert_eq!(ask(address, "POST", &run, &right[1..]).status, 403);
    assert_eq!(ask(address, "DELETE", "/__run", &foreign).status, 403);
    assert_eq!(ask(address, "GET", &run, &right).status, 405);

    for name in ["ch99-nothing", "ch90", "", "..", "../chapters", "%2e%2e", "ch90-guard;id", "tests"] {
        assert_eq!(ask(address, "POST", &format!("/__run/{name}"), &right).status, 404, "{name}");
    }
    assert_eq!(ask(address, "DELETE", "/__run", &right).status, 404, "nothing is running");
    assert!(
        news(address, "no run", |state| state["run"].is_null())["waiting"]
            .as_array()
            .is_some_and(Vec::is_empty)
    );
    assert_eq!(fixture.own_record(), None);
}

#[test]
fn a_run_is_told_while_it_lasts_and_shown_when_it_ends() {
    let fixture = Fixture::new("run");
    let server = fixture.serve(false);
    let address = server.address();
    let (token, own) = (token(address), format!("http://{address}"));
    let headers = [("Origin", own.as_str()), ("X-Lab-Token", token.as_str())];
    let run = format!("/__run/{}", fixture.chapter);
    let page = format!("/{}.html", fixture.chapter);
    let before = ask(address, "GET", &page, &[]);
    assert!(before.body.contains("not run"), "{}", before.body);

    assert_eq!(ask(address, "POST", &run, &headers).status, 202);
    let second = ask(address, "POST", &run, &headers);
    assert_eq!(second.status, 409, "{}", second.body);

    let state = news(address, "a cell at work", |state| state["run"]["total"] == 2);
    assert_eq!(state["run"]["chapter"], fixture.chapter.as_str());
    assert_eq!((&state["run"]["cell"], &state["run"]["done"]), (&"copies".into(), &1.into()));
    // Progress is told without a new page: the reader is reading.
    assert_eq!(ask(address, "HEAD", &page, &[]).header("ETag"), before.header("ETag"));

    fixture.step("go");
    let pages = state["pages"].as_u64().expect("a number");
    news(address, "new pages", |state| state["run"].is_null() && state["pages"].as_u64() > Some(pages));
    let after = ask(address, "GET", &page, &[]);
    assert_ne!(after.header("ETag"), before.header("ETag"));
    assert!(after.body.contains("yours: Emulated H200"), "{}", after.body);
    assert_eq!(fixture.own_record().map(|record| record.status), Some(Status::Complete));
    drop(server);

    // A chapter with a fresh own record is not run again, and a heavy one never by itself.
    let server = fixture.serve(true);
    let state = news(server.address(), "anything", |_| true);
    assert!(state["run"].is_null() && state["waiting"].as_array().is_some_and(Vec::is_empty), "{state}");
}

#[test]
fn a_run_can_be_stopped_and_what_it_had_stands() {
    let fixture = Fixture::new("stop");
    let server = fixture.serve(true);
    let address = server.address();
    let (token, own) = (token(address), format!("http://{address}"));
    let headers = [("Origin", own.as_str()), ("X-Lab-Token", token.as_str())];

    let state = news(address, "the chapter runs by itself", |state| state["run"]["total"] == 2);
    assert!(
        state["waiting"].as_array().is_some_and(Vec::is_empty),
        "the heavy one waits to be asked: {state}"
    );
    assert_eq!(ask(address, "DELETE", "/__run", &headers).status, 202);
    let state = news(address, "no run", |state| state["run"].is_null());
    assert_eq!(state["failed"], format!("{} was stopped.", fixture.chapter));
    let status = fixture.own_record().map(|record| record.status);
    assert_eq!(status, Some(Status::Interrupted { cell: "copies".into() }));
}

#[test]
fn a_server_that_ends_stops_its_run() {
    let fixture = Fixture::new("end");
    let server = fixture.serve(true);
    news(server.address(), "a run", |state| state["run"]["total"] == 2);
    drop(server);
    let status = fixture.own_record().map(|record| record.status);
    assert_eq!(status, Some(Status::Interrupted { cell: "copies".into() }));
}

#[test]
fn a_run_that_fails_says_why() {
    let fixture = Fixture::new("fail");
    fixture.step("fail");
    let server = fixture.serve(true);
    let state = news(server.address(), "a failure", |state| !state["failed"].is_null());
    assert_eq!(state["failed"], format!("{} failed.\nerror: the copies went wrong", fixture.chapter));
}

#[test]
fn a_chapter_that_does_not_compile_says_why() {
    let fixture = Fixture::new("compile");
    fixture.write(&format!("chapters/{}/src/main.rs", fixture.chapter), "fn main() { 1 + }");
    let server = fixture.serve(true);
    let state = news(server.address(), "a failure", |state| !state["failed"].is_null());
    let message = state["failed"].as_str().expect("a message");
    assert!(message.contains("expected expression"), "{message}");
    assert_eq!(fixture.own_record(), None);
}

#[test]
fn pages_refresh_when_their_sources_change() {
    let fixture = Fixture::new("refresh");
    let server = fixture.serve(false);
    let address = server.address();
    fixture.write("book/src/introduction.md", "# Introduction\n\nOther words.\n");
    news(address, "new pages", |state| state["pages"].as_u64() >= Some(2));
    assert!(ask(address, "GET", "/", &[]).body.contains("Other words."));

    // A page that is wrong says so in its place; the others are served.
    fixture.write(&format!("book/src/{}.md", fixture.chapter), "# A chapter\n\n{{#lab out ch90.nothing}}\n");
    news(address, "new pages", |state| state["pages"].as_u64() >= Some(3));
    let page = ask(address, "GET", &format!("/{}.html", fixture.chapter), &[]).body;
    assert!(page.contains("lab-problem"), "{page}");

    // A book that cannot be built at all leaves the last pages in place.
    fixture.write("book/src/SUMMARY.md", "- [Nothing](nothing.md)\nx\n");
    let state = news(address, "a problem", |state| !state["problem"].is_null());
    assert!(state["problem"].as_str().is_some_and(|problem| problem.contains("cannot be built")), "{state}");
    assert!(ask(address, "GET", "/", &[]).body.contains("Other words."));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let fixture = Fixture::new("port");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let root = Root::open(fixture.path("")).expect("a repository");
    let error = match Server::start(&root, &Options { port, open: false, run: false }) {
        Ok(_) => panic!("the port was free"),
        Err(error) => error.to_string(),
    };
    assert!(error.starts_with(&format!("port {port} is taken")) && error.contains("--port"), "{error}");
}
