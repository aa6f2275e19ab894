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
const lowerBound = ([low], said) => `at least ${said(low)}`;
/** What follows a time or cost that leaves out the work of cores, as in tonnage/base/records/plan.py. */
const withoutCores = ({ demandsKnown }) => (demandsKnown ? "" : " without CPU time");
const tile = (name, figure, note) =>
  element("div", {}, element("dt", {}, name), element("dd", {}, element("b", {}, figure), element("small", {}, note)));

/** The candidate's longest phase, whose bottleneck limits it. */
const longest = (candidate) => candidate.phases.reduce((one, other) => (other.seconds > one.seconds ? other : one));

/** The phase whose terms are seconds of each machine, as in tonnage/base/records/job.py. */
const START_UP = "start-up";

/** Resources that are demanded in seconds, and of what, as in tonnage/cli/output/plan.py. */
const SECONDS_OF = { cpu: "core", "task wait": "slot", "longest task": "core", "warm-up": "core" };

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

const notesList = (notes) => element("ul", { class: "findings" }, ...notes.map((note) => element("li", {}, note)));

/** The best candidate: a heading, what is not counted, and its key figures. */
function showAnswer(found, ask) {
  const { shown: [best], request, notes, demandsKnown } = found;
  const heading = element("h2", { id: "answer-heading" });
  if (!best) {
    byId("told").replaceChildren(heading, ...showMissed(found, ask), notesList(notes.map(formatting.sentence)));
    heading.textContent = found.nearest ? "No offer meets these limits" : "No offer can be planned";
    return;
  }
  const phase = longest(best);
  heading.textContent = `${formatting.named(best)}: ${formatting.duration(best.seconds)}, ${formatting.usd(best.cost)}${withoutCores(found)}`;
  const figure = (name, middle, interval, said) => (demandsKnown ? tile(name, said(middle), range(interval, said))
    : tile(name, lowerBound(interval, said), "CPU time is not included"));
  const inTime = best.inTime === null || !demandsKnown ? ""
    : tile("Meets the deadline", formatting.percent(best.inTime), "of the sampled clusters");
  byId("told").replaceChildren(
    heading,
    element("p", {}, `${formatting.layout(best)}, of ${best.provider}; evidence: ${best.evidence}. ${formatting.sentence(best.choice.group.demand.calibration_text)}`),
    notesList(notes.map(formatting.sentence)),
    element("dl", { class: "tiles" },
      figure("Time", best.seconds, best.secondsInterval, formatting.duration),
      figure("Cost", best.cost, best.costInterval, formatting.usd),
      tile("Bottleneck", phase.bottleneck, limitsOf(best.phases)),
      tile("Price of a node", formatting.usd(best.usdPerHour), `an hour, including its volumes; ${formatting.several(best.nodes, "node")}`),
      inTime));
}

/** Why nothing keeps the limits, and what can be done. */
function showMissed(found, ask) {
  const { nearest, request } = found;
  if (!nearest) return [element("p", { class: "notice" }, "No number of nodes of any offer can do this job. The reasons are below.")];
  const limits = [request.deadline < Infinity ? `the deadline of ${formatting.duration(request.deadline)}` : null,
    request.budget < Infinity ? `the budget of ${formatting.usd(request.budget)}` : null].filter(Boolean);
  const most = `at most ${formatting.several(request.maxNodes, "node")}`;
  const said = nearest.nodes > request.maxNodes
    ? `The data does not fit on ${most}: it needs at least ${formatting.named(nearest)}.`
    : `No offer meets ${limits.join(" and ")} with ${most}. The nearest is ${formatting.named(nearest)} (${formatting.layout(nearest)}): ${formatting.duration(nearest.seconds)} for ${formatting.usd(nearest.cost)}${withoutCores(found)}.`;
  if (!pageData.variants[request.location].job.divisible) return [element("p", { class: "notice" }, said)];
  const more = Math.min(MAX_NODES, Math.max(request.maxNodes * 10, Math.min(nearest.nodes, MAX_NODES)));
  const hint = request.maxNodes < MAX_NODES
    ? element("p", {}, "More nodes may help: ",
      element("button", { type: "button", onclick: () => ask({ "max-nodes": String(more) }) }, `plan with up to ${formatting.count(more)}`),
      " (--max-nodes).")
    : element("p", {}, `Plans have at most ${formatting.count(MAX_NODES)} nodes; enter less data or a later deadline.`);
  return [element("p", { class: "notice" }, said), hint];
}

/** The form cannot be read: its errors stand at its fields, and nothing of the plan before is left. */
function showUnreadable() {
  byId("told").replaceChildren(
    element("h2", { id: "answer-heading" }, "Some of the input is invalid"),
    element("p", { class: "notice" }, "There is no plan until the marked fields can be read."));
  byId("details").replaceChildren();
  for (const id of ["front", "others", "sources", "excluded"]) byId(id).hidden = true;
}

/** The command that gives the same plan, and the caveats of the best candidate. */
function showDetails({ shown: [best] }, fields) {
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
  const caveats = best ? best.notes.map((note) => `${best.offer}: ${formatting.sentence(note)}`) : [];
  byId("details").replaceChildren(element("div", { class: "command" }, code, copy), notesList(caveats));
}

/** Rows that are added to a long table at once, so that the page stays responsive. */
const ROWS_AT_ONCE = 100;
const MEETS = "meets deadline";
/** The dollars from which the ends of an interval have no cents, as the columns of a phone are narrow. */
const CENTS_UP_TO = 1000;

/** The best candidate of each family or, of all candidates, those that have every word of the search. */
function showTable(found, { chosen, query, unfolded }, choose) {
  const { candidates, shown, request, demandsKnown } = found;
  byId("others").hidden = !shown.length;
  if (!shown.length) return;
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const textOf = ({ offer, provider, layout, choice }) => `${offer} ${choice.machine.family} ${provider} ${layout}`.toLowerCase();
  const matching = words.length ? candidates.filter((each) => words.every((word) => textOf(each).includes(word))) : candidates;
  const short = words.length ? matching.slice(0, SHOWN) : shown;
  const rows = unfolded ? matching : short;

  byId("rows").textContent = rowsInWords(words.length > 0, rows.length, matching.length, candidates.length);
  const fold = byId("fold");
  fold.hidden = matching.length <= short.length;
  fold.setAttribute("aria-expanded", String(unfolded));
  fold.textContent = unfolded ? "Show fewer" : `Show all ${formatting.count(matching.length)}`;

  const inTime = demandsKnown && shown[0].inTime !== null;
  const columns = ["offer", "time", "cost", "layout", "bottleneck", "evidence", ...(inTime ? [MEETS] : [])];
  const numeric = new Set(["time", "cost", MEETS]);
  const body = element("tbody");
  const row = (candidate) => tableRow(
    candidate.secondsInterval ? candidate : withIntervals(candidate, request, found.limits.deadline),
    isSame(candidate, chosen), demandsKnown, inTime, choose);
  const add = (from) => {
    body.append(...rows.slice(from, from + ROWS_AT_ONCE).map(row));
    if (from + ROWS_AT_ONCE < rows.length) setTimeout(() => body.isConnected && add(from + ROWS_AT_ONCE));
  };
  add(0);
  if (!words.length && !rows.some((each) => isSame(each, chosen))) body.prepend(row(chosen));
  byId("table").hidden = !body.childElementCount;
  byId("table").replaceChildren(element("div", { class: "scroll candidates", tabindex: "0", role: "region", "aria-label": "Candidates" },
    element("table", {},
      element("caption", { class: "unseen" }, "Candidates"),
      element("thead", {}, element("tr", {}, ...columns.map((column) => element("th", { scope: "col", class: numeric.has(column) ? "number" : null }, column)))),
      body)));
}

function rowsInWords(isSearch, shown, matching, count) {
  const all = formatting.several(count, "candidate");
  if (isSearch) {
    const first = shown < matching ? `; the first ${formatting.count(shown)} are shown` : "";
    return matching ? `${formatting.count(matching)} of ${all}, best first${first}.` : `None of ${all} matches.`;
  }
  return shown < count ? `The best of each family, ${formatting.count(shown)} of ${all}, with their ranks.` : `${all}, best first.`;
}

const isSame = (one, other) => one.choice.group === other.choice.group && one.choice.at === other.choice.at && one.nodes === other.nodes;

/** A row of the table: time and cost right after the offer, so that a narrow screen shows them. */
function tableRow(candidate, isChosen, demandsKnown, inTime, choose) {
  const cell = (said) => element("td", {}, said);
  const number = (...children) => element("td", { class: "number" }, ...children);
  const figure = (middle, interval, end) => (demandsKnown
    ? number(middle, element("br"), element("small", {}, interval.map(end).join(" – "))) : number(lowerBound(interval, end)));
  const { offer, provider, rank, choice } = candidate;
  const end = (usd) => (candidate.costInterval[1] < CENTS_UP_TO ? formatting.usd(usd) : `$${formatting.count(usd)}`);
  return element("tr", { class: isChosen ? "marked" : null },
    element("th", { scope: "row" },
      element("button", {
        type: "button", "aria-pressed": String(isChosen), onclick: () => choose(candidate),
        "aria-label": `${formatting.named(candidate)}: show the source of its numbers`,
      }, `${formatting.count(candidate.nodes)} × `, ...offer.split(/(?<=[-_])/).flatMap((part) => [part, element("wbr")])),
      element("br"), element("small", {}, `${rank ? `rank ${formatting.count(rank)}` : "of the front"}, ${provider} ${choice.machine.family}`)),
    figure(formatting.duration(candidate.seconds), candidate.secondsInterval, formatting.duration),
    figure(formatting.usd(candidate.cost), candidate.costInterval, end),
    cell(formatting.layout(candidate)), cell(longest(candidate).bottleneck), cell(candidate.evidence),
    inTime ? number(formatting.percent(candidate.inTime)) : null);
}

/** The arithmetic of a candidate, and the source of each number. */
function showSources(found, candidate) {
  const { request, samples } = found;
  byId("sources").hidden = !candidate;
  if (!candidate) return;
  const terms = explain(candidate, request.size, samples);
  const areRequests = (term) => term.resource.endsWith("requests");
  const amount = (term, value) => (SECONDS_OF[term.resource] ? `${formatting.significant(value)} ${SECONDS_OF[term.resource]} seconds`
    : areRequests(term) ? `${formatting.count(Math.round(value))} requests` : formatting.size(value));
  const rate = (term) => (value) => (SECONDS_OF[term.resource] ? `${formatting.significant(value)} ${SECONDS_OF[term.resource]}s`
    : term.phase === START_UP ? formatting.seconds(1 / value)
    : areRequests(term) ? `${formatting.significant(value)}/s` : formatting.rate(value));
  const division = (term, nodes) => (term.phase === START_UP ? `the slowest of ${formatting.several(nodes, "machine")}`
    : `${amount(term, term.demand)} / ${formatting.count(nodes)} / ${rate(term)(term.capacity)}`);
  const line = (name, said) => element("p", {}, element("small", {}, `${name}: `, ...[said].flat()));
  const codes = (commands) => commands.flatMap((command, at) => [at ? ", " : "", element("code", {}, command)]);
  const phases = candidate.phases.flatMap((phase) => [
    element("h3", {}, phase.name, " ", element("small", {}, `${formatting.seconds(phase.seconds)}, limited by ${phase.bottleneck}`)),
    element("ul", { class: "terms" }, ...terms.filter((term) => term.phase === phase.name).map((term) => element("li", {},
      element("p", {}, element("b", {}, term.limit ? `${term.limit}, ${term.resource}` : term.resource), `: ${division(term, candidate.nodes)} = ${formatting.seconds(term.seconds)} `, element("span", { class: "badge" }, term.evidence)),
      line("Demand", term.demandSource),
      line("Capacity", term.capacitySource),
      line(range(term.interval, rate(term)), term.spreadSource),
      term.repeat.commands.length ? line(term.repeat.label, codes(term.repeat.commands)) : null))),
  ]);
  byId("arithmetic").replaceChildren(
    element("p", {}, `${formatting.named(candidate)}, ${formatting.layout(candidate)}. A phase takes as long as its slowest resource: demand / nodes / rate of the slowest node.`),
    ...phases,
    element("h3", {}, "Cost", " ", element("small", {}, `${formatting.usd(candidate.cost)}${withoutCores(found)}`)),
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
