"""Red twins of one configuration in one run of TLC (DESIGN 7): which guards are off is a variable, chosen in Init.

A copy of the modules is written in which ``Off`` is a variable that every action leaves alone, so that the graph has a
part for each red twin, and a module on top of it in which the property of each twin is asked only where its guards are
off, and only until it is broken: with ``-continue`` TLC would else tell a story for every broken state. Properties of
states and steps are asked like this; others, which TLC decides on the whole graph, need a run of their own.

The copy decides nothing by itself. Where anything about it is not as expected, every twin is run alone, as written.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from tenure.adapters import dot
from tenure.adapters.errors import TenureError
from tenure.adapters.tlavalue import parse
from tenure.adapters.tlc import Answer, Tlc
from tenure.adapters.verify.manifest import ConfigEntry, ModuleEntry, modules_of

ROOT: Final = "TenureBatch"

_DEFINITION: Final = re.compile(r"^(\w+)(\([^)\n]*\))?[ \t]*==", re.MULTILINE)
_RULE: Final = re.compile(r"^(?:-{4,}|={4,})", re.MULTILINE)
_COMMENT: Final = re.compile(r"\(\*.*?\*\)|\\\*[^\n]*", re.DOTALL)
_CONSTANTS: Final = re.compile(r"^CONSTANTS?\b.*?(?=\n[ \t]*\n|\Z)", re.MULTILINE | re.DOTALL)
_STEP: Final = re.compile(r"\s*\[\]\[(.*)\]_vars\s*\Z", re.DOTALL)
_SPEC: Final = re.compile(r"\s*Init\s*/\\\s*\[\]\[Next\]_vars\b")
_SPECIFICATION: Final = re.compile(r"\bSPECIFICATION\s+Spec\b")
_OFF: Final = re.compile(r"\bOff\b")
_OFF_IN_CFG: Final = re.compile(r"\bOff\s*=\s*\{\s*\}")
_OFF_IN_LABEL: Final = re.compile(r"(?:\\n)?/\\\\ Off = (\{[^}]*\})")

Off = frozenset[str]


@attrs.frozen
class Asked:
    """One red twin: the guards that are off, and the property that should break."""

    off: Off
    property: str


@attrs.frozen
class Written:
    """What TLC is given."""

    modules: Mapping[str, str]
    cfg: str
    asked: Mapping[str, Asked]
    """What each property of the module on top asks."""


@attrs.frozen
class Found:
    """What TLC answered."""

    lengths: Mapping[Asked, int]
    """States in the story of each property that was asked and is broken."""
    graphs: Mapping[Off, dot.Dump]
    seconds: float


def run(
    tlc: Tlc,
    entry: ModuleEntry,
    config: ConfigEntry,
    twins: Sequence[Asked],
    room: Path,
    timeout: float,
    *,
    brief: bool,
) -> Found | None:
    """Run the twins together; None where they have to be run alone. `room` is a directory for the files."""
    written = write(entry, config, twins)
    if written is None:
        return None
    sources, dump = room / "together", room / "together.dot"
    sources.mkdir()
    for name, text in written.modules.items():
        (sources / f"{name}.tla").write_text(text, encoding="utf-8")
    answer = tlc.run(ROOT, written.cfg, sources, dump=dump, timeout=timeout, brief=brief, go_on=True)
    if answer.answer not in (Answer.HOLDS, Answer.VIOLATED) or not answer.complete or not dump.exists():
        return None
    try:
        graphs = parts_of(dot.read(dump))
    except TenureError:
        return None
    dump.unlink()
    lengths = {written.asked[name]: length for name, length in answer.lengths.items() if name in written.asked}
    return Found(lengths, graphs, answer.seconds)


# -- the copy ---------------------------------------------------------------------------------------------------------


def write(entry: ModuleEntry, config: ConfigEntry, twins: Sequence[Asked]) -> Written | None:
    """The modules and the configuration for these twins; None where the text has not the shape that this knows."""
    spec = entry.spec
    mine = modules_of(spec, entry.root, instances=False)
    texts = {path.stem: path.read_text(encoding="utf-8") for path in spec.glob("*.tla")}
    rest = config.cfg.rest
    if ROOT in texts or not _OFF_IN_CFG.search(rest) or not _SPECIFICATION.search(rest):
        return None
    actions = {action.name for action in entry.world(config.name).actions()}
    bodies: dict[str, str] = {}
    declared = 0
    for name in mine:
        text, here = _with_variable(texts[name])
        declared += here
        found = list(_definitions(text))
        if any(d.name in bodies for d in found):
            return None  # which of two is meant is more than this knows
        bodies |= {d.name: d.body for d in found}
        texts[name] = _left_alone(text, [d for d in found if d.name in actions])
    if declared != 1 or not actions <= bodies.keys() or not _SPEC.match(bodies.get("Spec", "")):
        return None
    return _on_top(entry, config, twins, texts, bodies)


@attrs.frozen
class _Definition:
    name: str
    parameters: str
    start: int
    """Where its name stands."""
    end: int
    """Where the next definition, or a rule across the page, begins."""
    body: str
    """What is behind ==, in its own columns, without comments."""


def _definitions(text: str) -> list[_Definition]:
    plain = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    found = list(_DEFINITION.finditer(plain))
    starts = sorted([match.start() for match in found] + [match.start() for match in _RULE.finditer(plain)])
    made = []
    for match in found:
        end = next((start for start in starts if start > match.start()), len(plain))
        column = match.end() - plain.rfind("\n", 0, match.end()) - 1
        body = " " * column + plain[match.end() : end]
        made.append(_Definition(match[1], match[2] or "", match.start(), end, body))
    return made


def _with_variable(text: str) -> tuple[str, int]:
    """The text with the constant Off made a variable, and its values a constant; and how often it was declared."""
    for block in _CONSTANTS.finditer(text):
        plain = _COMMENT.sub(lambda found: " " * len(found[0]), block[0])
        places = [match.span() for match in _OFF.finditer(plain)]
        if len(places) == 1:
            start, end = (block.start() + place for place in places[0])
            head, rest = text[:start] + "Offs" + text[end : block.end()], text[block.end() :]
            return f"{head}\n\nVARIABLE Off{rest}", 1
    return text, 0


def _left_alone(text: str, actions: Sequence[_Definition]) -> str:
    """The text with actions that leave Off alone. Each keeps its name, which is the label in the graph."""
    made: list[str] = []
    at = 0
    for action in actions:
        head = f"{action.name}{action.parameters}"
        name_end = action.start + len(action.name)
        made += [text[at : action.start], f"{action.name}__alone", text[name_end : action.end]]
        made.append(f"\n{head} == {action.name}__alone{action.parameters} /\\ UNCHANGED Off\n\n")
        at = action.end
    made.append(text[at:])
    return "".join(made)


def _on_top(
    entry: ModuleEntry, config: ConfigEntry, twins: Sequence[Asked], texts: dict[str, str], bodies: Mapping[str, str]
) -> Written:
    lines = [f"---- MODULE {ROOT} ----", f"EXTENDS {entry.root}, TLC", "BatchInit == Off \\in Offs /\\ Init"]
    asked: dict[str, Asked] = {}
    sections: dict[str, list[str]] = {"INVARIANTS": [], "PROPERTIES": []}
    for number, twin in enumerate(twins, 1):
        name = f"Broken_{number}"
        elsewhere = f"Off # {_set(twin.off)} \\/ TLCGet({number})"
        first = f"~TLCSet({number}, TRUE)"
        if twin.property in config.cfg.invariants:
            lines.append(f"{name} == {elsewhere} \\/ {twin.property} \\/ {first}")
            sections["INVARIANTS"].append(name)
        else:
            step = _STEP.match(bodies.get(twin.property, ""))
            if step is None or "]_vars" in step[1]:
                continue
            # What is inside keeps its columns: they say what its bullets join.
            body = bodies[twin.property]
            column = step.start(1) - body.rfind("\n", 0, step.start(1)) - 1
            lines += [f"{name} == [][{elsewhere} \\/ (", " " * column + step[1], f") \\/ {first}]_vars"]
            sections["PROPERTIES"].append(name)
        # Not in Init: TLC evaluates that again whenever it tells a story.
        lines.append(f"ASSUME TLCSet({number}, FALSE)")
        asked[name] = twin
    texts[ROOT] = "\n".join([*lines, "====", ""])
    offs = ", ".join(dict.fromkeys(_set(twin.off) for twin in twins))
    cfg = _OFF_IN_CFG.sub(f"Offs = {{{offs}}}", config.cfg.text((), ()))
    cfg = _SPECIFICATION.sub("INIT BatchInit\nNEXT Next", cfg)
    for section, names in sections.items():
        if names:
            cfg += "\n".join([section, *(f"    {name}" for name in names), ""])
    return Written(texts, cfg, asked)


def _set(names: Collection[str]) -> str:
    return "{" + ", ".join(f'"{name}"' for name in sorted(names)) + "}"


# -- the graph --------------------------------------------------------------------------------------------------------


def parts_of(dump: dot.Dump) -> dict[Off, dot.Dump]:
    """The graph of each red twin, without the variable Off. Raises `TenureError` when a step changes it."""
    parts: dict[str, dot.Dump] = {}
    part_of: dict[int, dot.Dump] = {}
    for state, label in dump.labels.items():
        off = _OFF_IN_LABEL.search(label)
        if off is None:
            raise dot.DotError(f"a state without Off: {label[:80]}")
        part = parts.get(off[1])
        if part is None:
            part = parts[off[1]] = dot.Dump({}, set(), set())
        part_of[state] = part
        part.labels[state] = (label[: off.start()] + label[off.end() :]).removeprefix("\\n")
    for state in dump.initial:
        part_of[state].initial.add(state)
    for edge in dump.edges:
        part = part_of[edge[0]]
        if part is not part_of[edge[2]]:
            raise dot.DotError(f"{edge[1]} changes Off")
        part.edges.add(edge)
    found: dict[Off, dot.Dump] = {}
    for text, part in parts.items():
        names = frozenset(parse(dot.unescaped(text))[1])
        if names in found:
            raise dot.DotError(f"two values of Off are one: {text}")
        found[names] = part
    return found
