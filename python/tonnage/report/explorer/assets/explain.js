// Counterpart of tonnage/plan/explain.py: the arithmetic of one candidate, term by term, with the
// source of each number.

const TO_MEASURE = [
  ["local", "tonnage measure disk --dir DIR"], ["volume", "tonnage measure disk --dir DIR"],
  ["network", "tonnage measure net --cluster"], ["object", "tonnage measure object s3://BUCKET"],
  ["cpu", "tonnage study"],
];

/** Limits of a phase that are not those of the resources in their terms. */
const OTHER_LIMITS = ["object connections", "threads", "task slots"];

/** The seconds of each part of each phase: demand / (nodes x capacity of the slowest node). */
function explain(candidate, size, samples) {
  const { group, machine } = candidate.choice;
  return group.demand.phases.flatMap((phase) => phase.terms.flatMap((term) => {
    return term.parts.filter((part) => movesData(term, part, candidate.nodes)).map((part) => {
      const moved = part.per_byte * (part.per_node ? candidate.nodes : size);
      const sent = part.remote_only ? 1 - 1 / candidate.nodes : 1;
      const demand = moved * sent / (requestBytes(machine, term, part) || 1);
      const alike = term.parts.filter(({ advertised }) => advertised === part.advertised);
      const whole = alike.reduce((sum, each) => sum + each.per_byte, 0);
      const alone = { ...term, parts: [part], credit_share: term.credit_share * part.per_byte / whole };
      const capacityOf = (nodes, capacity, buckets) => {
        const out = new Float64Array(nodes.length);
        const [given] = gatherTerms({ terms: [alone] }, group.volumes, size, nodes, capacity, Float64Array);
        termWork(out, alone, given, nodes, buckets);
        return out.map((each) => demand / each);
      };
      const [capacity] = capacityOf(Float64Array.of(candidate.nodes), samples.medianCapacity, machine.buckets);
      const clusters = new Float64Array(CLUSTERS).fill(candidate.nodes);
      const sampled = capacityOf(clusters, sampledCapacity, sampledBuckets(machine)).sort();
      const law = pageData.laws[part.capacity];
      return {
        phase: phase.name, resource: part.resource, limit: OTHER_LIMITS.includes(term.resource_class) ? term.resource_class : "", demand, capacity,
        interval: [quantile(sampled, LOW), quantile(sampled, HIGH)],
        seconds: demand / candidate.nodes / capacity,
        evidence: law.evidence, demandSource: pageData.texts[part.sources],
        capacitySource: capacitySource(candidate, term, part, law), spreadSource: law.spread_source,
        repeat: repeatOf(law, part),
      };
    });
  }));
}

/** Whether a cluster of this size moves anything for a part: a single node sends nothing. */
function movesData(term, part, nodes) {
  const withOthers = part.remote_only || (term.resource_class === "network" && !part.outside);
  return nodes > 1 || !withOthers;
}

/** The commands that measured the capacity, or the one that would. */
function repeatOf(law, part) {
  if (part.per_node || part.shared) return { label: "", commands: [] };
  const known = Object.entries(pageData.commands).filter(([name]) => law.source.includes(name));
  if (known.length) return { label: "To repeat the measurement", commands: known.map(([, command]) => command) };
  const found = TO_MEASURE.find(([of]) => part.resource.startsWith(of));
  return found ? { label: "To measure it yourself", commands: [found[1]] } : { label: "", commands: [] };
}

/** What a request moves, if that is a machine's figure. */
function requestBytes(machine, term, part) {
  if (term.resource_class !== "object requests" || !part.advertised) return null;
  return Math.min(machine.buckets[part.advertised][0], term.max_per_node);
}

function capacitySource({ choice, nodes }, term, part, law) {
  const { group, machine } = choice;
  const sources = [law.source], each = requestBytes(machine, term, part);
  if (each) {
    sources.push(`each moves ${formatting.size(Math.round(each))}, as its memory allows`);
  } else if (part.advertised === "requests") {
    sources[0] = `${formatting.rate(law.modes[0].median)} ${law.source}`;
    sources.push(`${machine.buckets.requests[0]} of them at once, by its vCPUs`);
  } else if (part.advertised) {
    const figure = machine.buckets[part.advertised];
    const middle = law.modes[0].median;
    let share = `${Number(middle.toPrecision(3))} of the advertised ${describeBucket(figure)}`;
    if (["cpu", "cores"].includes(part.advertised)) {
      share = `${part.resource === "cpu" ? "" : `${formatting.rate(middle)} by `}each of ${Number(figure[0].toPrecision(3))} ${part.advertised === "cores" ? "reference cores" : "vCPUs"}`;
      if (term.max_per_node !== null) share += `, of which the job uses ${Number(term.max_per_node.toPrecision(3))}`;
    }
    sources[0] = `${share} (${pageData.texts[sourceOf(machine, part)]}); ${law.source}`;
  }
  if (part.curve !== null) {
    sources.push(`${curveShare(pageData.curves[part.curve], nodes).toFixed(2)} of that in a cluster of ${nodes}`);
  }
  if (group.volumes && term.resource_class === "volumes") {
    const most = group.volumes.buckets(Float64Array.of(nodes)).map(([each]) => each);
    const { kind, count } = group.volumes;
    sources.push(`at most ${describeBucket(most)} of ${count} x ${kind.name} (${kind.limit_source})`);
  }
  if (term.resource_class === "object storage" && part.advertised) {
    sources.push("not measured; at most the network bandwidth");
    if (term.max_per_node !== null) {
      const { source } = group.catalog.store.limits;
      sources.push(`the store gives a machine at most ${formatting.rate(term.max_per_node)} (${source})`);
    }
  }
  if (part.in_turn) {
    sources.push(`${formatting.several(machine.buckets.threads[0], "thread")} at once, each in turn with its other work`);
  }
  return sources.join("; ");
}

/** The text of where a machine's advertised figure is from. */
function sourceOf(machine, part) {
  if (part.advertised === "cores") return machine.cores_source;
  if (part.advertised === "network") return machine.network_source;
  return part.advertised.startsWith("local") ? machine.disks_source : machine.source;
}

function describeBucket([lasting, burst, credit]) {
  return formatting.rate(lasting) + (credit ? ` (up to ${formatting.rate(burst)} for a credit of ${formatting.size(credit)})` : "");
}

/** The parts of a node's price, a line each. */
function pricesOf(candidate) {
  const { group, machine } = candidate.choice;
  const [usual, low, high, source] = machine.prices[group.purchase];
  const how = group.purchase === "spot" ? `on the spot market, ${low} to ${high}` : "on demand";
  const digits = group.purchase === "spot" ? 4 : 6;
  const lines = [`${Number(usual.toPrecision(digits))} USD an hour ${how} (${pageData.texts[source]})`];
  if (machine.address_usd) {
    lines.push(`${machine.address_usd} USD an hour for its public address (${group.catalog.address_source})`);
  }
  if (group.volumes) {
    const { kind, count, hoursPerMonth } = group.volumes;
    if (machine.link_usd) {
      lines.push(`${machine.link_usd} USD an hour for its link to volumes (${pageData.texts[machine.link_source]})`);
    }
    const hourly = group.volumes.usdPerHour(candidate.nodes);
    lines.push(`${Number(hourly.toPrecision(4))} USD an hour for ${count} x ${group.volumes.gibEach(candidate.nodes)} GiB of ${kind.name} at ${kind.usd} USD per GiB and month of ${hoursPerMonth} h (${kind.price_source})`);
  }
  for (const [item, all] of Object.entries(group.outsideBill)) {
    const usd = all[candidate.choice.at];
    if (usd) lines.push(`${usd.toFixed(2)} USD for ${item} (${group.catalog.store.source})`);
  }
  lines.push(`${formatting.several(candidate.nodes, "node")} at ${Number(candidate.usdPerHour.toPrecision(4))} USD an hour; ${group.catalog.billing.source}`);
  return lines;
}
