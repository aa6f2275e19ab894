// Counterpart of tonnage/plan/candidates.py and tonnage/plan/monte_carlo.py: the best number of nodes
// of each offer and layout, in double precision, with intervals over the sampled clusters.

const LOW = (1 - 0.9) / 2, HIGH = (1 + 0.9) / 2;
const NEARLY_FULL = 0.98;

/** A smaller share of the time is not worth a note. */
const NOTEWORTHY = 0.1;
const CLOSE = 1.02;

/** The best number of nodes of each offer and layout, whatever its volumes; ties go to fewer. */
function bestPerLayout(groups, found) {
  const bests = new Map();
  groups.forEach((group, which) => group.machines.forEach((machine, at) => {
    const { nodes, value } = found[which][at];
    if (!nodes) return;
    const number = numberOf(group, machine);
    const known = bests.get(number);
    if (!known || value < known.value || (value === known.value && nodes < known.nodes)) {
      bests.set(number, { group, at, machine: pageData.machines[machine], nodes, value });
    }
  }));
  const order = [...bests].sort(([one], [other]) => one - other).map(([, choice]) => choice);
  // Group by group, since later ties keep this order.
  const byGroup = new Map();
  for (const choice of order) byGroup.set(choice.group, [...(byGroup.get(choice.group) || []), choice]);
  return [...byGroup.values()].flat();
}

/** A choice with every resource at its median. */
function candidateOf(choice, size, samples) {
  const { group, machine } = choice;
  const nodes = Float64Array.of(choice.nodes);
  const givens = gatherTerms(group.demand, group.volumes, size, nodes, samples.medianCapacity, Float64Array);
  const out = new Float64Array(1);
  const terms = group.demand.terms.map((term, at) => {
    termWork(out, term, givens[at], nodes, machine.buckets);
    return out[0] / choice.nodes;
  });
  let seconds = 0;
  const phases = group.demand.phases.map((phase) => {
    let longest = 0, bottleneck = "nothing";
    phase.places.forEach((place, at) => {
      if (at === 0 || terms[place] > longest) {
        [longest, bottleneck] = [terms[place], group.demand.terms[place].resource_class];
      }
    });
    seconds += phase.fixed_seconds;
    seconds += longest;
    if (phase.fixed_seconds > longest) bottleneck = "fixed time";
    return { name: phase.name, seconds: longest + phase.fixed_seconds, bottleneck };
  });
  const interruptions = interruptionsOf(machine, group.purchase);
  if (interruptions) {
    const [more] = interruptionWork(Float64Array.of(seconds * choice.nodes), nodes, interruptions);
    phases.push({ name: "interruptions", seconds: more / choice.nodes, bottleneck: "spot machines" });
    seconds += more / choice.nodes;
  }
  const volumeUsd = Float64Array.of(group.volumes ? group.volumes.usdPerHour(choice.nodes) : 0);
  const price = machineUsdPerHour(group, machine);
  const [cost] = costUsd(
    Float64Array.of(seconds * choice.nodes), nodes, price, volumeUsd, group.outside[choice.at], group.catalog.billing);
  return {
    choice, seconds, cost, phases,
    provider: group.catalog.provider, catalog: group.catalog.name, offer: machine.type,
    layout: group.layout, placement: machine.placement, nodes: choice.nodes,
    usdPerHour: price + volumeUsd[0], evidence: group.demand.evidence, calibrated: group.demand.calibrated,
  };
}

/** A machine's buckets in every sampled cluster: its network may have some of the credit of its size. */
function sampledBuckets({ buckets, possible_burst: [rate, most] }) {
  if (!most) return buckets;
  const [baseline, , credit] = buckets.network;
  const drawn = uniform("unmeasured credit").map((share) => credit + share * most);
  return { ...buckets, network: [baseline, rate, drawn] };
}

/** Intervals, and the share of sampled clusters that meet the deadline. */
function withIntervals(candidate, { size, location }, deadline) {
  const { group, machine, nodes: count } = candidate.choice;
  const nodes = new Float64Array(CLUSTERS).fill(count);
  const givens = gatherTerms(group.demand, group.volumes, size, nodes, sampledCapacity, Float64Array);
  const room = allocate(group.demand, CLUSTERS, Float64Array);
  const spent = jobWork(
    room, group.demand, givens, nodes, sampledBuckets(machine),
    interruptionsOf(machine, group.purchase));
  if (group.demand.spread) varyRuns(spent, group.demand, room);
  const took = spent.map((each) => each / count);
  const volumeUsd = new Float64Array(CLUSTERS).fill(group.volumes ? group.volumes.usdPerHour(count) : 0);
  const [usual, lowest, highest] = machine.prices[group.purchase];
  const paid = (price) => costUsd(
    spent, nodes, machineUsdPerHour(group, machine) + usual * (price / usual - 1), volumeUsd,
    group.outside[candidate.choice.at], group.catalog.billing);
  return {
    ...candidate,
    secondsInterval: interval(took, candidate.seconds),
    costInterval: [interval(paid(lowest), candidate.cost)[0], interval(paid(highest), candidate.cost)[1]],
    inTime: deadline < Infinity ? took.filter((each) => each <= deadline).length / CLUSTERS : null,
    notes: candidateNotes(candidate, size, location),
  };
}

/** How many times as long a run takes in each sampled cluster, but for the start of its machines. */
function varyRuns(spent, { phases, spread }, [, , ...terms]) {
  const starting = phases.filter(({ name }) => name === START_UP).flatMap(({ places }) => places.map((place) => terms[place]));
  normals("how runs vary").forEach((drawn, at) => {
    const start = starting.reduce((sum, each) => sum + each[at], 0);
    spent[at] = start + (spent[at] - start) * Math.exp(spread * drawn);
  });
}

/** The ends of the interval; the median is always inside. */
function interval(values, middle) {
  const sorted = values.slice().sort();
  return [Math.min(quantile(sorted, LOW), middle), Math.max(quantile(sorted, HIGH), middle)];
}

/** The share of local disks and volumes that must be stored on at once; 0 where there are none. */
function diskShare({ group, machine, nodes }, size, location) {
  const { kept } = pageData.variants[location].job;
  let needed = 0, had = 0;
  if (group.own_disks) [needed, had] = [kept.local * size, nodes * machine.local_bytes];
  if (group.volumes) {
    needed += group.volumes.storedBytes;
    had += nodes * group.volumes.count * group.volumes.gibEach(nodes) * GIB;
  }
  return had ? Math.ceil(needed) / had : 0;
}

/** The share of memory that the job's data takes at once; 0 if it keeps none there. */
function memoryShare({ machine, nodes }, size, location) {
  const needed = Math.ceil(pageData.variants[location].job.kept.memory * size);
  return needed && machine.memory_bytes ? needed / (nodes * machine.memory_bytes) : 0;
}

/** Caveats of a candidate. */
function candidateNotes(candidate, size, location) {
  const { group, machine, nodes } = candidate.choice;
  const parts = group.demand.terms.flatMap((term) => term.parts);
  const found = [...group.demand.notes];
  for (const [space, share, rest] of [
    ["disks", diskShare(candidate.choice, size, location), "the file system needs another 1 to 2 %: the data may not fit"],
    ["memory", memoryShare(candidate.choice, size, location), "a little more data would not fit"],
  ]) {
    if (share > NEARLY_FULL) found.push(`the job fills its ${space} to ${formatting.percent(share)}, and ${rest}`);
  }
  if (parts.some((part) => part.advertised && part.resource.startsWith("object"))) {
    found.push("object storage was not measured; it is assumed to be as fast as the network");
  }
  if (group.demand.advertised_resources.includes("cores")) {
    found.push(parts.some((part) => part.advertised === "cores" && part.resource === "cpu" && !part.per_node)
      ? "its cores did not run this job; core seconds are scaled from those that did, as fast as others measured cores of both types"
      : "its cores were not measured; they are assumed to work as in Tonnage's own benchmarks, as fast as others measured cores of its type");
  }
  for (const caution of machine.prices[group.purchase][4]) found.push(pageData.texts[caution]);
  if (group.demand.advertised_resources.includes("network") && machine.network_caution !== null) {
    found.push(pageData.texts[machine.network_caution]);
  }
  const place = parts.map((part) => part.curve).find((curve) => curve !== null);
  const curve = place === undefined ? null : pageData.curves[place];
  const usesNetwork = group.demand.terms.some((term) => term.resource_class === "network");
  if (usesNetwork && !curve && !parts.some((part) => pageData.laws[part.capacity].at_scale)) {
    found.push("its network was not measured in clusters of several sizes");
  }
  if (curve && !group.demand.uses_measured_curve) {
    found.push(`its network is assumed to ${curve.assumption}`);
  }
  const largest = curve && curve.points[curve.points.length - 1][0];
  if (curve && nodes > largest) {
    const known = curve.interval ? curve.interval.map((each) => each.toFixed(2)).join(" to ")
      : `error not estimable, ${randomDraws.unknown_error} is assumed`;
    found.push(`the network of ${nodes} nodes is extrapolated from at most ${largest} nodes, as nodes^-${curve.exponent.toFixed(2)} (${known})`);
  }
  return [...found, ...taskNotes(candidate)];
}

/** What of its time more machines do not shorten, and where they are idle. */
function taskNotes({ phases, choice: { group, machine, nodes } }) {
  const found = [], own = phases.filter(({ name }) => name !== "interruptions");
  const whole = own.reduce((sum, { seconds }) => sum + seconds, 0);
  const skew = own.reduce((sum, { seconds, bottleneck }) => sum + (bottleneck === "longest task" ? seconds : 0), 0);
  if (skew > NOTEWORTHY * whole) {
    found.push(`${formatting.percent(skew / whole)} of the time is that of single long tasks, which no number of machines shortens`);
  }
  const tasks = group.demand.phases.flatMap((phase) => phase.terms.map((term) => term.tasks)).filter((each) => each);
  const slots = () => nodes * machine.buckets.slots[0], few = tasks.filter((each) => each < slots()).length;
  if (few) found.push(`${few} of its phases have fewer tasks than the ${formatting.count(Math.round(slots()))} vCPUs of the cluster, so that some are idle`);
  return found;
}

/** The sort key, rounded to eight digits: what differs by less is a tie. */
function rankKey(candidate, limits) {
  const [usd, seconds] = [candidate.cost, candidate.seconds].map((each) => Number(each.toPrecision(8)));
  const { nodes, offer, layout } = candidate;
  if (limits.objective === "nearest") {
    return [limitExcess(seconds, usd, limits.deadline, limits.budget), usd, nodes, offer, layout];
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

/** Candidates, best first; of those within 2 % of the best, fewer nodes come first. */
function ranked(some, limits) {
  const pairs = some.map((candidate) => [rankKey(candidate, limits), candidate]);
  pairs.sort(([one], [other]) => inOrder(one, other));
  if (!pairs.length) return [];
  const [[[least], best]] = pairs;
  const egress = best.choice.group.outsideBill.egress[best.choice.at];
  const most = least + (CLOSE - 1) * (limits.objective === "cost" ? least - egress : least);
  const close = pairs.filter(([[value]]) => value <= most).map(([, candidate]) => candidate);
  const others = pairs.slice(close.length).map(([, candidate]) => candidate);
  return [...close.sort((one, other) => one.nodes - other.nodes), ...others];
}

/** The candidates of a short table: the first of each family of machine types; all if they are few. */
function bestOfFamilies(candidates, most) {
  if (candidates.length <= most) return candidates;
  const found = new Map();
  for (const each of candidates) {
    const family = `${each.catalog} ${each.choice.machine.family} ${each.placement}`;
    if (!found.has(family)) found.set(family, each);
  }
  return [...found.values()].slice(0, most);
}
