// Hovering or focusing a word, a dot, a part of an image or a row lights all of its kind.
piste.parts.push((root, data) => {
  if (!data.names) return;
  const tip = document.querySelector(".piste-tip");
  const byKind = new Map();
  let lit = [];
  function collect() {
    byKind.clear();
    lit = [];
    for (const element of root.querySelectorAll("[data-k]")) {
      for (const kind of piste.kinds(element)) {
        if (!byKind.has(kind)) byKind.set(kind, []);
        byKind.get(kind).push(element);
      }
      element.classList.remove("piste-on");
      element.removeAttribute("title");
      const title = element.querySelector(":scope > title");
      if (title) { // in SVG the title is an element, and the name a screen reader says
        element.setAttribute("aria-label", title.textContent);
        title.remove();
      }
    }
  }
  collect();

  function light(element) {
    const kinds = element ? piste.kinds(element) : [];
    if (kinds.join() !== lit.join()) {
      for (const kind of lit) for (const other of byKind.get(kind) ?? []) other.classList.remove("piste-on");
      for (const kind of kinds) for (const other of byKind.get(kind) ?? []) other.classList.add("piste-on");
      lit = kinds;
    }
    if (element && element.tagName !== "TR") show(element, kinds);
    else tip.hidden = true;
  }
  function show(element, [kind, ...others]) {
    const title = document.createElement("b");
    title.textContent = element.dataset.name || data.names[kind];
    const alike = (column) => others.every((other) => column.shown[other] === column.shown[kind]);
    const lines = data.columns.filter((column) => column.tip && alike(column)).map((column) => {
      const line = document.createElement("span");
      for (const text of [column.name, column.shown[kind]]) {
        line.appendChild(document.createElement("span")).textContent = text;
      }
      return line;
    });
    tip.replaceChildren(title, ...lines);
    tip.hidden = false;
    const shape = element.querySelector("circle") || element;
    const mark = shape.getClientRects()[0] || shape.getBoundingClientRect();
    const left = Math.min(Math.max(mark.left, 6), innerWidth - tip.offsetWidth - 6);
    const above = mark.top - tip.offsetHeight - 8;
    tip.style.left = `${Math.max(left, 6)}px`;
    tip.style.top = `${above > 4 ? above : mark.bottom + 8}px`;
  }
  const kindOf = (event) => event.target.closest && event.target.closest("[data-k]");
  root.addEventListener("mouseover", (event) => light(kindOf(event)));
  root.addEventListener("mouseleave", () => light(null));
  root.addEventListener("focusin", (event) => light(kindOf(event)));
  root.addEventListener("focusout", () => light(null));
  root.addEventListener("wheel", () => { tip.hidden = true; }, { passive: true });
  root.addEventListener("keydown", (event) => { if (event.key === "Escape") light(null); });

  const along = { ArrowRight: [1, 0], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowUp: [0, -1] };
  function middle(element) {
    const box = element.getBBox();
    return [box.x + box.width / 2, box.y + box.height / 2];
  }
  // The nearest part of an image in a direction, preferring those straight ahead.
  function beside(group, element, [right, down]) {
    const [x, y] = middle(element);
    let best = null, least = Infinity;
    for (const other of group) {
      const [dx, dy] = middle(other).map((place, axis) => place - [x, y][axis]);
      const ahead = dx * right + dy * down, aside = Math.abs(dx * down) + Math.abs(dy * right);
      if (other !== element && ahead > aside && ahead + 2 * aside < least) {
        [best, least] = [other, ahead + 2 * aside];
      }
    }
    return best;
  }

  // One tab stop per group, arrows inside it.
  function arrows(group) {
    group.forEach((element, index) => {
      element.setAttribute("tabindex", index ? "-1" : "0");
      element.addEventListener("keydown", (event) => {
        const way = along[event.key];
        if (!way) return;
        const placed = element.classList.contains("piste-area");
        const next = placed ? beside(group, element, way) : group[index + way[0] + way[1]];
        if (!next) return;
        event.preventDefault();
        element.setAttribute("tabindex", "-1");
        next.setAttribute("tabindex", "0");
        next.focus();
      });
    });
  }
  const reached = new WeakSet();
  function reach() {
    for (const [groups, parts] of [[".piste-marked", ".piste-unit"], [".piste-plane", ".piste-dot"]]) {
      for (const group of root.querySelectorAll(groups)) {
        if (!reached.has(group)) arrows([...group.querySelectorAll(parts)]);
        reached.add(group);
      }
    }
  }
  reach();
  root.addEventListener("piste-redrawn", () => { collect(); reach(); });
});
