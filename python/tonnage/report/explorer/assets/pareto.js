// Counterpart of tonnage/plan/recommendations/pareto.py: the Pareto front over all machines, layouts and numbers of
// nodes. A machine is skipped if some point is both faster and cheaper than it ever is, or if a
// cheaper machine takes as long.

const BOUND_ERROR = 1e-5;

/** The Pareto front of the points that keep the limits, fastest first. */
function paretoFront(groups, found, size, samples, limits) {
  const all = groups.flatMap((group, which) => {
    const cheapest = cheapestOf(group);
    return group.machines.flatMap((place, at) => {
      const bounds = found[which][at];
      const possible = bounds.nodes !== 0 && group.minNodes[at] <= Math.min(limits.maxNodes, group.mostNodes[at]);
      return possible && cheapest.has(at) ? [{ group, at, machine: pageData.machines[place], ...bounds }] : [];
    });
  });
  if (!all.length) return [];
  const least = (what) => all.reduce((one, other) => (other[what] < one[what] ? other : one));
  const order = [...all].sort((one, other) => one.fastest * one.cheapest - other.fastest * other.cheapest);
  let points = [];
  for (const each of [least("cheapest"), least("fastest"), ...order]) {
    if (each.done) continue;
    each.done = true;
    const more = pointsOf(each, size, samples, limits, points);
    if (!more.length) continue;
    points = undominated([...points, ...more]);
    for (const other of all) other.done ||= dominated(points, other);
  }
  return points;
}

/** The cheapest of the machines that take as long and store as much. */
function cheapestOf(group) {
  const found = new Map();
  group.machines.forEach((place, at) => {
    const price = machineUsdPerHour(group, pageData.machines[place]);
    const key = `${group.distinct.alike[at]} ${group.minNodes[at]} ${group.mostNodes[at]}`;
    if (!found.has(key) || price < found.get(key).price) found.set(key, { price, at });
  });
  return new Set([...found.values()].map(({ at }) => at));
}

/** The points of a machine, for every number of nodes that keeps the limits, that the front does not beat. */
function pointsOf({ group, at, machine }, size, samples, limits, front) {
  const { nodes, givens, room, volumeUsd } = frontTable(group, size, samples, limits);
  const spent = jobWork(
    room, group.demand, givens, nodes, machine.buckets, interruptionsOf(machine, group.purchase));
  const cost = costUsd(spent, nodes, machineUsdPerHour(group, machine), volumeUsd, group.outside[at], group.catalog.billing);
  const points = [];
  for (let place = 0; place < nodes.length; place += 1) {
    const point = { seconds: spent[place] / nodes[place], cost: cost[place] };
    const holds = nodes[place] >= group.minNodes[at] && nodes[place] <= group.mostNodes[at];
    if (!holds || point.seconds > longestSeconds(limits) || point.cost > mostUsd(limits) || beaten(front, point)) continue;
    points.push({
      ...point, nodes: nodes[place], group, at, machine,
      offer: machine.type, layout: group.layout, placement: machine.placement,
    });
  }
  return points;
}

/** The part of a group that all its machines share, in double precision; computed once a plan. */
function frontTable(group, size, samples, limits) {
  if (!group.frontTable) {
    const begin = Math.max(Math.min(...group.minNodes), limits.minNodes);
    const nodes = clusterSizes(begin, Math.min(limits.maxNodes, MOST_NODES));
    group.frontTable = {
      nodes,
      givens: gatherTerms(group.demand, group.volumes, size, nodes, samples.medianCapacity, Float64Array),
      room: allocate(group.demand, nodes.length, Float64Array),
      volumeUsd: nodes.map((each) => (group.volumes ? group.volumes.usdPerHour(each) : 0)),
    };
  }
  return group.frontTable;
}

/** The points that no other is as fast and as cheap as, by time. */
function undominated(points) {
  points.sort((one, other) => one.seconds - other.seconds || one.cost - other.cost);
  let least = Infinity;
  return points.filter((point) => {
    // To nine digits: a smaller difference is rounding.
    const kept = point.cost < least * (1 - 1e-9);
    least = Math.min(least, point.cost);
    return kept;
  });
}

/** Whether some point of the front is both faster and cheaper than a machine ever is. */
const dominated = (points, { fastest, cheapest }) =>
  cheapestWithin(points, fastest * (1 - BOUND_ERROR)) < cheapest * (1 - BOUND_ERROR);

/** Whether some point is as fast and as cheap as this one. */
const beaten = (points, { seconds, cost }) => cheapestWithin(points, seconds) <= cost;

/** The least cost of taking less time than this. */
function cheapestWithin(points, seconds) {
  let low = 0, high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle].seconds < seconds) low = middle + 1; else high = middle;
  }
  return low > 0 ? points[low - 1].cost : Infinity;
}
