/** A canvas to draw an image on, and the image of the size that a model takes. */

import { labelled, make, paint } from "./elements.js";

// The box of a drawing that becomes the image: all of it, or what is drawn and a margin.
function frameOf({ data, width, height }, fit, [h, w]) {
  const whole = { left: 0, top: 0, width, height };
  let [left, right, top, bottom, mass, x, y] = [width, -1, height, -1, 0, 0, 0];
  for (let p = 0; p < width * height; p++) {
    const light = data[4 * p] + data[4 * p + 1] + data[4 * p + 2];
    if (light === 0) continue;
    const [j, i] = [p % width, Math.floor(p / width)];
    [left, right] = [Math.min(left, j), Math.max(right, j + 1)];
    [top, bottom] = [Math.min(top, i), Math.max(bottom, i + 1)];
    [mass, x, y] = [mass + light, x + light * (j + 0.5), y + light * (i + 0.5)];
  }
  if (mass === 0) return null;
  if (fit === "drawn") return whole;
  const share = fit === "margin" ? 20 / 28 : 1; // MNIST: 20 pixels of 28, about the centre of mass
  const side = Math.max((right - left) / w, (bottom - top) / h) / share;
  const centre = fit === "margin" ? [x / mass, y / mass] : [(left + right) / 2, (top + bottom) / 2];
  const [across, along] = [side * w, side * h];
  return { left: centre[0] - across / 2, top: centre[1] - along / 2, width: across, height: along };
}

// The mean brightness of each pixel of the image, 0 outside of the drawing.
function shrunk({ data, width, height }, frame, [h, w, channels]) {
  const found = new Float64Array(h * w * channels);
  const bounds = (start, step, k) => [k, k + 1].map((edge) => Math.round(start + step * edge));
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

const FITS = {
  drawn: "as drawn",
  margin: "centred, with the margin of MNIST",
  filled: "centred, without a margin",
};

/**
 * Add a canvas to draw on to a form; `changed` is called when the drawing has changed, with a
 * message if it could not be. get() returns null as long as nothing is drawn.
 */
export function imageInput(form, shape, settings, changed) {
  const [h, w, channels] = shape;
  const zoom = Math.max(1, Math.round(280 / Math.max(h, w)));
  const board = make("canvas", {
    id: "board",
    width: w * zoom,
    height: h * zoom,
    tabindex: 0,
    role: "application",
    "aria-label": "Drawing. The arrow keys move the pen, the space bar lifts and lowers it.",
  });
  const name = "The image that the model gets";
  const seen = make("canvas", { width: w, height: h, role: "img", "aria-label": name });
  const pen = make("div", { class: "pen", hidden: "" });
  const clear = make("button", { type: "button", id: "clear" }, "Clear");
  const colour = make("input", { type: "color", value: "#ffffff", "aria-label": "Colour of pen" });
  const file = make("input", { type: "file", id: "file", accept: "image/*" });
  const fit = make("select", { id: "fit" });
  for (const [value, text] of Object.entries(FITS)) fit.append(make("option", { value }, text));
  fit.value = settings.fit;
  const white = make("input", { type: "number", id: "white", step: "any", min: 0 });
  white.value = settings.white;
  form.append(
    make("p", { class: "note" }, "Draw with mouse or finger, or with arrow keys and space bar."),
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
    const drawing = context.getImageData(0, 0, board.width, board.height);
    const frame = frameOf(drawing, fit.value, shape);
    row = frame && shrunk(drawing, frame, shape).map((light) => light * white.valueAsNumber);
    paint(seen, row ?? new Float64Array(h * w * channels), shape, 255 / white.valueAsNumber);
    changed();
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
    const shares = [(clientX - box.left) / box.width, (clientY - box.top) / box.height];
    return [shares[0] * board.width, shares[1] * board.height];
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
    const moved = at.map((value, k) => value + ((step?.[k] ?? 0) * sizes[k]) / 24);
    const to = moved.map((value, k) => Math.min(Math.max(value, 0), sizes[k]));
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
    if (picture === null) return changed("The browser cannot read this file as an image.");
    const scale = Math.min(board.width / picture.width, board.height / picture.height);
    const [width, height] = [scale * picture.width, scale * picture.height];
    wipe();
    const [left, top] = [(board.width - width) / 2, (board.height - height) / 2];
    context.drawImage(picture, left, top, width, height);
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
