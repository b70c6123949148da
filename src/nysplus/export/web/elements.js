/** Elements, numbers and pictures of the page. */

export const byId = (id) => document.getElementById(id);

/** Return a new element; children that are texts stay texts, whatever is in them. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Return a label and an element for a value, one above the other. */
export function labelled(id, text, element) {
  element.classList.add("wide");
  return make("div", { class: "field" }, make("label", { for: id }, text), element);
}

/** Return a number with at most n digits. */
export const digits = (value, n = 4) => String(Number(value.toPrecision(n)));

/** Return a sign and three digits, with zeros at their end so that columns line up. */
export function signed(value) {
  const size = Math.abs(value);
  const plain = size === 0 || (size >= 1e-3 && size < 1000);
  return (value < 0 ? "−" : "+") + (plain ? size.toPrecision(3) : digits(size, 3));
}

/** Return a bar of a share of its track; against is another colour. */
export function track(share, against) {
  const bar = make("div", against ? { class: "against" } : {});
  bar.style.width = `${100 * Math.min(Math.max(share, 0), 1)}%`;
  return make("div", { class: "track", "aria-hidden": "true" }, bar);
}

/** Show pixels on a canvas; `scale` turns values into brightness from 0 to 255. */
export function paint(canvas, pixels, [h, w, channels], scale) {
  const small = new ImageData(w, h);
  for (let p = 0; p < h * w; p++) {
    for (let c = 0; c < 3; c++) {
      small.data[4 * p + c] = scale * pixels[p * channels + (c % channels)];
    }
    small.data[4 * p + 3] = 255;
  }
  const source = make("canvas", { width: w, height: h });
  source.getContext("2d").putImageData(small, 0, 0);
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(source, 0, 0, canvas.width, canvas.height);
}
