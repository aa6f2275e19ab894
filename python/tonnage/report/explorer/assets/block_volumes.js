// Counterpart of tonnage/plan/resources/block_volumes.py: size, speed and price of a node's network block volumes,
// by the number of nodes.

const GIB = 2 ** 30;
const FILE_SYSTEM_ROOM = 1.02;

class BlockVolumes {
  constructor(kind, count, storedBytes, hoursPerMonth) {
    Object.assign(this, { kind, count, storedBytes, hoursPerMonth });
    this.leastGib = Math.max(Math.ceil((kind.least || 0) / GIB), 1);
  }

  /** The size of a volume in whole GiB, as it is billed. */
  gibEach(nodes) {
    const stored = FILE_SYSTEM_ROOM * this.storedBytes / (nodes * this.count);
    return Math.max(Math.ceil(stored / GIB), this.leastGib);
  }

  usdPerHour(nodes) {
    return this.kind.usd * this.count * this.gibEach(nodes) / this.hoursPerMonth;
  }

  /** With fewer nodes a volume would exceed the kind's largest size. */
  get minNodes() {
    if (this.kind.most === null) return 1;
    return Math.max(Math.ceil(FILE_SYSTEM_ROOM * this.storedBytes / (this.count * this.kind.most)), 1);
  }

  /** Baseline, burst and credit of a node's volumes together, by number of nodes. */
  buckets(nodes) {
    const { throughput, operations, largest } = this.kind;
    const found = [0, 0, 0].map(() => new Float64Array(nodes.length));
    const byOperations = baselineOf(operations, 1) !== null && largest !== null;
    for (let at = 0; at < nodes.length; at += 1) {
      const gib = Math.max(this.storedBytes / (nodes[at] * this.count) / GIB, this.leastGib);
      let baseline = baselineOf(throughput, gib);
      let burst = burstOf(throughput, gib), credit = creditOf(throughput, gib);
      if (byOperations) {
        const most = throughput.most || Infinity;
        baseline = Math.min(baselineOf(operations, gib) * largest, baseline === null ? most : baseline);
        const operationCredit = creditOf(operations, gib);
        if (operationCredit) {
          burst = Math.min(burstOf(operations, gib) * largest, burst);
          credit = operationCredit * largest;
        }
      }
      if (!(burst > baseline)) credit = 0;
      if (!(credit > 0)) burst = baseline;
      found[0][at] = this.count * baseline;
      found[1][at] = this.count * burst;
      found[2][at] = this.count * credit;
    }
    return found;
  }
}

/** The baseline rate; null where unknown. */
function baselineOf(grant, gib) {
  let found;
  if (grant.per_gib !== undefined) found = Math.max(grant.per_gib * gib, grant.least || 0);
  else if (grant.included !== undefined) found = grant.included;
  else return null;
  return grant.most === undefined ? found : Math.min(found, grant.most);
}

/** The burst rate; infinite where unknown. */
function burstOf(grant, gib) {
  const limit = grant.burst !== undefined ? grant.burst : grant.most;
  const burst = grant.burst_per_gib !== undefined ? grant.burst_per_gib * gib : limit === undefined ? Infinity : limit;
  return grant.most === undefined ? burst : Math.min(burst, grant.most);
}

const creditOf = (grant, gib) => (grant.credit || 0) + (grant.credit_per_gib || 0) * gib;
