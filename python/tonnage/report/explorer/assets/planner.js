// From a question to its answer: candidates best first, the front, what is excluded and why, and
// what comes nearest where nothing keeps the limits. As tonnage/plan/planner.py has it.

const SHOWN = 10;
const FAR = 10;

/** The answer.
 *
 * question: size (bytes), deadline (seconds) and budget (dollars), either Infinity, objective
 * ("cost" or "time"), durability, provider ("" for all), purchase, most (nodes).
 */
function answer(question) {
  const limits = {
    least: 1, most: question.most, deadline: question.deadline, budget: question.budget,
    objective: question.objective,
  };
  const groups = groupsOf(question);
  const rates = ratesOf(limits.least, limits.most);
  const found = searchAll(groups, question.size, rates, limits);
  const candidates = ranked(
    bestOfEach(groups, found).map((choice) => candidateOf(choice, question.size, rates)), limits);
  const shown = candidates.slice(0, SHOWN).map((each) => withChances(each, question, limits.deadline));
  const nearest = candidates.length ? null : nearestOf(question, groups, limits);
  return {
    question, groups, rates, limits,
    candidates, shown, nearest,
    front: front(groups, found, question.size, rates, limits),
    excluded: excluded(question, groups, found, limits, candidates),
    notes: notesOfPlan(question, groups),
  };
}

const allRates = new Map();
function ratesOf(least, most) {
  const key = `${least} ${most}`;
  if (!allRates.has(key)) {
    // Only the last few: each holds a table for every law.
    if (allRates.size > 8) allRates.delete(allRates.keys().next().value);
    allRates.set(key, new Rates(least, most));
  }
  return allRates.get(key);
}

/** What misses the deadline or the budget by least; or, if none fits, what fits with fewest. */
function nearestOf(question, groups, limits) {
  const least = groups.reduce((few, group) => Math.min(few, ...group.leastNodes), Infinity);
  if (!(least < 2 ** 40)) return null;
  const relaxed = { ...limits, objective: "nearest" };
  if (least > limits.most) Object.assign(relaxed, { least, most: least });
  if (limits.deadline === Infinity && limits.budget === Infinity) relaxed.objective = limits.objective;
  const rates = ratesOf(relaxed.least, relaxed.most);
  const found = searchAll(groups, question.size, rates, relaxed);
  const some = bestOfEach(groups, found).map((choice) => candidateOf(choice, question.size, rates));
  const [first] = ranked(some, relaxed);
  return first ? withChances(first, question, limits.deadline) : null;
}

/** Offers of which no layout is a candidate, each with the first reason there is. */
function excluded(question, groups, found, limits, candidates) {
  const key = (catalog, offer) => `${catalog} ${offer}`;
  const have = new Set(candidates.map((each) => key(each.catalog, each.offer)));
  const why = new Map();
  const add = (catalog, offer, said) => {
    const of = key(catalog, offer);
    if (!have.has(of) && !why.has(of)) why.set(of, { catalog, offer, why: said });
  };
  groups.forEach((group, which) => group.machines.forEach((machine, at) => {
    if (found[which][at].nodes !== 0) return;
    add(group.catalog.name, world.machines[machine].type, limitOf(group.leastNodes[at], found[which][at], limits));
  }));
  for (const [said, catalog, offers] of world.variants[question.durability][question.purchase].excluded) {
    if (asked(question, catalog)) for (const offer of offers) add(world.catalogs[catalog].name, offer, said);
  }
  return [...why.values()];
}

/** Why no number of nodes of this machine keeps the limits. */
function limitOf(leastNodes, { fastest, cheapest }, limits) {
  if (leastNodes > limits.most) return `too small: it takes ${leastNodes} nodes to hold the job`;
  if (fastest > limits.deadline) return `too slow: ${even(fastest)} s at best`;
  if (cheapest > limits.budget) return `too dear: ${(even(cheapest * 100) / 100).toFixed(2)} USD at least`;
  return "not both in time and within the budget";
}

/** Rounded as Python does, which of two that are as near takes the even one. */
function even(value) {
  const below = Math.floor(value);
  return value - below === 0.5 ? below + below % 2 : Math.round(value);
}

/** What is to be minded of the whole plan. */
function notesOfPlan(question, groups) {
  const variant = world.variants[question.durability];
  const catalogs = world.catalogs.filter((_, catalog) => asked(question, catalog));
  const found = [...catalogs.flatMap((each) => each.notes), ...variant[question.purchase].notes];
  const seen = variant.job.seen_bytes;
  if (seen && question.size > FAR * seen) {
    found.push(`the run that was watched had ${words.size(seen)} of input: whether its demands grow in proportion is not known`);
  }
  // What runs took of cores is in their phases.
  const terms = groups.flatMap((group) => (group.shape.calibrated ? [] : group.shape.terms));
  if (terms.length && !terms.some((term) => term.thing === "cpu")) found.push(world.no_cores);
  return [...found, ...world.notes];
}
