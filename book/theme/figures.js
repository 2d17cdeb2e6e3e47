// Figures work without this script: their numbers stand in a table below. With it, the row of that table under the pointer
// (or chosen by the arrow keys) is read out beside it.
"use strict";
(() => {
    const SVG = "http://www.w3.org/2000/svg";

    for (const svg of document.querySelectorAll(".lab-plot svg[data-stops]")) {
        const figure = svg.closest(".lab-plot");
        const rows = Array.from(figure.querySelectorAll(".lab-data tbody tr:not(.limit-row)"));
        const heads = Array.from(figure.querySelectorAll(".lab-data thead th"));
        const stops = svg.dataset.stops.split(" ").map((stop) => (stop === "" ? NaN : Number(stop)));
        if (rows.length !== stops.length) continue;
        let readout = null;
        let guide = null;
        let at = -1;

        const show = (row) => {
            at = row;
            if (!readout) {
                readout = document.createElement("div");
                readout.className = "lab-readout";
                readout.setAttribute("role", "status");
                figure.append(readout);
                guide = document.createElementNS(SVG, "path");
                guide.setAttribute("class", "guide");
                svg.append(guide);
            }
            const x = stops[row];
            guide.setAttribute("d", `M${x} ${svg.dataset.top}V${svg.dataset.bottom}`);
            readout.replaceChildren(table(rows[row], heads));
            // Beside the guide, on the side with more room, inside the figure.
            const frame = figure.getBoundingClientRect();
            const picture = svg.getBoundingClientRect();
            const place = picture.left - frame.left + (x / svg.viewBox.baseVal.width) * picture.width;
            const width = readout.offsetWidth;
            const left = place + 14 + width <= frame.width ? place + 14 : Math.max(0, place - 14 - width);
            readout.style.left = `${left}px`;
            readout.style.top = `${picture.top - frame.top + 8}px`;
        };
        const hide = () => {
            readout?.remove();
            guide?.remove();
            readout = guide = null;
            at = -1;
        };
        const nearest = (x) => {
            let best = -1;
            for (let row = 0; row < stops.length; row++) {
                if (!(Math.abs(stops[row] - x) >= Math.abs(stops[best] - x))) best = Number.isNaN(stops[row]) ? best : row;
            }
            return best;
        };

        svg.addEventListener("pointermove", (event) => {
            const picture = svg.getBoundingClientRect();
            const row = nearest(((event.clientX - picture.left) / picture.width) * svg.viewBox.baseVal.width);
            if (row >= 0 && row !== at) show(row);
        });
        svg.addEventListener("pointerleave", hide);
        svg.addEventListener("blur", hide);
        svg.addEventListener("keydown", (event) => {
            const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
            if (event.key === "Escape") hide();
            if (!step) return;
            // mdBook turns the page with these keys.
            event.preventDefault();
            event.stopPropagation();
            let row = at < 0 ? (step > 0 ? 0 : stops.length - 1) : at + step;
            while (row >= 0 && row < stops.length && Number.isNaN(stops[row])) row += step;
            if (row >= 0 && row < stops.length) show(row);
        });
    }

    /** The row as a small table: one line a curve, with the curve's colour. */
    function table(row, heads) {
        const cells = Array.from(row.children);
        const out = document.createElement("table");
        const head = out.createTHead().insertRow();
        const title = document.createElement("th");
        title.colSpan = 2;
        title.textContent = `${heads[0].textContent.trim()}: ${cells[0].textContent}`;
        head.append(title);
        const body = out.createTBody();
        for (let column = 1; column < cells.length; column++) {
            if (cells[column].textContent === "") continue;
            const line = body.insertRow();
            const name = document.createElement("th");
            name.className = heads[column].className;
            name.textContent = heads[column].dataset.name ?? heads[column].textContent;
            line.append(name);
            const value = line.insertCell();
            const unit = heads[column].querySelector(".unit");
            value.textContent = cells[column].firstChild.textContent.trim() + (unit ? `\u202f${unit.textContent}` : "");
        }
        return out;
    }
})();
