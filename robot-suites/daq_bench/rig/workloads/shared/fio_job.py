"""fio's measurements are job files (robot-suites/fio). This is the one place that gives such a file its values and lets it run.

fio itself puts the values in, from its environment; where a variable is missing it goes on without the option. So every value that a
file wants is demanded here. The file and its values go into the bundle: `NAME.sh` in results/raw runs one measurement by hand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.load_target import FileTarget, LoadTarget
from daq_bench.rig.candidate.machine import Machine

Value = str | int | Path
GLOBAL = "global"
TARGET, LOG = "TARGET", "LOG"
VARIABLE = re.compile(r"\$\{(\w+)\}")
HEADER = re.compile(r"\[(.+)\]")
# fio takes what follows ; or # in a value for a comment, and $ncpus and the like for numbers of the machine: it would write another file.
MISREAD = re.compile(r"[\x00-\x1f\x7f;#$]")
BY_HAND = """\
#!/bin/sh
# Runs this measurement again by hand, on the candidate: `sh {name}.sh` beside {file}, without the telemetry, the checks and the
# verdict of a run. {more}
cd "$(dirname "$0")" || exit
{before}exec {command}
"""


@dataclass(frozen=True)
class JobFile:
    """`file`: its name without .fio."""

    file: str
    text: str

    @staticmethod
    def named(file: str) -> JobFile:
        path = Layout().fio_jobs / f"{file}.fio"
        try:
            return JobFile(file, path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise BenchError(f"{path}: fio's job file cannot be read ({error}). Complete the checkout") from None

    def repeated(self, file: str, parts: Sequence[tuple[str, str, Mapping[str, Value]]]) -> JobFile:
        """The job file `file` that has, behind our global options, a section for each of `parts`: its name, that of our section which it
        repeats, and its own values. Other variables stay."""
        sections = [(GLOBAL, self._lines(GLOBAL))]
        for name, section, own in parts:
            lines = self._lines(section)
            if unknown := own.keys() - set(VARIABLE.findall("\n".join(lines))):
                raise BenchError(f"{self.file}.fio: its section {section} has no {', '.join(sorted(unknown))}")
            sections.append((name, [_filled(line, own) for line in lines]))
        return JobFile(file, "\n\n".join("\n".join([f"[{name}]", *lines]) for name, lines in sections) + "\n")

    def sections(self) -> dict[str, list[str]]:
        """The options of each section, without comments."""
        found: dict[str, list[str]] = {}
        for line in map(str.strip, self.text.splitlines()):
            if header := HEADER.fullmatch(line):
                found[header[1]] = []
            elif line and line[0] not in ";#":
                if not found:
                    raise BenchError(f"{self.file}.fio: {line!r} stands before the first section")
                list(found.values())[-1].append(line)
        return found

    def _lines(self, section: str) -> list[str]:
        found = self.sections()
        if section not in found:
            raise BenchError(f"{self.file}.fio: has no section {section}. It has {', '.join(found)}")
        return found[section]

    def options(self, values: Mapping[str, Value], section: str) -> dict[str, str]:
        """Returns what fio reads for one section, by option. One without a value has an empty text."""
        lines = [*self._lines(GLOBAL), *self._lines(section)]
        pairs = (_filled(line, values).partition("=") for line in lines)
        return {key: value for key, _, value in pairs}

    def command(
        self, path: Value, values: Mapping[str, Value], sections: Sequence[str] = (), options: Sequence[str] = ()
    ) -> list[str]:
        """fio's command line for this file at `path`. `sections`: those that run, all where none is named. Raises BenchError for a value
        that is missing, unknown or cannot be handed over."""
        chosen = sections or [name for name in self.sections() if name != GLOBAL]
        lines = [line for name in (GLOBAL, *chosen) for line in self._lines(name)]
        wanted = dict.fromkeys(name for line in lines for name in VARIABLE.findall(line))
        for problem, names in (
            ("has no value", wanted.keys() - values),
            ("is no variable of it", values.keys() - wanted),
        ):
            if names:
                raise BenchError(f"{self.file}.fio: {', '.join(sorted(names))} {problem}. It wants {', '.join(wanted)}")
        given = {name: str(values[name]) for name in wanted}
        for name, value in given.items():
            if not value or value != value.strip() or MISREAD.search(value):
                raise BenchError(
                    f"{self.file}.fio: {name} is {value!r}: fio would read something else. A value is not empty, has no space at"
                    " its ends, and no ; # $ or control character. Choose another name"
                )
        return [
            *("env", *(f"{name}={value}" for name, value in given.items())),
            *("fio", "--output-format=json", *options, *(f"--section={name}" for name in sections), str(path)),
        ]


def _filled(line: str, values: Mapping[str, Value]) -> str:
    return VARIABLE.sub(lambda found: str(values.get(found[1], found[0])), line)


@dataclass(frozen=True)
class JobFiles:
    """Those of one workload. `work`: the tools' folder on the candidate, `raw`: in the bundle."""

    machine: Machine
    work: Path
    raw: Path
    _there: set[str] = field(default_factory=set)

    @staticmethod
    def of(context: RunContext) -> JobFiles:
        return JobFiles(context.machine, context.places.raw, context.raw)

    def command(
        self,
        job: JobFile | str,
        name: str,
        target: LoadTarget,
        values: Mapping[str, Value],
        sections: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> list[str]:
        """fio's command line for a job file, which lies on the candidate and in the bundle from now on, with its values. `name`: the
        measurement's. A log goes beside the tools' output under that name."""
        job = JobFile.named(job) if isinstance(job, str) else job
        given: dict[str, Value] = {TARGET: target.path, **values}
        if f"${{{LOG}}}" in job.text:
            given[LOG] = self.work / name
        words = job.command(self.work / f"{job.file}.fio", given, sections, options)
        if job.file not in self._there:
            self.machine.put(self.work / f"{job.file}.fio", job.text)
            (self.raw / f"{job.file}.fio").write_text(job.text, encoding="utf-8")
            self._there.add(job.file)
        (self.raw / f"{name}.sh").write_text(_by_hand(job, name, target, given, sections), encoding="utf-8")
        return words

    def run(
        self,
        job: JobFile | str,
        name: str,
        target: LoadTarget,
        values: Mapping[str, Value],
        timeout_s: float,
        sections: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> Completed:
        """Runs it on `target`, which guards a whole drive."""
        return target.run(self.command(job, name, target, values, sections, options), timeout_s)


def _by_hand(job: JobFile, name: str, target: LoadTarget, values: Mapping[str, Value], sections: Sequence[str]) -> str:
    """A script that runs a measurement again. Its log goes elsewhere: the bundle is sealed."""
    more, before, shown = (
        "The drive is claimed by the guard, as in the run; what is on it is lost.",
        "",
        dict[str, str](),
    )
    if isinstance(target, FileTarget):
        more = "The file stays; TARGET=FILE before `sh` names another one."
        before = f'TARGET=${{TARGET-{shlex.quote(str(target.path))}}}\nmkdir -p "$(dirname "$TARGET")" || exit\n'
        shown[f"{TARGET}={target.path}"] = f'"{TARGET}=${TARGET}"'
    if LOG in values:
        before += f'LOG="${{TMPDIR:-/tmp}}"/{shlex.quote(name)}\n'
        shown[f"{LOG}={values[LOG]}"] = f'"{LOG}=${LOG}"'
    argv = target.guarded(job.command(f"{job.file}.fio", values, sections))
    command = " ".join(shown.get(word) or shlex.quote(word) for word in argv)
    return BY_HAND.format(name=name, file=f"{job.file}.fio", more=more, before=before, command=command)
