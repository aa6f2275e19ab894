// Node-seconds of terms and of the job, and what they cost: seconds(phase) = max of demand / capacity.
// As tonnage/plan/evaluate.py and tonnage/model/bucket.py have it, in the same order of operations.
// Each array is as long as there are numbers of nodes (or imagined fleets). Its kind is the
// precision: what is stored in a Float32Array is rounded to single, as NumPy rounds each operation.

/** What of a shape's terms does not depend on the machine, in the precision that is asked for. */
function gathered(shape, volumes, size, nodes, carried, Kind) {
  const buckets = volumes && volumes.buckets(nodes);
  return shape.terms.map((term) => {
    const measured = new Float64Array(nodes.length), advertised = measured.slice(), moved = measured.slice();
    for (const part of term.parts) {
      const rates = carried(part, nodes);
      const all = size * part.per_byte;
      // A node alone sends nothing; with more all is counted, but where runs were seen.
      const alone = term.thing === "network" ? 0 : all;
      const into = part.advertised ? advertised : measured;
      for (let at = 0; at < nodes.length; at += 1) {
        const amount = part.kept ? all * (1 - 1 / nodes[at]) : nodes[at] > 1 ? all : alone;
        into[at] += amount / rates[at];
        if (!part.advertised) moved[at] += amount;
      }
    }
    const given = {
      measured: term.parts.some((part) => !part.advertised) ? Kind.from(measured) : null,
      advertised: term.parts.some((part) => part.advertised) ? Kind.from(advertised) : null,
      attached: null,
    };
    if (volumes && term.thing === "volumes") {
      for (let at = 0; at < nodes.length; at += 1) moved[at] += advertised[at];
      given.attached = throughBuckets(buckets, Kind.from(moved), nodes, term.share);
    }
    return given;
  });
}

/** Into `out` node-seconds until nodes with a bucket each have carried what is wanted of all. */
function throughBucket(out, [lasting, burst, credit], wanted, nodes, share) {
  const rounded = out.constructor.of(1 / lasting, 1 / burst, share * credit / lasting, 0);
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

/** The same where each number of nodes has another bucket, as with volumes. */
function throughBuckets([lasting, burst, credit], wanted, nodes, share) {
  const out = new wanted.constructor(wanted.length);
  const rounded = new wanted.constructor(4);
  for (let at = 0; at < out.length; at += 1) {
    rounded[0] = 1 / lasting[at];
    rounded[1] = 1 / burst[at];
    rounded[2] = share * credit[at] / lasting[at];
    rounded[3] = nodes[at] * rounded[2];
    out[at] = wanted[at] * rounded[0];
    out[at] -= rounded[3];
    rounded[3] = wanted[at] * rounded[1];
    if (out[at] < rounded[3]) out[at] = rounded[3];
  }
  return out;
}

/** Into `out` node-seconds of one term. */
function termWork(out, term, { measured, advertised, attached }, nodes, figures) {
  if (advertised) {
    let figure = figures[term.thing === "object storage" ? "network" : term.thing];
    if (term.most !== null) {
      figure = [Math.min(figure[0], term.most), Math.min(figure[1], term.most), figure[2]];
    }
    throughBucket(out, figure, advertised, nodes, term.share);
    if (measured) for (let at = 0; at < out.length; at += 1) out[at] += measured[at];
  } else if (measured) out.set(measured);
  else out.fill(0);
  if (attached) atLeast(out, attached);
}

function atLeast(out, others) {
  for (let at = 0; at < out.length; at += 1) if (out[at] < others[at]) out[at] = others[at];
}

/** Room for node-seconds: of the job, of each of its terms, and of a phase. */
const roomFor = (shape, length, Kind) => Array.from({ length: shape.terms.length + 2 }, () => new Kind(length));

/** Node-seconds of the whole job: phases add up, each as long as its longest term. */
function work([total, longest, ...terms], shape, givens, nodes, figures) {
  for (let at = 0; at < total.length; at += 1) total[at] = nodes[at] * shape.fixed;
  shape.terms.forEach((term, place) => termWork(terms[place], term, givens[place], nodes, figures));
  for (const { places } of shape.phases) {
    if (!places.length) continue;
    longest.set(terms[places[0]]);
    for (let place = 1; place < places.length; place += 1) atLeast(longest, terms[places[place]]);
    for (let at = 0; at < total.length; at += 1) total[at] += longest[at];
  }
  return total;
}

/** The hours that machines are paid for, of all nodes together. */
function machineHours(spent, nodes, billing) {
  const hours = new spent.constructor(spent.length);
  const counted = billing.granularity_seconds < 3600;
  for (let at = 0; at < hours.length; at += 1) {
    hours[at] = counted ? nodes[at] * billing.least_seconds : 0;
    if (hours[at] < spent[at]) hours[at] = spent[at];
    hours[at] /= 3600;
  }
  return hours;
}

/** What so many node-seconds cost, in double precision. */
function usd(spent, nodes, machineUsd, volumeUsd, outsideUsd, billing) {
  const hours = machineHours(spent, nodes, billing);
  return spent.map((each, at) => hours[at] * machineUsd + each * (volumeUsd[at] / 3600) + outsideUsd);
}
