/**
 * Fields of a row. An input has get(), which returns the row as raw numbers with NaN for a gap, or
 * throws, and set(row), where a gap is null.
 */

import { digits, labelled, make } from "./elements.js";

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
    const name = `${column.name}, slider`;
    slider = make("input", { type: "range", min, max, step, "aria-label": name });
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
  const get = () => (select.value === "" ? NaN : Number(select.value));
  const set = (position) => (select.value = position ?? "");
  return { element: labelled(id, column.name, select), get, set };
}

const FIELDS = { number: numberField, date: dateField, category: categoryField };

/** Add a field for each column to a form. */
export function columnInput(form, columns) {
  const fields = columns.map((column, j) => FIELDS[column.kind](column, `column-${j}`));
  form.append(...fields.map(({ element }) => element));
  return {
    get: () => fields.map(({ get }) => get()),
    set: (row) => fields.forEach(({ set }, j) => set(row[j])),
  };
}

/** Add a text area for a row of n numbers to a form. */
export function textInput(form, n) {
  const area = make("textarea", { id: "row", spellcheck: "false" });
  const text = `A row of ${n} numbers, separated by commas or spaces`;
  form.append(make("label", { for: "row" }, text), area);
  return {
    get: () => area.value.split(/[\s,;]+/).filter((word) => word).map(Number),
    set: (row) => (area.value = row.join(", ")),
  };
}
