// Draws the charts: puts the style sheet's colours in, draws again when the scheme changes or the
// page is printed, and keeps all charts over time on one axis.
"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const touch = matchMedia("(pointer: coarse)").matches;
  const plots = [...document.querySelectorAll(".plot")];
  const timed = plots.filter((plot) => plot.classList.contains("timed"));
  const drawn = (plot) => plot.classList.contains("js-plotly-plot");

  // Names of colours as colours, in data of whatever depth.
  const coloured = (value, styles) => {
    if (typeof value === "string") {
      return value.startsWith("--") ? styles.getPropertyValue(value).trim() : value;
    }
    if (Array.isArray(value)) return value.map((each) => coloured(each, styles));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, coloured(each, styles)]));
  };

  const styled = (layout) => {
    const common = {
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: "--ink-soft" },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      hoverlabel: { bgcolor: "--card", bordercolor: "--line", font: { color: "--ink" } },
      showlegend: false,
      // On a touch screen a drag scrolls the page.
      dragmode: touch ? false : "zoom",
    };
    for (const [key, axis] of Object.entries(layout)) {
      if (/^[xy]axis/.test(key)) {
        common[key] = { gridcolor: "--grid", zerolinecolor: "--line", linecolor: "--line", ...axis };
      }
    }
    return { ...layout, ...common };
  };

  // Drawn only where it can be seen: a chart in a closed `details` has no width.
  const draw = (plot) => {
    const chart = charts[plot.id];
    if (!chart || !plot.offsetWidth) return;
    const styles = getComputedStyle(document.documentElement);
    const range = drawn(plot) && plot.layout.xaxis.range?.slice();
    const layout = coloured(styled(chart.layout), styles);
    if (range && plot.classList.contains("timed")) layout.xaxis.range = range;
    const first = !drawn(plot);
    Plotly.react(plot, coloured(chart.traces, styles), layout, { displayModeBar: false, responsive: true });
    if (first && plot.classList.contains("timed")) follow(plot);
  };
  const drawAll = () => plots.forEach(draw);

  let following = false;
  const follow = (plot) => {
    plot.on("plotly_relayout", (change) => {
      const moved = Object.keys(change).some((key) => key.startsWith("xaxis.range"));
      if (following || !moved) return;
      following = true;
      const range = plot.layout.xaxis.range.slice();
      const others = timed.filter((other) => other !== plot && drawn(other));
      Promise.all(others.map((other) => Plotly.relayout(other, { "xaxis.range": range })))
        .finally(() => { following = false; });
    });
  };

  // A line through all charts over time at the moment that is pointed at.
  const panels = document.querySelector(".panels");
  if (panels && timed.length) {
    const cursor = panels.appendChild(document.createElement("div"));
    cursor.className = "cursor";
    panels.addEventListener("mousemove", (event) => {
      const plot = event.target.closest?.(".timed");
      const box = panels.getBoundingClientRect();
      cursor.style.display = plot ? "block" : "none";
      if (!plot) return;
      const visible = timed.filter(drawn).map((each) => each.getBoundingClientRect());
      cursor.style.left = `${event.clientX - box.left}px`;
      cursor.style.top = `${visible[0].top - box.top}px`;
      cursor.style.height = `${visible[visible.length - 1].bottom - visible[0].top}px`;
    });
    panels.addEventListener("mouseleave", () => { cursor.style.display = "none"; });
  }

  for (const details of document.querySelectorAll("details")) {
    details.addEventListener("toggle", () => details.querySelectorAll(".plot").forEach(draw));
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.paper = "";
    drawAll();
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.paper;
    drawAll();
  });
  drawAll();
  // For programs that wait for the charts.
  document.documentElement.dataset.drawn = "";
})();
