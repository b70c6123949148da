/** The page: the fields of a row on one side, what the model makes of it on the other. */

import { imageInput } from "./drawing.js";
import { byId, digits, labelled, make, paint, signed, track } from "./elements.js";
import { createModel } from "./evaluator.js";
import { columnInput, textInput } from "./fields.js";
import { createExplainer } from "./shapley.js";
import { setUpSets, showColumns, showSets, warning } from "./trust.js";

const content = JSON.parse(byId("model").textContent);
const page = JSON.parse(byId("page").textContent);
const model = createModel(content);
const explain = createExplainer(content, model);
const form = byId("fields");
const isNumbers = ["values", "scores"].includes(content.targets);
const SHOWN_BARS = 12;
const SHOWN_LANDMARKS = 5;

// -- the result ----------------------------------------------------------------------------------

// Numbers by the names of the outputs: probabilities if there are some.
function outputs(row) {
  const f = model.scores(row);
  const p = model.probabilities(row);
  const values = p ?? (content.targets === "classes" && f.length === 1 ? [-f[0], f[0]] : f);
  const largest = Math.max(...values.map(Math.abs)) || 1;
  return values.map((value, i) => ({
    name: page.outputs[i],
    text: p ? `${(100 * value).toFixed(1)} %` : digits(value, 6),
    share: p ? value : Math.abs(value) / largest,
    against: value < 0,
    value,
  }));
}

function predicted(row) {
  const found = model.predict(row);
  if (content.targets === "classes") return page.outputs[content.classes.indexOf(found)];
  if (isNumbers) return [found].flat().map((value) => digits(value, 6)).join(", ");
  return page.outputs.filter((_, i) => found[i]).join(", ") || "no label";
}

// The output that contributions are shown of, and its sign: that of the prediction.
function explained(row) {
  const f = model.scores(row);
  if (content.targets === "classes" && f.length === 1) {
    return { l: 0, sign: f[0] > 0 ? 1 : -1, name: page.outputs[Number(f[0] > 0)] };
  }
  const l = isNumbers ? 0 : f.indexOf(Math.max(...f));
  return { l, sign: 1, name: page.outputs[l] };
}

// The class or label of which a landmark raises the score most.
function side(a) {
  if (isNumbers) return "";
  const single = content.targets === "classes" && a.length === 1;
  return page.outputs[single ? Number(a[0] > 0) : a.indexOf(Math.max(...a))];
}

function showLandmarks(row) {
  const { l, sign, name } = explained(row);
  const parts = model.contributions(row).map((part, i) => ({ i, value: sign * part[l] }));
  parts.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const largest = Math.abs(parts[0].value) || 1;
  const pictures = model.landmarkImage(0) !== null;
  const group = content.targets === "labels" ? "label" : "class";
  byId("meaning").textContent = isNumbers
    ? `Contribution to ${page.outputs.length > 1 ? `“${name}”` : "the value"}.`
    : `Contribution to the score of “${name}”. ` +
      `Beside the number of a landmark is the ${group} that it raises most.`;
  byId("landmarks").classList.toggle("pictures", pictures);
  const items = parts.slice(0, SHOWN_LANDMARKS).map(({ i, value }) => {
    const [h, w, channels] = content.encoder?.shape ?? [];
    const about = side(content.dual_coef[i]);
    const bar = track(Math.abs(value) / largest, value < 0);
    const title = make("span", {}, about ? `No. ${i} · ${about}` : `No. ${i}`);
    const item = make("li", {}, title, bar, make("span", {}, signed(value)));
    if (pictures) {
      const name = `Landmark ${i}`;
      const canvas = make("canvas", { width: w, height: h, role: "img", "aria-label": name });
      paint(canvas, model.landmarkImage(i), [h, w, channels], 255 / page.white);
      item.prepend(canvas);
    }
    return item;
  });
  byId("landmarks").replaceChildren(...items);
}

function show(row) {
  const chosen = predicted(row);
  const found = outputs(row);
  const own = content.targets === "classes" && found.find(({ name }) => name === chosen).text;
  byId("prediction").textContent = chosen;
  byId("prediction").hidden = isNumbers && found.length > 1; // the list has them, with their names
  const strange = warning(model, row);
  byId("warning").textContent = strange;
  byId("warning").hidden = strange === "";
  const brief = own ? `${chosen} · ${own}` : chosen;
  byId("brief").textContent = strange ? `${brief} · unlike the training rows` : brief;
  if (found.length > SHOWN_BARS && !isNumbers) {
    found.sort((a, b) => b.value - a.value).splice(SHOWN_BARS);
  }
  const items = found.map(({ name, text, share, against }) => {
    const bar = isNumbers ? make("span") : track(share, against); // each may have its own unit
    const parts = [make("span", {}, name), bar, make("span", {}, text)];
    return make("li", name === chosen ? { class: "chosen" } : {}, ...parts);
  });
  byId("bars").replaceChildren(...(page.outputs.length > 1 ? items : []));
  showSets(model, content, page, row);
  if (explain) showColumns(explain, content, page, row, explained(row));
  if (page.landmarks) showLandmarks(row);
}

// Show a message in place of the result; an empty one shows the result.
function say(message, kind = "") {
  byId("message").textContent = message;
  byId("message").className = kind;
  byId("message").hidden = message === "";
  byId("brief").hidden = byId("result").hidden = message !== "";
}

function update() {
  try {
    const row = input.get();
    if (row !== null) show(row);
    say(row === null ? "Nothing is drawn yet." : "");
  } catch (error) {
    say(error.message, "error");
  }
}

// -- the page ------------------------------------------------------------------------------------

const count = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
const parameters = ["gamma", "nu", "coef0", "degree"]
  .filter((name) => name in content.kernel)
  .map((name) => `${name} ${digits(content.kernel[name], 3)}`);
const facts = page.landmarks
  ? [count(page.landmarks, "landmark"), [`${content.kernel.name} kernel`, ...parameters].join(", ")]
  : ["linear, without landmarks"];
byId("facts").textContent = [count(page.bytes, "byte"), ...facts].join(" · ");
byId("reasons").hidden = !page.landmarks;
byId("causes").hidden = explain === null;
setUpSets(content, page, update);

if (page.examples.length) {
  const select = make("select", { id: "example" });
  page.examples.forEach((_, i) => select.append(make("option", { value: i }, `Example ${i + 1}`)));
  select.addEventListener("input", () => (input.set(page.examples[select.value]), update()));
  form.append(labelled("example", "Start from", select));
}

// A row that was changed is no longer that of the example.
function changed(message = "") {
  if (byId("example")) byId("example").selectedIndex = -1;
  if (message) say(message, "error");
  else update();
}

function makeInput({ encoder, n_features: n }) {
  const drawable = [1, 3].includes(encoder?.shape?.[2]);
  if (drawable) return imageInput(form, encoder.shape, page, changed);
  return page.columns ? columnInput(form, page.columns) : textInput(form, n);
}

const input = makeInput(content);
if (page.start) input.set(page.start);
// these have listeners of their own
const OTHERS = ["fit", "white", "example", "file"];
form.addEventListener("input", (event) => OTHERS.includes(event.target.id) || changed());
form.addEventListener("submit", (event) => event.preventDefault());
update();

// For the console: nysplus.model.scores([...]), nysplus.row()
globalThis.nysplus = { model, row: () => Array.from(input.get()) };
