// The best number of nodes of every machine of every group.
// As tonnage/plan/search.py has it, in single precision as there, so that the same number wins. There
// all is computed; here a layout of an offer is left out that is worse than the best so far even if
// volumes alone took time, or if each of its figures were at its least (branch and bound): what is
// left out is on no list but the front's, which takes its bounds.

const TIE = Math.fround(1 + 3e-6);
const ROUNDING = 1 - 1e-6;

/** The groups of machines that are asked for, with the sizes that follow from the job's. */
function groupsOf(question) {
  const variant = world.variants[question.durability];
  const { kept, requests, taken_out } = variant.job;
  const size = question.size;
  return variant[question.purchase].groups
    .filter((group) => asked(question, group.catalog))
    .map((group) => {
      const catalog = world.catalogs[group.catalog];
      const onVolumes = group.own_disks ? kept.volume * size : kept.local * size + kept.volume * size;
      const volumes = group.kind === null ? null
        : new Volumes(catalog.kinds[group.kind], group.count, onVolumes, catalog.billing.hours_per_month);
      let outside = 0;
      for (const { kind, per_byte } of catalog.store ? requests : []) {  // A lab's cost nothing.
        const { usd_per_1000_gets, usd_per_1000_puts } = catalog.store;
        outside += per_byte * size / 1000 * (kind === "get" ? usd_per_1000_gets : usd_per_1000_puts);
      }
      if (taken_out) outside += taken_out * size / 1e9 * catalog.store.usd_per_gb_to_internet;
      const machines = world.lists[group.machines];
      const leastNodes = machines.map((place) => leastNodesOf(world.machines[place], group, volumes, kept, size));
      return {
        ...group, catalog, volumes, outside, machines, leastNodes,
        shape: shapes[group.shape], kinds: kindsOf(group), purchase: question.purchase,
      };
    });
}

const asked = (question, catalog) =>
  !question.provider || world.catalogs[catalog].provider === question.provider;

/** The fewest nodes that hold the job. */
function leastNodesOf(machine, group, volumes, kept, size) {
  let least = volumes ? volumes.leastNodes : 1;
  if (group.own_disks && kept.local * size) least = Math.max(least, Math.ceil(kept.local * size / machine.local_bytes));
  if (kept.memory * size) least = Math.max(least, Math.ceil(kept.memory * size / machine.memory_bytes));
  return Math.min(least, 2 ** 62);
}

/** Shapes with each of their terms once, since phases have terms that take as long. */
const shapes = world.shapes.map((shape) => {
  const terms = [], places = new Map();
  const phases = shape.phases.map((phase) => ({
    ...phase,
    places: phase.terms.map((term) => {
      const parts = term.parts.map((part) => [part.law, part.per_byte, part.kept]);
      const key = JSON.stringify([term.thing, parts, term.share, term.most]);
      if (!places.has(key)) places.set(key, terms.push(term) - 1);
      return places.get(key);
    }),
  }));
  return { ...shape, phases, terms, fixed: phases.reduce((sum, phase) => sum + phase.fixed, 0) };
});

/** Machines of which the same is advertised take the same time: one of each, and which are alike. */
const kinds = new Map();
function kindsOf(group) {
  const things = world.shapes[group.shape].figures;
  const key = `${group.machines} ${things}`;
  if (!kinds.has(key)) {
    const ones = [], members = [], numbers = new Map();
    const alike = world.lists[group.machines].map((place, at) => {
      const { figures } = world.machines[place];
      const told = things.map((thing) => figures[thing]).join();
      if (!numbers.has(told)) {
        numbers.set(told, ones.push(figures) - 1);
        members.push([]);
      }
      members[numbers.get(told)].push(at);
      return numbers.get(told);
    });
    kinds.set(key, { ones, members, alike });
  }
  return kinds.get(key);
}

/** The price of a node by the hour, without its volumes. */
function machineUsd(group, machine) {
  const [usual] = machine.prices[group.purchase];
  return group.volumes ? usual + machine.link_usd : usual;
}

/** Of each group for each machine its best number of nodes, and what it can at best.
 *
 * nodes is 0 where none keeps the limits; null where another layout of the offer is better, and what
 * it can at best is a bound.
 */
function searchAll(groups, size, rates, limits) {
  const prepared = groups.map((group) => prepare(group, size, rates, limits));
  const order = groups.map((_, at) => at).sort((one, other) => prepared[one].least.cost(1) - prepared[other].least.cost(1));
  const leading = new Float64Array(2 * world.machines.length).fill(Infinity);
  const found = new Array(groups.length);
  for (const at of order) found[at] = search(groups[at], prepared[at], limits, leading);
  return found;
}

/** What of a group is the same for all its machines. */
function prepare(group, size, rates, limits) {
  const { shape, volumes } = group;
  const begin = Math.min(Math.max(limits.least, Math.min(...group.leastNodes)), limits.most);
  const nodes = Float64Array.from({ length: limits.most - begin + 1 }, (_, at) => begin + at);
  const givens = gathered(shape, volumes, size, nodes, rates.middle, Float32Array);
  const byVolumes = Float32Array.from(nodes, (each) => (volumes ? volumes.usdPerHour(each) / 3600 : 0));
  const table = {
    begin, nodes, givens, byVolumes, outside: Math.fround(group.outside),
    billing: group.catalog.billing, room: roomFor(shape, nodes.length, Float32Array),
    seconds: new Float32Array(nodes.length), other: new Float32Array(nodes.length),
    values: new Float32Array(nodes.length), hours: null, least: null,
  };
  // Volumes and what is fixed, for which any machine has to wait.
  const slow = givens.map(({ attached }) => ({ measured: attached, advertised: null, attached: null }));
  fill(table, work(table.room, shape, slow, nodes, {}));
  return table;
}

/** Puts into the table what follows from node-seconds. */
function fill(table, spent) {
  const { nodes, byVolumes, outside, seconds, other } = table;
  for (let at = 0; at < spent.length; at += 1) {
    seconds[at] = spent[at] / nodes[at];
    other[at] = spent[at] * byVolumes[at];
    other[at] += outside;
  }
  table.hours = machineHours(spent, nodes, table.billing);
  const [hours, others, fastest] = [leastOf(table.hours), leastOf(other), leastOf(seconds)];
  table.least = { cost: (price) => hours * price + others, seconds: fastest };
}

function leastOf(some) {
  let least = Infinity;
  for (let at = 0; at < some.length; at += 1) if (some[at] < least) least = some[at];
  return least;
}

function search(group, table, limits, leading) {
  const { machines, shape, kinds: { ones, members } } = group;
  const prices = machines.map((place) => Math.fround(machineUsd(group, world.machines[place])));
  const numbers = machines.map((place) => numberOf(group, place));
  const found = new Array(machines.length);
  const worse = (at) => {
    const [fastest, cheapest] = [table.least.seconds * ROUNDING, table.least.cost(prices[at]) * ROUNDING];
    if (!(valueOf(fastest, cheapest, limits) > leading[numbers[at]])) return false;
    found[at] = { nodes: null, value: Infinity, fastest, cheapest };
    return true;
  };
  const { least } = table;
  ones.forEach((figures, kind) => {
    table.least = least;
    const left = members[kind].filter((at) => !worse(at));
    if (!left.length) return;
    fill(table, work(table.room, shape, table.givens, table.nodes, figures));
    for (const at of left) {
      if (worse(at)) continue;
      const from = Math.min(Math.max(group.leastNodes[at] - table.begin, 0), table.nodes.length);
      found[at] = best(table, prices[at], from, limits);
      leading[numbers[at]] = Math.min(leading[numbers[at]], found[at].value);
    }
  });
  return found;
}

/** Different for each offer, placement and way to lie on disks. */
const numberOf = (group, place) => 2 * place + (group.own_disks ? 1 : 0);

/** What is minimised. */
function valueOf(seconds, cost, limits) {
  if (limits.objective === "nearest") return missedBy(seconds, cost, limits.deadline, limits.budget);
  return limits.objective === "cost" ? cost : seconds;
}

/** The best of one machine, which holds the job with as many nodes as the number at `from` has. */
function best({ seconds, hours, other, values, begin }, price, from, limits) {
  const deadline = Math.fround(limits.deadline), budget = Math.fround(limits.budget);
  const byCost = limits.objective === "cost", nearest = limits.objective === "nearest";
  let fastest = Infinity, cheapest = Infinity, value = Infinity;
  for (let at = from; at < hours.length; at += 1) {
    const cost = Math.fround(Math.fround(hours[at] * price) + other[at]);
    const took = seconds[at];
    if (took < fastest) fastest = took;
    if (cost < cheapest) cheapest = cost;
    let here = byCost ? cost : took;
    if (nearest) here = Math.fround(missedBy(took, cost, deadline, budget));
    else if (took > deadline || cost > budget) here = Infinity;
    values[at] = here;
    if (here < value) value = here;
  }
  if (value === Infinity) return { nodes: 0, value, fastest, cheapest };
  const enough = Math.fround(value * TIE);
  let first = from;
  while (!(values[first] <= enough)) first += 1;
  return { nodes: begin + first, value, fastest, cheapest };
}

/** By what factor the worst of the limits is missed. */
function missedBy(seconds, cost, deadline, budget) {
  let found = 0;
  if (deadline < Infinity) found = Math.max(found, seconds / deadline);
  if (budget < Infinity) found = Math.max(found, cost / budget);
  return found;
}
