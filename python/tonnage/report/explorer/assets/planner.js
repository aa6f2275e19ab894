// Counterpart of tonnage/plan/planner.py: candidates best first, the Pareto front, excluded offers with
// reasons, and the nearest candidate where nothing keeps the limits.

const SHOWN = 20;
const FAR_BEYOND_RUN = 10;

/** Plan a request.
 *
 * request: size (bytes), deadline (seconds) and budget (dollars), either Infinity, objective
 * ("cost" or "time"), location, provider ("" for all), purchase, maxNodes.
 */
function plan(request) {
  const limits = {
    minNodes: 1, maxNodes: request.maxNodes, deadline: request.deadline, budget: request.budget,
    objective: request.objective,
  };
  const groups = layoutOptions(request);
  const samples = samplesOf(limits.minNodes, limits.maxNodes);
  const results = searchAll(groups, request.size, samples, limits);
  const candidates = ranked(
    bestPerLayout(groups, results).map((choice) => candidateOf(choice, request.size, samples)), limits)
    .map((each, at) => ({ ...each, rank: at + 1 }));
  const shown = bestOfFamilies(candidates, SHOWN).map((each) => withIntervals(each, request, limits.deadline));
  const notes = planNotes(request, groups);
  const nearest = candidates.length ? null : nearestOf(request, groups, limits);
  return {
    request, groups, samples, limits,
    candidates, shown, nearest,
    pareto: paretoFront(groups, results, request.size, samples, limits),
    excluded: excluded(request, groups, results, limits, candidates),
    notes, demandsKnown: !notes.includes(pageData.no_cores),
  };
}

const allSamples = new Map();
function samplesOf(least, most) {
  const key = `${least} ${most}`;
  if (!allSamples.has(key)) {
    // Keep only a few: each holds a table for every capacity distribution.
    if (allSamples.size > 8) allSamples.delete(allSamples.keys().next().value);
    allSamples.set(key, new CapacitySamples(least, most));
  }
  return allSamples.get(key);
}

/** The candidate that exceeds the deadline or budget least; if none fits, the one with fewest nodes. */
function nearestOf(request, groups, limits) {
  const least = groups.reduce((few, group) => Math.min(few, ...group.minNodes), Infinity);
  if (!(least < IMPOSSIBLE_NODES) || least > MOST_NODES) return null;
  const relaxed = { ...limits, objective: "nearest" };
  if (least > limits.maxNodes) Object.assign(relaxed, { minNodes: least, maxNodes: least });
  if (limits.deadline === Infinity && limits.budget === Infinity) relaxed.objective = limits.objective;
  const samples = samplesOf(relaxed.minNodes, relaxed.maxNodes);
  const found = searchAll(groups, request.size, samples, relaxed);
  const some = bestPerLayout(groups, found).map((choice) => candidateOf(choice, request.size, samples));
  const [first] = ranked(some, relaxed);
  return first ? withIntervals(first, request, limits.deadline) : null;
}

/** Offers with no candidate, each with its first reason. */
function excluded(request, groups, results, limits, candidates) {
  const key = (catalog, offer) => `${catalog} ${offer}`;
  const planned = new Set(candidates.map((each) => key(each.catalog, each.offer)));
  const why = new Map();
  const add = (catalog, offer, reason) => {
    const of = key(catalog, offer);
    if (!planned.has(of) && !why.has(of)) why.set(of, { catalog, offer, why: reason });
  };
  const without = groups.flatMap((group, which) => group.machines.flatMap((machine, at) =>
    results[which][at].nodes === 0 ? [{ group, machine, least: group.minNodes[at], result: results[which][at] }] : []));
  // What another layout, or a third pass, takes says more than that this one needs more nodes.
  without.sort((one, other) => (one.least > limits.maxNodes) - (other.least > limits.maxNodes));
  for (const { group, machine, least, result } of without) {
    add(group.catalog.name, pageData.machines[machine].type, exclusionReason(least, result, limits));
  }
  for (const [reason, catalog, offers] of pageData.variants[request.location][request.purchase].excluded) {
    if (isRequested(request, catalog)) for (const offer of offers) add(pageData.catalogs[catalog].name, offer, reason);
  }
  return [...why.values()];
}

/** Why no number of nodes of this machine keeps the limits. */
function exclusionReason(minNodes, { fastest, cheapest }, limits) {
  if (minNodes === IMPOSSIBLE_NODES) return "too little memory for two passes over so much data";
  if (minNodes > MOST_NODES) {
    return `too many sockets: each node has two for each other one, so at most ${MOST_NODES} nodes can be connected (--descriptors)`;
  }
  if (minNodes > limits.maxNodes) return `too small: at least ${minNodes} nodes are needed to store the data`;
  if (fastest > longestSeconds(limits)) return `too slow: at least ${roundHalfEven(fastest)} s`;
  if (cheapest > mostUsd(limits)) return `too expensive: at least ${(roundHalfEven(cheapest * 100) / 100).toFixed(2)} USD`;
  return "no number of nodes meets both the deadline and the budget";
}

/** Round half to even, as Python does. */
function roundHalfEven(value) {
  const below = Math.floor(value);
  return value - below === 0.5 ? below + below % 2 : Math.round(value);
}

/** Caveats of the whole plan. */
function planNotes(request, groups) {
  const variant = pageData.variants[request.location];
  const catalogs = pageData.catalogs.filter((_, catalog) => isRequested(request, catalog));
  const found = [...catalogs.flatMap((each) => each.notes), ...variant[request.purchase].notes];
  const seen = variant.job.seen_bytes;
  if (seen && request.size > FAR_BEYOND_RUN * seen) {
    found.push(`the observed run had ${formatting.size(seen)} of input; its demands may not grow in proportion`);
  }
  // Calibrated phases include the CPU time of their runs.
  const terms = groups.flatMap((group) => (group.demand.calibrated ? [] : group.demand.terms));
  const isWorkOnData = (term) => term.resource_class === "cpu" && !term.parts.every((part) => part.per_node);
  if (terms.length && !terms.some(isWorkOnData)) found.push(pageData.no_cores);
  return [...found, ...pageData.notes];
}
