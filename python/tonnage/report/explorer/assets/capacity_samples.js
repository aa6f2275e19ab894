// Counterpart of tonnage/model/slowest_node.py, tonnage/model/profiles/network_scaling.py and
// tonnage/plan/capacity_samples.py: the rate of the slowest of N nodes, in each sampled cluster and at
// the median. The random draws are the same: permutations of evenly spread numbers, in the page data.

const randomDraws = pageData.random_draws;
const CLUSTERS = randomDraws.count;
const DENSE_UP_TO = 40, STEP = 1.08;

const memoize = (make) => {
  const known = new Map();
  return (name) => {
    if (!known.has(name)) known.set(name, make(name));
    return known.get(name);
  };
};

const uniform = memoize((name) => Float64Array.from(randomDraws.dice[name], (place) => (place + 0.5) / CLUSTERS));

/** Quantiles of the gamma distribution of this shape at the named draws. */
const gammas = (shape, name) => Float64Array.from(randomDraws.dice[name], (place) => randomDraws.gammas[shape][place]);

const polynomial = (factors, at) => factors.reduce((sum, factor) => sum * at + factor, 0);
const ratio = ([above, below], at) => polynomial(above, at) / polynomial(below, at);

/** The standard normal's quantile, by Wichura's AS 241. */
function normalQuantile(share) {
  const off = share - 0.5;
  if (Math.abs(off) <= 0.425) return off * ratio(randomDraws.normal.middle, 0.180625 - off * off);
  const far = Math.sqrt(-Math.log(Math.min(share, 1 - share)));
  const tail = far === Infinity ? far
    : far <= 5 ? ratio(randomDraws.normal.tail, far - 1.6) : ratio(randomDraws.normal.far, far - 5);
  return off < 0 ? -tail : tail;
}

const normals = memoize((name) => uniform(name).map(normalQuantile));

/** The factor by which the true standard deviation may differ from the observed one. */
function wider(name, freedom) {
  return gammas(freedom / 2, name).map((gamma) => Math.sqrt(freedom / (2 * gamma)));
}

/** The part of a distribution that does not depend on the number of nodes, in each cluster. */
const prepared = memoize((law) => {
  const modes = [...law.modes].sort((one, other) => one.instances - other.instances).map((mode, place) => {
    const name = `${law.resource} ${place}`;
    const spread = wider(`${name} spread`, Math.max(mode.instances, randomDraws.few) - 1)
      .map((factor) => mode.spread * factor);
    const known = Math.sqrt(Math.max(mode.instances, 1));
    const mean = normals(`${name} mean`).map((off, cluster) => Math.log(mode.median) + spread[cluster] * (off / known));
    const gamma = gammas(mode.instances + 0.5, `${name} share`);
    return { name, spread, mean, gamma, least: uniform(`${name} least`).map((die) => Math.log1p(-die)) };
  });
  const total = new Float64Array(CLUSTERS);
  for (const mode of modes) mode.gamma.forEach((gamma, cluster) => { total[cluster] += gamma; });
  for (const mode of modes) {
    mode.share = modes.length === 1 ? new Float64Array(CLUSTERS).fill(1)
      : mode.gamma.map((gamma, cluster) => gamma / total[cluster]);
  }
  let common = new Float64Array(CLUSTERS).fill(1);
  if (law.fleet_spread) {
    const factors = wider("fleet spread", law.fleet_freedom || Math.max(law.fleets, 3) - 1);
    const unsure = Math.sqrt(1 + 1 / Math.max(law.fleets, 1));
    common = normals("fleet").map((off, cluster) => Math.exp(law.fleet_spread * factors[cluster] * unsure * off));
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

/** How many of the remaining nodes belong to a mode. */
function belonging(name, cluster, left, share) {
  const some = Math.min(Math.max(share, 1e-12), 1 - 1e-12);
  const mean = left * some;
  const normal = normals(`${name} belong`)[cluster];
  let found = Math.ceil(
    mean + Math.sqrt(mean * (1 - some)) * normal + (1 - 2 * some) * (normal ** 2 - 1) / 6 - 0.5);
  if (mean < 20) found = binomialQuantile(uniform(`${name} belong`)[cluster], left, some);
  return Math.min(Math.max(found, 0), left);
}

/** The least rate of so many nodes, in each sampled cluster. */
function slowest(law, nodes) {
  const { modes, common } = prepared(law);
  const found = new Float64Array(CLUSTERS);
  for (let cluster = 0; cluster < CLUSTERS; cluster += 1) {
    let least = Infinity, left = law.of_fleet ? 1 : nodes, rest = 1;
    modes.forEach((mode, place) => {
      const last = place === modes.length - 1;
      const belong = last ? left : belonging(mode.name, cluster, left, mode.share[cluster] / rest);
      if (belong > 0) {
        const off = mode.spread[cluster] * normalQuantile(-Math.expm1(mode.least[cluster] / belong));
        least = Math.min(least, Math.exp(mode.mean[cluster] + off));
      }
      left -= belong;
      rest = Math.max(rest - mode.share[cluster], 1e-12);
    });
    found[cluster] = least * common[cluster];
  }
  return found;
}

const scaleOf = (law) => law.modes[0].median;

/** The distribution scaled to a rate of about 1; one object for all that differ only in scale. */
const normalized = new Map();
const normalizedOf = memoize((law) => {
  const modes = law.modes.map((mode) => ({ ...mode, median: mode.median / scaleOf(law) }));
  const key = JSON.stringify([law.resource, modes, law.of_fleet, law.fleet_spread, law.fleets, law.fleet_freedom]);
  if (!normalized.has(key)) normalized.set(key, { ...law, modes });
  return normalized.get(key);
});
const clusterRates = memoize((law) => slowest(law, 1));

function median(values) {
  const sorted = values.slice().sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** A quantile by linear interpolation, with NumPy's rounding. */
function quantile(sorted, share) {
  const at = share * (sorted.length - 1);
  const below = Math.floor(at), part = at - below;
  const low = sorted[below], high = sorted[Math.min(below + 1, sorted.length - 1)];
  return part >= 0.5 ? high - (high - low) * (1 - part) : low + (high - low) * part;
}

/** Linear interpolation between ordered points; constant beyond them. */
function interpolate(at, xs, ys) {
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

/** The cluster sizes whose median is computed, not interpolated. */
function someSizes(least, most) {
  const begin = Math.max(least, Math.min(DENSE_UP_TO, most));
  const steps = Math.ceil(Math.log(most / begin) / Math.log(STEP)) + 1;
  const found = new Set();
  for (let size = least; size < begin; size += 1) found.add(size);
  const from = Math.log10(begin), by = (Math.log10(most) - from) / Math.max(steps - 1, 1);
  for (let step = 0; step < steps; step += 1) found.add(Math.round(10 ** (from + step * by)));
  found.add(most);
  return [...found].sort((one, other) => one - other);
}

/** The bandwidth of each of so many nodes as a share of that between two. */
function curveShare(curve, nodes) {
  const sizes = curve.points.map(([size]) => size), shares = curve.points.map(([, share]) => share);
  const count = Math.max(nodes, 1), last = sizes.length - 1;
  if (count > sizes[last]) return shares[last] * (count / sizes[last]) ** -curve.exponent;
  return interpolate(Math.log(count), sizes.map(Math.log), shares);
}

/** The slowest node's rate for cluster sizes within these bounds. */
class CapacitySamples {
  constructor(least, most) {
    Object.assign(this, { least, most });
    this.medians = memoize((law) => this.mediansOf(law));
    this.shares = memoize((curve) => {
      const found = new Float64Array(most - least + 1);
      return found.map((_, at) => curveShare(curve, least + at));
    });
  }

  mediansOf(law) {
    const { least, most } = this;
    if (law.of_fleet) return Float64Array.of(median(slowest(law, least)));
    const some = someSizes(least, most);
    const xs = some.map(Math.log), ys = some.map((size) => Math.log(median(slowest(law, size))));
    return Float64Array.from({ length: most - least + 1 }, (_, at) => Math.exp(interpolate(Math.log(least + at), xs, ys)));
  }

  /** The median rate of a part, for each number of nodes. */
  medianCapacity = (part, nodes) => {
    const law = pageData.laws[part.capacity];
    const found = new Float64Array(nodes.length);
    if (law.of_fleet && law.modes.length === 1) found.fill(scaleOf(law));
    else {
      const scale = scaleOf(law), medians = this.medians(normalizedOf(law));
      found.forEach((_, at) => { found[at] = scale * medians[law.of_fleet ? 0 : nodes[at] - this.least]; });
    }
    if (part.curve !== null) {
      const shares = this.shares(pageData.curves[part.curve]);
      found.forEach((rate, at) => { found[at] = rate * shares[nodes[at] - this.least]; });
    }
    return found;
  };
}

/** The rate of a part in every sampled cluster, all of one size. */
function sampledCapacity(part, nodes) {
  const law = pageData.laws[part.capacity];
  let found = slowestOf(law, nodes[0]);
  if (part.curve !== null) {
    const curve = pageData.curves[part.curve];
    const share = curveShare(curve, nodes[0]);
    const beyond = Math.max(nodes[0] / curve.points[curve.points.length - 1][0], 1);
    const error = curve.error === null ? randomDraws.unknown_error : curve.error;
    const off = normals("curve");
    found = found.map((rate, cluster) => rate * (share * beyond ** -(error * off[cluster])));
  }
  return found;
}

function slowestOf(law, nodes) {
  if (!law.of_fleet) return slowest(law, nodes);
  const scale = scaleOf(law);
  return clusterRates(normalizedOf(law)).map((rate) => scale * rate);
}
