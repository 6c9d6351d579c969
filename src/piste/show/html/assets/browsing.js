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
    results: "0", view: "", document: "", search: "", predicted: "", sort: "surprise",
    descending: "true", offset: "0",
  };
  const page = 25;
  let listed = null, shown = null, order = [], opened = null, turn = 0, title = document.title;
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
  function steps(now, wanted) {
    const ways = [];
    if (now.kind === "corpus" && wanted.document === "") {
      ways.push(["Documents", { view: "" }], ["Words", { view: "words" }]);
    } else if (now.kind === "corpus") {
      const here = order.indexOf(Number(wanted.document));
      ways.push(["← Back to all documents", { document: "" }]);
      if (here > 0) ways.push(["Previous", { document: order[here - 1] }]);
      if (here >= 0 && here < order.length - 1) ways.push(["Next", { document: order[here + 1] }]);
    }
    const held = bar.contains(document.activeElement) ? document.activeElement.textContent : null;
    bar.replaceChildren(...ways.map(([name, changes]) => {
      const found = link(name, address(changes), "piste-button");
      if (changes.view === wanted.view) found.setAttribute("aria-current", "page");
      return found;
    }));
    [...bar.children].find((one) => one.textContent === held)?.focus({ preventScroll: true });
  }

  // -- what the address says --------------------------------------------------------------------

  async function list(now, wanted, mine) {
    const query = new URLSearchParams({ limit: page });
    for (const name of ["search", "sort", "descending", "offset"]) query.set(name, wanted[name]);
    if (wanted.predicted) query.set("predicted", wanted.predicted);
    const found = await piste.request("GET", `api/results/${now.number}/documents?${query}`);
    if (mine !== turn) return;
    if (shown?.of !== now) {
      shown = { of: now, list: piste.listing(address, change) };
      body.replaceChildren(shown.list.section);
    }
    shown.list.update(found, wanted, page);
    order = found.rows.map((one) => one.document);
    if (opened !== null) body.querySelector(`[data-document="${Number(opened)}"]`)?.focus();
    opened = null;
    document.title = `${now.name} · Piste`;
  }
  async function open(now, wanted, mine) {
    let part = now.kind === "corpus" ? "words" : "view";
    if (wanted.document !== "") part = `documents/${encodeURIComponent(wanted.document)}`;
    if (wanted.document !== "") opened = wanted.document;
    const path = `api/results/${now.number}/${part}`;
    if (shown?.path === path) return;
    const view = await piste.request("GET", path);
    if (mine !== turn) return;
    shown = { path };
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
      steps(now, wanted);
      const whole = now.kind === "corpus" && wanted.document === "" && wanted.view !== "words";
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
