// The arithmetic of one candidate, term by term, with where each number comes from.
// As tonnage/plan/explain.py has it.

const TO_MEASURE = [
  ["local", "tonnage measure disk --dir DIR"], ["volume", "tonnage measure disk --dir DIR"],
  ["network", "tonnage measure net --cluster"], ["object", "tonnage measure object s3://BUCKET"],
  ["cpu", "tonnage study"],
];

/** What each part of each phase takes: seconds = demand / (nodes x capacity of the slowest). */
function explained(candidate, size, rates) {
  const { group, machine } = candidate.choice;
  return group.shape.phases.flatMap((phase) => phase.terms.flatMap((term) => {
    const whole = term.parts.reduce((sum, part) => sum + part.per_byte, 0);
    return term.parts.map((part) => {
      const demand = part.per_byte * size;
      const alone = { ...term, parts: [part], share: term.share * part.per_byte / whole };
      const carried = (nodes, asked) => {
        const out = new Float64Array(nodes.length);
        const [given] = gathered({ terms: [alone] }, group.volumes, size, nodes, asked, Float64Array);
        termWork(out, alone, given, nodes, machine.figures);
        return out.map((each) => demand / each);
      };
      const [capacity] = carried(Float64Array.of(candidate.nodes), rates.middle);
      const drawnOnes = carried(new Float64Array(FLEETS).fill(candidate.nodes), drawn).sort();
      const law = world.laws[part.law];
      return {
        phase: phase.name, thing: term.thing, resource: part.resource, demand, capacity,
        between: [quantile(drawnOnes, LOW), quantile(drawnOnes, HIGH)],
        seconds: demand / candidate.nodes / capacity,
        evidence: law.evidence, demandSource: world.texts[part.sources],
        capacitySource: capacitySource(candidate, term, part, law), spreadSource: law.spread_source,
        repeat: repeatOf(law, part),
      };
    });
  }));
}

/** The commands that measured it; or, of what nobody here measured, the one that would. */
function repeatOf(law, part) {
  const known = Object.entries(world.commands).filter(([name]) => law.source.includes(name));
  if (known.length) return { label: "To repeat the measurement", commands: known.map(([, command]) => command) };
  const found = TO_MEASURE.find(([of]) => part.resource.startsWith(of));
  return { label: "To measure it yourself", commands: found ? [found[1]] : [] };
}

function capacitySource({ choice, nodes }, term, part, law) {
  const { group, machine } = choice;
  const said = [law.source];
  if (part.advertised) {
    const figure = machine.figures[term.thing === "object storage" ? "network" : term.thing];
    const middle = law.modes[0].median;
    let share = `${Number(middle.toPrecision(3))} of the advertised ${ratesOfBucket(figure)}`;
    if (term.thing === "cpu") {
      share = `${part.resource === "cpu" ? "" : `${words.rate(middle)} by `}each of ${figure[0]} vCPUs`;
      if (term.most !== null) share += `, of which the job uses ${Number(term.most.toPrecision(3))}`;
    }
    said[0] = `${share} (${world.texts[machine.source]}); ${law.source}`;
  }
  if (part.curve !== null) {
    said.push(`${curveShare(world.curves[part.curve], nodes).toFixed(2)} of that in a fleet of ${nodes}`);
  }
  if (group.volumes && term.thing === "volumes") {
    const most = group.volumes.buckets(Float64Array.of(nodes)).map(([each]) => each);
    const { kind, count } = group.volumes;
    said.push(`no more than ${ratesOfBucket(most)} of ${count} x ${kind.name} (${kind.limit_source})`);
  }
  if (term.thing === "object storage" && part.advertised) said.push("no faster than its network; not measured");
  return said.join("; ");
}

function ratesOfBucket([lasting, burst, credit]) {
  return words.rate(lasting) + (credit ? ` (up to ${words.rate(burst)} for a credit of ${words.size(credit)})` : "");
}

/** How the price of a node and the cost come about, a line each. */
function pricesOf(candidate) {
  const { group, machine } = candidate.choice;
  const [usual, low, high, source] = machine.prices[group.purchase];
  const how = group.purchase === "spot" ? `on the spot market, ${low} to ${high}` : "on demand";
  const said = [`${Number(usual.toPrecision(6))} USD an hour ${how} (${world.texts[source]})`];
  if (group.volumes) {
    const { kind, count, hoursPerMonth } = group.volumes;
    if (machine.link_usd) {
      said.push(`${machine.link_usd} USD an hour for its link to volumes (${world.texts[machine.link_source]})`);
    }
    const hourly = group.volumes.usdPerHour(candidate.nodes);
    said.push(`${Number(hourly.toPrecision(4))} USD an hour for ${count} x ${group.volumes.gibEach(candidate.nodes)} GiB of ${kind.name} at ${kind.usd} USD a GiB and month of ${hoursPerMonth} h (${kind.price_source})`);
  }
  if (group.outside) {
    said.push(`${group.outside.toFixed(2)} USD for requests of object storage and what leaves the provider (${group.catalog.store.source})`);
  }
  said.push(`${words.count(candidate.nodes)} nodes at ${Number(candidate.usdPerHour.toPrecision(4))} USD an hour; ${group.catalog.billing.source}`);
  return said;
}
