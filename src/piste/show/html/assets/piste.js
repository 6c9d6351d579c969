"use strict";
// What a page can do is in parts: functions of an element and its data that bring it to life.
const piste = {
  parts: [],
  enliven(root, data) {
    for (const part of this.parts) part(root, data);
  },
  // An element with a text; texts are never read as markup.
  make(tag, text = "", kind = "") {
    const element = document.createElement(tag);
    element.textContent = text;
    if (kind) element.className = kind;
    return element;
  },
  button(text, press) {
    const button = piste.make("button", text, "piste-button");
    button.type = "button";
    button.addEventListener("click", press);
    return button;
  },
  // The kinds an element stands for: its own, and those that lie at the same place.
  kinds(element) {
    return [element.dataset.k, ...(element.dataset.also || "").split(" ").filter(Boolean)];
  },
  // The colour of a strength from −1 to 1.
  colour(palette, strength) {
    if (Math.abs(strength) < palette.visible) return "transparent";
    const hue = strength >= 0 ? palette.for : palette.against;
    return `rgba(${hue.join(",")},${(palette.strongest * Math.abs(strength)).toFixed(2)})`;
  },
  number(value, places = 2) {
    if (value === null || !Number.isFinite(value)) return "–";
    const shown = Math.abs(value).toFixed(places);
    if (Number(shown) === 0) return shown;
    return (value < 0 ? "−" : "+") + shown;
  },
  percent(chance) {
    if (chance >= 0.9995 && chance < 1) return "> 99.9 %";
    if (chance > 0 && chance < 0.0005) return "< 0.1 %";
    return `${(100 * chance).toFixed(1)} %`;
  },
};
