import { createModel } from "./evaluator.js";

const byId = (id) => document.getElementById(id);
const content = JSON.parse(byId("model").textContent);
const page = JSON.parse(byId("page").textContent);
const model = createModel(content);
const form = byId("fields");
const SHOWN_BARS = 12;
const SHOWN_LANDMARKS = 5;

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const digits = (value, n = 4) => String(Number(value.toPrecision(n)));
// A sign and three digits, with zeros at their end so that columns line up.
const signed = (value) => {
  const size = Math.abs(value);
  const plain = size === 0 || (size >= 1e-3 && size < 1000);
  return (value < 0 ? "−" : "+") + (plain ? size.toPrecision(3) : digits(size, 3));
};

// -- fields of a row: each has its element, and reads and writes a raw number ----------------------

// A label, an element for the value and, where gaps are allowed, a box to tick.
function field(column, id, value, input) {
  const gap = make("input", { type: "checkbox" });
  const element = make("div", { class: "field" }, make("label", { for: id }, column.name));
  if (column.gaps) element.append(make("label", { class: "gap" }, gap, "missing"));
  value.classList.add("wide");
  element.append(value);
  input.addEventListener("input", () => (gap.checked = false));
  return { element, gap };
}

function numberField(column, id) {
  const input = make("input", { type: "number", step: "any", id });
  const value = make("div", { class: "value" });
  let slider = null;
  if (column.range) {
    const [min, max, step] = column.range;
    slider = make("input", { type: "range", min, max, step, "aria-label": `${column.name}, slider` });
    slider.addEventListener("input", () => {
      input.value = digits(slider.valueAsNumber, 8);
      gap.checked = false;
    });
    input.addEventListener("input", () => (slider.value = input.value));
    value.classList.add("slider");
    value.append(slider);
  }
  value.append(input);
  const { element, gap } = field(column, id, value, input);
  const get = () => {
    if (gap.checked) return NaN;
    if (!Number.isNaN(input.valueAsNumber)) return input.valueAsNumber;
    throw new Error(`“${column.name}” has no number.`);
  };
  const set = (number) => {
    gap.checked = number === null;
    if (number !== null) input.value = number;
    if (slider && number !== null) slider.value = number;
  };
  return { element, get, set };
}

function dateField(column, id) {
  const input = make("input", { type: "datetime-local", step: 1, id });
  const value = make("div", { class: "value" }, input);
  const { element, gap } = field({ ...column, name: `${column.name} (UTC)` }, id, value, input);
  const get = () => {
    if (gap.checked) return NaN;
    if (!Number.isNaN(input.valueAsNumber)) return input.valueAsNumber / 1000;
    throw new Error(`“${column.name}” has no date.`);
  };
  const set = (seconds) => {
    gap.checked = seconds === null;
    if (seconds !== null) input.value = new Date(1000 * seconds).toISOString().slice(0, 19);
  };
  return { element, get, set };
}

function categoryField(column, id) {
  const select = make("select", { id });
  column.levels.forEach((level, i) => select.append(make("option", { value: i }, level)));
  if (column.others) select.append(make("option", { value: -1 }, "(another level)"));
  if (column.gaps) select.append(make("option", { value: "" }, "(missing)"));
  const element = make("div", { class: "field" }, make("label", { for: id }, column.name));
  select.classList.add("wide");
  element.append(select);
  const get = () => (select.value === "" ? NaN : Number(select.value));
  return { element, get, set: (position) => (select.value = position ?? "") };
}

const FIELDS = { number: numberField, date: dateField, category: categoryField };

function columnInput(columns) {
  const fields = columns.map((column, j) => FIELDS[column.kind](column, `column-${j}`));
  form.append(...fields.map(({ element }) => element));
  return {
    get: () => fields.map(({ get }) => get()),
    set: (row) => fields.forEach(({ set }, j) => set(row[j])),
  };
}

function textInput(n) {
  const area = make("textarea", { id: "row", spellcheck: "false" });
  form.append(make("label", { for: "row" }, `A row of ${n} numbers, separated by commas or spaces`), area);
  return {
    get: () => area.value.split(/[\s,;]+/).filter((word) => word).map(Number),
    set: (row) => (area.value = row.join(", ")),
  };
}

// -- images ----------------------------------------------------------------------------------------

// Show pixels on a canvas; `scale` turns values into brightness.
function paint(canvas, pixels, [h, w, channels], scale) {
  const context = canvas.getContext("2d");
  const small = new ImageData(w, h);
  for (let p = 0; p < h * w; p++) {
    for (let c = 0; c < 3; c++) small.data[4 * p + c] = scale * pixels[p * channels + (c % channels)];
    small.data[4 * p + 3] = 255;
  }
  const source = make("canvas", { width: w, height: h });
  source.getContext("2d").putImageData(small, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(source, 0, 0, canvas.width, canvas.height);
}

// The box of a drawing that becomes the image: all of it, or what is drawn and a margin.
function frameOf({ data, width, height }, fit, [h, w]) {
  const whole = { left: 0, top: 0, width, height };
  let [left, right, top, bottom, mass, x, y] = [width, -1, height, -1, 0, 0, 0];
  for (let p = 0; p < width * height; p++) {
    const light = data[4 * p] + data[4 * p + 1] + data[4 * p + 2];
    if (light === 0) continue;
    const [j, i] = [p % width, Math.floor(p / width)];
    [left, right, top, bottom] = [Math.min(left, j), Math.max(right, j + 1), Math.min(top, i), Math.max(bottom, i + 1)];
    [mass, x, y] = [mass + light, x + light * (j + 0.5), y + light * (i + 0.5)];
  }
  if (mass === 0) return null;
  if (fit === "drawn") return whole;
  const share = fit === "margin" ? 20 / 28 : 1; // MNIST: 20 pixels of 28, about the centre of mass
  const side = Math.max((right - left) / w, (bottom - top) / h) / share;
  const [middle, centre] = fit === "margin" ? [x / mass, y / mass] : [(left + right) / 2, (top + bottom) / 2];
  return { left: middle - (side * w) / 2, top: centre - (side * h) / 2, width: side * w, height: side * h };
}

// The mean brightness of each pixel of the image, 0 outside of the drawing.
function shrunk({ data, width, height }, frame, [h, w, channels]) {
  const found = new Float64Array(h * w * channels);
  const bounds = (start, step, k) => [Math.round(start + step * k), Math.round(start + step * (k + 1))];
  for (let i = 0; i < h; i++) {
    const [top, bottom] = bounds(frame.top, frame.height / h, i);
    for (let j = 0; j < w; j++) {
      const [left, right] = bounds(frame.left, frame.width / w, j);
      const area = Math.max(bottom - top, 1) * Math.max(right - left, 1) * 255;
      const at = (i * w + j) * channels;
      for (let y = Math.max(top, 0); y < Math.min(Math.max(bottom, top + 1), height); y++)
        for (let x = Math.max(left, 0); x < Math.min(Math.max(right, left + 1), width); x++)
          for (let c = 0; c < channels; c++) found[at + c] += data[4 * (y * width + x) + c];
      for (let c = 0; c < channels; c++) found[at + c] /= area;
    }
  }
  return found;
}

function imageInput(shape) {
  const [h, w, channels] = shape;
  const zoom = Math.max(1, Math.round(280 / Math.max(h, w)));
  const board = make("canvas", {
    id: "board", width: w * zoom, height: h * zoom, tabindex: 0, role: "application",
    "aria-label": "Drawing. The arrow keys move the pen, the space bar lifts and lowers it.",
  });
  const seen = make("canvas", { width: w, height: h, role: "img", "aria-label": "The image that the model gets" });
  const pen = make("div", { class: "pen", hidden: "" });
  const clear = make("button", { type: "button", id: "clear" }, "Clear");
  const colour = make("input", { type: "color", value: "#ffffff", "aria-label": "Colour of the pen" });
  const file = make("input", { type: "file", id: "file", accept: "image/*" });
  const fit = make("select", { id: "fit" });
  const fits = { drawn: "as drawn", margin: "centred, with the margin of MNIST", filled: "centred, without a margin" };
  for (const [value, text] of Object.entries(fits)) fit.append(make("option", { value }, text));
  const white = make("input", { type: "number", id: "white", step: "any", min: 0, value: page.white });
  fit.value = page.fit;
  const labelled = (id, text, element) => {
    element.classList.add("wide");
    return make("div", { class: "field" }, make("label", { for: id }, text), element);
  };
  form.append(
    make("p", { class: "note" }, "Draw with the mouse, a finger, or the arrow keys and the space bar."),
    make("div", { class: "board" }, board, pen),
    make("div", { class: "tools" }, clear, ...(channels === 3 ? [colour] : [])),
    make("div", { class: "seen" }, seen, `What the model gets: ${h} × ${w} pixels`),
    make("h2", {}, "Preparation"),
    labelled("fit", "Position of the drawing", fit),
    labelled("white", "Value of a white pixel", white),
    labelled("file", "Or open an image, light on dark", file),
  );
  const context = board.getContext("2d", { willReadFrequently: true });
  let [row, at, down] = [null, [board.width / 2, board.height / 2], false];

  // Read the board; a row that was set is kept until then.
  function look() {
    leaveExample();
    const drawing = context.getImageData(0, 0, board.width, board.height);
    const frame = frameOf(drawing, fit.value, shape);
    row = frame && shrunk(drawing, frame, shape).map((light) => light * white.valueAsNumber);
    paint(seen, row ?? new Float64Array(h * w * channels), shape, 255 / white.valueAsNumber);
    update();
  }
  function wipe() {
    context.fillStyle = "#000";
    context.fillRect(0, 0, board.width, board.height);
  }
  function line(to) {
    context.strokeStyle = channels === 3 ? colour.value : "#fff";
    context.lineWidth = Math.max(board.width / 11, 1.25 * zoom); // more than a pixel of the image
    context.lineCap = context.lineJoin = "round";
    context.beginPath();
    context.moveTo(...at);
    context.lineTo(...to);
    context.stroke();
    at = to;
    look();
  }
  const place = ({ clientX, clientY }) => {
    const box = board.getBoundingClientRect();
    return [((clientX - box.left) * board.width) / box.width, ((clientY - box.top) * board.height) / box.height];
  };
  board.addEventListener("pointerdown", (event) => {
    board.setPointerCapture(event.pointerId);
    pen.hidden = true;
    at = place(event);
    line(at);
  });
  board.addEventListener("pointermove", (event) => event.buttons & 1 && line(place(event)));
  const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  board.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!step && event.key !== " ") return;
    event.preventDefault();
    if (event.key === " ") down = !down;
    const sizes = [board.width, board.height];
    const to = at.map((value, k) => Math.min(Math.max(value + ((step?.[k] ?? 0) * sizes[k]) / 24, 0), sizes[k]));
    if (down) line(to);
    at = to;
    pen.hidden = false;
    pen.classList.toggle("down", down);
    pen.style.left = `${(100 * at[0]) / board.width}%`;
    pen.style.top = `${(100 * at[1]) / board.height}%`;
  });
  board.addEventListener("blur", () => ([pen.hidden, down] = [true, false]));
  clear.addEventListener("click", () => (wipe(), look()));
  fit.addEventListener("input", look);
  white.addEventListener("input", look);
  file.addEventListener("change", async () => {
    if (!file.files.length) return;
    const picture = await createImageBitmap(file.files[0]).catch(() => null);
    if (picture === null) return say("The file is not an image that the browser reads.", "error");
    const scale = Math.min(board.width / picture.width, board.height / picture.height);
    const [width, height] = [scale * picture.width, scale * picture.height];
    wipe();
    context.drawImage(picture, (board.width - width) / 2, (board.height - height) / 2, width, height);
    fit.value = "drawn";
    look();
  });
  wipe();
  paint(seen, new Float64Array(h * w * channels), shape, 1);
  return {
    get: () => row,
    set: (pixels) => {
      row = pixels;
      for (const canvas of [board, seen]) paint(canvas, pixels, shape, 255 / white.valueAsNumber);
    },
  };
}

// -- the result ------------------------------------------------------------------------------------

const track = (share, against) => {
  const bar = make("div", against ? { class: "against" } : {});
  bar.style.width = `${100 * Math.min(Math.max(share, 0), 1)}%`;
  return make("div", { class: "track", "aria-hidden": "true" }, bar);
};

// Numbers by the names of the outputs: probabilities if there are some.
function outputs(row) {
  const f = model.scores(row);
  const p = model.probabilities(row);
  const values = p ?? (content.targets === "classes" && f.length === 1 ? [-f[0], f[0]] : f);
  const largest = Math.max(...values.map(Math.abs)) || 1;
  return values.map((value, i) => ({
    name: page.outputs[i],
    text: p ? `${(100 * value).toFixed(1)} %` : digits(value),
    share: p ? value : Math.abs(value) / largest,
    against: value < 0,
    value,
  }));
}

function predicted(row) {
  const found = model.predict(row);
  if (content.targets === "classes") return page.outputs[content.classes.indexOf(found)];
  if (content.targets !== "labels") return [found].flat().map((value) => digits(value, 6)).join(", ");
  return page.outputs.filter((_, i) => found[i]).join(", ") || "no label";
}

// The output that contributions are shown of, and its sign: that of the prediction.
function explained(row) {
  const f = model.scores(row);
  if (content.targets === "classes" && f.length === 1) {
    return { l: 0, sign: f[0] > 0 ? 1 : -1, name: page.outputs[Number(f[0] > 0)] };
  }
  const l = ["classes", "labels"].includes(content.targets) ? f.indexOf(Math.max(...f)) : 0;
  return { l, sign: 1, name: page.outputs[l] };
}

// The class or label of which a landmark raises the score most.
function side(a) {
  if (!["classes", "labels"].includes(content.targets)) return "";
  return page.outputs[a.length === 1 && content.targets === "classes" ? Number(a[0] > 0) : a.indexOf(Math.max(...a))];
}

function showLandmarks(row) {
  const { l, sign, name } = explained(row);
  const parts = model.contributions(row).map((part, i) => ({ i, value: sign * part[l] }));
  parts.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const largest = Math.abs(parts[0].value) || 1;
  const pictures = model.landmarkImage(0) !== null;
  const groups = { classes: "class", labels: "label" }[content.targets];
  byId("meaning").textContent = groups
    ? `Contribution to the score of “${name}”. Beside the number of a landmark is the ${groups} that it raises most.`
    : `Contribution to the ${name}.`;
  byId("landmarks").classList.toggle("pictures", pictures);
  const items = parts.slice(0, SHOWN_LANDMARKS).map(({ i, value }) => {
    const [h, w, channels] = content.encoder?.shape ?? [];
    const about = side(content.dual_coef[i]);
    const item = make(
      "li", {}, make("span", {}, `No. ${i}${about && ` · ${about}`}`),
      track(Math.abs(value) / largest, value < 0), make("span", {}, signed(value)),
    );
    if (pictures) {
      const canvas = make("canvas", { width: w, height: h, role: "img", "aria-label": `Landmark ${i}` });
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
  const values = ["values", "scores"].includes(content.targets); // each may have its own unit
  const own = content.targets === "classes" && found.find(({ name }) => name === chosen).text;
  byId("prediction").textContent = chosen;
  byId("brief").textContent = own ? `${chosen} · ${own}` : chosen;
  const few = found.length > SHOWN_BARS ? found.sort((a, b) => b.value - a.value).slice(0, SHOWN_BARS) : found;
  const items = few.map(({ name, text, share, against }) =>
    make("li", name === chosen ? { class: "chosen" } : {}, make("span", {}, name), values ? "" : track(share, against), make("span", {}, text)));
  byId("bars").replaceChildren(...(page.outputs.length > 1 ? items : []));
  if (page.landmarks) showLandmarks(row);
}

// Show a message in place of the result; an empty one shows the result.
function say(message, kind = "") {
  byId("message").textContent = message;
  byId("message").className = kind;
  byId("message").hidden = message === "";
  byId("brief").hidden = byId("result").hidden = message !== "";
}

// A row that was changed is no longer that of the example.
function leaveExample() {
  if (byId("example")) byId("example").selectedIndex = -1;
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

// -- the page --------------------------------------------------------------------------------------

const count = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
const parameters = ["gamma", "nu", "coef0", "degree"].filter((name) => name in content.kernel);
byId("facts").textContent = [
  count(page.bytes, "byte"),
  page.landmarks ? count(page.landmarks, "landmark") : "linear, without landmarks",
  page.landmarks ? [`${content.kernel.name} kernel`, ...parameters.map((name) => `${name} ${digits(content.kernel[name], 3)}`)].join(", ") : "",
].filter((fact) => fact.length).join(" · ");
byId("reasons").hidden = !page.landmarks;

if (page.examples.length) {
  const select = make("select", { id: "example", class: "wide" });
  page.examples.forEach((_, i) => select.append(make("option", { value: i }, `Example ${i + 1}`)));
  select.addEventListener("input", () => (input.set(page.examples[select.value]), update()));
  form.append(make("div", { class: "field" }, make("label", { for: "example" }, "Start from"), select));
}
const drawable = [1, 3].includes(content.encoder?.shape?.[2]);
const input = drawable ? imageInput(content.encoder.shape) : page.columns ? columnInput(page.columns) : textInput(content.n_features);
if (page.start) input.set(page.start);
form.addEventListener("input", (event) => {
  if (["fit", "white", "example", "file"].includes(event.target.id)) return; // have listeners of their own
  leaveExample();
  update();
});
form.addEventListener("submit", (event) => event.preventDefault());
update();

// For the console: nysplus.model.scores([...]), nysplus.row()
globalThis.nysplus = { model, row: () => Array.from(input.get()), set: (row) => (input.set(row), update()) };
