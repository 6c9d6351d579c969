// The plane and the table of an answer's page, drawn again for a span that is selected.
piste.redrawing = (root, data) => {
  const { answer, palette } = data;
  const planes = root.querySelector(".piste-planes"), table = root.querySelector(".piste-all table");
  const wide = planes?.querySelector(".piste-wide"), small = planes?.querySelector(".piste-small");
  const first = { // what the page came with, for the way back
    wide: [...(wide?.childNodes ?? [])], small: [...(small?.childNodes ?? [])],
    note: planes?.querySelector(".piste-note-of-plane").textContent, title: planes?.querySelector("h2").textContent,
    table: table?.parentNode ? table : null,
  };
  let now = table;

  function column(one, name) { return one.columns.find((each) => each.name === name); }
  function drawPlane(one, strengths) {
    const both = one.plane && one.plane.map((name) => column(one, name));
    planes.hidden = !both || both.includes(undefined);
    if (planes.hidden) return;
    const [x, y] = both, pick = (values) => answer.firsts.map((unit) => values[unit]);
    const order = one.order ?? [...y.scores.keys()].sort((a, b) => Math.abs(strengths[answer.firsts[b]]) - Math.abs(strengths[answer.firsts[a]])).slice(0, 12);
    const points = {
      names: data.names, counts: answer.counts, palette, order, about: `${x.name} against ${y.name}`,
      x: x.scores, y: y.scores, ex: x.errors, ey: y.errors, strengths: pick(strengths),
      titles: both.map((each) => each.title),
    };
    wide.replaceChildren(piste.plane(points, 700, 470));
    small.replaceChildren(piste.plane(points, 380, 440));
    planes.querySelector(".piste-note-of-plane").textContent = one.note;
    planes.querySelector("h2").textContent = one.heading;
  }
  function drawTable(one) {
    if (!now) return;
    const drawn = piste.make("table"), head = drawn.createTHead().insertRow(), body = drawn.createTBody();
    const counted = answer.counts.some((count) => count > 1);
    for (const name of [answer.part, ...(counted ? ["count"] : []), ...one.columns.map((each) => each.name)]) {
      const cell = piste.make("th"), button = piste.make("button", name);
      cell.scope = "col";
      cell.setAttribute("aria-sort", "none");
      button.type = "button";
      cell.append(button);
      head.append(cell);
    }
    const ranked = column(one, answer.score) ?? one.columns[0];
    const order = [...answer.firsts.keys()].sort((a, b) => Math.abs(ranked.scores[b] ?? 0) - Math.abs(ranked.scores[a] ?? 0));
    for (const kind of order) {
      const row = body.insertRow(), name = piste.make("th", data.plain[kind]);
      row.dataset.k = kind;
      name.scope = "row";
      name.dir = "auto";
      row.append(name);
      const cell = (value, text) => {
        const made = piste.make("td", text);
        made.dataset.v = value ?? "";
        row.append(made);
        return made;
      };
      if (counted) cell(answer.counts[kind], String(answer.counts[kind]));
      for (const each of one.columns) {
        const value = each.scores[kind], error = each.errors[kind];
        const made = cell(value, piste.number(value, each.places));
        if (error !== null && error !== undefined) made.append(" ", piste.make("small", `± ${piste.number(error, each.places).replace("+", "")}`));
      }
    }
    now.replaceWith(drawn);
    now = drawn;
    piste.sortable(drawn);
  }
  function restore() {
    if (planes) {
      planes.hidden = false;
      wide.replaceChildren(...first.wide);
      small.replaceChildren(...first.small);
      planes.querySelector(".piste-note-of-plane").textContent = first.note;
      planes.querySelector("h2").textContent = first.title;
    }
    if (now && now !== first.table) now.replaceWith(first.table);
    now = first.table;
    root.dispatchEvent(new CustomEvent("piste-redrawn"));
  }
  return {
    restore,
    draw(one, strengths) {
      if (planes) drawPlane(one, strengths);
      drawTable(one);
      root.dispatchEvent(new CustomEvent("piste-redrawn"));
    },
  };
};
