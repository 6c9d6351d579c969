// The page of the server: what is asked, how far it is, what came of it, all in the address.
{
  const about = JSON.parse(document.querySelector(".piste-about").textContent);
  const find = (name) => document.querySelector(name);
  const form = find(".piste-form"), working = find(".piste-working"), problem = find(".piste-problem");
  const exports = find(".piste-exports"), keeping = find(".piste-keeping");
  const place = find(".piste-result"), two = find(".piste-two");
  const sheets = new Map();
  const gone = "The server can't be reached: is it still running?";
  let job = null, events = null, removed = [], span = null, turn = 0, waiting = null;
  let asked = null, shown = null; // what the address is about, and what is to be seen
  let kept = null; // an explanation that the next ones stand beside
  let recalled = null; // what the address says was done with an image that is still fetched

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
      throw new Error(gone);
    }
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.problem);
    return found;
  };
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
  // Ask, and follow it to its end; `hear` is told how far it is, and what it is followed by.
  async function run(wanted, hear = () => {}) {
    const first = await piste.request("POST", "api/explanations", wanted);
    if (first.state === "done") return first;
    return new Promise((resolve, reject) => {
      const source = new EventSource(`api/explanations/${first.id}/events`);
      hear(first, source);
      source.onmessage = (event) => {
        const news = JSON.parse(event.data);
        hear(news, source);
        if (!["done", "failed", "cancelled"].includes(news.state)) return;
        source.close();
        resolve(news);
      };
      source.onerror = () => { if (source.readyState === 2) reject(new Error(gone)); };
    });
  }

  // -- what is to be seen -----------------------------------------------------------------------

  function tell(text) {
    problem.textContent = text;
    problem.hidden = !text;
  }
  function reveal(now) {
    for (const one of [exports, place]) one.hidden = !now;
    two.hidden = !now || !shown?.beside;
    drawKept();
  }
  // No old result beside a new problem; it is one click away.
  function fail(text) {
    tell(text);
    reveal(false);
    if (!shown) return;
    problem.append(" ", piste.button("Back to the last result", () => {
      tell("");
      ({ asked, removed, span } = shown);
      images.set(shown.image);
      reveal(true);
      remember();
    }));
  }
  function busy(now) {
    working.hidden = !now;
    for (const one of [place, two]) {
      one.classList.toggle("piste-old", now);
      one.setAttribute("aria-busy", now);
    }
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

  // -- the address ------------------------------------------------------------------------------

  function remember() {
    const state = asking.parameters(asked); // not the form, in which somebody may be typing the next text
    if (asked.image && images.held()?.sample) state.set("sample", images.held().sample);
    if (span) state.set("span", span.join("-"));
    if (removed.length) state.set("removed", removed.join());
    if (kept) state.set("before", JSON.stringify({ label: kept.label, ...kept.asked }));
    history.replaceState(null, "", `#${state}`);
    if (shown?.asked === asked) tried.update(location.hash);
  }
  // Show what an address says; of an image that it can't hold, `image`.
  function open(hash, image = null) {
    const state = new URLSearchParams(piste.browses(hash) ? "" : hash.slice(1));
    const found = (state.get("span") || "").match(/^(\d{1,6})-(\d{1,6})$/);
    span = found ? [Number(found[1]), Number(found[2])] : null;
    removed = (state.get("removed") || "").split(",").filter(Boolean).map(Number).filter(Number.isInteger);
    kept = null;
    try {
      const { label, ...before } = JSON.parse(state.get("before")) || {};
      if (before.model) kept = { asked: before, label };
    } catch {
      kept = null; // somebody changed the address
    }
    if (asking.recall(state)) explain(asking.recalled(state));
    else if (asking.model().reads === "images" && (image || images.knows(state.get("sample")))) {
      recalled = [removed, span];
      if (image) taken(image); else images.fetchSample(state.get("sample"));
    }
  }
  const asking = piste.asking(about, form, find(".piste-drop"));
  const images = piste.dropping(find(".piste-drop"), about.samples, tell, taken);
  const tried = piste.history(find(".piste-history"), (entry) => {
    history.replaceState(null, "", entry.hash);
    open(entry.hash, entry.image ?? null);
  });
  function taken(image) {
    const seeing = about.models.find((one) => one.reads === "images");
    if (!seeing) { tell("No model here sees images: start the server with one that does."); return; }
    if (asking.model().reads !== "images") { form.model.value = seeing.name; asking.fill(); }
    images.set(image);
    [removed, span] = recalled ?? [[], null];
    recalled = null;
    explain();
  }

  // -- explaining -------------------------------------------------------------------------------

  // Why something can't be asked, if so.
  function refusal(wanted) {
    if (!wanted.methods.length) return "No method is chosen: tick at least one.";
    if (wanted.image === null) return "There is no image yet: drop one, or choose a file.";
    if (form.units.value === "marked" && !wanted.units) return "Nothing is marked yet: select some text and add it.";
    if (wanted.text !== undefined && !wanted.text.trim()) return "There is no text yet: type one, or try an example.";
    const empty = Object.entries(wanted.fields || {}).find(([, text]) => !text.length);
    return empty ? `There is nothing in “${empty[0]}” yet: type a text.` : "";
  }
  async function explain(given = asking.request(), typed = false) {
    clearTimeout(waiting);
    tell("");
    const wanted = { ...given };
    if (wanted.image === null) wanted.image = images.held()?.data ?? null;
    // Both must explain the same class to stand side by side.
    const { labels } = about.models.find((one) => one.name === wanted.model);
    if (kept && !wanted.target && labels.length > 1 && labels.includes(kept.label)) wanted.target = kept.label;
    const refused = refusal(wanted);
    if (refused) { fail(refused); return; }
    const mine = ++turn; // from here on, nobody waits for what was asked before
    if (events && job) piste.request("DELETE", `api/explanations/${job}`).catch(() => {});
    stop();
    busy(true);
    asked = wanted;
    remember();
    try {
      const news = await run(wanted, (now, source) => {
        if (mine !== turn) { source.close(); return; }
        [job, events] = [now.id, source];
        follow(now);
      });
      if (mine !== turn) return;
      if (news.state !== "done") throw new Error(news.problem);
      await finish(mine, news, typed);
    } catch (wrong) {
      if (mine !== turn) return;
      stop();
      fail(wrong.message);
    }
  }
  async function finish(mine, news, typed) {
    const view = await piste.request("GET", `api/explanations/${news.id}/view`);
    const beside = kept ? await besideKept(news.id) : null;
    if (mine !== turn) return;
    stop();
    tell("");
    const isFirst = shown === null;
    shown = { asked, removed, span, image: images.held(), view, id: news.id, beside };
    for (const link of exports.querySelectorAll("a")) link.href = `api/explanations/${news.id}/export/${link.dataset.kind}`;
    const ask = (units) => piste.request("POST", `api/explanations/${news.id}/removals`, { removed: units });
    const askSpan = (from, to) => piste.request("POST", `api/explanations/${news.id}/spans`, { start: from, end: to });
    const { checks, answer } = view.data;
    const data = { ...view.data, checks: checks && { ...checks, ask }, answer: answer && { ...answer, ask: askSpan } };
    const root = piste.show(place, { ...view, data }, { removed, span });
    root.addEventListener("piste-span", (event) => { span = shown.span = event.detail; remember(); });
    root.addEventListener("piste-removed", (event) => { removed = shown.removed = event.detail; remember(); });
    offerMore(root, view.data.more);
    offerPhrases(root);
    if (beside) piste.show(two, beside); else two.replaceChildren();
    reveal(true);
    document.title = `${view.title} · Piste`;
    if (!typed || !isKept()) tried.add({
      hash: location.hash, said: view.title, input: inShort(asked), how: `${asked.model}, ${asked.methods.join(", ")}`, typed,
      ...(asked.image && !images.held().sample ? { image: images.held() } : {}),
    });
    if (isFirst) {
      document.body.classList.add("piste-answered");
      find(".piste-settings").open = false;
    }
    if (typed) return; // whoever types looks at what is typed
    const top = beside ? two : place;
    if (top.getBoundingClientRect().top > innerHeight / 2 || top.getBoundingClientRect().top < 0) {
      top.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    }
  }
  function inShort(wanted) {
    const text = wanted.text ?? (wanted.fields ? Object.values(wanted.fields).flat().join(" · ") : images.held()?.name ?? "");
    return text.length > 90 ? `${text.slice(0, 89)}…` : text;
  }
  // Once there is something to see, it follows what is chosen.
  function again() {
    [removed, span] = [[], null];
    if (shown || !working.hidden) explain();
  }
  function anew() {
    [removed, span] = [[], null];
    explain();
  }

  // -- side by side -----------------------------------------------------------------------------

  const canStandBeside = (wanted) => !wanted.image && !about.models.find((one) => one.name === wanted.model)?.is_language_model;
  const isKept = () => kept && JSON.stringify({ ...kept.asked, target: asked.target }) === JSON.stringify(asked);
  // What was kept and what came now, unless they are the same or can't be compared.
  async function besideKept(id) {
    if (isKept() || !canStandBeside(asked)) return null;
    const before = await run(kept.asked);
    if (before.state !== "done") throw new Error(before.problem);
    return piste.request("GET", `api/explanations/${before.id}/beside/${id}`);
  }
  function drawKept() {
    exports.querySelector("[data-kind=keep]").hidden = Boolean(kept) || !shown || !canStandBeside(shown.asked);
    keeping.hidden = !kept;
    keeping.querySelector("span").textContent = kept
      ? `Compared with “${inShort(kept.asked)}” (${kept.asked.model}). Edit a word, type another text or choose another model.` : "";
  }
  exports.querySelector("[data-kind=keep]").addEventListener("click", () => {
    kept = { asked: shown.asked, label: shown.asked.target ?? shown.view.data.label };
    drawKept();
    remember();
    form.text.focus();
  });
  keeping.querySelector("button").addEventListener("click", () => {
    kept = null;
    shown.beside = null;
    reveal(true);
    remember();
  });
  // Typing is enough, unless every question has to be sent to somebody.
  form.text.addEventListener("input", () => {
    clearTimeout(waiting);
    if (!kept || asking.model().is_remote || !form.text.value.trim()) return;
    waiting = setTimeout(() => { [removed, span] = [[], null]; explain(asking.request(), true); }, 600);
  });

  // -- offers -----------------------------------------------------------------------------------

  // A doubtful explanation is made anew from more questions, whatever stands in the form by now.
  function offerMore(root, more) {
    const trust = root.querySelector(".piste-trust"), same = asked;
    if (!more || !trust) return;
    trust.append(piste.button(`Ask ${more} questions`, () => {
      asking.setBudget(more);
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

  // -- start ------------------------------------------------------------------------------------

  form.addEventListener("submit", (event) => { event.preventDefault(); anew(); });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); anew(); }
  });
  form.model.addEventListener("change", () => { asking.fill(); again(); });
  for (const control of [form.units, form.phrases, form.target, form.samples, form.chat]) control.addEventListener("change", again);
  for (const group of form.querySelectorAll(".piste-methods")) group.addEventListener("change", again);
  working.querySelector("button").addEventListener("click", () => {
    if (job) piste.request("DELETE", `api/explanations/${job}`).catch((wrong) => tell(wrong.message));
  });
  exports.querySelector("[data-kind=link]").addEventListener("click", async () => {
    const status = exports.querySelector("[role=status]");
    const note = shown.asked.image && !shown.image.sample ? " It does not hold the image." : "";
    try {
      await navigator.clipboard.writeText(location.href);
      status.textContent = `Copied.${note}`;
    } catch {
      status.textContent = `Copy the address above.${note}`;
    }
  });
  addEventListener("hashchange", (event) => {
    if (!piste.browses() && !piste.returns(event)) open(location.hash);
  });
  piste.tabs(about);
  const typed = form.text.value; // while this script was on its way
  open(location.hash);
  form.text.value ||= typed;
  form.querySelector(".piste-go").disabled = false;
}
