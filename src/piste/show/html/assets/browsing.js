// Results of other commands: whole corpora, vocabularies, concepts, explanations. What is open is
// in the address after #results=, so that it can be sent and gone back to.
piste.browses = (hash = location.hash) => hash.startsWith("#results=");
// Whether this goes back to the other tab as it was left: nothing there has changed.
piste.returns = (event) => piste.browses(new URL(event.oldURL).hash) && location.hash === piste.left;

piste.tabs = (about) => {
  const nav = document.querySelector(".piste-top nav");
  const place = document.querySelector(".piste-results");
  if (!about.results.length) return;
  const usual = {
    results: "0", view: "", document: "", search: "", predicted: "", cells: "", least_r2: "",
    most_r2: "", note: "", sort: "surprise", descending: "true", offset: "0",
  };
  const page = 25;
  let listed = null, shown = null, opened = null, turn = 0, title = document.title;
  piste.left = "";
  nav.hidden = false;

  const state = () => ({ ...usual, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) });
  function address(changes, from = state()) {
    const wanted = new URLSearchParams({ results: changes.results ?? from.results });
    for (const [name, value] of Object.entries({ ...from, ...changes })) {
      if (name in usual && name !== "results" && String(value) !== usual[name]) wanted.set(name, value);
    }
    return `#${wanted}`;
  }
  function link(text, hash, kind = "") {
    const found = piste.make("a", text, kind);
    found.href = hash;
    return found;
  }
  // The same place with another search or order: no step to go back to.
  function change(changes) {
    history.replaceState(null, "", address(changes));
    render();
  }

  // -- around the results -----------------------------------------------------------------------

  const chooser = piste.make("nav", "", "piste-chooser");
  chooser.setAttribute("aria-label", "Results");
  const line = piste.make("p", "", "piste-faint piste-line");
  const bar = piste.make("div", "", "piste-open-bar");
  const problem = piste.make("p", "", "piste-problem");
  problem.setAttribute("role", "alert");
  const status = piste.make("p", "", "piste-hidden");
  status.setAttribute("role", "status");
  const body = piste.make("form"); // so that choices in it are no choices of the other tab's
  body.autocomplete = "off";
  body.addEventListener("submit", (event) => event.preventDefault());
  place.append(chooser, line, bar, problem, status, body);

  function tell(text) {
    problem.textContent = text;
    problem.hidden = !text;
  }
  function choose(now) {
    chooser.replaceChildren(...listed.map((one) => {
      const found = link(one.name, address({ results: one.number }, usual));
      const kind = { corpus: "corpus run", concepts: "concept report" }[one.kind] ?? one.kind;
      found.append(piste.make("small", kind));
      if (one === now) found.setAttribute("aria-current", "page");
      return found;
    }));
    line.textContent = now ? now.about : "";
  }
  // What is wanted of a run's documents, as its interface takes it.
  function query(wanted) {
    const found = new URLSearchParams();
    for (const name of ["search", "predicted", "least_r2", "most_r2", "note", "sort", "descending"]) {
      if (wanted[name] !== "") found.set(name, wanted[name]);
    }
    for (const [column, cell] of piste.cells(wanted.cells)) {
      found.append("column", column);
      found.append("cell", cell);
    }
    return found;
  }
  // The page's address for the same input, if it is known and a model here can be asked.
  function explainLink(wanted) {
    if (!wanted) return [];
    const same = about.models.some((one) => one.name === wanted.model);
    const model = same ? wanted.model : about.models.find((one) => one.reads === "texts" && !one.is_language_model)?.name;
    if (!model) return [];
    return [[same ? "Open in Explain" : `Open in Explain, by ${model}`, `#${new URLSearchParams({ ...wanted, model })}`]];
  }
  function steps(now, wanted, view = null) {
    let ways = [];
    if (now.kind === "corpus" && wanted.document === "") {
      ways = [["Documents", address({ view: "" })], ["Words", address({ view: "words" })]];
    } else if (now.kind === "corpus") {
      const { before = null, after = null } = view?.neighbours ?? {};
      ways.push(["← Back to all documents", address({ document: "" })]);
      if (before !== null) ways.push(["Previous", address({ document: before })]);
      if (after !== null) ways.push(["Next", address({ document: after })]);
    }
    ways.push(...explainLink(view?.data.explain));
    const held = bar.contains(document.activeElement) ? document.activeElement.textContent : null;
    bar.replaceChildren(...ways.map(([name, hash]) => {
      const found = link(name, hash, "piste-button");
      if (hash === location.hash || (name === "Documents" && wanted.view === "") || (name === "Words" && wanted.view === "words")) found.setAttribute("aria-current", "page");
      return found;
    }));
    const { place = null, total = 0 } = view?.neighbours ?? {};
    if (place !== null) bar.append(piste.make("span", `${place.toLocaleString("en")} of ${total.toLocaleString("en")}`, "piste-faint"));
    [...bar.children].find((one) => one.textContent === held)?.focus({ preventScroll: true });
  }

  // -- what the address says --------------------------------------------------------------------

  async function list(now, wanted, mine) {
    const filters = query(wanted);
    const found = await piste.request("GET", `api/results/${now.number}/documents?${filters}&offset=${encodeURIComponent(wanted.offset)}&limit=${page}`);
    if (mine !== turn) return;
    if (shown?.of !== now) {
      shown = { of: now, list: piste.listing(address, change) };
      body.replaceChildren(shown.list.section);
    }
    shown.list.update(found, wanted, page, (kind) => `api/results/${now.number}/documents/export/${kind}?${filters}`);
    if (opened !== null) body.querySelector(`[data-document="${Number(opened)}"]`)?.focus();
    opened = null;
    document.title = `${now.name} · Piste`;
  }
  async function open(now, wanted, mine) {
    let part = now.kind === "corpus" ? "words" : "view";
    if (wanted.document !== "") part = `documents/${encodeURIComponent(wanted.document)}`;
    if (wanted.document !== "") part += `?${query(wanted)}`;
    if (wanted.document !== "") opened = wanted.document;
    const path = `api/results/${now.number}/${part}`;
    if (shown?.path === path) {
      steps(now, wanted, shown.view);
      return;
    }
    const view = await piste.request("GET", path);
    if (mine !== turn) return;
    shown = { path, view };
    steps(now, wanted, view);
    piste.show(body, view);
    document.title = `${view.title} · ${now.name} · Piste`;
    if (wanted.document === "") return;
    scrollTo(0, 0);
    if (!bar.contains(document.activeElement)) bar.querySelector("a").focus({ preventScroll: true });
  }
  async function browse(wanted, mine) {
    tell("");
    body.setAttribute("aria-busy", "true");
    status.textContent = "Loading …";
    try {
      listed ??= await piste.request("GET", "api/results");
      if (mine !== turn) return;
      const now = listed[wanted.results];
      choose(now);
      if (!now) throw new Error("There is no such result here: choose one of those above.");
      if (!bar.contains(document.activeElement)) steps(now, wanted); // else until the next ones are known
      const whole = now.kind === "corpus" && wanted.document === "" && wanted.view !== "words";
      if (whole) steps(now, wanted);
      await (whole ? list : open)(now, wanted, mine);
    } catch (wrong) {
      if (mine !== turn) return;
      tell(wrong.message);
      body.replaceChildren();
      shown = null;
    }
    if (mine !== turn) return;
    body.removeAttribute("aria-busy");
    status.textContent = "";
  }
  function render() {
    const mine = ++turn, browsing = piste.browses();
    if (browsing && place.hidden) title = document.title; // of the other tab
    document.body.classList.toggle("piste-browsing", browsing);
    document.querySelector(".piste-tip").hidden = true;
    place.hidden = !browsing;
    for (const button of nav.querySelectorAll("button")) {
      if ((button.dataset.tab === "results") === browsing) button.setAttribute("aria-current", "page");
      else button.removeAttribute("aria-current");
    }
    if (browsing) {
      browse(state(), mine);
      return;
    }
    piste.show(body, { html: "", rules: "", data: {} });
    shown = null;
    document.title = title;
  }

  for (const button of nav.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      const wanted = button.dataset.tab === "results";
      if (wanted === piste.browses()) return;
      if (wanted) piste.left = location.hash;
      history.pushState(null, "", wanted ? address({}, usual) : piste.left || location.pathname);
      render();
    });
  }
  addEventListener("hashchange", (event) => {
    const { hash } = new URL(event.oldURL);
    if (piste.browses() && !piste.browses(hash)) piste.left = hash;
    render();
  });
  render();
};
