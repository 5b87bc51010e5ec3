// Keeps an open page up to date. The server sends the page's version whenever it changes; this
// script then loads the page again and replaces the parts that differ. All text was escaped by the
// server, and a parsed document runs no scripts.
"use strict";
(() => {
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
          if (here && here.innerHTML !== part.innerHTML) replace(here, part);
        }
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
