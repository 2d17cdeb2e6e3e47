// Tabs work without this script. With it, a choice of language holds for every page.
"use strict";
(() => {
    const KEY = "lab-language";
    const choices = Array.from(document.querySelectorAll(".lab-tab-choice"));
    const label = (choice) => choice.nextElementSibling.textContent;
    const stored = () => {
        try { return localStorage.getItem(KEY); } catch { return null; }
    };
    const choose = (language) => {
        for (const choice of choices) {
            if (label(choice) === language) choice.checked = true;
        }
    };
    choose(stored());
    for (const choice of choices) {
        choice.addEventListener("change", () => {
            // Other groups may change height above: what was pressed stays where it was.
            const before = choice.getBoundingClientRect().top;
            choose(label(choice));
            window.scrollBy(0, choice.getBoundingClientRect().top - before);
            try { localStorage.setItem(KEY, label(choice)); } catch { /* Then it holds for this page. */ }
        });
        // mdBook turns the page with the arrow keys; here they choose a tab.
        choice.addEventListener("keydown", (event) => event.stopPropagation());
    }
})();
