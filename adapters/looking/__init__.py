"""Looking at a directory and its journals, healing, measuring, and taking over what the other system left.

What is said to people is made here of values; the commands print it.

| file | what is in it |
|---|---|
| `status`, `status_json`, `wording` | ``tenure status``: who leads, who is inside guards, what lies about |
| `looks` | what a reader sees of a process, a guard and the registry |
| `line` | one line of it, and durations |
| `fleet_look`, `fleet_wording` | one look at a fleet, and in words |
| `instances` | which instance a person means |
| `journal_look` | one look at a journal that changes nothing |
| `journal_place`, `journal_names` | which journal a command is about, and which row an id means |
| `journal_glance`, `journal_wording`, `journal_whole` | a journal in a line, as a list, and one row of it whole |
| `journal_story`, `journal_waits`, `journal_telling` | the life of an id, what it waits for, and both told |
| `journal_json` | the shapes of all of that with --json |
| `foreign_import` | ``tenure import`` |
| `care` | all that ``tenure doctor`` does |
| `doctor`, `doctor_events` | the machine of healing, driven; its steps, recorded |
| `examine`, `quarantine`, `legacy` | what is damaged, where it is moved, and guards of older versions |
| `probe`, `probe_platform`, `probe_report` | what a directory and a platform give, by trying it |
"""
