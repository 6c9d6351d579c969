// A plane of two scores, drawn again where a selection changes them; it looks as the first one.
piste.plane = (points, width, height) => {
  const box = { left: 58, right: width - 10, top: 10, bottom: height - 44 }, font = 12;
  const known = points.names.map((_, k) => k).filter((k) => Number.isFinite(points.x[k] ?? NaN) && Number.isFinite(points.y[k] ?? NaN));
  const make = (tag, attributes, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  };
  const svg = make("svg", { class: "piste-plane", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": points.about });
  if (!known.length) return svg;
  function axis(values, from, to) {
    const low = Math.min(...values), high = Math.max(...values), room = high > low ? 0.1 * (high - low) : 1;
    const [start, end] = [low - room, high + room];
    return { start, end, at: (value) => from + ((value - start) / (end - start)) * (to - from) };
  }
  const across = axis(known.map((k) => points.x[k]), box.left, box.right);
  const upward = axis(known.map((k) => points.y[k]), box.bottom, box.top);
  const inside = (one, value) => Math.min(Math.max(value, one.start), one.end);
  const round = (value) => value.toFixed(1);

  // -- axes -------------------------------------------------------------------------------------

  function ticks({ start, end }, about) {
    const raw = (end - start) / about, size = 10 ** Math.floor(Math.log10(raw));
    const step = size * [1, 2, 5, 10].find((factor) => size * factor >= raw * 0.999);
    const found = [];
    for (let n = Math.ceil(start / step); n <= Math.floor(end / step); n += 1) found.push(Number((n * step).toFixed(10)));
    return found;
  }
  const zeros = [
    across.start <= 0 && across.end >= 0 ? `M${round(across.at(0))} ${box.top}V${box.bottom}` : "",
    upward.start <= 0 && upward.end >= 0 ? `M${box.left} ${round(upward.at(0))}H${box.right}` : "",
  ].join("");
  svg.append(make("path", { class: "piste-zero", d: zeros }));
  svg.append(make("path", { class: "piste-axis", d: `M${box.left} ${box.top}V${box.bottom}H${box.right}` }));
  const number = (value) => String(value).replace("-", "−");
  for (const one of ticks(across, Math.floor(width / 75))) {
    svg.append(make("text", { class: "piste-tick", x: round(across.at(one)), y: box.bottom + 15, "text-anchor": "middle" }, number(one)));
  }
  for (const one of ticks(upward, 6)) {
    svg.append(make("text", { class: "piste-tick", x: box.left - 6, y: round(upward.at(one) + 4), "text-anchor": "end" }, number(one)));
  }
  svg.append(make("text", { class: "piste-title", x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle" }, points.titles[0]));
  svg.append(make("text", { class: "piste-title", transform: `translate(12 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, points.titles[1]));

  // -- points -----------------------------------------------------------------------------------

  const place = (k) => [across.at(points.x[k]), upward.at(points.y[k])];
  const named = points.order.filter((k) => known.includes(k));
  const radius = (k) => (named.includes(k) ? 3.6 : 2.2) * points.counts[k] ** 0.3;
  const taken = known.map((k) => { const [x, y] = place(k), r = radius(k); return [x - r, y - r, x + r, y + r]; });
  // The first place beside the dot where a name covers nothing; "" if there is none.
  function label(k) {
    const [x, y] = place(k), r = radius(k) + 3, half = 0.3 * font * points.names[k].length + 2;
    for (const [dx, dy] of [[r + half, 4], [-r - half, 4], [0, -r - 2], [0, r + font], [r + half, -8], [-r - half, -8], [r + half, 16], [-r - half, 16]]) {
      const area = [x + dx - half, y + dy - font, x + dx + half, y + dy + 2];
      const free = taken.every((other) => area[2] < other[0] || area[0] > other[2] || area[3] < other[1] || area[1] > other[3]);
      if (!free || area[0] < box.left || area[2] > box.right || area[1] < box.top || area[3] > box.bottom) continue;
      taken.push(area);
      return make("text", { class: "piste-label", x: round(x + dx), y: round(y + dy), "text-anchor": "middle" }, points.names[k]);
    }
    return "";
  }
  const labels = new Map(named.map((k) => [k, label(k)]));
  for (const k of [...known].sort((one, other) => named.includes(one) - named.includes(other))) {
    const [x, y] = place(k), strength = points.strengths[k];
    const dot = make("g", { class: named.includes(k) ? "piste-dot" : "piste-dot piste-loose", "data-k": k });
    if (named.includes(k)) {
      const bars = [
        Number.isFinite(points.ex[k] ?? NaN) ? `M${round(across.at(inside(across, points.x[k] - points.ex[k])))} ${round(y)}H${round(across.at(inside(across, points.x[k] + points.ex[k])))}` : "",
        Number.isFinite(points.ey[k] ?? NaN) ? `M${round(x)} ${round(upward.at(inside(upward, points.y[k] - points.ey[k])))}V${round(upward.at(inside(upward, points.y[k] + points.ey[k])))}` : "",
      ].join("");
      if (bars) dot.append(make("path", { class: "piste-whisker", d: bars }));
    }
    const hue = strength >= 0 ? points.palette.for : points.palette.against;
    dot.append(make("circle", { cx: round(x), cy: round(y), r: round(radius(k)), fill: `rgb(${hue.join()})`, "fill-opacity": (0.55 + 0.45 * Math.abs(strength)).toFixed(2) }));
    dot.append(labels.get(k) ?? "");
    svg.append(dot);
  }
  return svg;
};
