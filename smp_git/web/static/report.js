"use strict";
// Search and keys; the report is read without them.
(() => {
  const form = document.querySelector(".search"), input = document.getElementById("q");
  const rows = [...document.querySelectorAll("article[data-row]")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const shown = document.getElementById("shown");
  form.hidden = false;
  form.addEventListener("submit", (event) => { event.preventDefault(); step(1); });

  function filter() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, number) => {
      row.hidden = !words.every((word) => texts[number].includes(word));
      if (!row.hidden) count += 1;
    });
    document.querySelectorAll(".day").forEach((day) => {
      day.hidden = !day.querySelector("article[data-row]:not([hidden])");
    });
    shown.textContent = words.length ? `${count} of ${rows.length} memories` : "";
  }
  let waiting = 0;
  input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 80); });

  let here = null;
  function step(by) {
    const seen = rows.filter((row) => !row.hidden);
    if (!seen.length) return;
    const next = seen[Math.min(Math.max(seen.indexOf(here) + by, 0), seen.length - 1)];
    if (here) here.classList.remove("here");
    here = next;
    here.classList.add("here");
    here.scrollIntoView({ block: "center" });
    here.querySelector("summary").focus({ preventScroll: true });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === input) {
      if (event.key === "Escape") { input.value = ""; filter(); input.blur(); }
      return;
    }
    if (event.key === "/") { event.preventDefault(); input.focus(); }
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
  });

  function open() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || !target.matches("article[data-row]")) return;
    target.hidden = false;
    target.querySelector("details").open = true;
    target.scrollIntoView();
  }
  window.addEventListener("hashchange", open);
  open();
})();
