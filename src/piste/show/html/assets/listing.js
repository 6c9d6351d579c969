// Kept columns and what is wanted in them, as the address holds it.
piste.cells = (text) => {
  try {
    const found = Object.entries(JSON.parse(text || "{}"));
    return found.every(([, cell]) => typeof cell === "string") ? found : [];
  } catch {
    return []; // somebody changed the address
  }
};
// The documents of a corpus run: found, sorted and paged by the server. `address` gives the address
// of other documents or pages, `change` goes to another search or order.
piste.listing = (address, change) => {
  const columns = [ // name, title, the order a first click gives, what it means
    ["document", "document", "false", "the number of its row, or its own name"],
    ["predicted", "model says", "false", "and below it what the data say, where that differs"],
    ["probability", "sure", "false", "the probability that the model gives to what it says"],
    ["r2", "R²", "false", "how well the explanation predicts the model: 1 is perfect"],
    ["units", "units", "true", "into how many units it was cut"],
    ["surprise", "surprise", "true", ""],
  ];
  const section = piste.make("section", "", "piste-listing");
  const filters = piste.make("div", "", "piste-filters");
  let now = null, drawn = "";

  // -- filters: all of them must hold -------------------------------------------------------------

  const wait = (control, changes) => {
    let waiting = null;
    control.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => change({ ...changes(control.value), offset: 0 }), 250);
    });
  };
  function labelled(name, control) {
    const around = piste.make("label", `${name} `);
    around.append(control);
    filters.append(around);
    return control;
  }
  function written(name, changes, kind = "search") {
    const input = piste.make("input");
    input.type = kind;
    input.maxLength = 200;
    if (kind === "number") [input.min, input.max, input.step] = ["-1", "1", "0.05"];
    wait(input, changes);
    return labelled(name, input);
  }
  function chosen(name, options, changes) {
    const select = piste.make("select");
    select.append(...options.map(([text, value]) => new Option(text, value)));
    select.addEventListener("change", () => change({ ...changes(select.value), offset: 0 }));
    return labelled(name, select);
  }
  // Controls are made once, so that whoever types in one stays there.
  function draw(found) {
    const { predicted, kept, choices, measured, noted } = found;
    const wanted = JSON.stringify([predicted, kept, choices, measured, noted]);
    if (wanted === drawn) return;
    drawn = wanted;
    filters.replaceChildren();
    const any = (values) => [["anything", ""], ...values.map((name) => [name, name])];
    const controls = [["search", written("Find in texts", (search) => ({ search }))]];
    controls.push(["predicted", chosen("Model says", any(predicted), (value) => ({ predicted: value }))]);
    for (const name of kept) {
      const changes = (value) => {
        const cells = Object.fromEntries([...piste.cells(now.cells).filter(([column]) => column !== name), ...(value ? [[name, value]] : [])]);
        return { cells: Object.keys(cells).length ? JSON.stringify(cells) : "" };
      };
      const control = choices[name] ? chosen(name, any(choices[name]), changes) : written(name, changes);
      control.dataset.column = name;
      controls.push(["cells", control]);
    }
    if (measured) {
      controls.push(["least_r2", written("R² from", (value) => ({ least_r2: value }), "number")]);
      controls.push(["most_r2", written("to", (value) => ({ most_r2: value }), "number")]);
    }
    if (noted) controls.push(["note", written("Find in notes", (note) => ({ note }))]);
    for (const [name, control] of controls) control.dataset.filter = name;
    filters.append(piste.button("Clear filters", () => change({ search: "", predicted: "", cells: "", least_r2: "", most_r2: "", note: "", offset: 0 })));
  }
  function fillFilters() {
    const cells = new Map(piste.cells(now.cells));
    for (const control of filters.querySelectorAll("[data-filter]")) {
      if (document.activeElement === control && control.tagName === "INPUT" && control.value) continue;
      const { filter, column } = control.dataset;
      control.value = filter === "cells" ? cells.get(column) ?? "" : now[filter];
    }
  }

  const meaning = piste.make("p", "", "piste-faint");
  const table = piste.make("table", "", "piste-documents");
  const count = piste.make("p", "", "piste-count");
  count.setAttribute("aria-live", "polite");
  section.append(filters, meaning, table, count);

  function heads(kept, found, wanted) {
    const line = piste.make("tr");
    const head = (text) => {
      const cell = piste.make("th", text);
      cell.scope = "col";
      line.append(cell);
      return cell;
    };
    for (const [name, title, first, about] of columns) {
      const cell = head("");
      const button = piste.button(title, () => {
        const descending = wanted.sort === name ? String(wanted.descending !== "true") : first;
        change({ sort: name, descending, offset: 0 });
      });
      button.className = "";
      button.dataset.sort = name;
      cell.append(button);
      cell.title = name === "surprise" ? found.surprise : about;
      const way = wanted.descending === "true" ? "descending" : "ascending";
      cell.setAttribute("aria-sort", wanted.sort === name ? way : "none");
      if (name === "document") head("text").className = "piste-plain-head";
      if (name === "predicted") for (const other of kept) head(other).className = "piste-plain-head";
    }
    const whole = piste.make("thead");
    whole.append(line);
    return whole;
  }
  function marked(text, wanted) {
    const at = wanted ? text.toLowerCase().indexOf(wanted.toLowerCase()) : -1;
    if (at < 0) return [text];
    const end = at + wanted.length;
    return [text.slice(0, at), piste.make("mark", text.slice(at, end)), text.slice(end)];
  }
  const plain = (number) => piste.number(number).replace("+", "");
  function line(one, kept, wanted) {
    const row = piste.make("tr");
    const cell = (name, text, kind = "") => {
      const made = piste.make("td", text, kind);
      made.dataset.name = name;
      row.append(made);
      return made;
    };
    cell("document", one.id ?? String(one.document), "piste-id");
    const open = piste.make("a");
    open.href = address({ document: one.document });
    open.dataset.document = one.document;
    open.dir = "auto";
    open.append(...marked(one.text, wanted.search));
    cell("text", "").append(open);
    const said = cell("model says", one.predicted);
    if (one.agrees === false) said.append(piste.make("small", `data: ${one.truth}`, "piste-worse"));
    for (const name of kept) cell(name, one.kept[name] ?? "–", "piste-kept");
    cell("sure", one.probability === null ? "–" : piste.percent(one.probability));
    cell("R²", plain(one.r2));
    cell("units", String(one.units));
    const bar = piste.make("i");
    bar.style.width = `${100 * Math.min(Math.max(one.surprise ?? 0, 0), 1)}%`;
    cell("surprise", plain(one.surprise), "piste-surprise").append(bar);
    return row;
  }
  function pager({ total, offset, rows }, page) {
    if (!rows.length && !total) return ["No document fits."];
    const parts = [piste.make("span", rows.length
      ? `${(offset + 1).toLocaleString("en")} to ${(offset + rows.length).toLocaleString("en")} of ${total.toLocaleString("en")} `
      : `There are only ${total.toLocaleString("en")} `)];
    const to = (name, start) => {
      const found = piste.make("a", name, "piste-button");
      found.href = address({ offset: start });
      parts.push(found);
    };
    if (offset > 0) to("← Before", Math.min(Math.max(offset - page, 0), Math.floor((total - 1) / page) * page));
    if (offset + rows.length < total && rows.length) to("After →", offset + page);
    return parts;
  }
  function exports(total, exported) {
    return ["csv", "json"].map((kind) => {
      const found = piste.make("a", `Save ${total === 1 ? "it" : `all ${total.toLocaleString("en")}`} as ${kind.toUpperCase()}`, "piste-button");
      found.href = exported(kind);
      found.download = `documents.${kind}`;
      return found;
    });
  }
  function update(found, wanted, page, exported) {
    now = wanted;
    draw(found);
    fillFilters();
    meaning.textContent = `${found.surprise} Click a heading to sort, a text to see its explanation.`;
    const kept = found.kept.filter((name) => name !== found.truth).slice(0, 3);
    const held = document.activeElement?.dataset.sort;
    const body = piste.make("tbody");
    body.append(...found.rows.map((one) => line(one, kept, wanted)));
    table.replaceChildren(heads(kept, found, wanted), body);
    if (held) table.querySelector(`[data-sort=${held}]`).focus();
    count.replaceChildren(...pager(found, page), ...(found.total ? exports(found.total, exported) : []));
  }
  return { section, update };
};
