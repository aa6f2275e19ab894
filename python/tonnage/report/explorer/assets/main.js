// The page's event loop: the form becomes a request, the plan is shown, and the link keeps the request.

const STOPS = {
  data: ["1GB", "10GB", "100GB", ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((each) => `${each}TB`), "1PB", "2PB", "5PB"],
  deadline: ["", "5min", "10min", "15min", "30min", "1h", "2h", "4h", "8h", "12h", "1d", "2d", "7d"],
};

/** Plan what the form's texts state, or say what is wrong with them. The page and its tests call this. */
function planned(fields) {
  const { request, wrong } = requestOf({ ...DEFAULTS, ...fields });
  return { wrong, answer: Object.keys(wrong).length ? null : plan(request) };
}

/** The same as plain JSON values, with the terms of each candidate shown. */
function planFields(fields) {
  const { wrong, answer: found } = planned(fields);
  if (!found) return { wrong };
  const plain = ({ choice, ...candidate }) => candidate;
  const withTerms = (candidate) => ({
    ...plain(candidate),
    terms: explain(candidate, found.request.size, found.samples), prices: pricesOf(candidate),
  });
  return {
    wrong,
    candidates: found.candidates.length,
    shown: found.shown.map(withTerms),
    nearest: found.nearest && plain(found.nearest),
    pareto: found.pareto.map(({ offer, layout, nodes, seconds, cost }) => ({ offer, layout, nodes, seconds, cost })),
    excluded: found.excluded,
    notes: found.notes, demandsKnown: found.demandsKnown,
    command: commandOf({ ...DEFAULTS, ...fields }),
  };
}

function start() {
  const form = byId("question");
  const inputs = Object.keys(DEFAULTS).map((name) => form.elements[name]);
  let fields = fromHash(location.hash), last = null, timer = 0;
  // Of the table: the candidate whose arithmetic is shown, the text of the search, whether all rows are.
  const view = { chosen: null, query: "", unfolded: false };

  const showForm = () => {
    for (const input of inputs) input.value = fields[input.name];
    moveSliders();
  };
  // A slider stands at the stop nearest to the text's value.
  const moveSliders = () => {
    for (const slider of form.querySelectorAll("[data-of]")) {
      const name = slider.dataset.of, [parse] = READ[name], stops = STOPS[name];
      Object.assign(slider, { min: 0, max: stops.length - 1, step: 1 });
      const value = parse(fields[name]);
      const far = (stop) => (value === Infinity || parse(stop) === Infinity
        ? (value === parse(stop) ? 0 : 1e3) : Math.abs(Math.log(parse(stop) / value)));
      if (value) slider.value = stops.reduce((best, stop, at) => (far(stop) < far(stops[best]) ? at : best), 0);
      slider.setAttribute("aria-valuetext", fields[name] || "none");
    }
  };
  /** Show the arithmetic of a candidate, or of a point of the front. */
  const choose = (point) => {
    const { request, samples, limits } = last;
    const candidate = point.choice ? point : candidateOf(point, request.size, samples);
    view.chosen = candidate.secondsInterval ? candidate : withIntervals(candidate, request, limits.deadline);
    showChosen();
  };
  const chooseRow = (candidate) => {
    choose(candidate);
    byId("table").querySelector("[aria-pressed=true]").focus();
  };
  const showRows = () => last && showTable(last, view, chooseRow);
  const drawChart = () => {
    byId("front").hidden = !view.chosen;
    if (view.chosen) drawScatter(byId("front").querySelector("figure"), last, view.chosen, choose);
  };
  const showChosen = () => {
    showRows();
    showSources(last, view.chosen);
    drawChart();
  };
  const update = () => {
    const { wrong, answer: found } = planned(fields);
    for (const name of Object.keys(READ)) {
      byId(`wrong-${name}`).textContent = wrong[name] || "";
      form.elements[name].toggleAttribute("aria-invalid", false);
      if (wrong[name]) form.elements[name].setAttribute("aria-invalid", "true");
    }
    document.body.classList.remove("planning");
    document.documentElement.dataset.planned = toHash(fields);
    last = found;
    view.chosen = found && (found.shown[0] || null);
    if (!found) {
      showUnreadable();
      return;
    }
    showAnswer(found, change);
    showDetails(found, fields);
    showExcluded(found);
    showChosen();
  };
  // A moment later, so that a dragged slider stays responsive; at once where there is nothing to plan.
  const soon = () => {
    document.body.classList.add("planning");
    clearTimeout(timer);
    if (Object.keys(requestOf(fields).wrong).length) update(); else timer = setTimeout(update, 120);
  };
  const change = (changes) => {
    fields = { ...fields, ...changes };
    history.replaceState(null, "", toHash(fields));
    showForm();
    soon();
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", ({ target }) => {
    if (target.dataset.of) change({ [target.dataset.of]: STOPS[target.dataset.of][target.value] });
    else {
      fields = { ...fields, [target.name]: target.value };
      history.replaceState(null, "", toHash(fields));
      moveSliders();
      soon();
    }
  });
  addEventListener("hashchange", () => {
    fields = fromHash(location.hash);
    showForm();
    soon();
  });
  byId("search").addEventListener("input", ({ target }) => {
    view.query = target.value;
    showRows();
  });
  byId("fold").addEventListener("click", () => {
    view.unfolded = !view.unfolded;
    showRows();
  });
  document.querySelector("[data-skip]").addEventListener("click", (event) => {
    event.preventDefault();  // The hash is the request's.
    byId("answer").focus();
  });
  addEventListener("resize", drawChart);
  window.tonnage = { plan: planFields };
  showForm();
  update();
}
