# Prints the targets of the Makefile that have a line of help, users' first, each with the variables that it reads (variables.mk).
# The first file has lines `target VARIABLE...`; in the Makefile `target: needs ##1 help` puts a target into the first section.

BEGIN {
    width = 100
    head[1] = "Use the bench. `.venv/bin/daq-bench` has the same commands, and exit statuses that tell:"
    head[2] = "Set up:"
    head[3] = "Maintain the bench:"
}

FNR == NR {
    name = $1
    sub(/^[^ ]* */, "")
    reads[name] = $0
    next
}

match($0, /^[a-z][a-z0-9-]*:.*##[123] /) {
    section = substr($0, RSTART + RLENGTH - 2, 1)
    name = substr($0, 1, index($0, ":") - 1)
    lines[section] = lines[section] sprintf("  make %-18s%s\n", name, substr($0, RSTART + RLENGTH)) variables(reads[name])
}

# The variables in lines of their own, none longer than the screen.
function variables(names,    words, count, i, line, text) {
    count = split(names, words, " ")
    for (i = 1; i <= count; i++) {
        if (length(line) + length(words[i]) + 2 > width - 25) {
            text = text sprintf("%25s%s\n", "", line)
            line = ""
        }
        line = line (line == "" ? "" : " ") words[i] "="
    }
    return text (line == "" ? "" : sprintf("%25s%s\n", "", line))
}

END {
    for (section = 1; section <= 3; section++) printf "%s%s\n%s", (section > 1 ? "\n" : ""), head[section], lines[section]
    print "\nRUN=runs/<run-id> names a run (default: the latest). Values are text: make expands nothing in them."
}
