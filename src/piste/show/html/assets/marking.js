// Spans of the text that the reader marks, as units: "0-12,13-40", counted in characters.
piste.marking = (area, place) => {
  const pattern = /^\d{1,9}-\d{1,9}(,\d{1,9}-\d{1,9})*$/;
  let spans = [];
  const note = piste.make("span", "", "piste-faint"), list = piste.make("span", "", "piste-marks");
  // Characters as the server counts them, not the halves that a script may see.
  const count = (end) => [...area.value.slice(0, end)].length;
  const add = piste.button("Add what is selected in the text", () => {
    const [start, end] = [count(area.selectionStart), count(area.selectionEnd)];
    if (![...area.value].slice(start, end).join("").trim()) {
      note.textContent = "Select some text first.";
      return;
    }
    spans = [...spans.filter(([from, to]) => to <= start || from >= end), [start, end]];
    draw();
  });
  const clear = piste.button("Clear", () => { spans = []; draw(); });
  place.append(add, clear, note, list);
  function draw() {
    spans.sort((one, other) => one[0] - other[0]);
    const letters = [...area.value];
    list.replaceChildren(...spans.map(([from, to]) => piste.make("mark", letters.slice(from, to).join(""))));
    note.textContent = spans.length ? "The rest of the text stays in every question." : "";
    clear.hidden = !spans.length;
  }
  area.addEventListener("input", () => { if (spans.length) { spans = []; draw(); } }); // they count in the old text
  return {
    is: (units) => pattern.test(units || ""),
    value: () => spans.map((span) => span.join("-")).join(),
    set(units) {
      spans = pattern.test(units || "") ? units.split(",").map((span) => span.split("-").map(Number)) : [];
      draw();
    },
  };
};
