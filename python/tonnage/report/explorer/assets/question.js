// What is asked: as the form has it, as a link's hash keeps it, as `tonnage plan` takes it.
// Names are those of the command's flags, and texts are read as the command reads them.

const UNITS = { "": 1n, b: 1n };
[..."kmgtpe"].forEach((letter, at) => {
  UNITS[`${letter}b`] = 1000n ** BigInt(at + 1);
  UNITS[`${letter}ib`] = 1024n ** BigInt(at + 1);
});
const DURATIONS = { "": 1, s: 1, min: 60, h: 3600, d: 86400 };
const MOST_NODES = 10_000;
const LARGEST = 2n ** 63n - 1n;
const DEFAULTS = {
  data: "20TB", deadline: "", budget: "", objective: "cost",
  durability: Object.keys(world.variants)[0], provider: "", purchase: "on-demand", "max-nodes": "1000",
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
  return (found && Number(found[1])) || null;
}

function parseNodes(text) {
  const nodes = /^\s*\d+\s*$/.test(text) ? Number(text) : 0;
  return nodes >= 1 && nodes <= MOST_NODES ? nodes : null;
}

const READ = {
  data: [parseSize, "is no size: write it like 20TB, 512GiB or 1000000"],
  deadline: [parseDuration, "is no time: write it like 30s, 10min, 24h or 7d, or leave it empty"],
  budget: [parseUsd, "is no amount of money: write it like 300USD, or leave it empty"],
  "max-nodes": [parseNodes, `is no number from 1 to ${words.count(MOST_NODES)}`],
};

/** The question of a form's texts; or what is wrong with which of them. */
function questionOf(fields) {
  const numbers = {}, wrong = {};
  for (const [name, [parse, said]] of Object.entries(READ)) {
    numbers[name] = parse(fields[name]);
    if (numbers[name] === null) wrong[name] = `“${fields[name]}” ${said}`;
  }
  const { objective, durability, provider, purchase } = fields;
  return {
    wrong,
    question: {
      size: numbers.data, deadline: numbers.deadline, budget: numbers.budget, most: numbers["max-nodes"],
      objective, durability, provider, purchase,
    },
  };
}

/** What a link says, of names and values that there are. */
function fromHash(hash) {
  const fields = { ...DEFAULTS };
  const choices = {
    objective: ["cost", "time"], durability: Object.keys(world.variants), purchase: ["on-demand", "spot"],
    provider: ["", ...world.catalogs.map((each) => each.provider)],
  };
  for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (name in fields && (!choices[name] || choices[name].includes(value))) fields[name] = value;
  }
  return fields;
}

/** The other way round; what is as it is by default is left out, but for the size. */
function toHash(fields) {
  const said = Object.entries(fields).filter(([name, value]) => name === "data" || value !== DEFAULTS[name]);
  return `#${new URLSearchParams(said.map(([name, value]) => [name, value.trim()]))}`;
}

/** The command that gives the same answer. */
function commandOf(fields) {
  const flags = [];
  for (const [name, value] of Object.entries(fields)) {
    const text = value.replace(/\s+/g, "");
    const told = name === "durability" ? Object.keys(world.variants).length > 1 && text !== "none"
      : name === "data" || (text && text !== DEFAULTS[name]);
    if (told) flags.push(`--${name}`, text);
  }
  return ["tonnage plan", world.command.job, ...flags, world.command.flags].filter(Boolean).join(" ");
}
