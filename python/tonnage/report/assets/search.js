// Searches of folded tables: an input shows the rows that have each of its words, and a click on a
// point of a chart searches for what the point names. Without scripts the tables are there, unsearched.
"use strict";
for (const input of document.querySelectorAll("[data-search]")) {
  const fold = document.getElementById(input.dataset.search), status = input.parentElement.querySelector("[role=status]");
  const short = input.parentElement.nextElementSibling;
  const rows = [...fold.querySelectorAll("tbody tr")];
  input.parentElement.hidden = false;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) count += 1;
    }
    short.hidden = fold.open = words.length > 0;
    status.textContent = words.length ? `${count.toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")}` : "";
  });
}
for (const plot of document.querySelectorAll(".plot.js-plotly-plot")) {
  plot.on("plotly_click", ({ points: [point] }) => {
    const input = document.getElementById(point.data.meta);
    if (!input) return;
    input.value = point.customdata[1];
    input.dispatchEvent(new Event("input"));
    input.scrollIntoView();
  });
}
