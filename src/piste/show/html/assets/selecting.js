// Select dots, one by one or with a frame drawn around them, and their words light up and stay so.
piste.parts.push((root, data) => {
  if (!data.names) return;
  const chosen = new Set();
  const bar = piste.make("p", "", "piste-chosen-bar");
  bar.setAttribute("aria-live", "polite");
  const first = root.querySelector(".piste-plane");
  if (!first) return;
  first.closest("section").append(bar);

  function show() {
    for (const element of root.querySelectorAll("[data-k]")) {
      element.classList.toggle("piste-chosen", piste.kinds(element).some((kind) => chosen.has(kind)));
    }
    if (!chosen.size) {
      bar.replaceChildren(`Click dots, or draw a frame around some, and their ${data.parts || "words"} light up.`);
      return;
    }
    const names = [...chosen].slice(0, 8).map((kind) => data.names[kind]).join(", ");
    const more = chosen.size > 8 ? ` and ${chosen.size - 8} more` : "";
    bar.replaceChildren(piste.make("span", `Selected: ${names}${more}. `));
    if (data.checks) {
      bar.append(piste.button("Remove these", () => {
        const kinds = [...chosen];
        root.dispatchEvent(new CustomEvent("piste-remove-kinds", { detail: kinds }));
      }));
    }
    bar.append(piste.button("Clear", () => { chosen.clear(); show(); }));
  }
  function toggle(dot) {
    const kinds = piste.kinds(dot), leave = kinds.every((kind) => chosen.has(kind));
    for (const kind of kinds) if (leave) chosen.delete(kind); else chosen.add(kind);
    show();
  }

  function choosable(plane) {
    let from = null, frame = null, dragged = false;
    const at = (event) => new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(plane.getScreenCTM().inverse());
    plane.addEventListener("pointerdown", (event) => {
      if (event.button || event.pointerType === "touch") return; // a finger scrolls the page
      from = at(event);
      dragged = false;
    });
    plane.addEventListener("pointermove", (event) => {
      if (!from) return;
      const to = at(event);
      if (!frame && Math.hypot(to.x - from.x, to.y - from.y) < 5) return;
      dragged = true;
      if (!frame) {
        frame = document.createElementNS(plane.namespaceURI, "rect");
        frame.setAttribute("class", "piste-frame");
        plane.append(frame);
        plane.setPointerCapture(event.pointerId);
      }
      const box = {
        x: Math.min(from.x, to.x), y: Math.min(from.y, to.y),
        width: Math.abs(to.x - from.x), height: Math.abs(to.y - from.y),
      };
      for (const [name, size] of Object.entries(box)) frame.setAttribute(name, size);
    });
    const end = (event) => {
      if (frame) {
        const box = frame.getBBox();
        if (!event.shiftKey) chosen.clear();
        for (const dot of plane.querySelectorAll(".piste-dot")) {
          const circle = dot.querySelector("circle");
          const x = circle.cx.baseVal.value, y = circle.cy.baseVal.value;
          if (x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height) {
            for (const kind of piste.kinds(dot)) chosen.add(kind);
          }
        }
        frame.remove();
        root.tabIndex = -1;
        root.focus({ preventScroll: true }); // so that Escape is heard
        show();
      }
      from = frame = null;
    };
    plane.addEventListener("pointerup", end);
    plane.addEventListener("pointercancel", end);
    plane.addEventListener("click", (event) => {
      const dot = event.target.closest(".piste-dot");
      if (dot && !dragged) toggle(dot);
    });
    for (const dot of plane.querySelectorAll(".piste-dot")) {
      dot.setAttribute("role", "button");
      dot.setAttribute("aria-label", dot.dataset.name || data.names[dot.dataset.k]);
      dot.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle(dot);
      });
    }
  }
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chosen.size) { chosen.clear(); show(); }
  });
  const ready = new WeakSet();
  function attach() {
    for (const plane of root.querySelectorAll(".piste-plane")) {
      if (!ready.has(plane)) choosable(plane);
      ready.add(plane);
    }
    show();
  }
  attach();
  root.addEventListener("piste-redrawn", attach);
});
