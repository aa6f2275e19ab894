// Draw candidates by time and cost with the Pareto front, both axes logarithmic. The pointer and the
// arrow keys move from point to point; a click or Enter selects one.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 340, LEFT = 64, RIGHT = 16, TOP = 12, BOTTOM = 40;
const MINUTE = 60, HOUR = 3600, DAY = 86400;
const TIMES = [
  1, 2, 5, 10, 20, 30, ...[1, 2, 5, 10, 15, 20, 30, 45].map((each) => each * MINUTE),
  ...[1, 1.5, 2, 3, 4, 6, 8, 12].map((each) => each * HOUR), ...[1, 2, 4, 7, 14, 30, 90, 365].map((each) => each * DAY),
];
const AMOUNTS = Array.from({ length: 16 }, (_, at) => at - 4)
  .flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));
const MARK_WIDTH = 80, MARK_HEIGHT = 40;

function svg(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A logarithmic axis for some values, from one pixel to another, with marks at round values that far apart. */
function axisOf(values, from, to, round, apart) {
  const [low, high] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  const place = (value) => from + Math.log(value / low) / (Math.log(high / low) || 1) * (to - from);
  const within = round.filter((each) => each >= low && each <= high);
  const step = Math.max(Math.ceil(within.length / (Math.abs(to - from) / apart)), 1);
  return { low, high, place, marks: within.length > 1 ? within.filter((_, at) => at % step === 0) : [low, high] };
}

function drawScatter(figure, found, chosen, choose) {
  const { candidates, shown, pareto } = found;
  const plot = figure.querySelector(".plot"), told = figure.querySelector(".told");
  const width = Math.max(plot.clientWidth, 240);
  const points = [...candidates, ...pareto];
  const across = axisOf(points.map((each) => each.seconds), LEFT, width - RIGHT, TIMES, MARK_WIDTH);
  const up = axisOf(points.map((each) => each.cost), HEIGHT - BOTTOM, TOP, AMOUNTS, MARK_HEIGHT);
  const [x, y] = [(each) => across.place(each.seconds).toFixed(1), (each) => up.place(each.cost).toFixed(1)];

  const drawing = svg("svg", {
    viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img",
    "aria-label": `${formatting.several(candidates.length, "candidate")}: ${formatting.duration(across.low)} to ${formatting.duration(across.high)}, ${formatting.usd(up.low)} to ${formatting.usd(up.high)}${withoutCores(found)}`,
  });
  for (const seconds of across.marks) {
    const at = across.place(seconds);
    drawing.append(
      svg("line", { x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM, class: "grid" }),
      svg("text", { x: at, y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, formatting.duration(seconds)));
  }
  for (const cost of up.marks) {
    const at = up.place(cost);
    drawing.append(
      svg("line", { x1: LEFT, x2: width - RIGHT, y1: at, y2: at, class: "grid" }),
      svg("text", { x: LEFT - 8, y: at + 4, "text-anchor": "end" }, cost < 10 ? formatting.price(cost) : `$${formatting.count(cost)}`));
  }
  // One path for all points of a kind: thousands of elements would be slow.
  const dots = (some) => some.map((each) => `M${x(each)},${y(each)}h0`).join("");
  const line = pareto.map((each, at) => (at ? `H${x(each)}V${y(each)}` : `M${x(each)},${y(each)}`)).join("");
  const cursor = svg("circle", { r: 7, class: "cursor" }), label = svg("text", { class: "name" });
  drawing.append(
    svg("text", { x: width - RIGHT, y: HEIGHT - 6, "text-anchor": "end" }, "time"),
    svg("path", { d: dots(candidates), class: "dots" }), svg("path", { d: line, class: "line" }),
    svg("path", { d: dots(shown), class: "best" }), cursor, label);
  plot.replaceChildren(drawing);

  let current = chosen;
  const show = (point) => {
    current = point;
    cursor.setAttribute("cx", x(point));
    cursor.setAttribute("cy", y(point));
    label.textContent = formatting.named(point);
    const onTheRight = across.place(point.seconds) > width / 2;
    label.setAttribute("x", across.place(point.seconds) + (onTheRight ? -12 : 12));
    label.setAttribute("y", Math.max(up.place(point.cost) - 8, TOP + 10));
    label.setAttribute("text-anchor", onTheRight ? "end" : "start");
    told.textContent = `${formatting.duration(point.seconds)} for ${formatting.usd(point.cost)}${withoutCores(found)}: ${formatting.named(point)}, ${formatting.layout(point)}`;
  };
  show(chosen);

  const pointAt = (event) => {
    const box = plot.getBoundingClientRect(), scale = width / plot.clientWidth;
    const far = (each) => Math.hypot(
      across.place(each.seconds) - (event.clientX - box.left) * scale, up.place(each.cost) - (event.clientY - box.top) * scale);
    return points.reduce((best, each) => (far(each) < far(best) ? each : best));
  };
  const move = (some, by) => {
    const first = some === pareto ? pareto.findIndex((each) => each.seconds >= current.seconds * (1 - 1e-9))
      : shown.findIndex((each) => each.rank === current.rank);
    const from = first < 0 ? (some === pareto ? some.length - 1 : -1) : first;
    show(some[Math.min(Math.max(from + by, 0), some.length - 1)]);
  };
  plot.onpointermove = (event) => show(pointAt(event));
  plot.onpointerleave = () => show(chosen);
  plot.onclick = (event) => choose(pointAt(event));
  plot.onkeydown = (event) => {
    const far = Math.max(Math.round(pareto.length / 20), 1);
    const along = { ArrowLeft: -1, ArrowRight: 1, PageUp: far, PageDown: -far, Home: -Infinity, End: Infinity }[event.key];
    const through = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (along !== undefined) move(pareto, along);
    else if (through !== undefined) move(shown, through);
    else if (event.key === "Enter" || event.key === " ") choose(current);
    else return;
    event.preventDefault();
  };
}
