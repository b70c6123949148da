/**
 * Evaluate models that `nysplus.export.to_json` wrote: f(x) = k((E(x) - c) P, Z) A + E(x) B + b.
 *
 *     import { createModel } from "./evaluator.js";
 *     const model = createModel(JSON.parse(text));
 *     model.predict([5.1, 3.5, 1.4, 0.2]);
 *
 * A row is an array with a number for each feature. In a row of a table, null and NaN are gaps, a
 * category is a level as text or its position in the list of levels, and a date is a Date, a text
 * of ISO 8601 or seconds since 1970; times without a zone are in UTC. All arithmetic is in double
 * precision.
 */

const VERSIONS = [1, 2, 3, 4, 5];

const sum = (x, z, part) => {
  let total = 0;
  for (let j = 0; j < x.length; j++) total += part(x[j], z[j]);
  return total;
};
const dot = (x, z) => sum(x, z, (a, b) => a * b);
const squares = (x, z) => sum(x, z, (a, b) => (a - b) ** 2);
const chi2 = (x, z) => sum(x, z, (a, b) => (a + b === 0 ? 0 : (a - b) ** 2 / (a + b)));
const MATERN = { 0.5: () => 1, 1.5: (s) => 1 + s, 2.5: (s) => 1 + s + (s * s) / 3 };

// k(x, z) of each kernel, given its parameters.
const KERNELS = {
  additive_chi2: () => (x, z) => -chi2(x, z),
  chi2: ({ gamma }) => (x, z) => Math.exp(-gamma * chi2(x, z)),
  cosine: () => (x, z) => dot(x, z) / (Math.sqrt(dot(x, x)) * Math.sqrt(dot(z, z))) || 0,
  laplacian: ({ gamma }) => (x, z) => Math.exp(-gamma * sum(x, z, (a, b) => Math.abs(a - b))),
  linear: () => dot,
  matern: ({ gamma, nu }) => (x, z) => {
    const s = Math.sqrt(4 * nu * gamma * squares(x, z));
    return MATERN[nu](s) * Math.exp(-s) || 0; // infinity times zero, far away
  },
  polynomial: ({ gamma, coef0, degree }) => (x, z) => (gamma * dot(x, z) + coef0) ** degree,
  rbf: ({ gamma }) => (x, z) => Math.exp(-gamma * squares(x, z)),
  sigmoid: ({ gamma, coef0 }) => (x, z) => Math.tanh(gamma * dot(x, z) + coef0),
};

const filled = (x, fill) => (Number.isNaN(x) ? fill : x);
// (u^e - 1) / e, given log(u)
const power = (log, e) => (e === 0 ? log : Math.expm1(e * log) / e);

// The columns that each kind of term makes of a raw number x.
const TERMS = {
  circle: ({ origin, period }) => (x) => {
    const turns = (x - origin) / period;
    const angle = 2 * Math.PI * (turns - Math.floor(turns));
    return Number.isNaN(x) ? [0, 0] : [Math.cos(angle), Math.sin(angle)];
  },
  curve: ({ knots, values, gap }) => (x) => {
    const t = filled(x, knots[gap]);
    const k = knots.findIndex((knot) => knot > t);
    if (k <= 0) return [k === 0 ? values[0] : values[values.length - 1]];
    const share = (t - knots[k - 1]) / (knots[k] - knots[k - 1]);
    return [values[k - 1] + share * (values[k] - values[k - 1])];
  },
  linear: ({ offset, scale, fill }) => (x) => [(filled(x, fill) - offset) * scale],
  lookup: ({ table }) => (x) => {
    const other = table.length - 2;
    if (Number.isNaN(x)) return table[other + 1];
    return table[x >= 0 && x < other ? Math.floor(x) : other];
  },
  missing: ({ present, missing }) => (x) => [Number.isNaN(x) ? missing : present],
  one_hot: ({ n_levels, gaps }) => (x) => {
    const hot = Array.from({ length: n_levels }, (_, i) => Number(x === i));
    return gaps ? [...hot, Number(Number.isNaN(x))] : hot;
  },
  power: ({ column, exponent, signed, origin, unit, offset, scale, fill }) => (x) => {
    const u = (filled(x, fill) - origin) * unit;
    if (!signed && u <= 0) {
      throw new RangeError(`The Box-Cox transform of column ${column} does not allow ${x}.`);
    }
    const t = signed
      ? power(Math.log1p(Math.max(u, 0)), exponent) -
        power(Math.log1p(Math.max(-u, 0)), 2 - exponent)
      : power(Math.log(u), exponent);
    return [(t - offset) * scale];
  },
  ramps: ({ knots, height, gap }) => (x) => {
    const t = filled(x, knots[gap]);
    const share = (k) => Math.min(Math.max((t - knots[k]) / (knots[k + 1] - knots[k]), 0), 1);
    return Array.from({ length: knots.length - 1 }, (_, k) => height * share(k));
  },
};

function known(table, name, what) {
  if (Object.hasOwn(table, name)) return table[name];
  const names = Object.keys(table).join(", ");
  throw new Error(`The ${what} "${name}" is not known. Known are ${names}.`);
}

// The columns of all terms, one after the other, and the number of x that each reads.
function tableEncoder(encoder) {
  const terms = encoder.terms.map((term) => known(TERMS, term.kind, "kind of term")(term));
  const sources = encoder.terms.map(({ column }) => column);
  return {
    encode: (x) => terms.flatMap((columns, i) => columns(x[sources[i]])),
    groups: terms.flatMap((columns, i) => columns(NaN).map(() => sources[i])),
  };
}

// The first k of n cosines, as k rows of n numbers.
function cosines(n, k) {
  const entry = (i, a) => Math.sqrt((a > 0 ? 2 : 1) / n) * Math.cos((Math.PI * (i + 0.5) * a) / n);
  const row = (a) => Float64Array.from({ length: n }, (_, i) => entry(i, a));
  return Array.from({ length: k }, (_, a) => row(a));
}

const transposed = (M) => Array.from(M[0], (_, i) => Float64Array.from(M, (row) => row[i]));

// first x secondᵀ of each channel of an image that is flattened in C order.
function transformed(image, first, second, channels) {
  const [h, w] = [first[0].length, second[0].length];
  const wide = new Float64Array(h * second.length * channels);
  const found = new Float64Array(first.length * second.length * channels);
  for (let i = 0; i < h; i++)
    for (let b = 0; b < second.length; b++)
      for (let j = 0; j < w; j++)
        for (let c = 0; c < channels; c++)
          wide[(i * second.length + b) * channels + c] +=
            image[(i * w + j) * channels + c] * second[b][j];
  const width = second.length * channels;
  for (let a = 0; a < first.length; a++)
    for (let i = 0; i < h; i++)
      for (let q = 0; q < width; q++) found[a * width + q] += first[a][i] * wide[i * width + q];
  return found;
}

// Image → cosines, and back to the smallest image of given cosines.
function imageEncoder({ shape: [h, w, channels], n_cosines }) {
  const [first, second] = [h, w].map((n) => cosines(n, Math.min(n_cosines, n)));
  const [back, across] = [transposed(first), transposed(second)];
  return {
    encode: (x) => transformed(x, first, second, channels),
    decode: (code) => transformed(code, back, across, channels),
  };
}

// Dense landmarks are read once; a sparse one is written out when it is asked for.
function landmarkReader(Z) {
  if (Array.isArray(Z)) {
    const rows = Z.map((row) => Float64Array.from(row));
    return { n: rows.length, at: (i) => rows[i] };
  }
  const row = new Float64Array(Z.shape[1]);
  const at = (i) => {
    row.fill(0);
    Z.indices[i].forEach((j, k) => (row[j] = Z.values[i][k]));
    return row;
  };
  return { n: Z.shape[0], at };
}

// x times rows of a matrix; zeros of x are skipped.
function product(x, rows, columns) {
  const found = new Float64Array(columns);
  for (let i = 0; i < x.length; i++)
    if (x[i] !== 0) for (let j = 0; j < columns; j++) found[j] += x[i] * rows[i][j];
  return found;
}

function projector(P) {
  if (P === null) return (x) => x;
  if (!Array.isArray(P[0])) return (x) => Float64Array.from(x, (value, j) => value * P[j]);
  const rows = P.map((row) => Float64Array.from(row));
  return (x) => product(x, rows, rows[0].length);
}

// A date as seconds since 1970; texts without a zone are in UTC.
function seconds(value) {
  if (value instanceof Date) return value.getTime() / 1000;
  const zoned = /([zZ]|[+-]\d\d:?\d\d)$/.test(value) || !/\d[T ]\d/.test(value);
  const found = Date.parse(value.replace(/(\d) (?=\d)/, "$1T") + (zoned ? "" : "Z")) / 1000;
  if (Number.isNaN(found)) throw new TypeError(`"${value}" is not a date of ISO 8601.`);
  return found;
}

// The raw number of a cell of a table.
function rawNumber(value, input) {
  if (value === null || value === undefined || Number.isNaN(value)) return NaN;
  if (typeof value === "number") return value;
  if (input?.kind === "category" && typeof value === "string") return input.levels.indexOf(value);
  if (input?.kind === "date" && (typeof value === "string" || value instanceof Date)) {
    return seconds(value);
  }
  const name = input ? `The ${input.kind} "${input.name}"` : "A feature";
  throw new TypeError(`${name} cannot be ${JSON.stringify(value)}.`);
}

// Linear between the points (x[j], y[j]) and constant beyond them, where x decreases.
function interpolated(value, x, y) {
  const j = x.findIndex((place) => place <= value);
  if (j <= 0) return y[j === 0 ? 0 : y.length - 1];
  return y[j] + ((value - x[j]) / (x[j - 1] - x[j])) * (y[j - 1] - y[j]);
}

// The squared length of raw numbers along directions; gaps are at the centre.
function squaredLength(x, { center, weights }) {
  const moved = x.map((value, j) => filled(value - center[j], 0));
  return product(moved, weights, weights[0].length).reduce((sum, part) => sum + part ** 2, 0);
}

const argmax = (f) => f.indexOf(f.reduce((a, b) => (b > a ? b : a)));

function softmax(f, slope) {
  const largest = Math.max(...f);
  const e = f.map((score) => Math.exp(slope * (score - largest)));
  const total = e.reduce((a, b) => a + b);
  return e.map((value) => value / total);
}

/**
 * Return the functions of a model, given the parsed text of `nysplus.export.to_json`.
 *
 *     scores(row)         f, an array of a number for each output
 *     predict(row)        a class, an array of 0 and 1 for labels, a value or an array of values
 *     probabilities(row)  of each class or label; null where the model has none
 *     contributions(row)  an array for each landmark z: k(x, z) times its row of A
 *     predictionSet(row)  the classes that may be true, by default at the confidence of the text;
 *                         null where the text has no bounds
 *     interval(row)       the lower and the upper end of each value; null as above
 *     novelty(row)        the share of training rows that are less unusual; null as above
 *     landmarkImage(i)    the pixels of a landmark; null unless it is an image that is not mapped
 *     parts               the steps of the computation, for shapley.js
 */
export function createModel(content) {
  if (content?.format !== "nysplus-json") {
    throw new Error("This is not a model that nysplus.export.to_json wrote.");
  }
  if (!VERSIONS.includes(content.format_version)) {
    throw new Error(
      `format_version ${content.format_version} is not known. Known are ${VERSIONS.join(", ")}: ` +
        "take the evaluator of the version of nysplus that wrote the model.",
    );
  }
  const { kernel, n_features: d, encoder, inputs, targets, classes, slope } = content;
  const k = known(KERNELS, kernel.name, "kernel")(kernel);
  const images = encoder?.shape ? imageEncoder(encoder) : null;
  const table = encoder && !images ? tableEncoder(encoder) : null;
  const { encode } = images ?? table ?? { encode: (x) => x };
  const project = projector(content.projection);
  const c = content.center ?? null;
  const Z = landmarkReader(content.landmarks);
  const A = content.dual_coef.map((row) => Float64Array.from(row));
  const B = content.linear?.map((row) => Float64Array.from(row));
  const b = content.intercept;

  function checked(row) {
    if (row?.length !== d) {
      const found = row?.length ?? "none";
      throw new RangeError(`The model takes ${d} columns, and the row has ${found}.`);
    }
    const x = Array.from(row, (value, j) => rawNumber(value, inputs?.[j]));
    const wrong = x.findIndex((value) => !(Number.isFinite(value) || (table && value !== value)));
    if (wrong >= 0) throw new RangeError(`Column ${wrong} is ${row[wrong]}, not a finite number.`);
    return x;
  }

  const encoded = (row) => encode(checked(row));
  const coordinates = (code) => project(c === null ? code : code.map((value, j) => value - c[j]));
  const kernelValues = (u) => A.map((_, i) => k(u, Z.at(i)));

  function kernelParts(code) {
    const values = kernelValues(coordinates(code));
    return A.map((coefficients, i) => Array.from(coefficients, (a) => values[i] * a));
  }

  function scores(row) {
    const code = encoded(row);
    const found = B ? Array.from(product(code, B, b.length)) : b.map(() => 0);
    for (const part of kernelParts(code)) part.forEach((value, l) => (found[l] += value));
    return found.map((value, l) => value + b[l]);
  }

  function decide(f) {
    if (targets === "labels") return f.map((score) => Number(score > 0));
    if (targets !== "classes") return f.length === 1 ? f[0] : f;
    return classes[f.length === 1 ? Number(f[0] > 0) : argmax(f)];
  }

  function likely(f) {
    if (slope === null) return null;
    if (targets === "labels") return f.map((score) => 1 / (1 + Math.exp(-2 * slope * score)));
    return softmax(f.length === 1 ? [-f[0], f[0]] : f, slope);
  }

  function predictionSet(row, bounds = content.prediction_set?.bounds) {
    if (bounds === undefined) return null;
    const p = likely(scores(row));
    return classes.filter((_, i) => 1 - p[i] <= bounds[bounds.length > 1 ? i : 0]);
  }

  function interval(row, bounds = content.interval?.bounds) {
    if (bounds === undefined) return null;
    return scores(row).map((value, l) => [value - bounds[l], value + bounds[l]]);
  }

  function novelty(row) {
    if (content.novelty === undefined) return null;
    const { similarities, levels, directions } = content.novelty;
    const x = checked(row);
    const largest = Math.max(...kernelValues(coordinates(encode(x))));
    const rank = interpolated(largest, similarities, levels);
    if (directions === undefined) return rank;
    const distances = directions.distances.map((value) => -value);
    return Math.max(rank, interpolated(-squaredLength(x, directions), distances, levels));
  }

  function landmarkImage(i) {
    if (images === null || content.projection !== null) return null;
    return Array.from(images.decode(Z.at(i).map((value, j) => value + (c === null ? 0 : c[j]))));
  }

  return {
    scores,
    predict: (row) => decide(scores(row)),
    probabilities: (row) => likely(scores(row)),
    contributions: (row) => kernelParts(encoded(row)),
    predictionSet,
    interval,
    novelty,
    landmarkImage,
    nLandmarks: Z.n,
    parts: {
      ...{ checked, encode, coordinates, project, kernelValues, landmarks: Z, A, B },
      groups: table?.groups ?? Array.from({ length: d }, (_, j) => j),
    },
  };
}
