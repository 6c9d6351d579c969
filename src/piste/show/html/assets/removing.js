// Who was right? Remove words or parts, see the model's real answer beside what was expected.
piste.parts.push((root, data) => {
  const panel = root.querySelector(".piste-check");
  if (!panel || !data.checks) return;
  const { methods, before, tried, ask, strongest, number } = data.checks;
  const places = data.checks.places ?? 2;
  const known = new Map(tried.map((one) => [one.removed.join(), one]));
  const rows = tried.slice(0, 5);
  const gone = new Set();
  const units = [...root.querySelectorAll("[data-u]")];
  const names = data.checks.units;
  const now = panel.querySelector(".piste-now");
  const table = panel.querySelector("table");
  const buttons = panel.querySelector(".piste-buttons");
  let turn = 0;

  const said = (one) => `${one.label}${one.probability === null ? "" : ` (${piste.percent(one.probability)})`}`;
  const called = (removed) => {
    const words = removed.slice(0, 6).map((unit) => `“${names[unit]}”`).join(" ");
    return removed.length > 6 ? `${words} and ${removed.length - 6} more` : words;
  };
  const off = (one, index) => Math.abs(one.expected[index] - one.answer);

  function fill() {
    const worst = Math.max(...rows.flatMap((one) => methods.map((_, index) => off(one, index))), 1e-9);
    const head = table.tHead || table.createTHead();
    head.replaceChildren();
    const titles = head.insertRow();
    for (const title of ["removed", "the model really said", ...methods]) {
      const cell = piste.make("th", title);
      cell.scope = "col";
      titles.append(cell);
    }
    const body = table.tBodies[0] || table.createTBody();
    body.replaceChildren(...rows.map((one) => {
      const row = document.createElement("tr");
      const name = piste.make("th", called(one.removed));
      name.scope = "row";
      name.dir = "auto";
      const real = piste.make("td", piste.number(one.answer, places));
      if (!number) real.append(piste.make("small", ` ${said(one)}`));
      row.append(name, real);
      const errors = methods.map((_, index) => off(one, index));
      const best = Math.min(...errors).toFixed(places);
      errors.forEach((error, index) => {
        const cell = piste.make("td", piste.number(one.expected[index], places));
        if (methods.length > 1 && error.toFixed(places) === best) cell.className = "piste-best";
        const bar = piste.make("i", "", "piste-off");
        bar.style.width = `${Math.max(100 * error / worst, 1).toFixed(1)}%`;
        cell.append(piste.make("small", `off by ${error.toFixed(places)}`), bar);
        row.append(cell);
      });
      return row;
    }));
    const foot = table.tFoot || table.createTFoot();
    foot.replaceChildren();
    if (rows.length < 2) return;
    const last = foot.insertRow();
    const title = piste.make("th", `off by, on average of ${rows.length}`);
    title.scope = "row";
    last.append(title, piste.make("td"));
    const means = methods.map((_, index) => rows.reduce((sum, one) => sum + off(one, index), 0) / rows.length);
    const least = Math.min(...means).toFixed(places);
    for (const mean of means) {
      const cell = piste.make("td", mean.toFixed(places));
      if (methods.length > 1 && mean.toFixed(places) === least) cell.className = "piste-best";
      last.append(cell);
    }
  }

  function tell(text) { now.replaceChildren(text); }
  function result(one) {
    const told = (what) => `${number ? "" : `${said(what)}, `}${piste.number(what.answer, places)}`;
    const first = piste.make("span", `Without ${called(one.removed)} the ${number ? `${number} is` : "model says"} `);
    const answer = piste.make("b", told(one));
    const was = piste.make("span", `; before it ${number ? "was" : "said"} ${told(before)}. `);
    const nearest = methods.map((name, index) => [off(one, index), name]).sort((a, b) => a[0] - b[0]);
    const list = nearest.map(([error, name]) => `${name} by ${error.toFixed(places)}`).join(", ");
    now.replaceChildren(first, answer, was, piste.make("span", `Off: ${list}.`));
  }

  async function renew() {
    const mine = ++turn;
    for (const element of units) {
      const removed = gone.has(Number(element.dataset.u));
      element.classList.toggle("piste-gone", removed);
      if (element.hasAttribute("role")) element.setAttribute("aria-pressed", removed);
    }
    const removed = [...gone].sort((a, b) => a - b);
    root.dispatchEvent(new CustomEvent("piste-removed", { detail: removed }));
    if (!removed.length) {
      tell(data.checks.invitation);
      return;
    }
    const key = removed.join();
    if (!known.has(key)) {
      if (!ask) {
        tell(`This page holds no model, and nobody asked it about this before: it knows the answers to ${known.size} removals. Start “piste serve” to ask anything.`);
        return;
      }
      tell("Asking the model …");
      try {
        known.set(key, await ask(removed));
      } catch (problem) {
        if (mine === turn) tell(problem.message);
        return;
      }
    }
    if (mine !== turn) return; // another word was clicked since
    const one = known.get(key);
    const place = rows.findIndex((row) => row.removed.join() === key);
    if (place >= 0) rows.splice(place, 1);
    rows.unshift(one);
    result(one);
    fill();
  }
  function set(some) {
    gone.clear();
    for (const unit of some) gone.add(unit);
    renew();
  }
  function toggle(element) {
    const unit = Number(element.dataset.u);
    if (!gone.delete(unit)) gone.add(unit);
    renew();
  }
  for (const element of units) {
    if (!element.classList.contains("piste-unit")) continue;
    element.classList.add("piste-removable");
    element.setAttribute("role", "button");
    element.setAttribute("aria-pressed", "false");
    element.addEventListener("keydown", (event) => {
      if (!["Enter", " ", "Delete"].includes(event.key)) return;
      event.preventDefault();
      toggle(element);
    });
  }
  root.addEventListener("click", (event) => {
    const element = event.target.closest("[data-u]");
    if (element) toggle(element);
  });
  root.addEventListener("piste-remove-kinds", (event) => {
    set(event.detail.flatMap((kind) => data.checks.kinds[kind]));
    panel.scrollIntoView({ block: "nearest" });
  });
  if (ask) {
    buttons.append(piste.button("Remove the 3 strongest", () => set(strongest.slice(0, 3))));
    buttons.append(piste.button("Remove a random half", () => {
      const all = names.map((_, unit) => unit);
      for (let last = all.length - 1; last > 0; last -= 1) {
        const other = Math.floor(Math.random() * (last + 1));
        [all[last], all[other]] = [all[other], all[last]];
      }
      set(all.slice(0, Math.floor(all.length / 2)));
    }));
  }
  buttons.append(piste.button("Put all back", () => set([])));
  fill();
  if (data.removed && data.removed.length) set(data.removed);
  else tell(data.checks.invitation);
});
