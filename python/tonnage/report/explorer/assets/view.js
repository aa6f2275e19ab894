// Render a plan as elements, so that no text of a catalog becomes markup.

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") made.onclick = value; else if (value !== null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const byId = (id) => document.getElementById(id);
const range = ([low, high], said) => `90 %: ${said(low)} to ${said(high)}`;
const tile = (name, figure, note) =>
  element("div", {}, element("dt", {}, name), element("dd", {}, element("b", {}, figure), element("small", {}, note)));

/** The candidate's longest phase, whose bottleneck limits it. */
const longest = (candidate) => candidate.phases.reduce((one, other) => (other.seconds > one.seconds ? other : one));

/** From this many phases with one bottleneck on, they are summed up, as in tonnage/cli/output/plan.py. */
const MANY = 3;

/** The bottleneck of each phase; runs of many phases with the same one are summed up. */
function limitsOf(phases) {
  const rows = [];
  for (const each of phases) {
    const row = rows[rows.length - 1];
    if (row && row[0].bottleneck === each.bottleneck) row.push(each); else rows.push([each]);
  }
  const line = (name, some) => `${name}: ${some[0].bottleneck}, ${formatting.duration(some.reduce((sum, each) => sum + each.seconds, 0))}`;
  return rows.flatMap((row) => (row.length < MANY ? row.map((each) => line(each.name, [each]))
    : [line(`${row[0].name} to ${row[row.length - 1].name}`, row)])).join("; ");
}

/** The best candidate: a heading and its key figures. */
function showAnswer({ shown: [best], nearest, request }, ask) {
  const heading = element("h2", { id: "answer-heading" });
  if (!best) {
    byId("told").replaceChildren(heading, ...showMissed(nearest, request, ask));
    heading.textContent = nearest ? "No offer meets these limits" : "No offer can be planned";
    return;
  }
  const phase = longest(best);
  heading.textContent = `${formatting.named(best)}: ${formatting.duration(best.seconds)}, ${formatting.usd(best.cost)}`;
  const inTime = best.inTime === null ? null
    : tile("Meets the deadline", formatting.percent(best.inTime), "of the sampled clusters");
  byId("told").replaceChildren(
    heading,
    element("p", {}, `${formatting.layout(best)}, of ${best.provider}; evidence: ${best.evidence}. ${formatting.sentence(best.choice.group.demand.calibration_text)}`),
    element("dl", { class: "tiles" },
      tile("Time", formatting.duration(best.seconds), range(best.secondsInterval, formatting.duration)),
      tile("Cost", formatting.usd(best.cost), range(best.costInterval, formatting.usd)),
      tile("Bottleneck", phase.bottleneck, limitsOf(best.phases)),
      tile("Price of a node", `${formatting.usd(best.usdPerHour)} an hour`, `including its volumes; ${formatting.several(best.nodes, "node")}`),
      inTime));
}

/** Why nothing keeps the limits, and what can be done. */
function showMissed(nearest, request, ask) {
  if (!nearest) return [element("p", { class: "notice" }, "The figures that this job needs are incomplete for every offer. The reasons are below.")];
  const limits = [request.deadline < Infinity ? `the deadline of ${formatting.duration(request.deadline)}` : null,
    request.budget < Infinity ? `the budget of ${formatting.usd(request.budget)}` : null].filter(Boolean);
  const most = `at most ${formatting.several(request.maxNodes, "node")}`;
  const said = nearest.nodes > request.maxNodes
    ? `The data does not fit on ${most}: it needs at least ${formatting.named(nearest)}.`
    : `No offer meets ${limits.join(" and ")} with ${most}. The nearest is ${formatting.named(nearest)} (${formatting.layout(nearest)}): ${formatting.duration(nearest.seconds)} for ${formatting.usd(nearest.cost)}.`;
  const more = Math.min(MAX_NODES, Math.max(request.maxNodes * 10, Math.min(nearest.nodes, MAX_NODES)));
  const hint = request.maxNodes < MAX_NODES
    ? element("p", {}, "More nodes may help: ",
      element("button", { type: "button", onclick: () => ask({ "max-nodes": String(more) }) }, `plan with up to ${formatting.count(more)}`),
      " (--max-nodes).")
    : element("p", {}, `Plans have at most ${formatting.count(MAX_NODES)} nodes; enter less data or a later deadline.`);
  return [element("p", { class: "notice" }, said), hint];
}

/** The command that gives the same plan, and the caveats. */
function showDetails({ shown: [best], notes }, fields) {
  const command = commandOf(fields);
  const code = element("pre", { tabindex: "0", role: "region", "aria-label": "The command that gives this plan" }, element("code", {}, command));
  const copy = element("button", {
    type: "button",
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(command);
        copy.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        copy.textContent = "Selected";
      }
    },
  }, "Copy");
  const all = [
    ...(best ? best.notes.map((note) => `${best.offer}: ${formatting.sentence(note)}`) : []),
    ...notes.map(formatting.sentence),
  ];
  byId("details").replaceChildren(
    element("div", { class: "command" }, code, copy),
    element("ul", { class: "findings" }, ...all.map((note) => element("li", {}, note))));
}

/** The best candidates; clicking one shows its arithmetic. */
function showTable({ candidates, shown }, chosen, choose) {
  byId("others").hidden = !shown.length;
  const inTime = shown.some((each) => each.inTime !== null);
  const columns = ["offer", "layout", "nodes", "time", "cost", "bottleneck", "evidence", ...(inTime ? ["meets the deadline"] : [])];
  const numeric = new Set(["nodes", "time", "cost", "meets the deadline"]);
  const cell = (column, ...said) => element("td", { class: numeric.has(column) ? "number" : null }, ...said);
  const both = (middle, between) => [middle, element("br"), element("small", {}, `${between[0]} – ${between[1]}`)];
  const rows = shown.map((each, at) => element("tr", { class: at === chosen ? "marked" : null },
    element("th", { scope: "row" }, element("button", {
      type: "button", "aria-pressed": String(at === chosen), onclick: () => choose(at),
      "aria-label": `${each.offer}: show the source of its numbers`,
    }, each.offer)),
    cell("layout", formatting.layout(each)),
    cell("nodes", formatting.count(each.nodes)),
    cell("time", ...both(formatting.duration(each.seconds), each.secondsInterval.map(formatting.duration))),
    cell("cost", ...both(formatting.usd(each.cost), each.costInterval.map(formatting.usd))),
    cell("bottleneck", longest(each).bottleneck),
    cell("evidence", each.evidence),
    inTime ? cell("meets the deadline", formatting.percent(each.inTime)) : null));
  const caption = `The first ${formatting.count(shown.length)} of ${formatting.several(candidates.length, "candidate")}`;
  byId("table").replaceChildren(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {},
      element("caption", {}, element("span", {}, caption)),
      element("thead", {}, element("tr", {}, ...columns.map((column) => element("th", { scope: "col", class: numeric.has(column) ? "number" : null }, column)))),
      element("tbody", {}, ...rows))));
}

/** The arithmetic of a candidate, and the source of each number. */
function showSources({ shown, request, samples }, chosen) {
  const candidate = shown[chosen];
  byId("sources").hidden = !candidate;
  if (!candidate) return;
  const terms = explain(candidate, request.size, samples);
  const areRequests = (term) => term.resource.endsWith("requests");
  const amount = (term, value) => (term.resource === "cpu" ? `${formatting.significant(value)} core seconds`
    : areRequests(term) ? `${formatting.count(Math.round(value))} requests` : formatting.size(value));
  const rate = (term) => (value) => (term.resource === "cpu" ? `${formatting.significant(value)} cores`
    : term.resource === "start" ? formatting.seconds(1 / value)
    : areRequests(term) ? `${formatting.significant(value)}/s` : formatting.rate(value));
  const division = (term, nodes) => (term.resource === "start" ? `the slowest of ${formatting.several(nodes, "machine")}`
    : `${amount(term, term.demand)} / ${formatting.count(nodes)} / ${rate(term)(term.capacity)}`);
  const line = (name, said) => element("p", {}, element("small", {}, `${name}: `, ...[said].flat()));
  const codes = (commands) => commands.flatMap((command, at) => [at ? ", " : "", element("code", {}, command)]);
  const phases = candidate.phases.flatMap((phase) => [
    element("h3", {}, phase.name, " ", element("small", {}, `${formatting.seconds(phase.seconds)}, limited by ${phase.bottleneck}`)),
    element("ul", { class: "terms" }, ...terms.filter((term) => term.phase === phase.name).map((term) => element("li", {},
      element("p", {}, element("b", {}, term.resource), `: ${division(term, candidate.nodes)} = ${formatting.seconds(term.seconds)} `, element("span", { class: "badge" }, term.evidence)),
      line("Demand", term.demandSource),
      line("Capacity", term.capacitySource),
      line(range(term.interval, rate(term)), term.spreadSource),
      term.repeat.commands.length ? line(term.repeat.label, codes(term.repeat.commands)) : null))),
  ]);
  byId("arithmetic").replaceChildren(
    element("p", {}, `${formatting.named(candidate)}, ${formatting.layout(candidate)}. A phase takes as long as its slowest resource: demand / nodes / rate of the slowest node.`),
    ...phases,
    element("h3", {}, "Cost", " ", element("small", {}, formatting.usd(candidate.cost))),
    element("ul", { class: "terms" }, element("li", {}, ...pricesOf(candidate).map((said) => element("p", {}, said)),
      line("Show the offer in the catalog", codes([`tonnage catalog show ${candidate.provider}/${candidate.offer}`])))));
}

/** Excluded offers by reason, most first; their names on demand. */
function showExcluded({ excluded: offers }) {
  byId("excluded").hidden = !offers.length;
  const reasons = new Map();
  for (const { why, offer } of offers) {
    const reason = /^too (small|slow|expensive|little memory)/.exec(why)?.[0] || why;
    reasons.set(reason, [...(reasons.get(reason) || []), reason === why ? offer : `${offer} (${why.slice(reason.length + 2)})`]);
  }
  const sorted = [...reasons].sort(([, one], [, other]) => other.length - one.length);
  byId("reasons").replaceChildren(
    element("p", {}, `${formatting.several(offers.length, "offer")} are not candidates.`),
    ...sorted.map(([reason, names]) => {
      const list = element("p", { class: "reasons note" });
      const made = element("details", {}, element("summary", {}, `${formatting.sentence(reason)} ${formatting.several(names.length, "offer")}`), list);
      made.addEventListener("toggle", () => { list.textContent = names.join(", "); }, { once: true });
      return made;
    }));
}
