"use strict";
// Search as you type, keys, and word of what others write. Each page works without it.
(() => {
  const main = document.getElementById("main");
  const input = document.getElementById("q");

  // Search

  let asked = null, waiting = 0;

  function results() {
    const known = document.getElementById("results");
    if (known) return known;
    const made = document.createElement("div");
    made.id = "results";
    made.setAttribute("aria-live", "polite");
    main.before(made);
    made.className = "over";
    return made;
  }

  function query() {
    const wanted = new URLSearchParams({ q: input.value });
    document.querySelectorAll("[data-narrow]").forEach((each) => {
      if (each.value) wanted.set(each.name, each.value);
    });
    const at = document.querySelector(".search [name=at]");
    if (at) wanted.set("at", at.value);
    return wanted;
  }

  async function search() {
    const place = results(), isOver = place.classList.contains("over");
    if (isOver && !input.value.trim()) {
      place.remove();
      main.hidden = false;
      return;
    }
    if (asked) asked.abort();
    asked = new AbortController();
    const wanted = query();
    try {
      const answer = await fetch(`${input.dataset.live}?${wanted}&part=1`, { signal: asked.signal });
      const said = await answer.text();
      if ((answer.headers.get("content-type") || "").startsWith("text/html")) place.innerHTML = said;
      else place.textContent = said;
      if (isOver) main.hidden = true;
      else history.replaceState(null, "", `?${wanted}`);
      here = null;
    } catch (error) {
      if (error.name !== "AbortError") place.textContent = "The page is no longer served: start smp web again.";
    }
  }

  if (input) {
    input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 60); });
    document.querySelectorAll("[data-narrow]").forEach((each) => each.addEventListener("change", search));
  }

  // Keys

  let here = null;

  function rows() {
    return [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent !== null);
  }

  function step(by) {
    const seen = rows();
    if (!seen.length) return;
    const next = seen[Math.min(Math.max(seen.indexOf(here) + by, 0), seen.length - 1)];
    if (here) here.classList.remove("here");
    here = next;
    here.classList.add("here");
    here.scrollIntoView({ block: "nearest" });
    const link = here.querySelector("a, button, summary");
    if (link) link.focus({ preventScroll: true });
  }

  const help = [["/", "search"], ["j  k", "next and previous"], ["Enter", "open"], ["1 … 9", "the pages of the session"], ["e", "edit the memory"], ["?", "this help"], ["Esc", "close, or clear the search"]];

  function showHelp() {
    let dialog = document.querySelector("dialog");
    if (!dialog) {
      dialog = document.createElement("dialog");
      const title = dialog.appendChild(document.createElement("h2"));
      title.textContent = "Keys";
      dialog.setAttribute("aria-label", "Keys");
      const list = dialog.appendChild(document.createElement("dl"));
      for (const [key, text] of help) {
        list.appendChild(document.createElement("dt")).appendChild(document.createElement("kbd")).textContent = key;
        list.appendChild(document.createElement("dd")).textContent = text;
      }
      const close = dialog.appendChild(document.createElement("button"));
      close.textContent = "Close";
      close.addEventListener("click", () => dialog.close());
      document.body.appendChild(dialog);
    }
    dialog.showModal();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") document.querySelectorAll("details.menu[open]").forEach((each) => { each.open = false; });
    if (event.target === input) {
      if (event.key === "Escape") { input.value = ""; search(); input.blur(); }
      if (event.key === "ArrowDown") { event.preventDefault(); step(1); }
      return;
    }
    if (event.target.closest("input, textarea, select")) return;
    const pages = document.querySelectorAll(".side a");
    if (event.key === "/" && input) { event.preventDefault(); input.focus(); input.select(); }
    else if (event.key === "j" || event.key === "ArrowDown" && here) { event.preventDefault(); step(1); }
    else if (event.key === "k" || event.key === "ArrowUp" && here) { event.preventDefault(); step(-1); }
    else if (event.key === "?") showHelp();
    else if (event.key === "e") document.querySelector("[data-edit]")?.click();
    else if (/^[1-9]$/.test(event.key)) pages[Number(event.key) - 1]?.click();
  });

  document.addEventListener("click", (event) => {
    document.querySelectorAll("details.menu[open]").forEach((each) => {
      if (!each.contains(event.target)) each.open = false;
    });
  });

  // What others write

  const { head, news } = document.body.dataset;

  async function look() {
    if (document.hidden || document.querySelector(".news")) return;
    try {
      const answer = await fetch(`${news}?since=${head}`);
      const said = await answer.json();
      if (!said.moved) return;
      const line = document.createElement("p");
      line.className = "notice news";
      line.setAttribute("role", "status");
      line.append(`${said.agent} wrote: ${said.subject}. `);
      const again = line.appendChild(document.createElement("a"));
      const here = new URL(location.href);
      here.searchParams.delete("done");
      again.href = here.href;
      again.textContent = "Show it";
      document.querySelector(".frame").before(line);
    } catch { /* The server was stopped; the next click says so. */ }
  }
  if (news) setInterval(look, 4000);

  // What was typed is not lost by a slip

  const editor = document.querySelector("form.editor[method=post]");
  if (editor) {
    let changed = false;
    editor.addEventListener("input", () => { changed = true; });
    editor.addEventListener("submit", () => { changed = false; });
    window.addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });
  }
})();
