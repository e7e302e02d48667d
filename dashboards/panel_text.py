"""The texts of the pictures of boards: names, values, times, and which names a legend has.

dashboards/draw.py draws them. Needs nothing but Python.
"""

import re

MOST_LEGEND_LINES = 3
# In pixels, at the size that draw.py gives to words.
LETTER_WIDTH, SWATCH_WIDTH = 5, 40
MOST_NAME_LETTERS = 13  # next to an axis


def legend_of(text, labels):
    if not text:
        return " ".join(value for name, value in labels.items() if name != "__name__")
    return re.sub(r"\{\{(\w+)\}\}", lambda name: labels.get(name[1], ""), text).strip()


def scaled(value, step, suffixes):
    for suffix in suffixes:
        if abs(value) < step or suffix == suffixes[-1]:
            return f"{value:.3g} {suffix}".strip()
        value /= step
    return ""


def text_of(value, unit):
    """The value as Grafana shows it with this unit, with three digits."""
    if unit == "percentunit":
        return f"{value * 100:.3g}%"
    if unit == "s":
        for seconds, name in ((3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms")):
            if abs(value) >= seconds:
                return f"{value / seconds:.3g} {name}"
        return f"{value * 1e6:.3g} µs" if value else "0 s"
    if unit in ("bytes", "Bps"):
        per_second = "/s" if unit == "Bps" else ""
        return scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]) + per_second
    if unit == "flops":
        return scaled(value, 1000, ["FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s"])
    suffix = {"hertz": "Hz", "celsius": " °C", "watt": " W", "ops": "/s"}.get(unit, "")
    if unit.startswith("suffix:"):
        suffix = " " + unit.removeprefix("suffix:").strip()
    return scaled(value, 1000, ["", "k", "M", "G", "T"]) + suffix


def tick_text(value, unit):
    """The same next to an axis, where the title of the panel names what is counted."""
    return text_of(value, "none" if unit.startswith("suffix:") else unit)


def clock_text(seconds, longest):
    """A time since the begin of the picture; `longest` is its end."""
    if longest < 120:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def short(name):
    """The name, cut to what fits next to an axis."""
    return name if len(name) <= MOST_NAME_LETTERS else name[:MOST_NAME_LETTERS - 1] + "…"


class Legend:
    """The names that a panel shows below its graph, in columns of equal width."""

    def __init__(self, names, width):
        """`names` are in the order of their importance; `width` is in pixels."""
        column = max(map(len, names)) * LETTER_WIDTH + SWATCH_WIDTH
        self.columns = max(1, min(len(names), int(width // column)))
        room = self.columns * MOST_LEGEND_LINES
        self.names = set(names if len(names) <= room else names[:room - 1])
        self.left_out = len(names) - len(self.names)
        self.lines = -(-(len(self.names) + (self.left_out > 0)) // self.columns)


def first_of_each_run(times, step):
    """The times without those that follow another one within two steps."""
    return [at for index, at in enumerate(times)
            if index == 0 or at - times[index - 1] > 2 * step]
