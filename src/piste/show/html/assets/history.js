// What was tried in this browser, newest first. The browser alone keeps it: texts stay here. Images
// that were not samples are kept until the page is left, because an address can't hold them.
piste.history = (place, open) => {
  const key = "piste-history", most = 50, length = 20000;
  const passing = ["removed", "span", "before"]; // what an address may hold beside the explanation
  const list = piste.make("ol"), summary = place.querySelector("summary");
  const isEntry = (one) => one && ["hash", "said", "input", "how"].every((name) => typeof one[name] === "string") && one.hash.startsWith("#");
  let entries = [];
  try {
    entries = JSON.parse(localStorage.getItem(key) || "[]").filter(isEntry).slice(0, most);
  } catch {
    entries = []; // storage is closed, or something else was in it
  }
  const forget = piste.button("Forget all", () => { entries = []; keep(); });
  place.append(list, forget);

  function identity(hash) {
    const state = new URLSearchParams(hash.slice(1));
    for (const name of passing) state.delete(name);
    return String(state);
  }
  function keep() {
    try {
      const lasting = entries.filter((one) => !one.image && one.hash.length <= length);
      localStorage.setItem(key, JSON.stringify(lasting));
    } catch {
      // it stays in memory
    }
    draw();
  }
  function draw() {
    place.hidden = !entries.length;
    summary.textContent = `History (${entries.length})`;
    list.replaceChildren(...entries.map((one) => {
      const line = piste.make("li"), link = piste.make("a");
      link.href = one.hash;
      link.dir = "auto";
      link.append(piste.make("b", one.said), ` ${one.input} `, piste.make("small", one.how));
      link.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return; // in a place of its own
        event.preventDefault();
        open(one);
      });
      line.append(link);
      return line;
    }));
  }
  draw();
  return {
    // What is typed on replaces what was typed before.
    add(entry) {
      const same = identity(entry.hash);
      entries = entries.filter((one, place) => identity(one.hash) !== same && !(place === 0 && one.typed && entry.typed));
      entries = [entry, ...entries].slice(0, most);
      keep();
    },
    // The same explanation, with other words removed or another span selected.
    update(hash) {
      const found = entries.find((one) => identity(one.hash) === identity(hash));
      if (!found || found.hash === hash) return;
      found.hash = hash;
      keep();
    },
  };
};
