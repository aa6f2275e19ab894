// Imagined fleets: what the slowest of N nodes carries, in each of them and in the middle.
// As tonnage/model/slowest.py, tonnage/plan/rates.py and tonnage/model/scaling.py have it, with the
// same dice: those are permutations of evenly spread numbers, which the page holds.

const chances = world.chances;
const FLEETS = chances.count;
const EACH_UP_TO = 40, APART = 1.08;

const remembered = (make) => {
  const known = new Map();
  return (name) => {
    if (!known.has(name)) known.set(name, make(name));
    return known.get(name);
  };
};

const dice = remembered((name) => Float64Array.from(chances.dice[name], (place) => (place + 0.5) / FLEETS));

/** Quantiles of the gamma distribution of this shape, at a die's numbers. */
const gammas = (shape, name) => Float64Array.from(chances.dice[name], (place) => chances.gammas[shape][place]);

const polynomial = (factors, at) => factors.reduce((sum, factor) => sum * at + factor, 0);
const ratio = ([above, below], at) => polynomial(above, at) / polynomial(below, at);

/** The standard normal's quantile, by Wichura's AS 241. */
function normalQuantile(share) {
  const off = share - 0.5;
  if (Math.abs(off) <= 0.425) return off * ratio(chances.normal.middle, 0.180625 - off * off);
  const far = Math.sqrt(-Math.log(Math.min(share, 1 - share)));
  const tail = far === Infinity ? far
    : far <= 5 ? ratio(chances.normal.tail, far - 1.6) : ratio(chances.normal.far, far - 5);
  return off < 0 ? -tail : tail;
}

const normals = remembered((name) => dice(name).map(normalQuantile));

/** By what factor a standard deviation may be another than was seen. */
function wider(name, freedom) {
  return gammas(freedom / 2, name).map((gamma) => Math.sqrt(freedom / (2 * gamma)));
}

/** What of a law does not depend on how many nodes there are, in each fleet. */
const prepared = remembered((law) => {
  const modes = [...law.modes].sort((one, other) => one.instances - other.instances).map((mode, place) => {
    const name = `${law.resource} ${place}`;
    const spread = wider(`${name} spread`, Math.max(mode.instances, chances.few) - 1)
      .map((factor) => mode.spread * factor);
    const known = Math.sqrt(Math.max(mode.instances, 1));
    const mean = normals(`${name} mean`).map((off, fleet) => Math.log(mode.median) + spread[fleet] * (off / known));
    const gamma = gammas(mode.instances + 0.5, `${name} share`);
    return { name, spread, mean, gamma, least: dice(`${name} least`).map((die) => Math.log1p(-die)) };
  });
  const total = new Float64Array(FLEETS);
  for (const mode of modes) mode.gamma.forEach((gamma, fleet) => { total[fleet] += gamma; });
  for (const mode of modes) {
    mode.share = modes.length === 1 ? new Float64Array(FLEETS).fill(1)
      : mode.gamma.map((gamma, fleet) => gamma / total[fleet]);
  }
  let common = new Float64Array(FLEETS).fill(1);
  if (law.fleet_spread) {
    const factors = wider("fleet spread", Math.max(law.fleets, 3) - 1);
    const unsure = Math.sqrt(1 + 1 / Math.max(law.fleets, 1));
    common = normals("fleet").map((off, fleet) => Math.exp(law.fleet_spread * factors[fleet] * unsure * off));
  }
  return { modes, common };
});

/** The least k with P(K <= k) >= chance. */
function binomialQuantile(chance, tries, share) {
  const odds = share / (1 - share);
  let term = Math.exp(tries * Math.log1p(-share));
  let total = term, found = 0;
  for (let k = 1; k < 60 && total < chance; k += 1) {
    found = k;
    term = term * odds * Math.max(tries - k + 1, 0) / k;
    total += term;
  }
  return found;
}

/** How many of the nodes that are left belong to a mode. */
function belonging(name, fleet, left, share) {
  const some = Math.min(Math.max(share, 1e-12), 1 - 1e-12);
  const mean = left * some;
  const normal = normals(`${name} belong`)[fleet];
  let found = Math.ceil(
    mean + Math.sqrt(mean * (1 - some)) * normal + (1 - 2 * some) * (normal ** 2 - 1) / 6 - 0.5);
  if (mean < 20) found = binomialQuantile(dice(`${name} belong`)[fleet], left, some);
  return Math.min(Math.max(found, 0), left);
}

/** The least rate of so many nodes, in each fleet. */
function slowest(law, nodes) {
  const { modes, common } = prepared(law);
  const found = new Float64Array(FLEETS);
  for (let fleet = 0; fleet < FLEETS; fleet += 1) {
    let least = Infinity, left = law.of_fleet ? 1 : nodes, rest = 1;
    modes.forEach((mode, place) => {
      const last = place === modes.length - 1;
      const belong = last ? left : belonging(mode.name, fleet, left, mode.share[fleet] / rest);
      if (belong > 0) {
        const off = mode.spread[fleet] * normalQuantile(-Math.expm1(mode.least[fleet] / belong));
        least = Math.min(least, Math.exp(mode.mean[fleet] + off));
      }
      left -= belong;
      rest = Math.max(rest - mode.share[fleet], 1e-12);
    });
    found[fleet] = least * common[fleet];
  }
  return found;
}

const scaleOf = (law) => law.modes[0].median;

/** The same law at a rate of about 1; one for all laws that differ in nothing else. */
const alike = new Map();
const shapeOf = remembered((law) => {
  const modes = law.modes.map((mode) => ({ ...mode, median: mode.median / scaleOf(law) }));
  const key = JSON.stringify([law.resource, modes, law.of_fleet, law.fleet_spread, law.fleets]);
  if (!alike.has(key)) alike.set(key, { ...law, modes });
  return alike.get(key);
});
const ofAnyFleet = remembered((shape) => slowest(shape, 1));

function median(values) {
  const sorted = values.slice().sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** What a quantile lies at, joined linearly between two values, as NumPy does. */
function quantile(sorted, share) {
  const at = share * (sorted.length - 1);
  const below = Math.floor(at), part = at - below;
  const low = sorted[below], high = sorted[Math.min(below + 1, sorted.length - 1)];
  return part >= 0.5 ? high - (high - low) * (1 - part) : low + (high - low) * part;
}

/** A value between points that are in order, and beyond them the first or the last. */
function joined(at, xs, ys) {
  if (at <= xs[0]) return ys[0];
  const last = xs.length - 1;
  if (at >= xs[last]) return ys[last];
  let low = 0, high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= at) low = middle; else high = middle;
  }
  return (ys[high] - ys[low]) / (xs[high] - xs[low]) * (at - xs[low]) + ys[low];
}

/** The sizes that have a middle of their own. */
function someSizes(least, most) {
  const begin = Math.max(least, Math.min(EACH_UP_TO, most));
  const steps = Math.ceil(Math.log(most / begin) / Math.log(APART)) + 1;
  const found = new Set();
  for (let size = least; size < begin; size += 1) found.add(size);
  const from = Math.log10(begin), by = (Math.log10(most) - from) / Math.max(steps - 1, 1);
  for (let step = 0; step < steps; step += 1) found.add(Math.round(10 ** (from + step * by)));
  found.add(most);
  return [...found].sort((one, other) => one - other);
}

/** The share of two nodes' bandwidth that each of so many nodes has. */
function curveShare(curve, nodes) {
  const sizes = curve.points.map(([size]) => size), shares = curve.points.map(([, share]) => share);
  const asked = Math.max(nodes, 1), last = sizes.length - 1;
  if (asked > sizes[last]) return shares[last] * (asked / sizes[last]) ** -curve.exponent;
  return joined(Math.log(asked), sizes.map(Math.log), shares);
}

/** What fleets carry whose size is within these bounds. */
class Rates {
  constructor(least, most) {
    Object.assign(this, { least, most });
    this.middles = remembered((shape) => this.middleOf(shape));
    this.shares = remembered((curve) => {
      const found = new Float64Array(most - least + 1);
      return found.map((_, at) => curveShare(curve, least + at));
    });
  }

  middleOf(shape) {
    const { least, most } = this;
    if (shape.of_fleet) return Float64Array.of(median(slowest(shape, least)));
    const some = someSizes(least, most);
    const xs = some.map(Math.log), ys = some.map((size) => Math.log(median(slowest(shape, size))));
    return Float64Array.from({ length: most - least + 1 }, (_, at) => Math.exp(joined(Math.log(least + at), xs, ys)));
  }

  /** The rate of a part with every resource at its middle, for each number of nodes. */
  middle = (part, nodes) => {
    const law = world.laws[part.law];
    const found = new Float64Array(nodes.length);
    if (law.of_fleet && law.modes.length === 1) found.fill(scaleOf(law));
    else {
      const scale = scaleOf(law), middles = this.middles(shapeOf(law));
      found.forEach((_, at) => { found[at] = scale * middles[law.of_fleet ? 0 : nodes[at] - this.least]; });
    }
    if (part.curve !== null) {
      const shares = this.shares(world.curves[part.curve]);
      found.forEach((rate, at) => { found[at] = rate * shares[nodes[at] - this.least]; });
    }
    return found;
  };
}

/** The rate of a part in every imagined fleet, all of which have as many nodes. */
function drawn(part, nodes) {
  const law = world.laws[part.law];
  let found = slowestOf(law, nodes[0]);
  if (part.curve !== null) {
    const curve = world.curves[part.curve];
    const share = curveShare(curve, nodes[0]);
    const beyond = Math.max(nodes[0] / curve.points[curve.points.length - 1][0], 1);
    const error = curve.error === null ? chances.unknown_error : curve.error;
    const off = normals("curve");
    found = found.map((rate, fleet) => rate * (share * beyond ** -(error * off[fleet])));
  }
  return found;
}

function slowestOf(law, nodes) {
  if (!law.of_fleet) return slowest(law, nodes);
  const scale = scaleOf(law);
  return ofAnyFleet(shapeOf(law)).map((rate) => scale * rate);
}
