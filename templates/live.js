// Keeps an open page up to date. The server sends the page's version whenever it changes; this
// script then loads the page again and replaces the parts that differ. All text was escaped by the
// server, and a parsed document runs no scripts. It also hides the rows that a filter excludes.
"use strict";
(() => {
  // shown has each part as the server sent it, before a filter hides rows.
  const shown = new Map([...document.querySelectorAll("[data-part]")].map((e) => [e.id, e.innerHTML]));

  const filter = (input) => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...document.querySelectorAll(`#${input.dataset.filter} :is(tbody tr, li)`)];
    for (const row of rows) {
      const text = [...row.childNodes].map((n) => n.textContent).join(" ").toLowerCase();
      row.hidden = !words.every((w) => text.includes(w));
    }
    const left = rows.filter((row) => !row.hidden).length;
    document.getElementById(input.getAttribute("aria-describedby")).textContent = words.length ? `${left} of ${rows.length} rows` : "";
  };
  const filters = [...document.querySelectorAll("input[data-filter]")];
  for (const input of filters) {
    input.closest("[hidden]").hidden = false;
    input.addEventListener("input", () => filter(input));
  }

  const status = document.getElementById("live");
  const events = document.body.dataset.events;
  if (!events || !status) return;
  const say = (text) => { if (status.textContent !== text) status.textContent = text; };

  // path names an element within a part, so that its counterpart is found after a change.
  const path = (part, element) => {
    const steps = [];
    for (let e = element; e && e !== part; e = e.parentElement) steps.unshift([...e.parentElement.children].indexOf(e));
    return steps;
  };
  const follow = (part, steps) => steps.reduce((e, i) => e && e.children[i], part);

  const replace = (here, next) => {
    const active = here.contains(document.activeElement) ? path(here, document.activeElement) : null;
    const scrolled = [...here.querySelectorAll(".scroll, pre")].map((e) => [path(here, e), e.scrollLeft, e.scrollTop]);
    const opened = [...here.querySelectorAll("details[open][id]")].map((e) => e.id);
    here.replaceChildren(...[...next.childNodes].map((n) => document.importNode(n, true)));
    for (const id of opened) { const e = document.getElementById(id); if (e) e.open = true; }
    for (const [steps, left, top] of scrolled) { const e = follow(here, steps); if (e) { e.scrollLeft = left; e.scrollTop = top; } }
    const focus = active && follow(here, active);
    if (focus) focus.focus({ preventScroll: true });
    here.classList.remove("changed");
    void here.offsetWidth; // restarts the animation
    here.classList.add("changed");
  };

  let busy = false, again = false;
  const update = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.pathname + location.search, { cache: "no-cache" });
      if (answer.ok) {
        const next = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of next.querySelectorAll("[data-part]")) {
          const here = document.getElementById(part.id);
          if (here && shown.get(part.id) !== part.innerHTML) {
            shown.set(part.id, part.innerHTML);
            replace(here, part);
          }
        }
        filters.forEach(filter);
        document.body.dataset.version = next.body.dataset.version;
      }
    } catch { /* the event source reports lost connections */ }
    busy = false;
    if (again) { again = false; update(); }
  };

  const source = new EventSource(events);
  source.addEventListener("open", () => say("Live: this page changes by itself."));
  source.addEventListener("error", () => say("No connection; trying again. What you see may be old."));
  source.addEventListener("change", (e) => { if (e.data !== document.body.dataset.version) update(); });
})();
