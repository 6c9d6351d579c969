// An image that is dropped, pasted, chosen, or one of the samples. `taken` hears of it.
piste.dropping = (drop, samples, tell, taken) => {
  const input = drop.querySelector("input"), shown = drop.querySelector("img");
  let held = null;
  function set(image) {
    held = image;
    shown.hidden = !image;
    if (!image) return;
    shown.src = `data:${image.type};base64,${image.data}`;
    shown.alt = image.name;
  }
  function read(file, sample = "") {
    if (!file || !file.type.startsWith("image/")) {
      tell("That is no image: choose a PNG, JPEG or WebP file.");
      return;
    }
    const reader = new FileReader();
    reader.onload = () => {
      const data = reader.result.slice(reader.result.indexOf(",") + 1);
      taken({ data, name: file.name, type: file.type, sample });
    };
    reader.readAsDataURL(file);
  }
  // One of the samples, by its name.
  async function fetchSample(name) {
    const answer = await fetch(`assets/${name}.png`);
    read(new File([await answer.blob()], `${name}.png`, { type: "image/png" }), name);
  }
  for (const name of samples) drop.querySelector(".piste-samples").append(piste.button(name, () => fetchSample(name)));
  drop.addEventListener("click", (event) => { if (!event.target.closest("button")) input.click(); });
  drop.addEventListener("keydown", (event) => {
    if (event.target === drop && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); input.click(); }
  });
  input.addEventListener("change", () => read(input.files[0]));
  input.addEventListener("click", (event) => event.stopPropagation());
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) read(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files][0];
    if (file) { event.preventDefault(); read(file); }
  });
  return { set, fetchSample, knows: (name) => samples.includes(name), held: () => held };
};
