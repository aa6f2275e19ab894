// Candidates as they are reported: of each offer and layout the best number of nodes, in double
// precision, with what may come in imagined fleets.
// As tonnage/plan/candidates.py and tonnage/plan/draws.py have it.

const LOW = (1 - 0.9) / 2, HIGH = (1 + 0.9) / 2;
const TIGHT = 0.98;

/** Of each offer and layout the best, whatever its volumes; ties to fewer nodes. */
function bestOfEach(groups, found) {
  const bests = new Map();
  groups.forEach((group, which) => group.machines.forEach((machine, at) => {
    const { nodes, value } = found[which][at];
    if (!nodes) return;
    const number = numberOf(group, machine);
    const known = bests.get(number);
    if (!known || value < known.value || (value === known.value && nodes < known.nodes)) {
      bests.set(number, { group, at, machine: world.machines[machine], nodes, value });
    }
  }));
  const order = [...bests].sort(([one], [other]) => one - other).map(([, choice]) => choice);
  // Group by group, as what ties later stays in this order.
  const together = new Map();
  for (const choice of order) together.set(choice.group, [...(together.get(choice.group) || []), choice]);
  return [...together.values()].flat();
}

/** What comes of a choice with every resource at its middle. */
function candidateOf(choice, size, rates) {
  const { group, machine } = choice;
  const nodes = Float64Array.of(choice.nodes);
  const givens = gathered(group.shape, group.volumes, size, nodes, rates.middle, Float64Array);
  const out = new Float64Array(1);
  const terms = group.shape.terms.map((term, at) => {
    termWork(out, term, givens[at], nodes, machine.figures);
    return out[0] / choice.nodes;
  });
  let seconds = 0;
  const phases = group.shape.phases.map((phase) => {
    let longest = 0, bottleneck = "nothing";
    phase.places.forEach((place, at) => {
      if (at === 0 || terms[place] > longest) {
        [longest, bottleneck] = [terms[place], group.shape.terms[place].thing];
      }
    });
    seconds += phase.fixed;
    seconds += longest;
    if (phase.fixed > longest) bottleneck = "what is fixed";
    return { name: phase.name, seconds: longest + phase.fixed, bottleneck };
  });
  const volumeUsd = Float64Array.of(group.volumes ? group.volumes.usdPerHour(choice.nodes) : 0);
  const price = machineUsd(group, machine);
  const [cost] = usd(
    Float64Array.of(seconds * choice.nodes), nodes, price, volumeUsd, group.outside, group.catalog.billing);
  return {
    choice, seconds, cost, phases,
    provider: group.catalog.provider, catalog: group.catalog.name, offer: machine.type,
    layout: group.layout, placement: machine.placement, nodes: choice.nodes,
    usdPerHour: price + volumeUsd[0], evidence: group.shape.evidence, calibrated: group.shape.calibrated,
  };
}

/** What may come of a candidate: intervals, and the share of fleets that meet the deadline. */
function withChances(candidate, { size, durability }, deadline) {
  const { group, machine, nodes: count } = candidate.choice;
  const nodes = new Float64Array(FLEETS).fill(count);
  const givens = gathered(group.shape, group.volumes, size, nodes, drawn, Float64Array);
  const spent = work(roomFor(group.shape, FLEETS, Float64Array), group.shape, givens, nodes, machine.figures);
  const took = spent.map((each) => each / count);
  const volumeUsd = new Float64Array(FLEETS).fill(group.volumes ? group.volumes.usdPerHour(count) : 0);
  const [usual, lowest, highest] = machine.prices[group.purchase];
  const paid = (price) => usd(
    spent, nodes, machineUsd(group, machine) + usual * (price / usual - 1), volumeUsd, group.outside,
    group.catalog.billing);
  return {
    ...candidate,
    secondsBetween: between(took, candidate.seconds),
    costBetween: [between(paid(lowest), candidate.cost)[0], between(paid(highest), candidate.cost)[1]],
    inTime: deadline < Infinity ? took.filter((each) => each <= deadline).length / FLEETS : null,
    notes: notesOf(candidate, size, durability),
  };
}

/** The ends of the interval, and never on one side of the middle. */
function between(values, middle) {
  const sorted = values.slice().sort();
  return [Math.min(quantile(sorted, LOW), middle), Math.max(quantile(sorted, HIGH), middle)];
}

/** Bytes that must be held at once, and bytes that there are. */
function neededAndHad({ group, machine, nodes }, size, durability) {
  const { kept } = world.variants[durability].job;
  let needed = 0, had = 0;
  if (group.own_disks) [needed, had] = [kept.local * size, nodes * (machine.local_bytes || 0)];
  if (group.volumes) {
    needed += group.volumes.keptBytes;
    had += nodes * group.volumes.count * group.volumes.gibEach(nodes) * GIB;
  }
  if (kept.memory) {
    needed += kept.memory * size;
    had += nodes * (machine.memory_bytes || 0);
  }
  return [Math.ceil(needed), had];
}

/** What is to be minded of a candidate. */
function notesOf(candidate, size, durability) {
  const { group, machine, nodes } = candidate.choice;
  const parts = group.shape.terms.flatMap((term) => term.parts);
  const [needed, had] = neededAndHad(candidate.choice, size, durability);
  const found = [...group.shape.notes];
  if (had && needed / had > TIGHT) {
    found.push(`its disks are full to ${words.percent(needed / had)}, as the papers count it; a file system takes 1 or 2 % of them`);
  }
  if (parts.some((part) => part.advertised && part.resource.startsWith("object"))) {
    found.push("object storage was not measured, and is taken to be as fast as its network");
  }
  if (machine.caution) found.push(`its price is ${machine.caution}`);
  if (group.shape.figures.includes("network") && machine.peak_only) {
    found.push("of its network only the peak is told: what lasts may be less");
  }
  const place = parts.map((part) => part.curve).find((curve) => curve !== null);
  const curve = place === undefined ? null : world.curves[place];
  const usesNetwork = group.shape.terms.some((term) => term.thing === "network");
  if (usesNetwork && !curve && !parts.some((part) => world.laws[part.law].at_scale)) {
    found.push("its network was not measured in fleets of several sizes");
  }
  if (curve && !group.shape.own_curve) {
    found.push(`its network is taken to fall in larger fleets as in ${curve.source}`);
  }
  const largest = curve && curve.points[curve.points.length - 1][0];
  if (curve && nodes > largest) {
    const known = curve.interval ? curve.interval.map((each) => each.toFixed(2)).join(" to ")
      : `not estimable: an error of ${chances.unknown_error} is assumed`;
    found.push(`the network of ${nodes} nodes is extrapolated from ${largest} at most, as nodes^-${curve.exponent.toFixed(2)} (${known})`);
  }
  return found;
}

/** What comes first: to eight digits, since what differs by less is alike. */
function rank(candidate, limits) {
  const [usd, seconds] = [candidate.cost, candidate.seconds].map((each) => Number(each.toPrecision(8)));
  const { nodes, offer, layout } = candidate;
  if (limits.objective === "nearest") {
    return [missedBy(seconds, usd, limits.deadline, limits.budget), usd, nodes, offer, layout];
  }
  return limits.objective === "cost" ? [usd, nodes, 0, offer, layout] : [seconds, usd, nodes, offer, layout];
}

function inOrder(one, other) {
  for (let at = 0; at < one.length; at += 1) {
    if (one[at] < other[at]) return -1;
    if (one[at] > other[at]) return 1;
  }
  return 0;
}

/** Candidates, best first. */
function ranked(some, limits) {
  const pairs = some.map((candidate) => [rank(candidate, limits), candidate]);
  return pairs.sort(([one], [other]) => inOrder(one, other)).map(([, candidate]) => candidate);
}
