// Counterpart of tonnage/plan/cost_model.py and tonnage/model/token_bucket.py, in the same order of
// operations: node-seconds of terms and of the job, and their cost.
//
//     seconds(phase) = max over resources of demand / capacity
//
// An array has a value for each number of nodes (or sampled cluster). A Float32Array rounds each
// stored value to single precision, as NumPy rounds each operation.

/** The part of each term that does not depend on the machine, in the precision of `Kind`. */
function gatherTerms(demand, volumes, size, nodes, capacity, Kind) {
  const buckets = volumes && volumes.buckets(nodes);
  return demand.terms.map((term) => {
    const measured = new Float64Array(nodes.length), moved = measured.slice(), measuredInTurn = measured.slice();
    const advertised = new Map(), inTurn = new Set();
    for (const part of term.parts) {
      const rates = capacity(part, nodes);
      const all = size * part.per_byte;
      // One node has no other to copy to; `outside` is traffic with others.
      const alone = term.resource_class === "network" && !part.outside ? 0 : all;
      if (part.advertised && !advertised.has(part.advertised)) advertised.set(part.advertised, new Float64Array(nodes.length));
      if (part.advertised && part.in_turn) inTurn.add(part.advertised);
      const into = part.advertised ? advertised.get(part.advertised) : part.in_turn ? measuredInTurn : measured;
      for (let at = 0; at < nodes.length; at += 1) {
        const amount = part.per_node ? nodes[at] * part.per_byte
          : part.shared ? all * nodes[at]
          : part.remote_only ? all * (1 - 1 / nodes[at]) : nodes[at] > 1 ? all : alone;
        into[at] += amount / rates[at];
        if (!part.advertised) moved[at] += amount;
      }
    }
    const given = {
      measured: term.parts.some((part) => !part.advertised && !part.in_turn) ? Kind.from(measured) : null,
      measuredInTurn: term.parts.some((part) => !part.advertised && part.in_turn) ? Kind.from(measuredInTurn) : null,
      advertised: [...advertised].map(([name, wanted]) => [name, Kind.from(wanted), inTurn.has(name)]),
      attached: null,
    };
    if (volumes && term.resource_class === "volumes") {
      if (advertised.has("volumes")) add(moved, advertised.get("volumes"));
      given.attached = volumeNodeSeconds(buckets, Kind.from(moved), nodes, term.credit_share);
    }
    return given;
  });
}

/** Write to `out` the node-seconds in which nodes, each with a bucket, move the wanted bytes. */
function bucketNodeSeconds(out, [baseline, burst, credit], wanted, nodes, share) {
  if (typeof credit !== "number") {
    drawnNodeSeconds(out, [baseline, burst, credit], wanted, nodes, share);
    return;
  }
  const rounded = out.constructor.of(1 / baseline, 1 / burst, share * credit / baseline, 0);
  const [slowness, quickness, spared] = rounded;
  for (let at = 0; at < out.length; at += 1) out[at] = wanted[at] * slowness;
  if (!credit) return;
  for (let at = 0; at < out.length; at += 1) {
    rounded[3] = nodes[at] * spared;
    out[at] -= rounded[3];
    rounded[3] = wanted[at] * quickness;
    if (out[at] < rounded[3]) out[at] = rounded[3];
  }
}

/** The same in sampled clusters, each with a credit of its own. */
function drawnNodeSeconds(out, [baseline, burst, credit], wanted, nodes, share) {
  for (let at = 0; at < out.length; at += 1) {
    out[at] = wanted[at] * (1 / baseline) - nodes[at] * (share * credit[at] / baseline);
    out[at] = Math.max(out[at], wanted[at] * (1 / burst));
  }
}

/** The same for volumes, whose bucket depends on the number of nodes. */
function volumeNodeSeconds([baseline, burst, credit], wanted, nodes, share) {
  const out = new wanted.constructor(wanted.length);
  const rounded = new wanted.constructor(4);
  for (let at = 0; at < out.length; at += 1) {
    rounded[0] = 1 / baseline[at];
    rounded[1] = 1 / burst[at];
    rounded[2] = share * credit[at] / baseline[at];
    rounded[3] = nodes[at] * rounded[2];
    out[at] = wanted[at] * rounded[0];
    out[at] -= rounded[3];
    rounded[3] = wanted[at] * rounded[1];
    if (out[at] < rounded[3]) out[at] = rounded[3];
  }
  return out;
}

/** Write to `out` the node-seconds of one term. */
function termWork(out, term, { measured, measuredInTurn, advertised, attached }, nodes, buckets) {
  advertised.forEach(([name, wanted, inTurn], place) => {
    let bucket = buckets[name];
    if (term.max_per_node !== null) {
      bucket = [Math.min(bucket[0], term.max_per_node), Math.min(bucket[1], term.max_per_node), bucket[2]];
    }
    const into = place ? new out.constructor(out.length) : out;
    bucketNodeSeconds(into, bucket, wanted, nodes, term.credit_share);
    if (inTurn) divide(into, into, buckets.threads[0]);
    if (place) add(out, into);
  });
  if (!advertised.length) out.fill(0);
  if (measuredInTurn) add(out, divide(new out.constructor(out.length), measuredInTurn, buckets.threads[0]));
  if (measured) add(out, measured);
  if (attached) atLeast(out, attached);
  if (term.tasks !== null && buckets.slots) leaveIdle(out, term.tasks, nodes, buckets.slots[0]);
}

/** Multiply by how much longer tasks take for the slots that the last wave of them leaves idle. */
function leaveIdle(out, tasks, nodes, slotsOfNode) {
  const [rounded] = [new out.constructor(1)];
  for (let at = 0; at < out.length; at += 1) {
    const slots = nodes[at] * slotsOfNode;
    rounded[0] = Math.ceil(tasks / slots) * slots / tasks;
    out[at] *= rounded[0];
  }
}

function add(out, others) {
  for (let at = 0; at < out.length; at += 1) out[at] += others[at];
}

/** Write to `out` what each of some threads has of these, which is returned. */
function divide(out, all, threads) {
  for (let at = 0; at < out.length; at += 1) out[at] = all[at] / threads;
  return out;
}

function atLeast(out, others) {
  for (let at = 0; at < out.length; at += 1) if (out[at] < others[at]) out[at] = others[at];
}

/** Arrays for node-seconds: of the job, of a phase, and of each term. */
const allocate = (demand, length, Kind) => Array.from({ length: demand.terms.length + 2 }, () => new Kind(length));

/** Node-seconds of the job: phases add up, each as long as its longest term; then interruptions of each machine. */
function jobWork([total, longest, ...terms], demand, givens, nodes, buckets, interruptions) {
  for (let at = 0; at < total.length; at += 1) total[at] = nodes[at] * demand.fixed_seconds;
  demand.terms.forEach((term, place) => termWork(terms[place], term, givens[place], nodes, buckets));
  for (const { places } of demand.phases) {
    if (!places.length) continue;
    longest.set(terms[places[0]]);
    for (let place = 1; place < places.length; place += 1) atLeast(longest, terms[places[place]]);
    for (let at = 0; at < total.length; at += 1) total[at] += longest[at];
  }
  if (interruptions) add(total, interruptionWork(total, nodes, interruptions));
  return total;
}

/** Node-seconds that interruptions of machines are expected to add to so many. */
function interruptionWork(spent, nodes, perSecond) {
  const out = new spent.constructor(spent.length);
  const [rate] = spent.constructor.of(perSecond);
  for (let at = 0; at < out.length; at += 1) {
    out[at] = spent[at] * rate;
    out[at] /= nodes[at] > 1 ? nodes[at] - 1 : 2;
    out[at] *= spent[at];
  }
  return out;
}

/** The billed machine hours of all nodes together. */
function machineHours(spent, nodes, billing) {
  const hours = new spent.constructor(spent.length);
  const billsSeconds = billing.granularity_seconds < 3600;
  for (let at = 0; at < hours.length; at += 1) {
    hours[at] = billsSeconds ? nodes[at] * billing.least_seconds : 0;
    if (hours[at] < spent[at]) hours[at] = spent[at];
    hours[at] /= 3600;
  }
  return hours;
}

/** The cost of so many node-seconds, in double precision. */
function costUsd(spent, nodes, machineUsd, volumeUsd, outsideUsd, billing) {
  const hours = machineHours(spent, nodes, billing);
  return spent.map((each, at) => hours[at] * machineUsd + each * (volumeUsd[at] / 3600) + outsideUsd);
}
