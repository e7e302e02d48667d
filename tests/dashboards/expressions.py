"""What the tests of dashboards/ have in common: the boards, their expressions, the metrics."""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARDS = ROOT / "dashboards"
sys.path.insert(0, str(DASHBOARDS))

METRIC = re.compile(r"\btroupe_[a-z0-9_]*[a-z0-9]|\bprocess_[a-z0-9_]*[a-z0-9]")
DECLARATION = re.compile(r'(Counter|Gauge|Histogram)<([^>]*)>\s*k\w+\{\s*"(\w+)"')
LABEL = re.compile(r'using (\w+) = Label<"(\w+)">')
HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")


def boards():
    """Returns the models of the files in dashboards/grafana by name."""
    paths = sorted((DASHBOARDS / "grafana").glob("*.json"))
    return {path.stem: json.loads(path.read_text()) for path in paths}


def panels(board):
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def expressions(board):
    """Returns pairs of the name of a place and the expression that it evaluates."""
    found = [(annotation["name"], annotation["expr"])
             for annotation in board["annotations"]["list"]]
    for panel in panels(board):
        found += [(panel["title"], target["expr"]) for target in panel["targets"]]
    return found


def substituted(expression):
    """Returns the expression as Grafana sends it, with all values of each variable."""
    for name, value in (("$__rate_interval", "1m"), ("$__range", "15m"), ("$__interval", "15s")):
        expression = expression.replace(name, value)
    return re.sub(r"\$(job_name|instance|gpu)\b", ".*", expression)


def declared_metrics():
    """Returns the kind and the labels of each name that Prometheus may show."""
    text = (ROOT / "base/metrics/metric_list.h").read_text()
    label_names = dict(LABEL.findall(text))
    shown = {}
    for kind, labels, name in DECLARATION.findall(text):
        names = {label_names[label] for label in re.findall(r"label::(\w+)", labels)}
        if kind == "Histogram":
            for suffix in HISTOGRAM_SUFFIXES:
                shown[name + suffix] = ("Counter", names | {"le"})
        else:
            shown[name] = (kind, names)
    return shown
