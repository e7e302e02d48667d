"""The boards and the rules: the files are those that dashboards/generate.py writes, they keep the
rules of Grafana's dashboard linter, and they name only metrics that the code declares.

Needs nothing but Python: ctest runs it with the suite.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from expressions import (DASHBOARDS, METRIC, ROOT, boards, declared_metrics, expressions, panels)

sys.dont_write_bytecode = True
import generate  # noqa: E402
import panel_text  # noqa: E402
import rules  # noqa: E402

UNITS = {"none", "s", "bytes", "Bps", "ops", "percentunit", "flops", "celsius", "hertz", "watt",
         "suffix: tokens/s"}
# Labels that Prometheus adds when it scrapes, and that of every series of a job.
GIVEN_LABELS = {"instance", "job", "job_name"}
# Metrics that count once for each process or device, for which the value itself is meaningful.
COUNTERS_AS_VALUES = {"troupe_device_xid_errors_total", "troupe_kernel_fallbacks_total"}


def family(metric):
    """Returns the declared name of a shown metric, without what a histogram appends."""
    return re.sub("_(bucket|sum|count)$", "", metric)


class GeneratedFilesTest(unittest.TestCase):
    def test_the_files_are_those_that_the_program_writes(self):
        self.assertEqual(generate.differing(DASHBOARDS), [])

    def test_a_file_that_differs_or_is_missing_or_was_added_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            for path, text in generate.files().items():
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                (copy / path).write_text(text)
            self.assertEqual(generate.differing(copy), [])
            (copy / "grafana/training.json").write_text("{}")
            (copy / "grafana/devices.json").unlink()
            (copy / "kubernetes/other.yaml").write_text("")
            self.assertEqual(generate.differing(copy),
                             ["grafana/devices.json", "grafana/training.json",
                              "kubernetes/other.yaml"])

    def test_an_unknown_argument_changes_nothing(self):
        run = subprocess.run([sys.executable, "-B", DASHBOARDS / "generate.py", "--chek"],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("--check", run.stderr)

    def test_the_config_map_has_the_boards(self):
        data = generate.config_map(boards())["data"]
        self.assertEqual({json.loads(text)["uid"] for text in data.values()},
                         {board["uid"] for board in boards().values()})
        self.assertLess(sum(map(len, data.values())), 1 << 20)  # the limit of a ConfigMap


class BoardsTest(unittest.TestCase):
    def each(self):
        for name, board in boards().items():
            for panel in panels(board):
                with self.subTest(board=name, panel=panel["title"]):
                    yield board, panel

    def test_there_are_six_boards_that_link_to_each_other(self):
        self.assertEqual(set(boards()), {"training", "collectives", "stragglers", "devices",
                                         "checkpoints", "control-plane"})
        for name, board in boards().items():
            self.assertEqual(board["uid"], f"troupe-{name}")
            self.assertEqual((board["schemaVersion"], board["editable"]), (39, False))
            self.assertIn("troupe", board["tags"])
            link = board["links"][0]
            self.assertEqual((link["tags"], link["includeVars"], link["keepTime"]),
                             (["troupe"], True, True))

    def test_every_datasource_is_the_variable(self):
        for board in boards().values():
            self.assertEqual(board["templating"]["list"][0]["type"], "datasource")
            self.assertEqual(board["templating"]["list"][0]["name"], "datasource")
            places = panels(board) + board["annotations"]["list"]
            places += board["templating"]["list"][1:]
            places += [target for panel in panels(board) for target in panel["targets"]]
            for place in places:
                self.assertEqual(place["datasource"]["uid"], "${datasource}")

    def test_every_panel_has_title_description_unit_and_a_query(self):
        for _, panel in self.each():
            self.assertTrue(panel["title"])
            self.assertRegex(panel["description"], r"^[A-Z0-9].*\.$")
            self.assertIn(panel["fieldConfig"]["defaults"]["unit"], UNITS)
            self.assertTrue(panel["targets"])
            for target in panel["targets"]:
                self.assertTrue(target["expr"])

    def test_titles_and_ids_are_unique_within_a_board(self):
        for board in boards().values():
            titles = [panel["title"] for panel in board["panels"]]
            self.assertEqual(len(titles), len(set(titles)))
            ids = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(ids), len(set(ids)))

    def test_panels_are_inside_the_grid_and_do_not_overlap(self):
        for board in boards().values():
            cells = set()
            for panel in board["panels"]:
                place = panel["gridPos"]
                self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
                for x in range(place["x"], place["x"] + place["w"]):
                    for y in range(place["y"], place["y"] + place["h"]):
                        self.assertNotIn((x, y), cells, panel["title"])
                        cells.add((x, y))

    def test_series_are_named_by_what_people_call_them_and_not_by_addresses(self):
        for _, panel in self.each():
            for target in panel["targets"]:
                self.assertNotIn("instance", re.findall(r"{{(\w+)}}", target["legendFormat"]))
            for change in panel.get("transformations", []):
                columns = change["options"]["renameByName"]
                self.assertTrue("instance" not in columns or "worker" in columns)

    def test_a_series_has_every_label_of_its_name(self):
        for _, panel in self.each():
            for target in panel["targets"]:
                kept = " ".join(re.findall(r"(?:by|group_left) \(([^)]*)\)", target["expr"]))
                for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
                    self.assertIn(label, re.split(r"\W+", kept), target["expr"])

    def test_the_menu_of_workers_shows_their_names(self):
        found = []
        for board in boards().values():
            found += [variable for variable in board["templating"]["list"][1:]
                      if variable["label"] == "Worker"]
        self.assertEqual(len(found), 3)
        line = '{instance="10.0.0.7:7002", worker="worker-1"} 1 1521630638000'
        for variable in found:
            self.assertIn("query_result(", variable["query"]["query"])
            # Grafana joins the groups of all matches.
            regex = re.fullmatch("/(.*)/g", variable["regex"])[1].replace("(?<", "(?P<")
            groups = {name: value for match in re.finditer(regex, line)
                      for name, value in match.groupdict().items() if value}
            self.assertEqual(groups, {"text": "worker-1", "value": "10.0.0.7:7002"})

    def test_every_query_has_the_variables_that_the_board_offers(self):
        for name, board in boards().items():
            offered = {variable["name"] for variable in board["templating"]["list"]}
            used = set()
            for place, expression in expressions(board):
                found = set(re.findall(r'=~"\$(\w+)"', expression))
                with self.subTest(board=name, place=place):
                    self.assertTrue(found)
                    self.assertLessEqual(found, offered)
                used |= found
            self.assertEqual(used, offered - {"datasource"})


class PanelTextTest(unittest.TestCase):
    def test_a_legend_has_the_names_for_which_there_is_room(self):
        few = panel_text.Legend(["boards", "waiting"], 500)
        self.assertEqual((few.names, few.left_out, few.columns, few.lines),
                         ({"boards", "waiting"}, 0, 2, 1))
        names = [f"a name of some length {number:02d}" for number in range(20)]
        many = panel_text.Legend(names, 500)
        self.assertEqual((many.columns, many.lines), (3, panel_text.MOST_LEGEND_LINES))
        self.assertEqual((many.names, many.left_out), (set(names[:8]), 12))
        narrow = panel_text.Legend(names, 10)
        self.assertEqual((narrow.columns, narrow.lines, narrow.left_out), (1, 3, 18))

    def test_names_are_made_of_labels_and_cut_next_to_an_axis(self):
        self.assertEqual(panel_text.legend_of("{{job_name}} median", {"job_name": "a"}), "a median")
        self.assertEqual(panel_text.short("worker-12"), "worker-12")
        self.assertEqual(panel_text.short("a-worker-of-a-long-name"), "a-worker-of-…")

    def test_numbers_have_the_unit_of_their_panel(self):
        self.assertEqual(panel_text.text_of(2500, "suffix: tokens/s"), "2.5 k tokens/s")
        self.assertEqual(panel_text.tick_text(2500, "suffix: tokens/s"), "2.5 k")
        self.assertEqual(panel_text.tick_text(0.25, "percentunit"), "25%")
        self.assertEqual(panel_text.clock_text(90, 100), "90 s")
        self.assertEqual(panel_text.clock_text(90, 300), "1:30")

    def test_a_mark_stands_once_for_the_time_in_which_a_rate_shows_it(self):
        self.assertEqual(panel_text.first_of_each_run([3, 4, 5, 20, 22, 40], 1), [3, 20, 40])


class ExpressionsTest(unittest.TestCase):
    declared = declared_metrics()

    def all_expressions(self):
        found = [(f"{name}: {place}", expression) for name, board in boards().items()
                 for place, expression in expressions(board)]
        found += [(rule.get("record") or rule["alert"], rule["expr"])
                  for group in rules.rule_groups()["groups"] for rule in group["rules"]]
        return found

    def test_every_metric_is_declared_in_the_code(self):
        self.assertGreater(len(self.declared), 40)
        for place, expression in self.all_expressions():
            for metric in METRIC.findall(expression):
                self.assertIn(metric, self.declared, place)

    def test_every_label_of_a_selector_is_one_of_its_metric(self):
        selector = re.compile(f"({METRIC.pattern})" + r"\{([^}]*)\}")
        for place, expression in self.all_expressions():
            for metric, matchers in selector.findall(expression):
                for label in re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', matchers):
                    self.assertIn(label, self.declared[metric][1] | GIVEN_LABELS, place)

    def test_counters_are_used_in_rate_or_increase_only_and_gauges_are_not(self):
        for place, expression in self.all_expressions():
            for match in METRIC.finditer(expression):
                is_counter = self.declared[match.group()][0] == "Counter"
                call = re.search(r"(\w+)\($", expression[:match.start()])
                is_rate = call is not None and call.group(1) in ("rate", "increase")
                if ":" not in place and match.group() in COUNTERS_AS_VALUES:
                    continue
                if expression.startswith("absent("):
                    continue
                self.assertEqual(is_rate, is_counter, f"{place}: {match.group()}")

    def test_windows_on_boards_are_the_variables_of_grafana(self):
        for name, board in boards().items():
            for place, expression in expressions(board):
                for window in re.findall(r"\[([^\]]*)\]", expression):
                    self.assertIn(window, ("$__rate_interval", "$__range"), f"{name}: {place}")
                self.assertNotIn("rate(", re.sub(r"rate\([^\[]*\[\$__rate_interval\]", "",
                                                 expression), f"{name}: {place}")

    def test_every_metric_is_on_a_board_or_in_a_rule(self):
        used = {family(metric) for _, expression in self.all_expressions()
                for metric in METRIC.findall(expression)}
        for name in self.declared:
            # The page /health alone has these, for a supervisor.
            if not name.startswith("troupe_health_"):
                self.assertIn(family(name), used)


class RulesTest(unittest.TestCase):
    def test_every_alert_has_a_severity_and_a_runbook(self):
        headings = {line[3:].lower() for line in
                    (ROOT / "docs/runbooks.md").read_text().splitlines() if line.startswith("## ")}
        alerts = rules.alerts()
        self.assertGreater(len(alerts), 10)
        for alert in alerts:
            self.assertIn(alert["labels"]["severity"], ("critical", "warning", "info"))
            self.assertTrue(alert["annotations"]["summary"] and alert["annotations"]["description"])
            anchor = alert["annotations"]["runbook_url"].split("#")[1]
            self.assertIn(anchor, headings)
        self.assertEqual({alert["alert"].lower() for alert in alerts},
                         {heading for heading in headings if heading.startswith("troupe")})

    def test_recorded_series_are_named_level_metric_operation(self):
        recorded = {rule["record"] for rule in rules.recording_rules()}
        for name in recorded:
            self.assertRegex(name, r"^[a-z_]+:[a-z_]+:[a-z0-9_]+$")
        for alert in rules.alerts():
            for name in re.findall(r"\b[a-z_]+:[a-z_]+:[a-z0-9_]+", alert["expr"]):
                self.assertIn(name, recorded)

    def test_every_alert_has_a_test(self):
        tested = (DASHBOARDS / "prometheus/rules_test.yaml").read_text()
        for alert in rules.alerts():
            self.assertIn(f"alertname: {alert['alert']}\n", tested)


if __name__ == "__main__":
    unittest.main()
