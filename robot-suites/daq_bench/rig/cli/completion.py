"""The scripts that complete `daq-bench` in bash, zsh and fish: a few lines that ask `rig.base.completing`, to which they hand a table of
the commands' own arguments. So nothing but names has to be looked up while somebody types."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping

from daq_bench.rig.base.completing import COMMAND, FILES, KINDS, VARIABLE, Table

NAME = "daq-bench"

# In each, {table} is JSON without a single quote or backslash. Where nothing is offered, the shell offers files.
SHELLS = {
    "bash": """\
# Completion of daq-bench for bash: eval "$(daq-bench completion bash)"
_daq_bench() {
    mapfile -t COMPREPLY < <({variable}='{table}' "${COMP_WORDS[0]}" {command} -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
    [ "${#COMPREPLY[@]}" -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]#=}")
}
complete -o filenames -F _daq_bench daq-bench
""",
    "zsh": """\
# Completion of daq-bench for zsh, after `autoload -U compinit; compinit`: eval "$(daq-bench completion zsh)"
_daq_bench() {
    local -a found
    found=("${(@f)$({variable}='{table}' ${(Q)~words[1]} {command} -- "${(@Q)words[2,CURRENT]}" 2> /dev/null)}")
    if [[ -n "$found" ]]; then compadd -- "${found[@]}"; else compset -P '--*='; _files; fi
}
compdef _daq_bench daq-bench
""",
    "fish": """\
# Completion of daq-bench for fish: daq-bench completion fish | source
function __daq_bench
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l found ({variable}='{table}' $words[1] {command} -- $words[2..] "$word" 2> /dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        set -l option (string match --regex '^--[a-z-]+=' -- "$word")
        __fish_complete_path (string replace --regex '^--[a-z-]+=' '' -- "$word") | string replace --regex -- '^' "$option"
    end
end
complete -c daq-bench -f -a '(__daq_bench)'
""",
}


def completion(shell: str, commands: Mapping[str, argparse.ArgumentParser], programs: Iterable[str]) -> str:
    """The script for a shell. `programs` are asked for their own options when these are wanted."""
    table: Table = {name: _arguments(command) for name, command in commands.items()}
    text = json.dumps(table | dict.fromkeys(programs), separators=(",", ":"))
    script = SHELLS[shell]
    for name, value in (("variable", VARIABLE), ("command", COMMAND), ("table", text)):
        script = script.replace(f"{{{name}}}", value)
    return script


def _arguments(command: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Returns what each option takes, by its names, and under "" the positional argument: nothing, choices, or a word for a kind."""
    found = {}
    for action in command._actions:
        for name in action.option_strings or [""]:
            kind = KINDS.get(name or action.dest, FILES)
            found[name] = list(map(str, action.choices or ())) or ([] if action.nargs == 0 else [kind])
    return found
