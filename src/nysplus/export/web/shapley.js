/**
 * Shapley values of models that `nysplus.export.to_json(model, explain=...)` wrote: the part of each
 * column in the difference between the scores of a row and the mean scores of the background.
 *
 *     import { createModel } from "./evaluator.js";
 *     import { createExplainer } from "./shapley.js";
 *     const content = JSON.parse(text);
 *     const explain = createExplainer(content, createModel(content));
 *     explain([5.1, 3.5, 1.4, 0.2]).values;
 */

// Parts of the exponent in each feature, of kernels that are products over features.
const EXPONENTS = {
  chi2: (a, b) => (a + b === 0 ? 0 : (a - b) ** 2 / (a + b)),
  laplacian: (a, b) => Math.abs(a - b),
  rbf: (a, b) => (a - b) ** 2,
};
// Kernels that are sums over features: the linear one also behind a map.
const SUMS = ["linear", "additive_chi2"];
// Multiplications of an explanation, which take some 30 ms; and pairs of permutations at most.
const WORK = 2e7;
const MOST_PAIRS = 64;
// Pixels along each axis that are explained one by one; those of larger images in blocks.
const BLOCKS = 8;

// Random numbers in [0, 1), the same at every call (mulberry32).
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function permutation(n, random) {
  const order = Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

const zeros = (n, L) => Array.from({ length: n }, () => new Float64Array(L));
const added = (u, step) => Float64Array.from(u, (value, j) => value + step[j]);

// -- three ways to the values of a row against one background row ----------------------------------

// Products over columns, given the factors p of the row and q of the background row for a landmark:
// the integral of (p_i - q_i) prod_{k != i} (t p_k + (1 - t) q_k), by products from both ends.
function productGains(p, q, nodes, weights) {
  const found = new Float64Array(p.length);
  const before = new Float64Array(p.length);
  nodes.forEach((t, node) => {
    let product = 1;
    for (let i = 0; i < p.length; i++) {
      before[i] = product;
      product *= t * p[i] + (1 - t) * q[i];
    }
    product = weights[node];
    for (let i = p.length - 1; i >= 0; i--) {
      found[i] += before[i] * product;
      product *= t * p[i] + (1 - t) * q[i];
    }
  });
  return found.map((value, i) => value * (p[i] - q[i]));
}

// All coalitions of the players that take steps from u.
function coalitionGains(u, steps, f) {
  const d = steps.length;
  const at = new Array(2 ** d);
  const visit = (i, point, mask) => {
    if (i === d) return void (at[mask] = f(point));
    visit(i + 1, point, mask);
    visit(i + 1, added(point, steps[i]), mask + 2 ** i);
  };
  visit(0, u, 0);
  // |S|! (d - |S| - 1)! / d!
  const weights = [1 / d];
  for (let s = 1; s < d; s++) weights.push((weights[s - 1] * s) / (d - s));
  const found = zeros(d, at[0].length);
  at.forEach((values, mask) => {
    const size = mask.toString(2).replaceAll("0", "").length;
    for (let i = 0; i < d; i++) {
      if (mask & (1 << i)) continue;
      const more = at[mask + 2 ** i];
      for (let l = 0; l < values.length; l++) {
        found[i][l] += weights[size] * (more[l] - values[l]);
      }
    }
  });
  return found;
}

// A random permutation of the players, walked forwards and backwards.
function walkGains(u, steps, f, order) {
  const start = f(u);
  const found = zeros(steps.length, start.length);
  for (const way of [order, [...order].reverse()]) {
    let [point, last] = [u, start];
    for (const i of way) {
      point = added(point, steps[i]);
      const values = f(point);
      values.forEach((value, l) => (found[i][l] += (value - last[l]) / 2));
      last = values;
    }
  }
  return found;
}

// -- players ---------------------------------------------------------------------------------------

// Blocks of pixels: the side of a block, and the block of each number of an image.
function pixelBlocks([h, w, channels]) {
  const side = Math.ceil(Math.max(h, w) / BLOCKS);
  const across = Math.ceil(w / side);
  const block = (p) => Math.floor(p / w / side) * across + Math.floor((p % w) / side);
  const groups = Array.from({ length: h * w * channels }, (_, i) => block(Math.floor(i / channels)));
  return { side, across, groups };
}

/**
 * Return a function from a row to its Shapley values; null where the text has no background.
 *
 *     values     for each column an array with a number for each output; for images, for each block
 *                of pixels, which are `side` pixels wide, `across` of them in a line
 *     errors     standard errors like `values`; null where values are exact
 *     base       mean scores of the background: with the values they add up to the scores
 */
export function createExplainer(content, model) {
  if (content.explanation === undefined) return null;
  const { nodes, weights } = content.explanation;
  const { checked, encode, coordinates, project, kernelValues, landmarks, A, B } = model.parts;
  const L = content.intercept.length;
  const blocks = content.encoder?.shape ? pixelBlocks(content.encoder.shape) : null;
  const groups = blocks?.groups ?? model.parts.groups;
  const n = blocks ? 1 + Math.max(...groups) : content.n_features;
  const background = content.explanation.background.map(checked);
  const mixes = blocks !== null || Array.isArray(content.projection?.[0]);
  const isSum = content.kernel.name === "linear" || (!mixes && SUMS.includes(content.kernel.name));
  const base = new Float64Array(L);
  for (const row of content.explanation.background) {
    model.scores(row).forEach((value, l) => (base[l] += value / background.length));
  }

  // k(u, Z) A
  function kernelScores(u) {
    const found = new Float64Array(L);
    kernelValues(u).forEach((value, j) => A[j].forEach((a, l) => (found[l] += value * a)));
    return found;
  }

  // The change of the code when a player's numbers change from the background row to the row.
  function codeSteps(x, r) {
    const [from, to] = blocks ? [r, x] : [encode(r), encode(x)];
    const steps = Array.from({ length: n }, () => new Float64Array(from.length));
    const moved = new Set();
    groups.forEach((player, k) => {
      steps[player][k] = to[k] - from[k];
      if (to[k] !== from[k]) moved.add(player);
    });
    const players = [...moved].sort((a, b) => a - b);
    return players.map((i) => ({ i, step: blocks ? encode(steps[i]) : steps[i] }));
  }

  // The factor of each player in the kernel of coordinates with a landmark.
  function factors(u, z) {
    const exponents = new Float64Array(n);
    const part = EXPONENTS[content.kernel.name];
    groups.forEach((player, k) => (exponents[player] += part(u[k], z[k])));
    return exponents.map((value) => Math.exp(-content.kernel.gamma * value));
  }

  function exactProducts(x, r) {
    const found = zeros(n, L);
    const [u, v] = [x, r].map((row) => coordinates(encode(row)));
    A.forEach((coefficients, j) => {
      const z = landmarks.at(j);
      const gains = productGains(factors(u, z), factors(v, z), nodes, weights);
      gains.forEach((gain, i) => coefficients.forEach((a, l) => (found[i][l] += gain * a)));
    });
    return { found };
  }

  // Values along steps of the coordinates: all coalitions where they are no more than the points of
  // permutations would be, or permutations.
  function alongSteps(r, moved, random) {
    const u = coordinates(encode(r));
    const steps = moved.map(({ step }) => project(step));
    const [d, found, variance] = [steps.length, zeros(n, L), zeros(n, L)];
    if (d === 0) return { found };
    const put = (gains, share) =>
      gains.forEach((gain, p) => gain.forEach((g, l) => (found[moved[p].i][l] += g * share)));
    if (isSum) {
      put(walkGains(u, steps, kernelScores, permutation(d, random)), 1);
      return { found };
    }
    const cost = background.length * landmarks.n * (u.length + L);
    const pairs = Math.min(Math.max(Math.floor(WORK / (2 * d * cost)), 2), MOST_PAIRS);
    if (2 ** d <= 2 * d * pairs) {
      put(coalitionGains(u, steps, kernelScores), 1);
      return { found };
    }
    const walks = Array.from({ length: pairs }, () =>
      walkGains(u, steps, kernelScores, permutation(d, random)),
    );
    for (const gains of walks) put(gains, 1 / pairs);
    for (const gains of walks) {
      gains.forEach((gain, p) => {
        const i = moved[p].i;
        gain.forEach((g, l) => (variance[i][l] += (g - found[i][l]) ** 2 / (pairs - 1) / pairs));
      });
    }
    return { found, variance };
  }

  return (row) => {
    const x = checked(row);
    const random = randomNumbers(0);
    const [values, variances] = [zeros(n, L), zeros(n, L)];
    const share = 1 / background.length;
    let exact = true;
    for (const r of background) {
      const moved = nodes && !B ? [] : codeSteps(x, r);
      const { found, variance } = nodes ? exactProducts(x, r) : alongSteps(r, moved, random);
      if (variance) exact = false;
      for (let i = 0; i < n; i++) {
        for (let l = 0; l < L; l++) {
          values[i][l] += share * found[i][l];
          if (variance) variances[i][l] += share ** 2 * variance[i][l];
        }
      }
      for (const { i, step } of B ? moved : []) {
        step.forEach((s, k) => s && B[k].forEach((b, l) => (values[i][l] += share * s * b)));
      }
    }
    const errors = variances.map((variance) => variance.map(Math.sqrt));
    const { side, across } = blocks ?? {};
    return { values, base, errors: exact ? null : errors, side, across };
  };
}
