//! A headless Chromium, driven over a pipe by the DevTools protocol: no driver program, no library, no port.

use std::io::{BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The browser, ended when dropped.
pub(crate) struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    _profile: tempfile::TempDir,
    next: u64,
    session: String,
    /// Addresses that pages asked for.
    pub(crate) requests: Vec<String>,
    /// What pages complained of: exceptions, console errors, refused or missing resources.
    pub(crate) complaints: Vec<String>,
    loaded: bool,
}

impl Browser {
    /// Starts it, with one page open. A machine without Chromium fails the test.
    pub(crate) fn start() -> Browser {
        let profile = tempfile::tempdir().expect("a folder");
        let program = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]
            .into_iter()
            .find(|name| {
                Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
            })
            .expect("no Chromium found: install it (Debian and Ubuntu: apt-get install chromium)");
        // Chromium reads descriptor 3 and writes descriptor 4; the shell makes them of our pipes.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", program]).args([
            "--headless",
            "--remote-debugging-pipe",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            // The suite may run in a container as root, where the sandbox cannot.
            "--no-sandbox",
        ]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Chromium");
        let to = process.stdin.take().expect("a pipe");
        let from = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut browser = Browser {
            process,
            to,
            from,
            _profile: profile,
            next: 0,
            session: String::new(),
            requests: Vec::new(),
            complaints: Vec::new(),
            loaded: false,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let session = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// The window's size in CSS pixels, and whether the reader prefers dark pages.
    pub(crate) fn look(&mut self, width: u32, height: u32, dark: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Opens an address and waits until it has loaded.
    pub(crate) fn open(&mut self, address: &str) {
        self.loaded = false;
        self.call("Page.navigate", json!({ "url": address }));
        let start = Instant::now();
        while !self.loaded {
            assert!(start.elapsed() < Duration::from_secs(60), "{address} does not load");
            self.read();
        }
    }

    /// The value of a script in the page; a promise is waited for.
    pub(crate) fn evaluate(&mut self, script: &str) -> Value {
        let arguments = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", arguments);
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "code": key }));
        }
    }

    /// Moves the pointer.
    pub(crate) fn point(&mut self, x: f64, y: f64) {
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("Chromium listens");
        loop {
            let answer = self.read();
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// One message; events are noted.
    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        let mut byte = [0];
        loop {
            self.from.read_exact(&mut byte).expect("Chromium speaks: it may have ended");
            if byte[0] == 0 {
                break;
            }
            bytes.push(byte[0]);
        }
        let message: Value = serde_json::from_slice(&bytes).expect("JSON");
        let parameters = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Page.loadEventFired" => self.loaded = true,
            "Network.requestWillBeSent" => {
                self.requests.push(parameters["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            "Runtime.exceptionThrown" => self.complaints.push(parameters["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled"
                if matches!(parameters["type"].as_str(), Some("error" | "warning")) =>
            {
                self.complaints.push(parameters["args"].to_string());
            }
            "Log.entryAdded"
                if matches!(parameters["entry"]["level"].as_str(), Some("error" | "warning")) =>
            {
                self.complaints.push(parameters["entry"].to_string());
            }
            _ => {}
        }
        message
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
