// The form: what can be asked of the chosen model, what is asked, and what the address says of it.
piste.asking = (about, form, drop) => {
  const budgets = [null, 50, 100, 200, 500, 1000, 2000, 5000];

  const model = () => about.models.find((one) => one.name === form.model.value);
  const chosen = () => [...form.querySelectorAll(".piste-methods input:checked")].map((one) => one.value);

  // A language model has a prompt, perhaps with fields, and without labels an answer.
  const separate = () => model().fields.length > 1 || (model().is_language_model && model().fields.length > 0);
  function fillPrompt(images) {
    const { prompt, fields, chat, is_language_model: free } = model();
    form.querySelector(".piste-texts").hidden = images || separate();
    form.querySelector(".piste-second").hidden = free || fields.length > 0;
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
    fillExamples();
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
  function fillExamples() {
    const place = form.querySelector(".piste-examples"), { examples } = model();
    place.hidden = !examples.length;
    place.replaceChildren("Try: ", ...examples.map((text) => {
      const short = text.length > 44 ? `${text.slice(0, 43)}…` : text;
      return piste.button(short, () => {
        form.text.value = text;
        form.units.value = form.units.value === "marked" ? "" : form.units.value;
        marking.set("");
        mark();
        form.requestSubmit();
      });
    }));
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
  // What is chosen, in a line, for when the choices are folded.
  function summarise() {
    const named = [form.units, ...(form.querySelector(".piste-target").hidden ? [] : [form.target])];
    const words = named.map((one) => one.selectedOptions[0]?.textContent ?? "");
    const questions = budgets[form.samples.value];
    form.querySelector(".piste-in-short").textContent = [chosen().join(", "), ...words, ...(questions ? [`${questions} questions`] : [])].join(" · ");
  }
  function request() {
    const wanted = {
      model: form.model.value, methods: chosen(), units: units() || null,
      target: form.target.value || null, samples: budgets[form.samples.value], long: "truncate",
    };
    if (form.phrases.checked && !form.querySelector(".piste-phrases").hidden) wanted.phrases = "auto";
    if (model().reads === "images") wanted.image = null; // whoever holds it adds it
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

  // A request as the address has it, without what was done with its result.
  function parameters(wanted) {
    const state = new URLSearchParams();
    for (const name of ["model", "text", "pair", "units", "target", "samples", "answer", "against"]) {
      if (wanted[name]) state.set(name, wanted[name]);
    }
    for (const name of ["fields", "phrases"]) if (wanted[name]) state.set(name, JSON.stringify(wanted[name]));
    if (about.models.find((one) => one.name === wanted.model)?.chat) state.set("chat", wanted.chat ? "1" : "0");
    state.set("methods", wanted.methods.join());
    return state;
  }
  // Fill the form; true if there is something to explain.
  function recall(state) {
    const known = about.models.map((one) => one.name);
    if (known.includes(state.get("model"))) form.model.value = state.get("model");
    fill();
    form.text.value = state.get("text") || "";
    form.pair.value = state.get("pair") || "";
    form.pair.closest("details").open = Boolean(form.pair.value);
    for (const name of ["answer", "against"]) form[name].value = state.get(name) || "";
    if (state.get("chat")) form.chat.checked = state.get("chat") === "1";
    recallFields(state.get("fields"));
    form.phrases.checked = phrasesOf(state) === "auto";
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
    budget();
    summarise();
    if (model().reads === "images") return false;
    return separate() ? Object.values(values(form.querySelector(".piste-fields"))).some(Boolean) : Boolean(form.text.value);
  }
  function phrasesOf(state) {
    try {
      return JSON.parse(state.get("phrases"));
    } catch {
      return null; // somebody changed the address
    }
  }
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

  form.samples.addEventListener("input", budget);
  for (const control of [form.units, form.chat]) control.addEventListener("change", mark);
  form.addEventListener("change", summarise);
  return {
    model, chosen, request, parameters, recall, fill,
    // What the form has no place for comes from the address.
    recalled: (state) => ({ ...request(), ...(phrasesOf(state) ? { phrases: phrasesOf(state) } : {}) }),
    setBudget(questions) {
      form.samples.value = Math.max(budgets.indexOf(questions), 0);
      budget();
      summarise();
    },
  };
};
