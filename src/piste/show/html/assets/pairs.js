// Hovering or focusing a pair lights both of its units, and their dots.
piste.parts.push((root) => {
  for (const row of root.querySelectorAll(".piste-pair")) {
    const place = row.closest(".piste-method") || root;
    const own = row.dataset.units.split(" ").map((unit) => place.querySelector(`.piste-unit[data-u="${unit}"]`));
    const units = own.filter(Boolean);
    const dots = units.flatMap((unit) => [...root.querySelectorAll(`.piste-dot[data-k="${unit.dataset.k}"]`)]);
    const light = (on) => { for (const one of [...units, ...dots]) one.classList.toggle("piste-on", on); };
    for (const event of ["mouseenter", "focusin"]) row.addEventListener(event, () => light(true));
    for (const event of ["mouseleave", "focusout"]) row.addEventListener(event, () => light(false));
  }
});
