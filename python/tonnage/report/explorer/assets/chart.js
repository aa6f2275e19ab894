// Draw the Pareto front: the least cost of each time, both axes logarithmic. The pointer and the arrow
// keys move from point to point.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 300, LEFT = 64, RIGHT = 16, TOP = 12, BOTTOM = 40;
const STEPS = [60, 300, 900, 3600, 14400, 43200, 86400, 604800, 2592000];

function svg(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Tick marks of an axis: the round values within its range. */
function marks(low, high, round) {
  const within = round.filter((each) => each >= low && each <= high);
  const few = Math.max(Math.ceil(within.length / 6), 1);
  return within.filter((_, at) => at % few === 0);
}

const decades = Array.from({ length: 16 }, (_, at) => at - 4).flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));

function drawFront(figure, points, best, deadline) {
  const plot = figure.querySelector(".plot"), told = figure.querySelector(".told");
  plot.replaceChildren();
  figure.hidden = points.length < 2;
  if (figure.hidden) return;
  const width = Math.max(plot.clientWidth, 240);
  const [fast, slow] = [points[0].seconds, points[points.length - 1].seconds];
  const costs = points.map((point) => point.cost);
  const [cheap, dear] = [costs[costs.length - 1], costs[0]].map(Math.log);
  const [first, last] = [fast, slow].map(Math.log);
  const x = (seconds) => LEFT + (Math.log(seconds) - first) / ((last - first) || 1) * (width - LEFT - RIGHT);
  const y = (cost) => HEIGHT - BOTTOM - (Math.log(cost) - cheap) / ((dear - cheap) || 1) * (HEIGHT - TOP - BOTTOM);

  const drawing = svg("svg", {
    viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img",
    "aria-label": `Pareto front: from ${formatting.duration(fast)} for ${formatting.usd(points[0].cost)} to ${formatting.duration(slow)} for ${formatting.usd(points[points.length - 1].cost)}`,
  });
  const round = slow / fast > 30 ? STEPS : [...new Set([...decades, ...STEPS])].sort((one, other) => one - other);
  for (const seconds of marks(fast, slow, round)) {
    drawing.append(
      svg("line", { x1: x(seconds), x2: x(seconds), y1: TOP, y2: HEIGHT - BOTTOM, class: "grid" }),
      svg("text", { x: x(seconds), y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, formatting.duration(seconds)));
  }
  for (const cost of marks(Math.exp(cheap), Math.exp(dear), decades)) {
    drawing.append(
      svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(cost), y2: y(cost), class: "grid" }),
      svg("text", { x: LEFT - 8, y: y(cost) + 4, "text-anchor": "end" }, formatting.price(cost)));
  }
  drawing.append(svg("text", { x: width - RIGHT, y: HEIGHT - 6, "text-anchor": "end" }, "time"));
  const line = points.map((point, at) => `${at ? `H${x(point.seconds).toFixed(1)}V` : `M${x(point.seconds).toFixed(1)},`}${y(point.cost).toFixed(1)}`);
  drawing.append(svg("path", { d: line.join(""), class: "line" }));
  if (deadline > fast && deadline < slow) {
    drawing.append(svg("line", { x1: x(deadline), x2: x(deadline), y1: TOP, y2: HEIGHT - BOTTOM, class: "deadline" }));
  }
  const cursor = svg("circle", { r: 6, class: "cursor" });
  drawing.append(cursor);
  plot.append(drawing);

  // Start at the best candidate's point, or the one that takes as long.
  let at = points.findIndex((point) => point.seconds >= best.seconds * (1 - 1e-9));
  if (at < 0) at = points.length - 1;
  const show = (place) => {
    at = Math.min(Math.max(place, 0), points.length - 1);
    const point = points[at];
    cursor.setAttribute("cx", x(point.seconds));
    cursor.setAttribute("cy", y(point.cost));
    told.textContent = `${formatting.duration(point.seconds)} for ${formatting.usd(point.cost)}: ${formatting.named(point)}, ${formatting.layout(point)}`;
  };
  show(at);
  plot.onpointermove = (event) => {
    const across = (event.clientX - plot.getBoundingClientRect().left) / plot.clientWidth * width;
    const seconds = Math.exp(first + (across - LEFT) / (width - LEFT - RIGHT) * (last - first));
    const beyond = points.findIndex((point) => point.seconds >= seconds);
    show(beyond < 0 ? points.length - 1 : beyond);
  };
  plot.onkeydown = (event) => {
    const far = Math.max(Math.round(points.length / 20), 1);
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: far, PageDown: -far, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    show(at + by);
  };
}
