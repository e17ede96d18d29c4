"""Every metric that the dashboard and the alert rules name is one that `sharefs watch` writes; promtool agrees with all.

promtool is that of Debian's package prometheus, or $SHAREFS_PROMTOOL.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SHAREFS = os.environ["SHAREFS_BIN"]
PROJECT = Path(__file__).resolve().parents[2]
PROMETHEUS = PROJECT / "packaging/prometheus"
RULES = PROMETHEUS / "sharefs.rules.yml"
PROMTOOL = os.environ.get("SHAREFS_PROMTOOL") or shutil.which("promtool")
needs_promtool = pytest.mark.skipif(not PROMTOOL, reason="promtool is missing: install prometheus, or set SHAREFS_PROMTOOL")

METRIC = re.compile(r"\bsharefs_[a-z_]+\b")
CONFIG = """\
version: 1
mounts:
  share: {{from: "127.0.0.1:/srv/share", at: /nonexistent/share}}
watch: {{recover: never, textfile: {textfile}}}
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file that the program has really written."""
    directory = tmp_path_factory.mktemp("metrics")
    directory.chmod(0o755)
    textfile = directory / "sharefs.prom"
    config = directory / "sharefs.yaml"
    config.write_text(CONFIG.format(textfile=textfile), encoding="utf-8")
    config.chmod(0o644)
    done = subprocess.run([SHAREFS, "watch", "--once", "--config", config], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr  # nothing is mounted there
    assert [path.name for path in directory.iterdir() if path.suffix == ".prom"] == ["sharefs.prom"]
    assert textfile.stat().st_mode & 0o777 == 0o644
    return textfile.read_text(encoding="utf-8")


def test_a_sparse_file_in_the_place_of_the_metrics_is_not_read(tmp_path: Path) -> None:
    """64 MiB of it were, each round; what is larger than all that is written there stays."""
    textfile, config = tmp_path / "sharefs.prom", tmp_path / "sharefs.yaml"
    config.write_text(CONFIG.format(textfile=textfile), encoding="utf-8")
    config.chmod(0o644)
    watch = [SHAREFS, "watch", "--once", "--config", config]

    def read_by(size: int) -> tuple[int, str]:
        textfile.touch()
        os.truncate(textfile, size)
        before = Path("/proc/self/io").read_text().split()[1]
        done = subprocess.run(watch, capture_output=True, text=True, timeout=60, check=False)
        return int(Path("/proc/self/io").read_text().split()[1]) - int(before), done.stderr

    plain, said = read_by(0)
    assert "no metrics" not in said and textfile.read_text(encoding="utf-8").startswith("# HELP")
    sparse, said = read_by(1 << 30)
    assert "no metrics" in said and "larger than anything that is written there" in said
    assert sparse < plain + (1 << 20) and textfile.stat().st_size == 1 << 30


@pytest.fixture(scope="module")
def names(written: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\w+) ", written, re.M))


def expressions() -> list[str]:
    """Every query of the dashboard, with its variables filled in."""
    board = json.loads((PROMETHEUS / "sharefs.dashboard.json").read_text(encoding="utf-8"))
    return [target["expr"].replace("$instance", ".*") for panel in board["panels"] for target in panel["targets"]]


def promtool(*words: str | Path, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROMTOOL, *words], capture_output=True, text=True, timeout=60, check=False, **options)


def test_each_metric_has_its_help_and_stands_once(written: str, names: set[str]) -> None:
    assert len(names) >= 12
    for name in names:
        assert len(re.findall(rf"^# HELP {name} \S", written, re.M)) == 1
    assert 'sharefs_mount_up{mount="share",target="/nonexistent/share",server="127.0.0.1"} 0\n' in written


def test_rules_and_dashboard_name_metrics_that_there_are(names: set[str]) -> None:
    rules = set(METRIC.findall("\n".join(re.findall(r"^ *expr: (.*)$", RULES.read_text(encoding="utf-8"), re.M))))
    board = {name for expression in expressions() for name in METRIC.findall(expression)}
    assert rules and board
    assert (rules | board) - names == set()
    assert names - board == set(), "a metric that nobody sees"


def test_documentation_has_each_metric(names: set[str]) -> None:
    page = (PROJECT / "docs/metrics.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(sharefs_\w+)", page, re.M)) == names


@needs_promtool
def test_promtool_checks_the_metrics(written: str) -> None:
    done = promtool("check", "metrics", input=written)
    assert (done.returncode, done.stderr) == (0, "")


@needs_promtool
def test_promtool_checks_and_tests_the_rules() -> None:
    checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0, checked.stderr
    tested = promtool("test", "rules", "sharefs.rules.test.yml", cwd=PROMETHEUS)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@needs_promtool
def test_promtool_checks_the_dashboards_queries(tmp_path: Path) -> None:
    rules = [{"record": f"query:{number}", "expr": text} for number, text in enumerate(expressions())]
    file = tmp_path / "dashboard.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    done = promtool("check", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr
