// The plan request: as the form has it, as the link's hash keeps it, as `tonnage plan` takes it.
// Fields have the names of the command's flags and are parsed as the command parses them.

const UNITS = { "": 1n, b: 1n };
[..."kmgtpe"].forEach((letter, at) => {
  UNITS[`${letter}b`] = 1000n ** BigInt(at + 1);
  UNITS[`${letter}ib`] = 1024n ** BigInt(at + 1);
});
const DURATIONS = { "": 1, s: 1, min: 60, h: 3600, d: 86400 };
const MAX_NODES = 100_000;
const MAX_USD = 1e12;
const LARGEST = 2n ** 63n - 1n;
const DEFAULTS = {
  data: "20TB", deadline: "", budget: "", objective: "cost",
  location: Object.keys(pageData.variants)[0], provider: "", purchase: "on-demand", "max-nodes": String(pageData.largest_cluster),
};

/** 4GB, 1GiB or plain bytes; exactly, as decimals are. */
function parseSize(text) {
  const found = /^\s*(\d+)(?:\.(\d+))?\s*([a-z]*)\s*$/.exec(text.toLowerCase());
  if (!found || !(found[3] in UNITS)) return null;
  const decimals = found[2] || "";
  const bytes = BigInt(found[1] + decimals) * UNITS[found[3]] / 10n ** BigInt(decimals.length);
  return bytes < 1n || bytes > LARGEST ? null : Number(bytes);
}

/** 10min, 24h, 7d or plain seconds; nothing is no limit. */
function parseDuration(text) {
  if (!text.trim()) return Infinity;
  const found = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/.exec(text.toLowerCase());
  return found && found[2] in DURATIONS && Number(found[1]) ? Number(found[1]) * DURATIONS[found[2]] : null;
}

/** 300USD or 300; nothing is no limit. */
function parseUsd(text) {
  if (!text.trim()) return Infinity;
  const found = /^\s*(\d+(?:\.\d+)?)\s*(?:usd)?\s*$/.exec(text.toLowerCase());
  return found && Number(found[1]) <= MAX_USD ? Number(found[1]) || null : null;
}

function parseNodes(text) {
  const nodes = /^\s*\d+\s*$/.test(text) ? Number(text) : 0;
  return nodes >= 1 && nodes <= MAX_NODES ? nodes : null;
}

const READ = {
  data: [parseSize, "is not a size; enter for example 20TB, 512GiB or 1000000"],
  deadline: [parseDuration, "is not a duration; enter for example 30s, 10min, 24h or 7d, or leave the field empty"],
  budget: [parseUsd, "is not an amount of money; enter for example 300USD, or leave the field empty"],
  "max-nodes": [parseNodes, `is not a whole number from 1 to ${formatting.count(MAX_NODES)}`],
};

/** The request that the form's texts state, and what is wrong with any of them. */
function requestOf(fields) {
  const numbers = {}, wrong = {};
  for (const [name, [parse, hint]] of Object.entries(READ)) {
    numbers[name] = parse(fields[name]);
    if (numbers[name] === null) wrong[name] = `“${fields[name]}” ${hint}`;
  }
  const { objective, location, provider, purchase } = fields;
  return {
    wrong,
    request: {
      size: numbers.data, deadline: numbers.deadline, budget: numbers.budget,
      // As in tonnage/plan/planner.py: a job that does not divide runs on one node.
      maxNodes: pageData.variants[location].job.divisible ? numbers["max-nodes"] : 1,
      objective, location, provider, purchase,
    },
  };
}

/** The fields of a link; unknown names and values are ignored. */
function fromHash(hash) {
  const fields = { ...DEFAULTS };
  const choices = {
    objective: ["cost", "time"], location: Object.keys(pageData.variants), purchase: ["on-demand", "spot"],
    provider: ["", ...pageData.catalogs.map((each) => each.provider)],
  };
  for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (name in fields && (!choices[name] || choices[name].includes(value))) fields[name] = value;
  }
  return fields;
}

/** The link of the fields; defaults are left out, apart from the size. */
function toHash(fields) {
  const kept = Object.entries(fields).filter(([name, value]) => name === "data" || value !== DEFAULTS[name]);
  return `#${new URLSearchParams(kept.map(([name, value]) => [name, value.trim()]))}`;
}

/** The command that gives the same answer. */
function commandOf(fields) {
  const flags = [];
  for (const [name, value] of Object.entries(fields)) {
    const text = value.replace(/\s+/g, "");
    if (name === "location") flags.push(pageData.variants[text].flags);
    else if (name === "data" || (text && text !== DEFAULTS[name])) flags.push(`--${name}`, text);
  }
  return ["tonnage plan", pageData.command.job, ...flags, pageData.command.flags].filter(Boolean).join(" ");
}
