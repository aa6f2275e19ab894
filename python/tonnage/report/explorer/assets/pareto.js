// Counterpart of tonnage/plan/pareto.py: the Pareto front over all machines, layouts and numbers of
// nodes. A machine is skipped if some point is both faster and cheaper than it ever is, or if a
// cheaper machine takes as long.

const BOUND_ERROR = 1e-5;

/** The Pareto front of the points that keep the limits, fastest first. */
function paretoFront(groups, found, size, samples, limits) {
  const all = groups.flatMap((group, which) => {
    const cheapest = cheapestOf(group);
    return group.machines.flatMap((place, at) => {
      const bounds = found[which][at];
      return bounds.nodes !== 0 && cheapest.has(at) ? [{ group, at, machine: pageData.machines[place], ...bounds }] : [];
    });
  });
  if (!all.length) return [];
  const least = (what) => all.reduce((one, other) => (other[what] < one[what] ? other : one));
  const order = [...all].sort((one, other) => one.fastest * one.cheapest - other.fastest * other.cheapest);
  let points = [];
  for (const each of [least("cheapest"), least("fastest"), ...order]) {
    if (each.done) continue;
    each.done = true;
    const more = pointsOf(each, size, samples, limits).filter((point) => !beaten(points, point));
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
    const key = `${group.distinct.alike[at]} ${group.minNodes[at]}`;
    if (!found.has(key) || price < found.get(key).price) found.set(key, { price, at });
  });
  return new Set([...found.values()].map(({ at }) => at));
}

/** Seconds and dollars for every number of nodes that keeps the limits. */
function pointsOf({ group, at, machine }, size, samples, limits) {
  const begin = Math.max(group.minNodes[at], limits.minNodes);
  const nodes = Float64Array.from({ length: Math.max(limits.maxNodes - begin + 1, 0) }, (_, place) => begin + place);
  const givens = gatherTerms(group.demand, group.volumes, size, nodes, samples.medianCapacity, Float64Array);
  const spent = jobWork(allocate(group.demand, nodes.length, Float64Array), group.demand, givens, nodes, machine.buckets);
  const volumeUsd = nodes.map((each) => (group.volumes ? group.volumes.usdPerHour(each) : 0));
  const cost = costUsd(spent, nodes, machineUsdPerHour(group, machine), volumeUsd, group.outside, group.catalog.billing);
  const points = Array.from(nodes, (count, place) => ({
    seconds: spent[place] / count, cost: cost[place], nodes: count, group, at, machine,
    offer: machine.type, layout: group.layout, placement: machine.placement,
  }));
  return points.filter((point) => point.seconds <= limits.deadline && point.cost <= limits.budget);
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
