/** How far the prediction of a row can be trusted, and the contributions of its columns. */

import { byId, digits, make, paint } from "./elements.js";

// Rows of a larger novelty are unlike the training rows.
const STRANGE = 0.99;
const SHOWN_COLUMNS = 8;
const SHOWN_CLASSES = 20;

const MINUS = "−";
// Digits after the point that show three or more digits of a size, but no more than 12.
const places = (size) => Math.min(Math.max(2 - Math.floor(Math.log10(size)), 0), 12);
const fixed = (value, n) => {
  const text = value.toFixed(n);
  return Number(text) === 0 ? (0).toFixed(n) : text.replace("-", MINUS);
};
// Lines may break after the signs of a name.
const breakable = (text) => text.replace(/[_/.-](?=[^\d\s])/g, "$&\u200b");
const percent = (share) => `${Number((100 * share).toFixed(2))} %`;

// -- novelty ---------------------------------------------------------------------------------------

/** Return a warning of a row that is unlike the training rows; an empty text for others. */
export function warning(model, row) {
  const novelty = model.novelty(row);
  if (novelty === null || novelty <= STRANGE) return "";
  const share = novelty === 1 ? "all" : percent(Math.floor(1000 * novelty) / 1000);
  return (
    `This row is unlike the training rows (more unusual than ${share} of them). ` +
    "Do not trust the prediction."
  );
}

// -- prediction sets and intervals -----------------------------------------------------------------

const chip = (text) => make("span", { class: "chip", role: "listitem" }, text);

function setOfClasses(model, content, page, row, { bounds, confidence }) {
  const p = model.probabilities(row);
  const members = model.predictionSet(row, bounds).map((label) => content.classes.indexOf(label));
  members.sort((i, j) => p[j] - p[i]);
  const chips = members.slice(0, SHOWN_CLASSES).map((i) => chip(page.outputs[i]));
  const more = members.length - SHOWN_CLASSES;
  if (more > 0) chips.push(make("span", {}, `and ${more} more`));
  const meaning = chips.length
    ? `Classes that may be true. The set has the true class for ${percent(confidence)} of rows ` +
      "like the training rows."
    : "The set is empty: no class is as probable as true classes usually are. Raise the " +
      "confidence, or check the row.";
  return { chips, meaning };
}

// Both ends of an interval, with the digits that its width deserves.
function ends([low, high]) {
  const n = places((high - low) / 10 || 1);
  return `${fixed(low, n)} to ${fixed(high, n)}`;
}

function intervals(model, page, row, { bounds, confidence }) {
  const texts = model.interval(row, bounds).map((both, l) => {
    return page.outputs.length > 1 ? `${page.outputs[l]}: ${ends(both)}` : ends(both);
  });
  const meaning =
    `The interval has the true value for ${percent(confidence)} of rows like the training rows.`;
  return { chips: texts.map(chip), meaning };
}

/** Fill the list of confidences; `changed` is called when another one is chosen. */
export function setUpSets(content, page, changed) {
  const select = byId("confidence");
  if (!content.classes) byId("sets-title").textContent = "Prediction interval";
  page.sets.forEach(({ confidence }, i) => {
    select.append(make("option", { value: i }, percent(confidence)));
  });
  const chosen = page.sets.findIndex((set) => set.chosen);
  select.selectedIndex = chosen >= 0 ? chosen : page.sets.length - 1;
  select.addEventListener("input", changed);
  byId("sets").hidden = !page.sets.length && !page.no_sets;
  byId("confidences").hidden = !page.sets.length;
}

/** Show the prediction set or interval of a row at the chosen confidence, or why there is none. */
export function showSets(model, content, page, row) {
  const set = page.sets[byId("confidence").value];
  if (set === undefined) {
    byId("set-meaning").textContent = page.no_sets;
    return;
  }
  const { chips, meaning } = content.classes
    ? setOfClasses(model, content, page, row, set)
    : intervals(model, page, row, set);
  byId("set").replaceChildren(...chips);
  byId("set-meaning").textContent = meaning;
}

// -- contributions of columns ----------------------------------------------------------------------

// The entry of a column as users know it.
function entry(value, column) {
  if (value === null || Number.isNaN(value)) return "missing";
  if (column?.kind === "category") return column.levels[value] ?? "another level";
  if (column?.kind === "date") {
    return new Date(1000 * value).toISOString().slice(0, 16).replace("T", " ");
  }
  return digits(value, 5);
}

// A bar from the middle of its track, to the right for values above zero.
function fork(share, value) {
  const bar = make("div", value < 0 ? { class: "against" } : {});
  bar.style.width = `${50 * Math.min(share, 1)}%`;
  bar.style.marginLeft = value < 0 ? `${50 - 50 * Math.min(share, 1)}%` : "50%";
  return make("div", { class: "track fork", "aria-hidden": "true" }, bar);
}

const line = (name, bar, text, kind) =>
  make("li", kind ? { class: kind } : {}, make("span", {}, name), bar, make("span", {}, text));

// The value that a full bar stands for: the largest one, unless all are below 1 % of the scores.
function scaleOf(parts, base, total) {
  const least = 0.01 * Math.max(Math.abs(base), Math.abs(total));
  return Math.max(least, ...parts.map(({ value }) => Math.abs(value))) || 1;
}

function bars(parts, base, total, start) {
  const ordered = [...parts].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const rest = ordered.length > SHOWN_COLUMNS + 1 ? ordered.splice(SHOWN_COLUMNS) : [];
  if (rest.length) {
    const value = rest.reduce((sum, part) => sum + part.value, 0);
    ordered.push({ name: `${rest.length} other columns`, value });
  }
  const largest = scaleOf(ordered, base, total);
  const n = places(largest);
  const signed = (value) => (Number(value.toFixed(n)) > 0 ? "+" : "") + fixed(value, n);
  return [
    line(start, make("span"), fixed(base, n), "end"),
    ...ordered.map(({ name, value }) =>
      line(name, fork(Math.abs(value) / largest, value), signed(value)),
    ),
    line("this row", make("span"), fixed(total, n), "end"),
  ];
}

// The values of blocks of pixels over the dimmed image: a colour for each sign, strong for large ones.
function heatMap(parts, { side, across }, [h, w, channels], image, scale) {
  const largest = Math.max(...parts.map(({ value }) => Math.abs(value))) || 1;
  const about = { role: "img", "aria-label": "Contributions of the parts of the image" };
  const canvas = make("canvas", { width: w * 8, height: h * 8, ...about });
  paint(canvas, image, [h, w, channels], 0.45 * scale);
  const context = canvas.getContext("2d");
  parts.forEach(({ value }, i) => {
    const [left, top] = [(i % across) * side * 8, Math.floor(i / across) * side * 8];
    const colour = value < 0 ? "70 150 255" : "240 133 61";
    context.fillStyle = `rgb(${colour} / ${(0.9 * Math.abs(value)) / largest})`;
    context.fillRect(left, top, side * 8, side * 8);
  });
  return canvas;
}

/**
 * Show the contributions of the columns of a row to a score.
 *
 *     explain  of `createExplainer`
 *     output   the number l of the score, its sign, and its name
 */
export function showColumns(explain, content, page, row, { l, sign, name }) {
  const explanation = explain(row);
  const { values, base, errors } = explanation;
  const names = content.feature_names ?? values.map((_, j) => `column ${j}`);
  const parts = values.map((value, j) => ({
    name: `${breakable(names[j])} = ${entry(row[j], page.columns?.[j])}`,
    value: sign * value[l],
  }));
  const start = sign * base[l];
  const total = parts.reduce((sum, { value }) => sum + value, start);
  const score = content.classes
    ? `the score of “${name}”`
    : page.outputs.length > 1 ? `“${name}”` : "the value";
  const typical = content.explanation.background.length;
  const isImage = content.encoder?.shape !== undefined;
  const one = isImage ? "the mean of the landmarks" : "a typical row";
  const from = typical > 1 ? `the mean of ${typical} typical ${isImage ? "images" : "rows"}` : one;
  const error = errors && Math.max(...errors.map((each) => each[l]));
  const how = errors
    ? ` Estimated from random orders of the columns, with a standard error of up to ${digits(error, 1)}.`
    : " Exact Shapley values.";
  if (isImage) {
    byId("columns-title").textContent = "Contributions of the pixels";
    byId("columns-meaning").textContent =
      `Orange parts of the image raise ${score}, compared with ${from}; blue parts lower it.` +
      how.replace("the columns", "the parts");
    const { shape } = content.encoder;
    byId("heat").replaceChildren(heatMap(parts, explanation, shape, row, 255 / page.white));
    return;
  }
  byId("columns-meaning").textContent =
    `What each column adds to ${score}, from that of ${from} to that of this row.${how}`;
  const label = typical > 1 ? "typical rows" : "typical row";
  byId("columns").replaceChildren(...bars(parts, start, total, label));
}
