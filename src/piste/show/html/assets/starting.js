{
  const data = document.querySelector(".piste-data");
  piste.enliven(document.querySelector("main"), data ? JSON.parse(data.textContent) : {});
}
