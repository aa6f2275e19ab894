// The Pareto front over all machines, layouts and numbers of nodes: cheaper or faster, not neither.
// As tonnage/plan/front.py has it: a machine is left out if some point is both faster and cheaper
// than it ever is, or if it takes as long as a cheaper one.

const BOUNDS = 1e-5;

/** The front, fastest first; of the points that keep the limits. */
function front(groups, found, size, rates, limits) {
  const all = groups.flatMap((group, which) => {
    const cheapest = cheapestOf(group);
    return group.machines.flatMap((place, at) => {
      const bounds = found[which][at];
      return bounds.nodes !== 0 && cheapest.has(at) ? [{ group, at, machine: world.machines[place], ...bounds }] : [];
    });
  });
  if (!all.length) return [];
  const least = (what) => all.reduce((one, other) => (other[what] < one[what] ? other : one));
  const order = [...all].sort((one, other) => one.fastest * one.cheapest - other.fastest * other.cheapest);
  let points = [];
  for (const each of [least("cheapest"), least("fastest"), ...order]) {
    if (each.gone) continue;
    each.gone = true;
    const more = pointsOf(each, size, rates, limits).filter((point) => !beaten(points, point));
    if (!more.length) continue;
    points = undominated([...points, ...more]);
    for (const other of all) other.gone ||= dominated(points, other);
  }
  return points;
}

/** The machines that no other one of the group takes as long as, holds as much as, for less. */
function cheapestOf(group) {
  const found = new Map();
  group.machines.forEach((place, at) => {
    const price = machineUsd(group, world.machines[place]);
    const key = `${group.kinds.alike[at]} ${group.leastNodes[at]}`;
    if (!found.has(key) || price < found.get(key).price) found.set(key, { price, at });
  });
  return new Set([...found.values()].map(({ at }) => at));
}

/** Seconds and dollars for every number of nodes that keeps the limits. */
function pointsOf({ group, at, machine }, size, rates, limits) {
  const begin = Math.max(group.leastNodes[at], limits.least);
  const nodes = Float64Array.from({ length: Math.max(limits.most - begin + 1, 0) }, (_, place) => begin + place);
  const givens = gathered(group.shape, group.volumes, size, nodes, rates.middle, Float64Array);
  const spent = work(roomFor(group.shape, nodes.length, Float64Array), group.shape, givens, nodes, machine.figures);
  const volumeUsd = nodes.map((each) => (group.volumes ? group.volumes.usdPerHour(each) : 0));
  const cost = usd(spent, nodes, machineUsd(group, machine), volumeUsd, group.outside, group.catalog.billing);
  const points = Array.from(nodes, (count, place) => ({
    seconds: spent[place] / count, cost: cost[place], nodes: count, group, at, machine,
    offer: machine.type, layout: group.layout, placement: machine.placement,
  }));
  return points.filter((point) => point.seconds <= limits.deadline && point.cost <= limits.budget);
}

/** Those that none is as fast and as cheap as, in the order of time. */
function undominated(points) {
  points.sort((one, other) => one.seconds - other.seconds || one.cost - other.cost);
  let least = Infinity;
  return points.filter((point) => {
    // To nine digits: what is cheaper by less is so by rounding.
    const kept = point.cost < least * (1 - 1e-9);
    least = Math.min(least, point.cost);
    return kept;
  });
}

/** Whether some point of the front is both faster and cheaper than a machine ever is. */
const dominated = (points, { fastest, cheapest }) =>
  cheapestWithin(points, fastest * (1 - BOUNDS)) < cheapest * (1 - BOUNDS);

/** Whether some point is as fast as this one, and as cheap. */
const beaten = (points, { seconds, cost }) => cheapestWithin(points, seconds) <= cost;

/** What is paid at least to take less time than this. */
function cheapestWithin(points, seconds) {
  let low = 0, high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle].seconds < seconds) low = middle + 1; else high = middle;
  }
  return low > 0 ? points[low - 1].cost : Infinity;
}
