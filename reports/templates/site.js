"use strict";
const form = document.getElementById("filter");
const rows = Array.from(document.querySelectorAll("#runs tbody tr"));
const names = ["candidate", "scenario", "word", "from", "to"];
const value = (name) => form.elements[name].value;
function show() {
  let shown = 0;
  for (const row of rows) {
    const day = row.dataset.day;
    const fits = names.slice(0, 3).every((name) => !value(name) || row.dataset[name] === value(name))
      && (!value("from") || day >= value("from")) && (!value("to") || day <= value("to"));
    row.hidden = !fits;
    shown += fits ? 1 : 0;
  }
  document.getElementById("shown").textContent = shown + " of " + rows.length + (rows.length === 1 ? " run" : " runs");
}
// The choice stands in the address, so that it can be passed on.
function keep() {
  const chosen = new URLSearchParams(names.filter(value).map((name) => [name, value(name)]));
  history.replaceState(null, "", "#" + chosen);
  show();
}
if (form) {
  for (const [name, chosen] of new URLSearchParams(location.hash.slice(1))) {
    if (names.includes(name)) form.elements[name].value = chosen;
  }
  form.hidden = false;
  form.addEventListener("input", keep);
  form.addEventListener("reset", () => setTimeout(keep, 0));
  show();
}
