// Counterpart of tonnage/plan/search.py and tonnage/plan/layouts.py: the best number of nodes of every
// machine of every group, in single precision like there, so that the same number wins.
//
// Unlike there, a layout is skipped if even a bound is worse than the offer's best so far: the time of
// its volumes alone, or the least of each of its figures (branch and bound). A skipped layout appears
// in no list; the Pareto front uses its bounds.

const EVERY_NUMBER_UP_TO = 10_000, SIZE_STEP = 1.001;
const LONGEST_SECONDS = 1e10, MOST_USD = 1e15;
const TIE = Math.fround(1 + 3e-6);
const ROUNDING = 1 - 1e-6;
const IMPOSSIBLE_NODES = 2 ** 62;
const MOST_NODES = pageData.most_connected ?? IMPOSSIBLE_NODES;

/** The numbers of nodes that are computed, in order; the last is `most`. */
function clusterSizes(least, most) {
  const found = new Set();
  for (let size = least; size <= Math.min(most, EVERY_NUMBER_UP_TO); size += 1) found.add(size);
  const steps = Math.ceil(Math.log(Math.max(most / EVERY_NUMBER_UP_TO, 1)) / Math.log(SIZE_STEP));
  for (let step = 1; step < steps; step += 1) {
    const size = roundHalfEven(EVERY_NUMBER_UP_TO * SIZE_STEP ** step);
    if (size >= least) found.add(size);
  }
  return Float64Array.from(found.add(most));
}

const longestSeconds = ({ deadline }) => Math.min(deadline, LONGEST_SECONDS);
const mostUsd = ({ budget }) => Math.min(budget, MOST_USD);

/** The requested groups of machines, with the sizes that follow from the job's. */
function layoutOptions(request) {
  const variant = pageData.variants[request.location];
  const { kept, requests, taken_out } = variant.job;
  const size = request.size;
  return variant[request.purchase].groups
    .filter((group) => isRequested(request, group.catalog))
    .flatMap((group) => {
      const catalog = pageData.catalogs[group.catalog];
      const onVolumes = group.own_disks ? kept.volume * size : kept.local * size + kept.volume * size;
      const volumes = group.kind === null ? null
        : new BlockVolumes(catalog.kinds[group.kind], group.count, onVolumes, catalog.billing.hours_per_month);
      const all = pageData.lists[group.machines];
      const stores = (place) => minNodesOf(pageData.machines[place], group, volumes, kept, size);
      const enough = (place) => Math.max(stores(place), twoPassNodes(pageData.machines[place], group, size));
      // On fewer nodes, a third pass.
      const divides = (place) =>
        group.third_pass !== null && pageData.machines[place].divides_once_more && stores(place) < enough(place);
      const passes = [
        { demand: group.demand, is: (place) => enough(place) < IMPOSSIBLE_NODES || !divides(place), least: enough, most: () => MOST_NODES },
        { demand: group.third_pass, is: divides, least: stores, most: (place) => Math.min(MOST_NODES, enough(place) - 1) },
      ];
      return passes.flatMap(({ demand, is, least, most }) => {
        const machines = all.filter(is);
        return !machines.length ? [] : [{
          ...group, catalog, volumes, machines,
          ...outsideOf(machines, catalog.store, requests, taken_out, size),
          minNodes: machines.map(least), mostNodes: machines.map(most),
          demand: demands[demand], distinct: distinctMachines(machines, demand, request.purchase), purchase: request.purchase,
        }];
      });
    });
}

/** The cost of requests to object storage and of egress, by machine, line by line and in all. */
function outsideOf(machines, store, requests, takenOut, size) {
  const requested = machines.map((place) => requestsUsd(pageData.machines[place].buckets, store, requests, size));
  const sent = takenOut ? takenOut * size / 1e9 * store.usd_per_gb_to_internet : 0;
  const egress = machines.map(() => sent);
  return { outside: requested.map((usd) => usd + sent), outsideBill: { "object storage requests": requested, egress } };
}

/** The cost of a machine's requests. */
function requestsUsd(buckets, store, requests, size) {
  let total = 0;
  if (!store) return total;  // A lab's store costs nothing.
  for (const { kind, per_byte, moved, size: figure } of requests) {
    const each = figure === null ? per_byte : moved / Math.min(buckets[figure][0], moved / per_byte);
    total += each * size / 1000 * (kind === "get" ? store.usd_per_1000_gets : store.usd_per_1000_puts);
  }
  return total;
}

const isRequested = (request, catalog) =>
  !request.provider || pageData.catalogs[catalog].provider === request.provider;

/** The fewest nodes that can store the job. */
function minNodesOf(machine, group, volumes, kept, size) {
  let least = volumes ? volumes.minNodes : 1;
  if (group.own_disks && kept.local * size) least = Math.max(least, Math.ceil(kept.local * size / machine.local_bytes));
  if (kept.memory * size) least = Math.max(least, Math.ceil(kept.memory * size / machine.memory_bytes));
  return Math.min(least, IMPOSSIBLE_NODES);
}

/** The fewest nodes whose memory allows two passes. */
function twoPassNodes(machine, group, size) {
  if (size > ofLayout(machine.most_bytes, group)) return IMPOSSIBLE_NODES;
  return Math.ceil(size / ofLayout(machine.most_share, group));
}

/** What a machine's memory allows in two passes, in the group's layout. */
function ofLayout(limits, group) {
  if (limits === null) return Infinity;
  return limits[group.own_disks || !group.count ? "local" : group.count];
}

/** Demands with each distinct term once, since phases share terms. */
const demands = pageData.demands.map((demand) => {
  const terms = [], places = new Map();
  const phases = demand.phases.map((phase) => ({
    ...phase,
    places: phase.terms.map((term) => {
      const parts = term.parts.map((part) => [part.capacity, part.per_byte, part.remote_only, part.per_node, part.shared, part.outside, part.in_turn]);
      const key = JSON.stringify([term.resource_class, parts, term.credit_share, term.max_per_node, term.tasks]);
      if (!places.has(key)) places.set(key, terms.push(term) - 1);
      return places.get(key);
    }),
  }));
  return { ...demand, phases, terms, fixed_seconds: phases.reduce((sum, phase) => sum + phase.fixed_seconds, 0) };
});

/** Machines with the same advertised figures take the same time: one of each, and its twins. */
const distinctSets = new Map();
function distinctMachines(machines, demand, purchase) {
  const classes = pageData.demands[demand].advertised_resources;
  const key = `${machines} ${classes} ${purchase}`;
  if (!distinctSets.has(key)) {
    const ones = [], members = [], numbers = new Map();
    const alike = machines.map((place, at) => {
      const { buckets } = pageData.machines[place], interruptions = interruptionsOf(pageData.machines[place], purchase);
      const figures = [...classes.map((name) => buckets[name]), interruptions].join();
      if (!numbers.has(figures)) {
        numbers.set(figures, ones.push({ buckets, interruptions }) - 1);
        members.push([]);
      }
      members[numbers.get(figures)].push(at);
      return numbers.get(figures);
    });
    distinctSets.set(key, { ones, members, alike });
  }
  return distinctSets.get(key);
}

/** How often a machine is expected to be taken back, per second. */
const interruptionsOf = (machine, purchase) => machine.prices[purchase][5];

/** The hourly price of a node without its volumes. */
function machineUsdPerHour(group, machine) {
  const price = machine.prices[group.purchase][0] + machine.address_usd;
  return group.volumes ? price + machine.link_usd : price;
}

/** The best number of nodes of each machine of each group, and the least time and cost.
 *
 * nodes is 0 where none keeps the limits; null where another layout of the offer is better, and the
 * least time and cost are bounds.
 */
function searchAll(groups, size, samples, limits) {
  const prepared = groups.map((group) => prepare(group, size, samples, limits));
  const order = groups.map((_, at) => at).sort((one, other) => prepared[one].least.cost(1) - prepared[other].least.cost(1));
  const leading = new Float64Array(2 * pageData.machines.length).fill(Infinity);
  const found = new Array(groups.length);
  for (const at of order) found[at] = search(groups[at], prepared[at], limits, leading);
  return found;
}

/** The part of a group that all its machines share. */
function prepare(group, size, samples, limits) {
  const { demand, volumes } = group;
  const most = Math.min(limits.maxNodes, MOST_NODES);
  const begin = Math.min(Math.max(limits.minNodes, Math.min(...group.minNodes)), most);
  const nodes = clusterSizes(begin, most);
  const givens = gatherTerms(demand, volumes, size, nodes, samples.medianCapacity, Float32Array);
  const byVolumes = Float32Array.from(nodes, (each) => (volumes ? volumes.usdPerHour(each) / 3600 : 0));
  const table = {
    nodes, givens, byVolumes,
    billing: group.catalog.billing, room: allocate(demand, nodes.length, Float32Array),
    seconds: new Float32Array(nodes.length), other: new Float32Array(nodes.length),
    values: new Float32Array(nodes.length), hours: null, least: null,
  };
  // Volumes and fixed seconds, which take as long on any machine.
  const slow = givens.map(({ attached }) => ({ measured: attached, advertised: [], attached: null }));
  fill(table, jobWork(table.room, demand, slow, nodes, {}, 0), Math.min(...group.outside));
  return table;
}

/** Fill the table from node-seconds and the cost outside of the nodes. */
function fill(table, spent, outsideUsd) {
  const { nodes, byVolumes, seconds, other } = table;
  const outside = Math.fround(outsideUsd);
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
  const { machines, demand, distinct: { ones, members } } = group;
  const prices = machines.map((place) => Math.fround(machineUsdPerHour(group, pageData.machines[place])));
  const numbers = machines.map((place) => numberOf(group, place));
  const found = new Array(machines.length);
  const worse = (at) => {
    const [fastest, cheapest] = [table.least.seconds * ROUNDING, table.least.cost(prices[at]) * ROUNDING];
    if (!(valueOf(fastest, cheapest, limits) > leading[numbers[at]])) return false;
    found[at] = { nodes: null, value: Infinity, fastest, cheapest };
    return true;
  };
  const { least } = table;
  ones.forEach(({ buckets, interruptions }, kind) => {
    table.least = least;
    const left = members[kind].filter((at) => !worse(at));
    if (!left.length) return;
    fill(table, jobWork(table.room, demand, table.givens, table.nodes, buckets, interruptions), group.outside[left[0]]);
    for (const at of left) {
      if (worse(at)) continue;
      found[at] = best(table, prices[at], possibleSizes(table.nodes, group, at), limits);
      leading[numbers[at]] = Math.min(leading[numbers[at]], found[at].value);
    }
  });
  return found;
}

/** The places of the first size that a machine may have, and after the last. */
function possibleSizes(nodes, group, at) {
  const [first, after] = [(size) => size >= group.minNodes[at], (size) => size > group.mostNodes[at]]
    .map((is) => nodes.findIndex(is));
  return [first < 0 ? nodes.length : first, after < 0 ? nodes.length : after];
}

/** A number for each offer, placement, and use of local disks. */
const numberOf = (group, place) => 2 * place + (group.own_disks ? 1 : 0);

/** The value to minimise. */
function valueOf(seconds, cost, limits) {
  if (limits.objective === "nearest") return limitExcess(seconds, cost, limits.deadline, limits.budget);
  return limits.objective === "cost" ? cost : seconds;
}

/** The best number of nodes of one machine, of those at the places `from` up to `to`. */
function best({ nodes, seconds, hours, other, values }, price, [from, to], limits) {
  const deadline = Math.fround(longestSeconds(limits)), budget = Math.fround(mostUsd(limits));
  const byCost = limits.objective === "cost", nearest = limits.objective === "nearest";
  let fastest = Infinity, cheapest = Infinity, value = Infinity;
  for (let at = from; at < to; at += 1) {
    const cost = Math.fround(Math.fround(hours[at] * price) + other[at]);
    const took = seconds[at];
    if (took < fastest) fastest = took;
    if (cost < cheapest) cheapest = cost;
    let here = byCost ? cost : took;
    if (nearest) here = Math.fround(limitExcess(took, cost, Math.fround(limits.deadline), Math.fround(limits.budget)));
    else if (took > deadline || cost > budget) here = Infinity;
    values[at] = here;
    if (here < value) value = here;
  }
  if (value === Infinity) return { nodes: 0, value, fastest, cheapest };
  const enough = Math.fround(value * TIE);
  let first = from;
  while (!(values[first] <= enough)) first += 1;
  return { nodes: nodes[first], value, fastest, cheapest };
}

/** The factor by which the worst limit is exceeded. */
function limitExcess(seconds, cost, deadline, budget) {
  if (!(seconds <= LONGEST_SECONDS && cost <= MOST_USD)) return Infinity;
  let found = 0;
  if (deadline < Infinity) found = Math.max(found, seconds / deadline);
  if (budget < Infinity) found = Math.max(found, cost / budget);
  return found;
}
