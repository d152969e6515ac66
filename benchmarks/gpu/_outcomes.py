"""A plugin of pytest that writes each outcome at once, so that those before a time limit are known.

Lines of JSON, in the file that OUTCOMES names: one for what was collected, and one for each test's result (a
second where what comes after the test fails).
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

OUTCOMES = "PHYSKIT_TEST_OUTCOMES"


def _write(**line: Any) -> None:
    # Workers of xdist tell the first process what they find, and it writes for all.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(os.environ[OUTCOMES]).open("a") as file:
            file.write(json.dumps(line) + "\n")


def pytest_collection_finish(session: Any) -> None:
    _write(collected=[item.nodeid for item in session.items])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    del node
    _write(collected=ids)


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _write(test=report.nodeid, outcome="failed", worker="", gpu_error=False)


def pytest_runtest_logreport(report: Any) -> None:
    if report.passed and report.when != "call":
        return
    node = getattr(report, "node", None)
    _write(
        test=report.nodeid,
        outcome=report.outcome,
        worker=node.gateway.id if node else "",
        gpu_error=report.failed and "CUDA_ERROR" in str(report.longrepr),
    )
