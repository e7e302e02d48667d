"""Draws the boards as PNG files from the data of a running Prometheus, for the documentation.

    python3 dashboards/draw.py --prometheus URL --output DIR [--minutes N] [BOARD …]

Each panel is drawn from its own expressions, for all values of the board's variables. The pictures
show what a board contains; they are drawings with matplotlib, not pictures of Grafana. Needs
matplotlib from PyPI. The test of ./run test monitoring draws the pictures of docs/dashboards.md if
TROUPE_DRAW_BOARDS names their folder.
"""

import argparse
import io
import json
import pathlib
import re
import time
import urllib.parse
import urllib.request

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402  (after the choice of the backend)
from matplotlib.colors import ListedColormap  # noqa: E402
from matplotlib.ticker import FuncFormatter, MaxNLocator  # noqa: E402
from PIL import Image  # noqa: E402

from panel_text import (Legend, clock_text, first_of_each_run, legend_of, short,  # noqa: E402
                        text_of, tick_text)

HERE = pathlib.Path(__file__).resolve().parent

# The size of Grafana's grid on the picture, in pixels.
COLUMN, ROW, DPI = 48, 26, 100
COLUMNS = 24
COLORS = {"green": "#56a64b", "orange": "#ff9830", "red": "#e02f44", "yellow": "#f2cc0c",
          "blue": "#3274d9", "text": "#8e8e8e"}
PALETTE = ["#3274d9", "#56a64b", "#ff9830", "#a352cc", "#e02f44", "#37872d", "#e0b400", "#1f60c4",
           "#b877d9", "#8f3bb8"]
MOST_SERIES = 24
# The size of words in points, and the height of a legend's line in pixels.
TITLE, WORD, LEGEND_LINE = 9, 7, 15
GREY, LINE = "#5a5f66", "#d8dbe0"
PICTURE_COLORS = 128


class Source:
    """The data of a Prometheus between two times."""

    def __init__(self, url, begin, end, window_seconds):
        self.url, self.begin, self.end = url, begin, end
        self.window = window_seconds
        self.step = max(1.0, (end - begin) / 250)

    def substituted(self, expression):
        for name, value in (("$__rate_interval", f"{self.window}s"),
                            ("$__range", f"{int(self.end - self.begin) + 1}s")):
            expression = expression.replace(name, value)
        return re.sub(r"\$(job_name|instance|gpu)\b", ".*", expression)

    def series(self, expression):
        """Returns pairs of labels and a list of (time, value), without values that are NaN."""
        query = urllib.parse.urlencode({
            "query": self.substituted(expression), "start": self.begin, "end": self.end,
            "step": self.step})
        with urllib.request.urlopen(f"{self.url}/api/v1/query_range?{query}", timeout=60) as answer:
            found = json.load(answer)["data"]["result"]
        pairs = [(one["metric"], [(float(at), float(value)) for at, value in one["values"]
                                  if value not in ("NaN", "+Inf", "-Inf")]) for one in found]
        return [pair for pair in pairs if pair[1]]


def color_at(panel, value):
    """The colour that the thresholds of the panel give to the value."""
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    found = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
    return COLORS[found[-1]]


class Picture:
    """One board: a figure on which each panel has its place of Grafana's grid."""

    def __init__(self, board, source):
        self.board, self.source = board, source
        self.rows = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in board["panels"]) + 2
        self.figure = plt.figure(figsize=(COLUMNS * COLUMN / DPI, self.rows * ROW / DPI), dpi=DPI)
        self.marks = [(at, COLORS[mark["iconColor"]]) for mark in board["annotations"]["list"]
                      for _, values in source.series(mark["expr"])
                      for at in first_of_each_run([at for at, _ in values], source.step)]

    def draw(self):
        self.write(0, 0.3, self.board["title"], 13, "black", weight="bold")
        marks = "; vertical lines: red is a recovery, blue a commit" if self.marks else ""
        self.write(COLUMNS, 0.3, "drawn from the data of a real run; not a picture of Grafana"
                   + marks, 8, GREY, ha="right")
        for panel in self.board["panels"]:
            self.draw_panel(panel)

    def save(self, path):
        pixels = io.BytesIO()
        self.figure.savefig(pixels, format="png", dpi=DPI)
        plt.close(self.figure)
        # Few colours make the file small.
        picture = Image.open(pixels).convert("RGB").quantize(PICTURE_COLORS)
        picture.save(path, optimize=True)

    def write(self, column, row, text, size, color, **options):
        self.figure.text(0.005 + 0.99 * column / COLUMNS, 1 - row / self.rows, text, size=size,
                         color=color, va="top", **options)

    def axes(self, place, legend_lines=0):
        """Axes inside of the panel, with room for its title, its labels and its legend."""
        left = 0.005 + 0.99 * (place["x"] + 1.6) / COLUMNS
        width = 0.99 * (place["w"] - 2) / COLUMNS
        top = 1 - (place["y"] + 2 + 1.2) / self.rows
        below = 1.1 + (legend_lines * LEGEND_LINE / ROW + 0.3 if legend_lines else 0)
        bottom = 1 - (place["y"] + 2 + place["h"] - below) / self.rows
        axes = self.figure.add_axes((left, bottom, width, top - bottom))
        axes.tick_params(which="both", labelsize=WORD, colors=GREY, length=2)
        for side in axes.spines.values():
            side.set_color(LINE)
        return axes

    def draw_panel(self, panel):
        place = panel["gridPos"]
        if panel["type"] == "row":
            self.write(place["x"], place["y"] + 2.1, panel["title"], 10, "black", weight="bold")
            return
        self.write(place["x"] + 0.1, place["y"] + 2.1, panel["title"], TITLE, "black")
        found = [(legend_of(target["legendFormat"], labels), labels, values)
                 for target in panel["targets"]
                 for labels, values in self.source.series(target["expr"])]
        if found and panel["type"] == "timeseries":
            # The legend names the largest.
            found = sorted(found, key=lambda one: -max(abs(value) for _, value in one[2]))
            names = list(dict.fromkeys(name for name, _, _ in found))
            legend = Legend(names, 0.99 * place["w"] * COLUMN)
            self.lines(self.axes(place, legend.lines), panel, found[:MOST_SERIES], legend)
            return
        axes = self.axes(place)
        if not found:
            axes.set_xticks([]), axes.set_yticks([])
            axes.text(0.5, 0.5, "no data in this run", ha="center", va="center", size=8, color=GREY,
                      transform=axes.transAxes)
            return
        draw = {"stat": self.numbers, "state-timeline": self.states, "heatmap": self.heat,
                "table": self.table}[panel["type"]]
        draw(axes, panel, found)

    def over_time(self, axes):
        longest = self.source.end - self.source.begin
        axes.set_xlim(0, longest)
        if longest >= 120:
            axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 1.5, 3, 6, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: clock_text(at, longest)))

    def lines(self, axes, panel, found, legend):
        defaults = panel["fieldConfig"]["defaults"]
        custom, begin = defaults["custom"], self.source.begin
        times = sorted({at for _, _, values in found for at, _ in values})
        below = dict.fromkeys(times, 0.0)
        # By their names, so that a job has one colour in all panels with the same series.
        colors = {name: PALETTE[index % len(PALETTE)]
                  for index, name in enumerate(sorted({name for name, _, _ in found}))}
        for name, _, values in found:
            color = colors[name]
            label = name if name in legend.names else None
            at = [one - begin for one, _ in values]
            if custom["drawStyle"] == "bars":
                axes.bar(at, [value for _, value in values], width=self.source.step, color=color,
                         label=label)
            elif custom["stacking"]["mode"] == "normal":
                low = [below[one] for one, _ in values]
                below.update({one: below[one] + value for one, value in values})
                axes.fill_between(at, low, [below[one] for one, _ in values], color=color,
                                  alpha=0.7, linewidth=0, label=label)
            else:
                axes.plot(at, [value for _, value in values], color=color, linewidth=1, label=label)
        if custom.get("scaleDistribution", {}).get("type") == "log":
            axes.set_yscale("log")
        else:
            axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.set_ylim(bottom=defaults.get("min"), top=defaults.get("max"))
        axes.yaxis.set_major_formatter(FuncFormatter(
            lambda value, _: tick_text(value, defaults["unit"])))
        axes.grid(color=LINE, linewidth=0.5)
        for at, color in self.marks:
            axes.axvline(at - begin, color=color, linewidth=0.7, alpha=0.8)
        self.over_time(axes)
        self.draw_legend(axes, panel["gridPos"], legend)

    def draw_legend(self, axes, place, legend):
        """The names below the graph, as Grafana has them, in the order of the alphabet."""
        handles = dict(zip(*reversed(axes.get_legend_handles_labels())))  # a name has one
        shown = [handles[name] for name in sorted(handles)]
        if legend.left_out > 0:
            shown += axes.plot([], [], " ", label=f"and {legend.left_out} more")
        corner = (0.005 + 0.99 * (place["x"] + 0.2) / COLUMNS,
                  1 - (place["y"] + 2 + place["h"] - 0.35) / self.rows)
        axes.legend(handles=shown, fontsize=WORD, loc="lower left", ncols=legend.columns,
                    bbox_to_anchor=corner, bbox_transform=self.figure.transFigure, frameon=False,
                    borderpad=0, borderaxespad=0, labelspacing=0.25, columnspacing=1.5)

    def numbers(self, axes, panel, found):
        axes.axis("off")
        defaults = panel["fieldConfig"]["defaults"]
        unit, decimals = defaults["unit"], defaults.get("decimals")
        for index, (name, _, values) in enumerate(found[:3]):
            high = 1 - (index + 0.5) / min(len(found), 3)
            newest = values[-1][1] if decimals is None else round(values[-1][1], decimals)
            axes.text(0.5, high, f"{name}  {text_of(newest, unit)}".strip(), ha="center",
                      va="center", size=13, color=color_at(panel, newest),
                      transform=axes.transAxes)

    def states(self, axes, panel, found):
        for index, (_, _, values) in enumerate(found):
            for at, value in values:
                axes.barh(index, self.source.step, left=at - self.source.begin, height=0.8,
                          color=color_at(panel, value), linewidth=0)
        axes.set_yticks(range(len(found)), [short(name) for name, _, _ in found])
        self.over_time(axes)

    def heat(self, axes, panel, found):
        named = {name: dict(values) for name, _, values in found}
        is_histogram = panel["targets"][0]["legendFormat"] == "{{le}}"
        names = sorted(named, key=float) if is_histogram else sorted(named)
        times = sorted({at for values in named.values() for at in values})
        rows, below = [], dict.fromkeys(times, 0.0)
        for name in names:
            values = {at: named[name].get(at, 0.0) for at in times}
            # A bucket contains those below it.
            rows.append([max(values[at] - below[at], 0) if is_histogram else values[at]
                         for at in times])
            below = values
        shown = [i for i, row in enumerate(rows) if any(row)] or [0]
        rows, names = rows[shown[0]:shown[-1] + 1], names[shown[0]:shown[-1] + 1]
        edges = [at - self.source.begin for at in times] + [times[-1] + self.source.step
                                                            - self.source.begin]
        colors = plt.get_cmap("Oranges")
        axes.pcolormesh(edges, range(len(names) + 1), rows, linewidth=0,
                        cmap=ListedColormap([colors(i / 15) for i in range(16)]))
        unit = panel["options"]["yAxis"]["unit"]
        shown_names = [text_of(float(name), unit) if is_histogram and name != "+Inf"
                       else short(name) for name in names]
        every = max(1, len(names) // 8)
        axes.set_yticks([i + 0.5 for i in range(len(names))][::every], shown_names[::every])
        self.over_time(axes)

    def table(self, axes, panel, found):
        axes.axis("off")
        rename = dict(panel["transformations"][0]["options"]["renameByName"])
        value_title = rename.pop("Value", "Value")
        most_rows = panel["gridPos"]["h"] - 3
        found = sorted(found, key=lambda one: -one[2][-1][1])[:most_rows]
        unit = panel["fieldConfig"]["defaults"]["unit"]
        rows = [list(rename.values()) + [value_title]]
        rows += [[labels.get(name, "")[:60] for name in rename] + [text_of(values[-1][1], unit)]
                 for _, labels, values in found]
        widths = [max(len(row[i]) for row in rows) + 2 for i in range(len(rows[0]))]
        for index, row in enumerate(rows):
            at = 0
            for text, width in zip(row, widths):
                axes.text(at / sum(widths), 1 - (index + 0.5) / (most_rows + 1), text, size=WORD,
                          va="center", weight="bold" if index == 0 else "normal",
                          transform=axes.transAxes)
                at += width


def draw_boards(url, begin, end, output, names=(), window_seconds=15):
    """Draws board-NAME.png for each board into the folder `output`."""
    source = Source(url, begin, end, window_seconds)
    for path in sorted((HERE / "grafana").glob("*.json")):
        if names and path.stem not in names:
            continue
        picture = Picture(json.loads(path.read_text()), source)
        picture.draw()
        picture.save(pathlib.Path(output) / f"board-{path.stem}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--prometheus", required=True, metavar="URL")
    parser.add_argument("--output", required=True, metavar="DIR")
    parser.add_argument("--minutes", type=float, default=15, help="the time that is shown")
    parser.add_argument("--window", type=int, default=15, metavar="SECONDS",
                        help="the value of $__rate_interval")
    parser.add_argument("boards", nargs="*", metavar="BOARD")
    arguments = parser.parse_args()
    end = time.time()
    draw_boards(arguments.prometheus.rstrip("/"), end - arguments.minutes * 60, end,
                arguments.output, arguments.boards, arguments.window)


if __name__ == "__main__":
    main()
