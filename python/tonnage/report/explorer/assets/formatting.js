// Counterpart of tonnage/base/formatting.py: numbers with units, as `tonnage plan` prints them.

const formatting = (() => {
  const grouped = (value, decimals) => value.toLocaleString("en-US", {
    minimumFractionDigits: decimals, maximumFractionDigits: decimals,
  });
  const significant = (value, digits = 3) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    const whole = size >= 1 ? String(Math.floor(size)).length : 0;
    let leading = 0;
    while (!whole && size * 10 ** (leading + 1) < 1 && leading < 9) leading += 1;
    return grouped(value, Math.max(digits - whole, 0) + leading);
  };
  const inUnits = (value, units, digits) => {
    const [unit, factor] = units.find(([, each]) => value >= each) || units[units.length - 1];
    return `${significant(value / factor, digits)} ${unit}`;
  };
  const SIZES = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]];
  const TIMES = [["days", 86400], ["h", 3600], ["min", 60]];
  return {
    significant,
    count: (value) => grouped(value, 0),
    percent: (share) => `${grouped(100 * share, Math.abs(100 * share) < 10 ? 1 : 0)} %`,
    size: (value) => inUnits(value, SIZES),
    rate: (value) => `${significant(value / 1e6)} MB/s`,
    seconds: (value) => `${significant(value)} s`,
    // From two of a unit on: 90 s, but 2.0 min.
    duration: (value) => {
      const [unit, factor] = TIMES.find(([, each]) => value >= 2 * each) || ["s", 1];
      return `${significant(value / factor, 2)} ${unit}`;
    },
    usd: (value) => `$${grouped(value, 2)}`,
    price: (value) => `$${value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 6 })}`,
    several: (number, what) => `${grouped(number, 0)} ${what}${number === 1 ? "" : "s"}`,
    sentence: (said) => said[0].toUpperCase() + said.slice(1) + (/[.!?]$/.test(said) ? "" : "."),
    named: ({ nodes, offer }) => `${grouped(nodes, 0)} × ${offer}`,
    layout: ({ layout, placement }) => layout + (placement ? ", placed close together" : ""),
  };
})();
