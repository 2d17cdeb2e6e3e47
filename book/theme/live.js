// While `cargo book serve` shows this page: its progress at the foot, a new page when something changed, and Run buttons.
// Without that server, as on a web host, this script does nothing.
"use strict";
(() => {
    const meta = document.querySelector('meta[name="lab-live"]');
    const OPEN = "lab-open";

    // The reader's own run of a moment ago says so, wherever the page is shown.
    for (const time of document.querySelectorAll(".own time[datetime]")) {
        const minutes = Math.floor((Date.now() - Date.parse(time.dateTime)) / 60000);
        if (minutes >= 0 && minutes < 60) time.textContent = minutes < 1 ? "just now" : `${minutes} min ago`;
    }
    if (!meta) return;
    const { token, page, pages } = meta.dataset;

    // After a refresh, what was unfolded is unfolded.
    const folds = () => Array.from(document.querySelectorAll("main details"));
    try {
        const kept = JSON.parse(sessionStorage.getItem(OPEN) ?? "null");
        sessionStorage.removeItem(OPEN);
        if (kept?.path === location.pathname) {
            folds().forEach((fold, place) => { if (kept.open.includes(place)) fold.open = true; });
        }
    } catch { /* Folded, then. */ }

    const refresh = () => {
        const open = folds().flatMap((fold, place) => (fold.open ? [place] : []));
        try { sessionStorage.setItem(OPEN, JSON.stringify({ path: location.pathname, open })); } catch { /* Folded, then. */ }
        location.reload();
    };

    const bar = document.createElement("div");
    bar.className = "lab-live";
    bar.hidden = true;
    bar.setAttribute("role", "status");
    bar.setAttribute("aria-live", "polite");
    document.body.append(bar);
    const element = (name, text, className = "") => {
        const made = document.createElement(name);
        made.textContent = text;
        if (className) made.className = className;
        return made;
    };

    const ask = (method, path) => fetch(path, { method, headers: { "X-Lab-Token": token } });
    const buttons = Array.from(document.querySelectorAll("button[data-run]"));
    let refused = "";
    for (const button of buttons) {
        button.hidden = false;
        button.addEventListener("click", async () => {
            button.disabled = true;
            const answer = await ask("POST", `/__run/${encodeURIComponent(button.dataset.run)}`);
            refused = answer.ok ? "" : await answer.text();
            if (refused) draw(last);
        });
    }

    let last = {};
    /** Messages that the reader has closed. */
    const read = new Set();
    const draw = (state) => {
        last = state;
        bar.replaceChildren();
        const { run, waiting = [], failed, problem } = state;
        // The same failure of a new run is news.
        if (run) read.clear();
        if (run) {
            const where = run.phase === "building" ? `building ${run.cell}` : run.total ? `${run.cell} ${run.done}/${run.total}` : "starting";
            bar.append(element("span", `${run.chapter}: ${where}`));
            const progress = document.createElement("progress");
            progress.setAttribute("aria-label", `progress of ${run.chapter}`);
            if (run.total) { progress.max = run.total; progress.value = run.done; }
            bar.append(progress);
            if (waiting.length) bar.append(element("span", `then ${waiting.join(", ")}`));
            const cancel = element("button", "Stop");
            cancel.type = "button";
            cancel.addEventListener("click", () => ask("DELETE", "/__run"));
            bar.append(cancel);
        }
        const messages = [problem, failed, refused].filter((text) => text && !read.has(text));
        for (const text of messages) bar.append(element("pre", text, "failed"));
        if (messages.length && !run) {
            const close = element("button", "Close");
            close.type = "button";
            close.addEventListener("click", () => {
                messages.forEach((text) => read.add(text));
                draw(last);
            });
            bar.prepend(close);
        }
        bar.hidden = bar.childElementCount === 0;
        document.documentElement.classList.toggle("lab-live-shown", !bar.hidden);
        for (const button of buttons) button.disabled = Boolean(run);
    };

    /** Waits for news, without end. A server that is gone is asked again, less and less often. */
    const listen = async () => {
        let seen = 0;
        let known = pages;
        for (let pause = 500; ; ) {
            try {
                const answer = await fetch(`/__live?seen=${seen}`, { cache: "no-store" });
                if (!answer.ok) throw new Error(answer.statusText);
                const state = await answer.json();
                pause = 500;
                seen = state.version;
                draw(state);
                if (String(state.pages) !== known) {
                    known = String(state.pages);
                    const now = await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
                    if (now.ok && now.headers.get("ETag") !== `"${page}"`) return refresh();
                }
            } catch {
                await new Promise((resume) => setTimeout(resume, pause));
                pause = Math.min(pause * 2, 8000);
                // A server that was started again has another token and counts anew.
                seen = 0;
                known = "";
            }
        }
    };
    listen();
})();
