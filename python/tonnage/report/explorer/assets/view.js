// What the page shows of an answer, made of elements: no text of a catalog becomes markup.

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

/** What limits the candidate: the thing that its longest phase waits for. */
const longest = (candidate) => candidate.phases.reduce((one, other) => (other.seconds > one.seconds ? other : one));

/** So many phases in a row are not told one by one, as in tonnage/cli/planned.py. */
const MANY = 3;

/** What limits each phase; of several in a row that the same does, the first and the last. */
function limitsOf(phases) {
  const rows = [];
  for (const each of phases) {
    const row = rows[rows.length - 1];
    if (row && row[0].bottleneck === each.bottleneck) row.push(each); else rows.push([each]);
  }
  const told = (name, some) => `${name}: ${some[0].bottleneck}, ${words.duration(some.reduce((sum, each) => sum + each.seconds, 0))}`;
  return rows.flatMap((row) => (row.length < MANY ? row.map((each) => told(each.name, [each]))
    : [told(`${row[0].name} to ${row[row.length - 1].name}`, row)])).join("; ");
}

/** The answer in one sentence, and its figures. */
function showAnswer({ shown: [best], nearest, question }, ask) {
  const heading = element("h2", { id: "answer-heading" });
  if (!best) {
    byId("told").replaceChildren(heading, ...missed(nearest, question, ask));
    heading.textContent = nearest ? "Nothing keeps that" : "Nothing can be planned with";
    return;
  }
  const phase = longest(best);
  heading.textContent = `${words.named(best)}: ${words.duration(best.seconds)}, ${words.usd(best.cost)}`;
  const inTime = best.inTime === null ? null
    : tile("In time", words.percent(best.inTime), "of imagined fleets keep the deadline");
  byId("told").replaceChildren(
    heading,
    element("p", {}, `${words.layout(best)}, of ${best.provider}; rests on ${best.evidence} figures. ${words.sentence(best.choice.group.shape.said)}`),
    element("dl", { class: "tiles" },
      tile("Time", words.duration(best.seconds), range(best.secondsBetween, words.duration)),
      tile("Cost", words.usd(best.cost), range(best.costBetween, words.usd)),
      tile("What limits it", phase.bottleneck, limitsOf(best.phases)),
      tile("A machine", `${words.usd(best.usdPerHour)} an hour`, `with its volumes; ${words.count(best.nodes)} of them`),
      inTime));
}

/** What to say where nothing keeps the limits, and what can be done. */
function missed(nearest, question, ask) {
  if (!nearest) return [element("p", { class: "notice" }, "Of no offer all is known that this job needs. Below is why.")];
  const limits = [question.deadline < Infinity ? `the deadline of ${words.duration(question.deadline)}` : null,
    question.budget < Infinity ? `the budget of ${words.usd(question.budget)}` : null].filter(Boolean);
  const most = `at most ${words.several(question.most, "machine")}`;
  const said = nearest.nodes > question.most
    ? `The data does not fit on ${most}: it takes ${words.named(nearest)} at least.`
    : `No offer keeps ${limits.join(" and ")} with ${most}. What comes nearest is ${words.named(nearest)} (${words.layout(nearest)}): ${words.duration(nearest.seconds)} for ${words.usd(nearest.cost)}.`;
  const more = Math.min(MOST_NODES, Math.max(question.most * 10, Math.min(nearest.nodes, MOST_NODES)));
  const hint = question.most < MOST_NODES
    ? element("p", {}, "More machines may do: ",
      element("button", { type: "button", onclick: () => ask({ "max-nodes": String(more) }) }, `plan with up to ${words.count(more)}`),
      " (--max-nodes).")
    : element("p", {}, `More than ${words.count(MOST_NODES)} machines are not planned: give less data, or a later deadline.`);
  return [element("p", { class: "notice" }, said), hint];
}

/** The command that says the same, and what is to be minded. */
function showDetails({ shown: [best], notes }, fields) {
  const command = commandOf(fields);
  const code = element("pre", { tabindex: "0", role: "region", "aria-label": "The command that gives this answer" }, element("code", {}, command));
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
    ...(best ? best.notes.map((note) => `${best.offer}: ${words.sentence(note)}`) : []),
    ...notes.map(words.sentence),
  ];
  byId("details").replaceChildren(
    element("div", { class: "command" }, code, copy),
    element("ul", { class: "findings" }, ...all.map((note) => element("li", {}, note))));
}

/** The best candidates, each of which can be asked for its arithmetic. */
function showTable({ candidates, shown }, chosen, choose) {
  byId("others").hidden = !shown.length;
  const inTime = shown.some((each) => each.inTime !== null);
  const columns = ["offer", "layout", "machines", "time", "cost", "limited by", "evidence", ...(inTime ? ["in time"] : [])];
  const numeric = new Set(["machines", "time", "cost", "in time"]);
  const cell = (column, ...said) => element("td", { class: numeric.has(column) ? "number" : null }, ...said);
  const both = (middle, between) => [middle, element("br"), element("small", {}, `${between[0]} – ${between[1]}`)];
  const rows = shown.map((each, at) => element("tr", { class: at === chosen ? "marked" : null },
    element("th", { scope: "row" }, element("button", {
      type: "button", "aria-pressed": String(at === chosen), onclick: () => choose(at),
      "aria-label": `${each.offer}: show where its numbers come from`,
    }, each.offer)),
    cell("layout", words.layout(each)),
    cell("machines", words.count(each.nodes)),
    cell("time", ...both(words.duration(each.seconds), each.secondsBetween.map(words.duration))),
    cell("cost", ...both(words.usd(each.cost), each.costBetween.map(words.usd))),
    cell("limited by", longest(each).bottleneck),
    cell("evidence", each.evidence),
    inTime ? cell("in time", words.percent(each.inTime)) : null));
  const caption = `The first ${words.count(shown.length)} of ${words.several(candidates.length, "candidate")}`;
  byId("table").replaceChildren(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {},
      element("caption", {}, element("span", {}, caption)),
      element("thead", {}, element("tr", {}, ...columns.map((column) => element("th", { scope: "col", class: numeric.has(column) ? "number" : null }, column)))),
      element("tbody", {}, ...rows))));
}

/** The arithmetic of a candidate, and where each of its numbers comes from. */
function showSources({ shown, question, rates }, chosen) {
  const candidate = shown[chosen];
  byId("sources").hidden = !candidate;
  if (!candidate) return;
  const terms = explained(candidate, question.size, rates);
  const amount = (term, value) => (term.resource === "cpu" ? `${words.significant(value)} core seconds` : words.size(value));
  const rate = (term) => (value) => (term.resource === "cpu" ? `${words.significant(value)} cores` : words.rate(value));
  const line = (name, said) => element("p", {}, element("small", {}, `${name}: `, ...[said].flat()));
  const codes = (commands) => commands.flatMap((command, at) => [at ? ", " : "", element("code", {}, command)]);
  const phases = candidate.phases.flatMap((phase) => [
    element("h3", {}, phase.name, " ", element("small", {}, `${words.seconds(phase.seconds)}, by ${phase.bottleneck}`)),
    element("ul", { class: "terms" }, ...terms.filter((term) => term.phase === phase.name).map((term) => element("li", {},
      element("p", {}, element("b", {}, term.resource), `: ${amount(term, term.demand)} / ${words.count(candidate.nodes)} / ${rate(term)(term.capacity)} = ${words.seconds(term.seconds)} `, element("span", { class: "badge" }, term.evidence)),
      line("Demand", term.demandSource),
      line("Capacity", term.capacitySource),
      line(range(term.between, rate(term)), term.spreadSource),
      term.repeat.commands.length ? line(term.repeat.label, codes(term.repeat.commands)) : null))),
  ]);
  byId("arithmetic").replaceChildren(
    element("p", {}, `${words.named(candidate)}, ${words.layout(candidate)}. A phase takes as long as the thing that takes longest: demand / machines / what the slowest of them carries.`),
    ...phases,
    element("h3", {}, "Cost", " ", element("small", {}, words.usd(candidate.cost))),
    element("ul", { class: "terms" }, element("li", {}, ...pricesOf(candidate).map((said) => element("p", {}, said)),
      line("The offer as the catalog has it", codes([`tonnage catalog show ${candidate.provider}/${candidate.offer}`])))));
}

/** Why offers are no candidates: by reason, most first; their names where they are asked for. */
function showExcluded({ excluded: offers }) {
  byId("excluded").hidden = !offers.length;
  const reasons = new Map();
  for (const { why, offer } of offers) {
    const reason = /^too (small|slow|dear)/.exec(why)?.[0] || why;
    reasons.set(reason, [...(reasons.get(reason) || []), reason === why ? offer : `${offer} (${why.slice(reason.length + 2)})`]);
  }
  const sorted = [...reasons].sort(([, one], [, other]) => other.length - one.length);
  byId("reasons").replaceChildren(
    element("p", {}, `${words.several(offers.length, "offer")} of what was asked for.`),
    ...sorted.map(([reason, names]) => {
      const list = element("p", { class: "reasons note" });
      const made = element("details", {}, element("summary", {}, `${words.sentence(reason)} ${words.several(names.length, "offer")}`), list);
      made.addEventListener("toggle", () => { list.textContent = names.join(", "); }, { once: true });
      return made;
    }));
}
