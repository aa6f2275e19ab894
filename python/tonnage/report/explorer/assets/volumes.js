// Network-attached volumes of a node: how large, how fast and how dear, by the number of nodes.
// As tonnage/plan/volumes.py has it.

const GIB = 2 ** 30;

class Volumes {
  constructor(kind, count, keptBytes, hoursPerMonth) {
    Object.assign(this, { kind, count, keptBytes, hoursPerMonth });
    this.leastGib = Math.max(Math.ceil((kind.least || 0) / GIB), 1);
  }

  /** The size of a volume in whole GiB, as it is bought. */
  gibEach(nodes) {
    return Math.max(Math.ceil(this.keptBytes / (nodes * this.count) / GIB), this.leastGib);
  }

  usdPerHour(nodes) {
    return this.kind.usd * this.count * this.gibEach(nodes) / this.hoursPerMonth;
  }

  /** With fewer, a volume would be larger than the kind's largest. */
  get leastNodes() {
    if (this.kind.most === null) return 1;
    return Math.max(Math.ceil(this.keptBytes / (this.count * this.kind.most)), 1);
  }

  /** What a node's volumes are to carry together: what lasts, the burst and the credit, by fleet. */
  buckets(nodes) {
    const { throughput, operations, largest } = this.kind;
    const found = [0, 0, 0].map(() => new Float64Array(nodes.length));
    const byOperations = lastingOf(operations, 1) !== null && largest !== null;
    for (let at = 0; at < nodes.length; at += 1) {
      const gib = Math.max(this.keptBytes / (nodes[at] * this.count) / GIB, this.leastGib);
      let lasting = lastingOf(throughput, gib);
      let burst = burstOf(throughput, gib), credit = creditOf(throughput, gib);
      if (byOperations) {
        const most = throughput.most || Infinity;
        lasting = Math.min(lastingOf(operations, gib) * largest, lasting === null ? most : lasting);
        const kept = creditOf(operations, gib);
        if (kept) {
          burst = Math.min(burstOf(operations, gib) * largest, burst);
          credit = kept * largest;
        }
      }
      if (!(burst > lasting)) credit = 0;
      if (!(credit > 0)) burst = lasting;
      found[0][at] = this.count * lasting;
      found[1][at] = this.count * burst;
      found[2][at] = this.count * credit;
    }
    return found;
  }
}

/** What lasts; null where that is not told. */
function lastingOf(grant, gib) {
  let found;
  if (grant.per_gib !== undefined) found = Math.max(grant.per_gib * gib, grant.least || 0);
  else if (grant.included !== undefined) found = grant.included;
  else return null;
  return grant.most === undefined ? found : Math.min(found, grant.most);
}

/** A burst's rate, as far as any is known. */
function burstOf(grant, gib) {
  const told = grant.burst !== undefined ? grant.burst : grant.most;
  const burst = grant.burst_per_gib !== undefined ? grant.burst_per_gib * gib : told === undefined ? Infinity : told;
  return grant.most === undefined ? burst : Math.min(burst, grant.most);
}

const creditOf = (grant, gib) => (grant.credit || 0) + (grant.credit_per_gib || 0) * gib;
