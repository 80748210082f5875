#!/usr/bin/env python3
"""Compares what is written about the metrics with the metrics.

    metrics.py ROOT ALL_METRICS     ALL_METRICS prints all metrics in Prometheus' text format
      - the table of docs/metrics.md lists each metric with its type and its labels, and no others; that of the labels
        lists their values
      - the alert rules and the dashboard name metrics and labels that there are; docs/operations.md lists each alert
      - promtool, if it is installed, accepts the rules, their tests, and the queries of the dashboard
    metrics.py --self-test          plants what the above must find
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SERIES = re.compile(r'^(\w+)\{(.*)\} \S+$')
WORDS_OF_PROMETHEUS = {"job", "instance", "le", "alertname"}


def emitted(text):
    """Type and labels of each metric."""
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
    labels = {name: set() for name in types}
    for line in text.splitlines():
        series = SERIES.match(line)
        if not series:
            continue
        name = series.group(1)
        if name not in types:
            name = re.sub("_(bucket|sum|count)$", "", name)
        labels[name] |= set(re.findall(r'(\w+)="', series.group(2))) - {"le"}
    return {name: (types[name], labels[name]) for name in types}


def table(text):
    """The same, as the document has it."""
    rows = re.findall(r"^\| `(zkrecipes_\w+)` \| (\w+) \| ([^|]*) \|", text, re.M)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def check_document(metrics, text):
    listed = table(text)
    for name in sorted(metrics.keys() | listed.keys()):
        if name not in listed:
            yield f"docs/metrics.md does not list {name}"
        elif name not in metrics:
            yield f"docs/metrics.md lists {name}, which there is not"
        elif listed[name] != metrics[name]:
            yield f"docs/metrics.md: {name} is a {metrics[name][0]} with the labels {sorted(metrics[name][1])}"


def check_values(exposition, text):
    """The values of the labels that have only few."""
    for label in ("mode", "result", "reason", "kind"):
        row = re.search(rf"^\| `{label}` \| (.*) \|$", text, re.M)
        listed = set(re.findall(r"`(\w+)`", row.group(1))) if row else set()
        for value in sorted(set(re.findall(rf'\b{label}="([^"]*)"', exposition)) - listed):
            yield f"docs/metrics.md does not list the value {value} of the label {label}"


def check_query(metrics, query, where):
    labels = WORDS_OF_PROMETHEUS | {label for _, each in metrics.values() for label in each}
    for name in re.findall(r"zkrecipes_\w+", query):
        kind = metrics.get(re.sub("_(bucket|sum|count)$", "", name), ("", ()))[0]
        if name not in metrics and kind != "histogram":
            yield f"{where}: there is no metric {name}"
    named = re.findall(r"(?:by|on|ignoring|without) ?\(([^)]*)\)", query)
    named += [re.sub(r'"[^"]*"', "", inner) for inner in re.findall(r"\{([^}]*)\}", query)]
    for label in re.findall(r"\w+", " ".join(named)):
        if label not in labels:
            yield f"{where}: no metric has the label {label}"


def queries_of_dashboard(text):
    """The queries by the title of their panel; of variables, too."""
    dashboard = json.loads(text)
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], re.sub(r"^label_values\((.*), \w+\)$", r"\1", variable["query"])


def alerts_of(rules):
    return set(re.findall(r"^ *- alert: (\w+)", rules, re.M))


def problems_of(root, exposition):
    metrics = emitted(exposition)
    document = (root / "docs/metrics.md").read_text()
    problems = [*check_document(metrics, document), *check_values(exposition, document)]
    if len(metrics) < 20:
        problems.append(f"only {len(metrics)} metrics")
    rules = (root / "monitoring/zkrecipes.rules.yml").read_text()
    for alert, expression in re.findall(r"alert: (\w+)\n *expr: (.*?)\n *(?:for|labels):", rules, re.S):
        problems += check_query(metrics, expression, alert)
    for title, query in queries_of_dashboard((root / "monitoring/zkrecipes-dashboard.json").read_text()):
        problems += check_query(metrics, query.replace("$__rate_interval", "1m"), f"dashboard, {title}")
    listed = set(re.findall(r"^\| `(Zkrecipes\w+)` \|", (root / "docs/operations.md").read_text(), re.M))
    problems += [f"docs/operations.md does not list the alert {alert}" for alert in sorted(alerts_of(rules) - listed)]
    problems += [f"docs/operations.md lists {alert}, which is no alert" for alert in sorted(listed - alerts_of(rules))]
    tested = set(re.findall(r"alertname: (\w+)", (root / "monitoring/zkrecipes.rules.test.yml").read_text()))
    problems += [f"no test for the alert {alert}" for alert in sorted(alerts_of(rules) - tested)]
    return problems


def promtool(root):
    """What promtool says against the files."""
    if not shutil.which("promtool"):
        return
    monitoring = root / "monitoring"
    with tempfile.TemporaryDirectory() as scratch:
        # A dashboard's queries as rules, so that promtool parses them.
        records = [{"record": f"query_{number}", "expr": re.sub(r"\$__rate_interval", "1m", query)}
                   for number, (_, query) in
                   enumerate(queries_of_dashboard((monitoring / "zkrecipes-dashboard.json").read_text()))]
        queries = pathlib.Path(scratch) / "queries.yml"
        queries.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": records}]}))
        for command in (["check", "rules", monitoring / "zkrecipes.rules.yml"],
                        ["test", "rules", monitoring / "zkrecipes.rules.test.yml"], ["check", "rules", queries]):
            done = subprocess.run(["promtool", *map(str, command)], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                yield f"promtool {command[0]} {command[1]} {command[2].name}:\n{done.stdout}{done.stderr}"


def self_test():
    metrics = emitted('# HELP zkrecipes_a_total A.\n# TYPE zkrecipes_a_total counter\n'
                      'zkrecipes_a_total{session="s",kind="x"} 1\n# TYPE zkrecipes_b_seconds histogram\n'
                      'zkrecipes_b_seconds_bucket{session="s",le="+Inf"} 1\nzkrecipes_b_seconds_count{session="s"} 1\n')
    good = "| `zkrecipes_a_total` | counter | `session`, `kind` | a |\n| `zkrecipes_b_seconds` | histogram | `session` | b |\n"
    cases = [
        (check_document(metrics, good), None),
        (check_document(metrics, good.replace("counter", "gauge")), "is a counter"),
        (check_document(metrics, good.replace(", `kind`", "")), "with the labels"),
        (check_document(metrics, good.replace("b_seconds", "c_seconds")), "does not list zkrecipes_b_seconds"),
        (check_document(metrics, good + "| `zkrecipes_d` | gauge | `session` | d |\n"), "lists zkrecipes_d"),
        (check_values('a{kind="x"} 1', "| `kind` | `x` or `y` |"), None),
        (check_values('a{kind="z"} 1', "| `kind` | `x` or `y` |"), "the value z of the label kind"),
        (check_query(metrics, 'sum by (le, job) (rate(zkrecipes_b_seconds_bucket{session="s"}[1m]))', "q"), None),
        (check_query(metrics, "rate(zkrecipes_c_total[1m])", "q"), "no metric zkrecipes_c_total"),
        (check_query(metrics, "zkrecipes_a_total_bucket", "q"), "no metric zkrecipes_a_total_bucket"),
        (check_query(metrics, 'zkrecipes_a_total{sort="x"}', "q"), "the label sort"),
        (check_query(metrics, "sum by (host) (zkrecipes_a_total)", "q"), "the label host"),
    ]
    failures = []
    for problems, expected in cases:
        found = list(problems)
        if (expected and not any(expected in problem for problem in found)) or (not expected and found):
            failures.append(f"expected: {expected}, found: {found}")
    print("\n".join([*failures, f"{len(cases)} cases, {len(failures)} failures"]))
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[1])
    exposition = subprocess.run([sys.argv[2]], capture_output=True, text=True, check=True).stdout
    problems = problems_of(root, exposition) + list(promtool(root))
    print("\n".join(problems) if problems else f"{len(emitted(exposition))} metrics")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
