"""The result as JUnit XML, for the systems that read nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from xml.etree import ElementTree

from tenure.adapters.verify.result import ModuleResult, Value, Verdict

_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(results: Iterable[ModuleResult]) -> str:
    """One suite for each module and stage, one case for each row."""
    root = ElementTree.Element("testsuites", name="tenure verify")
    for result in results:
        for stage in result.stages:
            failures = sum(row.get("verdict") == Verdict.FAIL.value for row in stage.detail)
            unknown = sum(row.get("verdict") not in (Verdict.FAIL.value, Verdict.PASS.value) for row in stage.detail)
            suite = ElementTree.SubElement(
                root,
                "testsuite",
                name=f"{result.module}.{stage.stage}",
                tests=str(len(stage.detail)),
                failures=str(failures),
                errors=str(unknown),
                time=f"{stage.seconds:.2f}",
            )
            for row in stage.detail:
                _case(suite, f"{result.module}.{stage.stage}", row)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, place: str, row: Mapping[str, Value]) -> None:
    seconds = row.get("seconds")
    case = ElementTree.SubElement(
        suite, "testcase", classname=place, name=_name(row), time=f"{seconds if isinstance(seconds, float) else 0:.2f}"
    )
    verdict = str(row.get("verdict"))
    if verdict != Verdict.PASS.value:
        message = _NOT_XML.sub("?", str(row.get("message", "")))
        kind = "failure" if verdict == Verdict.FAIL.value else "error"
        found = ElementTree.SubElement(case, kind, message=message.partition("\n")[0], type=verdict)
        found.text = message


def _name(row: Mapping[str, Value]) -> str:
    for key in ("guard", "problem", "coverage", "table", "config", "property"):
        if row.get(key):
            off = row.get("off")
            without = f" without {', '.join(off)}" if isinstance(off, list) and off else ""
            return f"{row[key]}{without}"
    return "all"
