// Select words of an answer, and the prompt is coloured by what they come from.
piste.parts.push((root, data) => {
  const panel = root.querySelector(".piste-answer");
  if (!panel || !data.answer) return;
  const { answer, palette } = data;
  const words = [...panel.querySelectorAll(".piste-word")];
  const how = panel.querySelector(".piste-how"), said = panel.querySelector(".piste-span");
  if (answer.problem) {
    how.textContent = answer.problem;
    how.hidden = false;
    return;
  }
  const columns = data.columns, choice = root.querySelector(".piste-choice select");
  const key = ([first, last]) => `${first}-${last}`;
  const known = new Map(answer.known.map((one) => [key(one.words), one]));
  known.set(key(answer.own), answer.shown);
  const single = answer.live || words.every((_, word) => known.has(key([word, word])));
  const redrawing = piste.redrawing(root, data);
  let chosen = answer.own, anchor = null, dragging = false, turn = 0;

  how.textContent = `Click a ${single ? "word" : "sentence"} to see where it comes from; Shift + click or drag to select more. Keys: arrows, Enter, Shift + arrows, Esc.`;
  how.hidden = false;

  // -- what is known of a selection -------------------------------------------------------------

  const name = ([first, last]) => answer.text.slice(answer.words[first][0], answer.words[last][1]);
  // Words or sentences that make up a selection, each explained on its own.
  function pieces([first, last]) {
    const cut = single ? words.map((_, word) => [word, word]) : answer.sentences;
    return cut.filter(([from, to]) => from >= first && to <= last);
  }
  function summed(place) {
    const parts = pieces(place).map((one) => known.get(key(one))).filter(Boolean);
    if (!parts.length) return null;
    const add = (row) => parts.reduce((sum, one) => sum + (row(one) ?? 0), 0);
    const value = add((one) => one.value), measured = parts.map((one) => one.r2).filter((r2) => r2 !== null);
    const range = [Math.min(...measured), Math.max(...measured)].map((r2) => piste.number(r2).replace("+", ""));
    const noun = `${parts.length} ${single ? "words" : "sentences"}`;
    return {
      words: place,
      said: `“${name(place)}” (log-probability ${piste.number(value)})`,
      value,
      reasons: [[`the sum of the contributions of its ${noun}, each explained on its own: log-probabilities add up.`, false]],
      trust: measured.length ? `R² of the ${noun}: ${range[0]} to ${range[1]}.` : "",
      warnings: [],
      scores: answer.shown.scores.map((_, unit) => add((one) => one.scores[unit])),
      errors: answer.shown.scores.map(() => null),
      places: Math.max(...parts.map((one) => one.places)),
      columns: summedColumns(parts),
      plane: parts[0].plane && ["value", answer.score],
      note: parts[0].sum_note,
      heading: parts[0].sum_heading,
      sides: [`makes “${name(place)}” likelier`, `makes “${name(place)}” less likely`],
    };
  }
  // What units say alone and what they add here is summed, as log-probabilities are.
  function summedColumns(parts) {
    return parts[0].columns.filter(({ name }) => name === "value" || name === answer.score).map((column) => {
      const all = parts.map((one) => one.columns.find(({ name }) => name === column.name)).filter(Boolean);
      const scores = column.scores.map((_, kind) => all.reduce((sum, one) => sum + (one.scores[kind] ?? 0), 0));
      return { ...column, scores, errors: scores.map(() => null) };
    });
  }
  async function explained(place) {
    if (known.has(key(place))) return known.get(key(place));
    if (!answer.live) return summed(place);
    const found = await answer.ask(answer.words[place[0]][0], answer.words[place[1]][1]);
    known.set(key(place), found);
    return found;
  }

  // -- shown ------------------------------------------------------------------------------------

  function strengths(scores) {
    const sizes = scores.map((score) => Math.abs(score ?? 0)).sort((one, other) => one - other);
    const scale = sizes[Math.ceil(answer.clip * (sizes.length - 1))] || sizes[sizes.length - 1] || 1;
    return scores.map((score) => Math.max(-1, Math.min(1, (score ?? 0) / scale)));
  }
  function shown(one, unit) {
    const error = one.errors[unit] === null ? "" : ` ± ${piste.number(one.errors[unit], one.places).replace("+", "")}`;
    return piste.number(one.scores[unit], one.places) + error;
  }
  function colour(one) {
    const shades = strengths(one.scores);
    for (const unit of root.querySelectorAll(".piste-unit")) {
      unit.style.background = piste.colour(palette, shades[unit.dataset.u]);
    }
    const [above, below] = one.sides;
    root.querySelector(".piste-above").textContent = above;
    root.querySelector(".piste-below").textContent = below;
    root.querySelector(".piste-meaning").textContent = "";
    data.columns = [{ name: answer.score, tip: true, shown: answer.firsts.map((unit) => shown(one, unit)) }];
    if (key(chosen) === key(answer.own)) redrawing.restore(); else redrawing.draw(one, shades);
  }
  function sums(one) {
    const body = root.querySelector(".piste-sums tbody");
    if (!body) return;
    const totals = new Map(Object.entries(answer.parts).map(([part, units]) => [part, units.reduce((sum, unit) => sum + (one.scores[unit] ?? 0), 0)]));
    const most = Math.max(...[...totals.values()].map(Math.abs)) || 1;
    const rows = [...body.rows].sort((row, other) => Math.abs(totals.get(other.dataset.part)) - Math.abs(totals.get(row.dataset.part)));
    for (const row of rows) {
      const total = totals.get(row.dataset.part), cell = row.cells[1];
      cell.textContent = piste.number(total);
      cell.style.background = piste.colour(palette, total / most);
      const strongest = [...answer.parts[row.dataset.part]].sort((unit, other) => Math.abs(one.scores[other] ?? 0) - Math.abs(one.scores[unit] ?? 0));
      const few = strongest.slice(0, 3).map((unit) => `“${answer.units[unit]}”`).join(", ");
      row.cells[2].textContent = strongest.length > 3 ? `${few} and ${strongest.length - 3} more` : few;
    }
    body.replaceChildren(...rows);
  }
  function tell(one) {
    if (key(chosen) === key(answer.own)) { // the head of the page says it
      said.replaceChildren();
      return;
    }
    const line = piste.make("span");
    line.append(piste.make("strong", one.said), ": ");
    for (const [text, isName] of one.reasons) line.append(isName ? piste.make("em", text) : text);
    said.replaceChildren(line, " ", piste.make("span", one.trust, "piste-faint"), " ");
    for (const warning of one.warnings) said.append(piste.make("span", `${warning} `, "piste-note"));
    said.append(piste.button(`Back to ${answer.back}`, () => select(answer.own)));
  }
  function mark() {
    words.forEach((word, number) => {
      const inside = number >= chosen[0] && number <= chosen[1];
      word.classList.toggle("piste-selected", inside && key(chosen) !== key(answer.own));
      word.setAttribute("aria-pressed", inside);
    });
  }
  async function select(place) {
    const mine = ++turn;
    chosen = single ? place : whole(place);
    mark();
    const own = key(chosen) === key(answer.own);
    if (own) anchor = null;
    if (choice) {
      choice.value = "0";
      choice.disabled = !own;
    }
    let one;
    try {
      one = await explained(chosen);
    } catch (problem) {
      if (mine === turn) said.replaceChildren(problem.message);
      return;
    }
    if (mine !== turn || !one) return;
    colour(one);
    sums(one);
    tell(one);
    root.dispatchEvent(new CustomEvent("piste-span", { detail: own ? null : chosen }));
    if (own) {
      data.columns = columns;
      root.querySelector(".piste-meaning").textContent = columns[0].meaning;
    }
  }
  // Without words of their own, selections are of whole sentences.
  function whole([first, last]) {
    const inside = answer.sentences.filter(([from, to]) => to >= first && from <= last);
    return [inside[0][0], inside[inside.length - 1][1]];
  }

  // -- selecting --------------------------------------------------------------------------------

  const range = (one, other) => [Math.min(one, other), Math.max(one, other)];
  const at = (event) => {
    const word = event.target.closest && event.target.closest(".piste-word");
    return word && panel.contains(word) ? Number(word.dataset.w) : null;
  };
  function press(word, extend) {
    const alone = key(chosen) === key([word, word]);
    if (extend && anchor !== null) return select(range(anchor, word));
    anchor = word;
    return select(alone && words.length > 1 ? answer.own : [word, word]);
  }
  panel.addEventListener("pointerdown", (event) => {
    const word = at(event);
    if (word === null || event.button) return;
    if (event.pointerType === "touch") return; // a finger scrolls, and its tap is a click
    event.preventDefault();
    words[word].focus();
    dragging = true;
    press(word, event.shiftKey);
  });
  panel.addEventListener("pointerover", (event) => {
    const word = dragging ? at(event) : null;
    if (word === null || anchor === null) return;
    chosen = range(anchor, word);
    mark();
  });
  addEventListener("pointerup", () => {
    if (!dragging) return;
    dragging = false;
    if (anchor !== null && key(chosen) !== key([anchor, anchor])) select(chosen);
  });
  panel.addEventListener("click", (event) => {
    const word = at(event);
    if (word !== null && event.pointerType === "touch") press(word, event.shiftKey);
  });
  words.forEach((element, word) => {
    element.setAttribute("role", "button");
    element.setAttribute("tabindex", word ? "-1" : "0");
    element.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Enter" || event.key === " ") press(word, event.shiftKey);
      else if (event.key === "Escape") select(answer.own);
      else if (step && words[word + step]) {
        element.setAttribute("tabindex", "-1");
        words[word + step].setAttribute("tabindex", "0");
        words[word + step].focus();
        if (event.shiftKey) {
          if (anchor === null) anchor = word;
          select(range(anchor, word + step));
        }
      } else return;
      event.preventDefault();
    });
  });
  select(data.span && data.span[1] < words.length && data.span[0] <= data.span[1] ? data.span : answer.own);
});
