"""TLC's dump of a graph, as 2.15 writes it and as newer ones vary it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.adapters import dot

HEAD = 'strict digraph DiskGraph {\nnodesep=0.35;\nsubgraph cluster_graph {\ncolor="white";\n'
BLACK = 'color="black",fontcolor="black"'


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "graph.dot"
    path.write_text(HEAD + "\n".join(lines) + "\n{rank = same; 1;}\n}\n}", encoding="utf-8")
    return path


def test_nodes_edges_and_the_two_kinds_of_self_loop(tmp_path: Path) -> None:
    graph = dot.read(
        written(
            tmp_path,
            r'1 [label="/\\ x = 0\n/\\ s = \"a\\\"b\"",style = filled]',
            f'1 -> -2 [label="Inc",{BLACK}];',
            r'-2 [label="/\\ x = 1\n/\\ s = \"a\\\"b\""];',
            f'1 -> -2 [label="Inc",{BLACK}];',
            '1 -> 1 [style="dashed"];',
            f'-2 -> -2 [label="Wait",{BLACK}];',
        )
    )
    assert {1} == graph.initial
    assert {1, -2} == graph.labels.keys()
    assert {(1, "Inc", -2), (-2, "Wait", -2)} == graph.edges
    assert '/\\ x = 0\n/\\ s = "a\\"b"' == dot.unescaped(graph.labels[1])


def test_parameters_of_a_newer_label_are_dropped(tmp_path: Path) -> None:
    graph = dot.read(
        written(
            tmp_path, '1 [label="x = 0",tooltip="x = 0",style = filled]', '1 -> 1 [label="Inc(\\"a\\")",color="black"];'
        )
    )
    assert {(1, "Inc", 1)} == graph.edges
    assert {1} == graph.initial


def test_a_dump_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    with pytest.raises(dot.DotError, match="not there"):
        dot.read(written(tmp_path, '1 [label="x = 0",style = filled]', f'1 -> 2 [label="Inc",{BLACK}];'))


def test_a_label_in_parts() -> None:
    """A backslash followed by n, inside a string, is no new line; nor is what stands behind it a variable."""
    parts = dot.split(r"/\\ s = \"a\\n\"\n/\\ x = 1")
    assert [("s", r'"a\n"'), ("x", "1")] == [dot.variable(part) for part in parts]
    with pytest.raises(dot.DotError):
        dot.variable("no equation")
