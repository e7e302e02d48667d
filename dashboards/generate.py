"""Writes the boards, the rules and the files that carry them to Grafana, Prometheus and Kubernetes.

    python3 dashboards/generate.py            writes all files next to this program
    python3 dashboards/generate.py --check    compares them, and fails if one differs

It needs nothing but Python. docs/dashboards.md describes how the files are used.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from boards import BOARDS  # noqa: E402  (found by the path above)
from rules import rule_groups  # noqa: E402
from yaml_text import to_yaml  # noqa: E402

NOTICE = "# Written by dashboards/generate.py: change that, and run it.\n"
FOLDER = "/var/lib/grafana/dashboards/troupe"


def datasource():
    """Grafana's file of datasources; the address is that of the local Prometheus."""
    return {"apiVersion": 1,
            "datasources": [{"name": "Prometheus", "uid": "prometheus", "type": "prometheus",
                             "access": "proxy", "url": "http://127.0.0.1:9090", "isDefault": True,
                             "jsonData": {"httpMethod": "POST", "timeInterval": "5s"}}]}


def provider():
    """Grafana's file of dashboard providers: it loads every board of the folder."""
    return {"apiVersion": 1,
            "providers": [{"name": "troupe", "folder": "Troupe", "type": "file",
                           "disableDeletion": True, "allowUiUpdates": False,
                           "options": {"path": FOLDER}}]}


def scrape_configuration():
    """Prometheus's configuration for a cluster whose metrics are plain HTTP."""
    return {"global": {"scrape_interval": "5s", "evaluation_interval": "30s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [
                {"job_name": "troupe-coordinator",
                 "static_configs": [{"targets": ["127.0.0.1:7001"]}]},
                {"job_name": "troupe-worker",
                 "static_configs": [{"targets": ["127.0.0.1:7002"]}]}]}


def metadata(name, labels):
    return {"name": name, "labels": {"app.kubernetes.io/name": "troupe", **labels}}


def config_map(boards):
    """One ConfigMap with all boards, labelled for the sidecar of Grafana's Helm chart."""
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {**metadata("troupe-dashboards", {"grafana_dashboard": "1"}),
                         "annotations": {"grafana_folder": "Troupe"}},
            "data": {f"troupe-{name}.json": json.dumps(model, separators=(",", ":")) + "\n"
                     for name, model in boards.items()}}


def prometheus_rule(groups):
    return {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
            "metadata": metadata("troupe", {}), "spec": groups}


def files():
    """Returns the text of each file by its path below this folder."""
    boards = {name: make() for name, make in BOARDS.items()}
    groups = rule_groups()
    texts = {f"grafana/{name}.json": json.dumps(model, indent=1) + "\n"
             for name, model in boards.items()}
    for path, content in (
            ("grafana/provisioning/datasources/troupe.yaml", datasource()),
            ("grafana/provisioning/dashboards/troupe.yaml", provider()),
            ("prometheus/prometheus.yaml", scrape_configuration()),
            ("prometheus/rules.yaml", groups),
            ("kubernetes/dashboards.yaml", config_map(boards)),
            ("kubernetes/rules.yaml", prometheus_rule(groups))):
        texts[path] = NOTICE + to_yaml(content)
    return texts


def differing(folder):
    """Returns the paths of files in `folder` that differ, are missing or are not generated."""
    texts = files()
    found = {path.relative_to(folder).as_posix()
             for kind in ("grafana", "kubernetes", "prometheus")
             for path in (folder / kind).rglob("*") if path.is_file()}
    kept = {"prometheus/rules_test.yaml"}  # written by hand
    different = [path for path, text in texts.items()
                 if path not in found or (folder / path).read_text() != text]
    return sorted(different + list(found - set(texts) - kept))


def main():
    if sys.argv[1:] == ["--check"]:
        different = differing(HERE)
        for path in different:
            print(f"dashboards/{path} is not what dashboards/generate.py writes", file=sys.stderr)
        return 1 if different else 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    for path, text in files().items():
        (HERE / path).parent.mkdir(parents=True, exist_ok=True)
        (HERE / path).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
