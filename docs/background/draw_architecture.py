"""Draw the rooms of nysplus by level, with the imports between them."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "src" / "nysplus"
# Okabe and Ito's colours, told apart with every kind of colour vision.
PUBLIC, PRIVATE, WAIST = "#CFE6F5", "#EEEEEE", "#F6D58E"
WAISTS = {"_ridge", "expansion"}
# Columns that leave a free lane for each arrow over several levels; all others stand in the middle.
COLUMNS = {
    **dict.fromkeys(["_adam", "landmarks", "distillation", "_distillation"], -1.5),
    **dict.fromkeys(["export", "explain", "transformer", "_bytes", "kernels", "conformal"], -0.5),
    **dict.fromkeys(
        ["plots", "curve", "estimators", "_compression", "_fit", "_learning", "_ridge"], 0.5
    ),
    "_runtime": 1.2,
    **dict.fromkeys(["from_sklearn", "persistence", "_tuning", "_holdout"], 1.5),
}
WIDTH, HEIGHT, COLUMN, STEP = 3.64, 1.24, 4.3, 1.78
NOTE_LETTERS = 25  # of a line in a box


def levels() -> list[list[str]]:
    """Return the rooms of each level, lowest first, as tests/test_architecture.py orders them."""
    tree = ast.parse((ROOT / "tests" / "test_architecture.py").read_text(encoding="utf-8"))
    (order,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ORDER"
    )
    real = {path.stem for path in SOURCE.iterdir() if path.suffix in ("", ".py")} & set(contents())
    return [kept for line in order.split("\n") if (kept := [r for r in line.split() if r in real])]


def contents() -> dict[str, str]:
    """Return what each room contains, from the table of architecture.md."""
    page = (HERE / "architecture.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `(\w+)` \| (.+?) \|$", page, flags=re.M))


def imports() -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nysplus."):
                target = str(node.module).split(".")[1]
                found.setdefault(room, set()).update({target} - {room})
    return found


def direct(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the imports that do not follow from others."""

    def reached(room: str) -> set[str]:
        return edges.get(room, set()).union(*map(reached, edges.get(room, set())))

    return {
        room: {t for t in targets if not any(t in reached(other) for other in targets - {t})}
        for room, targets in edges.items()
    }


def places(rows: list[list[str]]) -> dict[str, tuple[float, float]]:
    """Return the centre of the box of each room."""
    return {
        room: (COLUMNS.get(room, 0.0) * COLUMN, level * STEP)
        for level, row in enumerate(rows)
        for room in row
    }


def draw(path: Path) -> None:
    """Write the picture."""
    rows, text = levels(), contents()
    at = places(rows)
    width = 4 * COLUMN
    figure, axes = plt.subplots(figsize=(0.8 * width, 0.8 * len(rows) * STEP))
    for room, targets in sorted(direct(imports()).items()):
        for target in sorted(targets & set(at)):
            if room in at:
                _arrow(axes, at[room], at[target])
    for room, (x, y) in at.items():
        colour = WAIST if room in WAISTS else PRIVATE if room.startswith("_") else PUBLIC
        axes.add_patch(_box(x - WIDTH / 2, y - HEIGHT / 2, WIDTH, HEIGHT, colour))
        axes.text(x, y + 0.36, room, ha="center", va="center", size=17, weight="bold")
        note = "\n".join(textwrap.wrap(text[room].replace("`", ""), NOTE_LETTERS))
        axes.text(x, y + 0.14, note, ha="center", va="top", size=13, color="#222222")
    axes.set_xlim(-width / 2, width / 2)
    axes.set_ylim(-HEIGHT / 2 - 0.15, (len(rows) - 1) * STEP + HEIGHT / 2 + 0.15)
    axes.axis("off")
    _legend(axes)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=100, bbox_inches="tight", pad_inches=0.05)
    plt.close(figure)


def _arrow(axes: plt.Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw an arrow from the lower edge of a box to the upper edge of another one."""
    right = (end[0] > start[0]) - (end[0] < start[0])
    leave, arrive = 0.1 * WIDTH * right, -0.15 * WIDTH * right  # arrows of one box part at once
    if start[1] - end[1] > 1.5 * STEP:  # past the boxes of the levels between them
        leave, arrive = 0.42 * WIDTH * right, -0.45 * WIDTH * right
    axes.add_patch(
        FancyArrowPatch(
            (start[0] + leave, start[1] - HEIGHT / 2),
            (end[0] + arrive, end[1] + HEIGHT / 2),
            arrowstyle="-|>",
            mutation_scale=20,
            linewidth=1.6,
            color="#555555",
            shrinkA=0,
            shrinkB=0,
            zorder=0,
        )
    )


def _legend(axes: plt.Axes) -> None:
    """Explain the colours in the upper left corner."""
    kinds = {"public": PUBLIC, "private": PRIVATE, "narrow waist": WAIST}
    left, top = axes.get_xlim()[0] + 0.3, axes.get_ylim()[1] - 0.4
    for i, (name, colour) in enumerate(kinds.items()):
        y = top - 0.6 * i
        axes.add_patch(_box(left, y - 0.2, 0.7, 0.4, colour))
        axes.text(left + 0.9, y, name, va="center", size=17)


def _box(x: float, y: float, width: float, height: float, colour: str) -> FancyBboxPatch:
    """Return a box with round corners, from its lower left one."""
    style = f"round,pad=0,rounding_size={0.12 * height}"
    return FancyBboxPatch(
        (x, y), width, height, boxstyle=style, facecolor=colour, edgecolor="#444444", linewidth=1.2
    )


if __name__ == "__main__":
    draw(HERE / "figures" / "architecture.png")
