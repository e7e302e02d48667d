"""The parts of Grafana's dashboard model that the boards use, as plain dictionaries.

A board is rows of panels; this module gives each panel its id and its place. Every datasource is
the variable `${datasource}`, so that a board works with any Prometheus.
"""

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24  # columns of Grafana's grid


class Panel:
    """One panel before it has a place: what it shows, how wide and how high it is."""

    def __init__(self, kind, title, description, unit, targets, width, height, options,
                 defaults, overrides=(), transformations=()):
        self.kind, self.title, self.description = kind, title, description
        self.unit, self.targets = unit, targets
        self.width, self.height = width, height
        self.options, self.defaults = options, defaults
        self.overrides, self.transformations = list(overrides), list(transformations)

    def model(self, panel_id, x, y):
        targets = []
        for index, (expression, legend) in enumerate(self.targets):
            target = {"datasource": DATASOURCE, "editorMode": "code", "expr": expression,
                      "legendFormat": legend, "range": True, "refId": chr(ord("A") + index)}
            if self.kind == "table":
                target.update(format="table", instant=True, range=False)
            if self.kind == "heatmap":
                target["format"] = "heatmap"
            targets.append(target)
        panel = {"datasource": DATASOURCE, "description": self.description,
                 "fieldConfig": {"defaults": {"unit": self.unit, **self.defaults},
                                 "overrides": self.overrides},
                 "gridPos": {"h": self.height, "w": self.width, "x": x, "y": y},
                 "id": panel_id, "options": self.options, "targets": targets,
                 "title": self.title, "type": self.kind}
        if self.transformations:
            panel["transformations"] = self.transformations
        return panel


def _thresholds(steps):
    """`steps` are pairs of a lower bound and a colour; the first bound is None."""
    return {"mode": "absolute",
            "steps": [{"color": color, "value": value} for value, color in steps]}


def graph(title, description, unit, *targets, width=12, height=8, stacked=False, bars=False,
          minimum=None, maximum=None, logarithmic=False):
    """Lines (or bars) over time. Each target is (expression, legend)."""
    custom = {"drawStyle": "bars" if bars else "line", "fillOpacity": 60 if stacked else 8,
              "lineWidth": 1, "showPoints": "auto", "spanNulls": False,
              "stacking": {"group": "A", "mode": "normal" if stacked else "none"}}
    if logarithmic:
        custom["scaleDistribution"] = {"log": 10, "type": "log"}
    defaults = {"color": {"mode": "palette-classic"}, "custom": custom}
    if minimum is not None:
        defaults["min"] = minimum
    if maximum is not None:
        defaults["max"] = maximum
    options = {"legend": {"calcs": ["lastNotNull", "mean"], "displayMode": "table",
                          "placement": "bottom", "showLegend": True},
               "tooltip": {"mode": "multi", "sort": "desc"}}
    return Panel("timeseries", title, description, unit, targets, width, height, options, defaults)


def number(title, description, unit, expression, legend="", width=4, height=4, steps=None,
           decimals=None):
    """The newest value, large. `steps` colours it."""
    defaults = {"color": {"mode": "thresholds"},
                "thresholds": _thresholds(steps or [(None, "blue")])}
    if decimals is not None:
        defaults["decimals"] = decimals
    options = {"colorMode": "value", "graphMode": "area", "justifyMode": "auto",
               "orientation": "auto", "textMode": "auto",
               "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    return Panel("stat", title, description, unit, [(expression, legend)], width, height, options,
                 defaults)


def states(title, description, expression, legend, width=12, height=8, steps=None):
    """A row of colours over time for each series."""
    defaults = {"color": {"mode": "thresholds"}, "custom": {"fillOpacity": 70, "lineWidth": 0},
                "thresholds": _thresholds(steps)}
    options = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": False},
               "mergeValues": True, "rowHeight": 0.9, "showValue": "never",
               "tooltip": {"mode": "single", "sort": "none"}}
    return Panel("state-timeline", title, description, "none", [(expression, legend)], width,
                 height, options, defaults)


def heat(title, description, unit, expression, legend="{{le}}", width=12, height=8):
    """The buckets of a histogram over time, or one row of colours for each series."""
    options = {"calculate": False, "cellGap": 1,
               "color": {"exponent": 0.5, "mode": "scheme", "scheme": "Oranges", "steps": 64},
               "legend": {"show": True}, "rowsFrame": {"layout": "auto"},
               "tooltip": {"mode": "single", "yHistogram": False},
               "yAxis": {"axisPlacement": "left", "reverse": False, "unit": unit}}
    return Panel("heatmap", title, description, unit, [(expression, legend)], width, height,
                 options, {"custom": {"scaleDistribution": {"type": "linear"}}})


def table(title, description, unit, expression, rename, width=12, height=8):
    """The newest values, one row for each series. `rename` maps labels to headings, in the order of
    the columns."""
    order = {name: index for index, name in enumerate(rename)}
    hidden = {"Time": True, "__name__": True, "job": True}
    organize = {"id": "organize",
                "options": {"excludeByName": hidden, "indexByName": order, "renameByName": rename}}
    options = {"cellHeight": "sm", "showHeader": True,
               "sortBy": [{"desc": True, "displayName": rename.get("Value", "Value")}]}
    return Panel("table", title, description, unit, [(expression, "")], width, height, options,
                 {"custom": {"align": "auto"}}, transformations=[organize])


def datasource_variable():
    return {"current": {}, "hide": 0, "includeAll": False, "label": "Data source", "multi": False,
            "name": "datasource", "options": [], "query": "prometheus", "refresh": 1, "regex": "",
            "skipUrlSync": False, "type": "datasource"}


def label_variable(name, label, query, regex=""):
    """A choice of several values of a label. `query` is a call of label_values(), or one of
    query_result() whose results `regex` divides into the shown text and the value."""
    return {"allValue": ".*", "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
            "datasource": DATASOURCE, "hide": 0, "includeAll": True,
            "label": label, "multi": True, "name": name, "options": [],
            "query": {"query": query, "refId": f"variable-{name}"}, "refresh": 2, "regex": regex,
            "skipUrlSync": False, "sort": 1, "type": "query"}


def annotation(name, color, expression, text):
    """A mark on all graphs wherever the expression has a sample."""
    return {"datasource": DATASOURCE, "enable": True, "expr": expression, "hide": False,
            "iconColor": color, "name": name, "tagKeys": "job_name",
            "textFormat": text, "titleFormat": name}


def board(uid, title, description, variables, rows, annotations=()):
    """`rows` are pairs of a heading and a list of panels, placed from left to right."""
    panels, y = [], 0
    for heading, row in rows:
        panels.append({"collapsed": False, "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": y},
                       "id": len(panels) + 1, "panels": [], "title": heading, "type": "row"})
        y += 1
        x = height = 0
        for panel in row:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            panels.append(panel.model(len(panels) + 1, x, y))
            x += panel.width
            height = max(height, panel.height)
        y += height
    link = {"asDropdown": True, "icon": "external link", "includeVars": True, "keepTime": True,
            "tags": ["troupe"], "targetBlank": False, "title": "Troupe", "tooltip": "",
            "type": "dashboards", "url": ""}
    return {"annotations": {"list": list(annotations)}, "description": description,
            "editable": False, "fiscalYearStartMonth": 0, "graphTooltip": 1, "links": [link],
            "panels": panels, "refresh": "10s", "schemaVersion": 39, "tags": ["troupe"],
            "templating": {"list": [datasource_variable(), *variables]},
            "time": {"from": "now-1h", "to": "now"}, "timepicker": {}, "timezone": "browser",
            "title": title, "uid": uid, "version": 1, "weekStart": ""}
