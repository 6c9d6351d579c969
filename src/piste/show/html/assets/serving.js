// The page of the server: what is asked, how far it is, what came of it, all in the address.
{
  const about = JSON.parse(document.querySelector(".piste-about").textContent);
  const form = document.querySelector(".piste-form");
  const working = document.querySelector(".piste-working");
  const problem = document.querySelector(".piste-problem");
  const exports = document.querySelector(".piste-exports");
  const place = document.querySelector(".piste-result");
  const drop = document.querySelector(".piste-drop");
  const budgets = [null, 50, 100, 200, 500, 1000, 2000, 5000];
  const sheets = new Map();
  let image = null, imageName = "", job = null, events = null, removed = [], span = null, phrases = null, turn = 0;
  let asked = null, shown = null; // what the address is about, and what is to be seen

  // -- asking -----------------------------------------------------------------------------------

  piste.request = async (method, path, body) => {
    let answer;
    try {
      answer = await fetch(path, {
        method,
        headers: body === undefined ? {} : { "content-type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch {
      throw new Error("The server can't be reached: is it still running?");
    }
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.problem);
    return found;
  };
  function tell(text) {
    problem.textContent = text;
    problem.hidden = !text;
  }
  // Put a view of the server into an element and bring it to life.
  piste.show = (element, view, more = {}) => {
    const root = document.createElement("div");
    root.className = "piste-view-root";
    root.innerHTML = view.html; // escaped by the server, and no script in it may run
    if (!sheets.has(element)) {
      sheets.set(element, new CSSStyleSheet());
      document.adoptedStyleSheets = [...sheets.values()];
    }
    sheets.get(element).replaceSync(view.rules);
    element.replaceChildren(root);
    piste.enliven(root, { ...view.data, ...more });
    return root;
  };

  // -- controls ---------------------------------------------------------------------------------

  const model = () => about.models.find((one) => one.name === form.model.value);
  const chosen = () => [...form.querySelectorAll(".piste-methods input:checked")].map((one) => one.value);

  // A language model has a prompt, perhaps with fields, and without labels an answer.
  const separate = () => model().fields.length > 1 || (model().is_language_model && model().fields.length > 0);
  function fillPrompt(images) {
    const { prompt, fields, chat, is_language_model: free } = model();
    form.querySelector(".piste-texts").hidden = images || separate();
    form.querySelector(".piste-second").hidden = free || fields.length > 0;
    form.querySelector(".piste-examples").hidden = free || fields.length > 0;
    form.text.placeholder = free ? "Type or paste a prompt …" : "Type or paste a text …";
    form.querySelector(".piste-prompted").hidden = !free && prompt === null;
    form.querySelector(".piste-template").hidden = prompt === null;
    form.querySelector(".piste-template pre").textContent = prompt || "";
    form.querySelector(".piste-answers").hidden = !free;
    form.querySelector(".piste-chat").hidden = !chat;
    form.chat.checked = chat;
    form.querySelector(".piste-target").hidden = free;
    const place = form.querySelector(".piste-fields");
    const before = values(place);
    place.replaceChildren();
    for (const name of separate() ? fields : []) {
      const label = piste.make("label", `${name} `), area = document.createElement("textarea");
      label.append(piste.make("small", "several documents: a line of --- between them"));
      area.id = `piste-field-${name}`;
      area.dataset.field = name;
      area.rows = 3;
      area.dir = "auto";
      area.value = before[name] || "";
      label.htmlFor = area.id;
      place.append(label, area);
    }
  }
  const values = (place) => Object.fromEntries([...place.querySelectorAll("[data-field]")].map((one) => [one.dataset.field, one.value]));
  function documents(text) {
    const found = text.split(/^\s*---\s*$/m).map((one) => one.trim()).filter(Boolean);
    return found.length > 1 ? found : text.trim();
  }
  function fill() {
    const { reads, labels, units, methods } = model();
    const images = reads === "images";
    fillPrompt(images);
    drop.hidden = !images;
    form.querySelector(".piste-labels").textContent = labels.length ? `says ${labels.slice(0, 8).join(", ")}${labels.length > 8 ? " …" : ""}` : "";
    const cut = (name) => name.replaceAll(",", " → ") || (images ? "parts" : "words");
    const others = units.filter((name) => images || name !== "words"); // they come by themselves
    form.units.replaceChildren(...["", ...others].map((name) => new Option(cut(name), name)));
    if (!images && !separate()) form.units.add(new Option("what I mark", "marked"));
    mark();
    const targets = [["the predicted class", ""], ...labels.map((label) => [label, label])];
    if (labels.length > 2) targets.push(["all classes", "all"]);
    form.target.replaceChildren(...targets.map(([text, value]) => new Option(text, value)));
    const before = new Set(chosen());
    const [first, more] = form.querySelectorAll(".piste-methods");
    for (const group of [first, more]) for (const label of group.querySelectorAll("label")) label.remove();
    for (const name of methods) {
      const label = piste.make("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.value = name;
      box.checked = before.has(name) || (!before.size && name === "slalom");
      label.title = about.methods[name];
      label.append(box, name);
      (about.first.includes(name) ? first : more).append(label);
    }
  }
  // In a chat the text stands behind what the template writes: nothing is marked there.
  function mark() {
    const chat = form.chat.checked && model().chat;
    for (const option of form.units.options) if (option.value === "marked") option.disabled = chat;
    if (chat && form.units.value === "marked") form.units.value = "";
    form.querySelector(".piste-marking").hidden = form.units.value !== "marked";
    form.querySelector(".piste-phrases").hidden = model().reads === "images" || form.units.value !== "";
  }
  const marking = piste.marking(form.text, form.querySelector(".piste-marking"));
  const units = () => (form.units.value === "marked" ? marking.value() : form.units.value);
  function budget() {
    const questions = budgets[form.samples.value];
    form.querySelector("output").textContent = questions ? `${questions} questions` : "what the method likes";
  }
  function request() {
    const wanted = {
      model: form.model.value, methods: chosen(), units: units() || null,
      target: form.target.value || null, samples: budgets[form.samples.value], long: "truncate",
    };
    if (form.phrases.checked && !form.querySelector(".piste-phrases").hidden) wanted.phrases = "auto";
    if (model().reads === "images") wanted.image = image;
    else if (separate()) {
      const given = values(form.querySelector(".piste-fields"));
      wanted.fields = Object.fromEntries(Object.entries(given).map(([name, text]) => [name, documents(text)]));
    } else {
      wanted.text = form.text.value;
      if (form.pair.value && !form.querySelector(".piste-second").hidden) wanted.pair = form.pair.value;
    }
    if (model().is_language_model) {
      wanted.target = null;
      for (const name of ["answer", "against"]) if (form[name].value.trim()) wanted[name] = form[name].value.trim();
      if (form.chat.checked && model().chat) wanted.chat = true;
    }
    return wanted;
  }

  // -- the address ------------------------------------------------------------------------------

  function remember() {
    const wanted = asked; // not the form, in which somebody may be typing the next text
    const state = new URLSearchParams();
    for (const name of ["model", "text", "pair", "units", "target", "samples", "answer", "against"]) {
      if (wanted[name]) state.set(name, wanted[name]);
    }
    for (const name of ["fields", "phrases"]) if (wanted[name]) state.set(name, JSON.stringify(wanted[name]));
    if (model().chat) state.set("chat", wanted.chat ? "1" : "0");
    if (span) state.set("span", span.join("-"));
    state.set("methods", wanted.methods.join());
    if (removed.length) state.set("removed", removed.join());
    history.replaceState(null, "", `#${state}`);
  }
  function recall() {
    const state = new URLSearchParams(piste.browses() ? "" : location.hash.slice(1));
    const known = about.models.map((one) => one.name);
    if (known.includes(state.get("model"))) form.model.value = state.get("model");
    fill();
    form.text.value = state.get("text") || "";
    form.pair.value = state.get("pair") || "";
    if (form.pair.value) form.pair.closest("details").open = true;
    for (const name of ["answer", "against"]) form[name].value = state.get(name) || "";
    if (state.get("chat")) form.chat.checked = state.get("chat") === "1";
    recallFields(state.get("fields"));
    try {
      phrases = JSON.parse(state.get("phrases"));
    } catch {
      phrases = null; // somebody changed the address
    }
    form.phrases.checked = phrases === "auto";
    const place = (state.get("span") || "").match(/^(\d{1,6})-(\d{1,6})$/);
    span = place ? [Number(place[1]), Number(place[2])] : null;
    for (const name of ["units", "target"]) {
      if ([...form[name].options].some((one) => one.value === state.get(name))) form[name].value = state.get(name);
    }
    marking.set(state.get("units"));
    if (marking.is(state.get("units")) && !separate()) form.units.value = "marked";
    mark();
    form.samples.value = Math.max(budgets.indexOf(Number(state.get("samples")) || null), 0);
    const methods = (state.get("methods") || "").split(",").filter(Boolean);
    if (methods.length) {
      for (const box of form.querySelectorAll(".piste-methods input")) {
        box.checked = methods.includes(box.value);
        if (box.checked && !about.first.includes(box.value)) form.querySelector(".piste-more").open = true;
      }
    }
    removed = (state.get("removed") || "").split(",").filter(Boolean).map(Number).filter(Number.isInteger);
    budget();
    return separate() ? Object.values(values(form.querySelector(".piste-fields"))).some(Boolean) : Boolean(form.text.value);
  }
  // What the form has no place for comes from the address.
  const recalled = () => ({ ...request(), ...(phrases ? { phrases } : {}) });
  function recallFields(text) {
    let given = {};
    try {
      given = JSON.parse(text) || {};
    } catch {
      return; // somebody changed the address
    }
    for (const area of form.querySelectorAll("[data-field]")) {
      const value = given[area.dataset.field];
      area.value = Array.isArray(value) ? value.join("\n---\n") : String(value ?? "");
    }
  }

  // -- working ----------------------------------------------------------------------------------

  function busy(now) {
    working.hidden = !now;
    place.classList.toggle("piste-old", now);
    place.setAttribute("aria-busy", now);
  }
  function follow(news) {
    const bar = working.querySelector("progress");
    if (news.share) bar.value = news.share; else bar.removeAttribute("value");
    const ahead = news.ahead ? `, ${news.ahead} before it` : "";
    const counted = news.total ? `: ${news.done} of ${news.total} questions` : "";
    working.querySelector("[role=status]").textContent =
      news.state === "waiting" ? `Waiting${ahead} …` : `Working on ${news.stage}${counted} …`;
  }
  function stop() {
    if (events) events.close();
    events = null;
    busy(false);
  }
  async function finish(mine, news) {
    stop();
    if (news.state !== "done") {
      tell(news.problem);
      back();
      return;
    }
    const view = await piste.request("GET", `api/explanations/${news.id}/view`);
    if (mine !== turn) return;
    exports.hidden = false;
    for (const link of exports.querySelectorAll("a")) link.href = `api/explanations/${news.id}/export/${link.dataset.kind}`;
    const ask = (units) => piste.request("POST", `api/explanations/${news.id}/removals`, { removed: units });
    const start = removed;
    shown = { asked, removed, span };
    const { checks, answer } = view.data;
    const askSpan = (from, to) => piste.request("POST", `api/explanations/${news.id}/spans`, { start: from, end: to });
    const data = { ...view.data, checks: checks && { ...checks, ask }, answer: answer && { ...answer, ask: askSpan } };
    const root = piste.show(place, { ...view, data }, { removed: start, span });
    root.addEventListener("piste-span", (event) => { span = shown.span = event.detail; remember(); });
    root.addEventListener("piste-removed", (event) => { removed = shown.removed = event.detail; remember(); });
    offerMore(root, view.data.more);
    offerPhrases(root);
    document.title = `${view.title} · Piste`;
    place.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }
  // What is to be seen is still the explanation before.
  function back() {
    if (!shown) return;
    ({ asked, removed, span } = shown);
    remember();
  }
  // A doubtful explanation is made anew from more questions, whatever stands in the form by now.
  function offerMore(root, more) {
    const trust = root.querySelector(".piste-trust"), same = asked;
    if (!more || !trust) return;
    trust.append(piste.button(`Ask ${more} questions`, () => {
      form.samples.value = Math.max(budgets.indexOf(more), 0);
      budget();
      [removed, span] = [[], null];
      explain({ ...same, samples: more });
    }));
  }
  // Two words that act together are explained as one, and what was joined is taken apart again.
  function offerPhrases(root) {
    const same = asked;
    const spanOf = (row) => row.dataset.span.split(" ").map(Number);
    const given = [...root.querySelectorAll(".piste-joined li")].map(spanOf);
    const join = (joined) => {
      form.phrases.checked = false;
      [removed, span] = [[], null];
      explain({ ...same, phrases: joined });
    };
    if (same.units === null) {
      for (const row of root.querySelectorAll(".piste-pair")) {
        const [segment, start, end] = spanOf(row);
        const others = given.filter((one) => one[0] !== segment || one[1] < start || one[2] > end);
        const spans = [...others, [segment, start, end]].map((one) => one.slice(same.pair ? 0 : 1));
        row.append(piste.button("explain as one phrase", () => join(spans)));
      }
    }
    for (const list of root.querySelectorAll(".piste-joined ul")) {
      list.append(piste.button("explain the words apart", () => join(null)));
    }
  }
  async function explain(wanted = request()) {
    tell("");
    if (!wanted.methods.length) return tell("No method is chosen: tick at least one.");
    if (model().reads === "images" && !image) return tell("There is no image yet: drop one, or choose a file.");
    if (form.units.value === "marked" && !wanted.units) return tell("Nothing is marked yet: select some text and add it.");
    if (wanted.text !== undefined && !wanted.text.trim()) return tell("There is no text yet: type one, or try an example.");
    const empty = Object.entries(wanted.fields || {}).find(([, text]) => !text.length);
    if (empty) return tell(`There is nothing in “${empty[0]}” yet: type a text.`);
    const mine = ++turn; // from here on, nobody waits for what was asked before
    if (events && job) piste.request("DELETE", `api/explanations/${job}`).catch(() => {});
    stop();
    busy(true);
    asked = wanted;
    remember();
    try {
      const news = await piste.request("POST", "api/explanations", wanted);
      if (mine !== turn) return;
      job = news.id;
      follow(news);
      events = new EventSource(`api/explanations/${job}/events`);
      events.onmessage = (event) => {
        const now = JSON.parse(event.data);
        if (mine !== turn) return;
        follow(now);
        if (["done", "failed", "cancelled"].includes(now.state)) {
          finish(mine, now).catch((wrong) => { stop(); tell(wrong.message); });
        }
      };
      events.onerror = () => { if (mine === turn && events && events.readyState === 2) { stop(); tell("The server can't be reached: is it still running?"); } };
    } catch (wrong) {
      if (mine !== turn) return;
      stop();
      tell(wrong.message);
      back();
    }
    return undefined;
  }
  // Once there is something to see, it follows what is chosen.
  function again() {
    [removed, span] = [[], null];
    if (place.childElementCount || !working.hidden) explain();
  }

  // -- images ---------------------------------------------------------------------------------

  function take(file) {
    if (!file || !file.type.startsWith("image/")) return tell("That is no image: choose a PNG, JPEG or WebP file.");
    const seeing = about.models.find((one) => one.reads === "images");
    if (!seeing) return tell("No model here sees images: start the server with one that does.");
    if (model().reads !== "images") { form.model.value = seeing.name; fill(); }
    const reader = new FileReader();
    reader.onload = () => {
      image = reader.result.slice(reader.result.indexOf(",") + 1);
      imageName = file.name;
      const shown = drop.querySelector("img");
      shown.src = reader.result;
      shown.alt = imageName;
      shown.hidden = false;
      [removed, span] = [[], null];
      explain();
    };
    reader.readAsDataURL(file);
    return undefined;
  }
  const input = drop.querySelector("input");
  drop.addEventListener("click", (event) => { if (!event.target.closest("button")) input.click(); });
  drop.addEventListener("keydown", (event) => {
    if (event.target === drop && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); input.click(); }
  });
  input.addEventListener("change", () => take(input.files[0]));
  input.addEventListener("click", (event) => event.stopPropagation());
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files][0];
    if (file) { event.preventDefault(); take(file); }
  });

  // -- start ------------------------------------------------------------------------------------

  for (const text of about.examples) {
    const short = text.length > 44 ? `${text.slice(0, 43)}…` : text;
    form.querySelector(".piste-examples").append(piste.button(short, () => {
      form.text.value = text;
      marking.set("");
      [removed, span] = [[], null];
      explain();
    }));
  }
  for (const path of about.images) {
    const name = path.split("/").pop();
    form.querySelector(".piste-samples").append(piste.button(name.split(".")[0], async () => {
      const found = await fetch(path);
      take(new File([await found.blob()], name, { type: "image/png" }));
    }));
  }
  form.addEventListener("submit", (event) => { event.preventDefault(); [removed, span] = [[], null]; explain(); });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); [removed, span] = [[], null]; explain(); }
  });
  form.model.addEventListener("change", () => { fill(); again(); });
  form.samples.addEventListener("input", budget);
  for (const control of [form.units, form.chat]) control.addEventListener("change", mark);
  for (const control of [form.units, form.phrases, form.target, form.samples, form.chat]) control.addEventListener("change", again);
  for (const group of form.querySelectorAll(".piste-methods")) group.addEventListener("change", again);
  working.querySelector("button").addEventListener("click", () => {
    if (job) piste.request("DELETE", `api/explanations/${job}`).catch((wrong) => tell(wrong.message));
  });
  exports.querySelector("[data-kind=link]").addEventListener("click", async () => {
    const status = exports.querySelector("[role=status]");
    const note = model().reads === "images" ? " It does not hold the image." : "";
    try {
      await navigator.clipboard.writeText(location.href);
      status.textContent = `Copied.${note}`;
    } catch {
      status.textContent = `Copy the address above.${note}`;
    }
  });
  addEventListener("hashchange", (event) => {
    if (!piste.browses() && !piste.returns(event) && recall()) explain(recalled());
  });
  piste.tabs(about);
  if (recall()) explain(recalled());
}
