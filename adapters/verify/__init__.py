"""The stages of ``tenure verify`` (DESIGN 7).

| file | what is in it |
|---|---|
| `run`, `checks`, `workers` | the checks of the modules asked for, beside each other |
| `manifest`, `effort`, `cache` | what is pinned, how much is verified, what need not be run again |
| `cfg`, `batch`, `together` | TLC's configurations; red twins in one run of it |
| `graphs` | whether the twin's graph and TLC's are equal |
| `reach`, `coverage` | random runs, and what they visit of the machines' tables |
| `answers`, `probes`, `overheard`, `spelling` | what machines answer and properties say, pinned |
| `result`, `report`, `junit` | what a verification answers, and how it is shown |

| room | what is in it |
|---|---|
| `bind/` | adapters held against their twins, call by call |
| `real/` | real processes, whose recordings the twins explain |
"""
