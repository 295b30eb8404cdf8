#!/bin/sh
# Mails the summary of the night that has just failed. Where it wrote none (its set-up failed), mails what its unit said: the summary that
# nightly/latest holds then is an earlier night's. Usage, in the bench's folder: mail.sh ADDRESS
set -u
unit=daq-bench-nightly.service
begun=$(systemctl show --timestamp=unix --property=InactiveExitTimestamp --value "$unit")
summary=nightly/latest/summary.txt
case $begun in
@[0-9]*) fresh=$(find -L "$summary" -newermt "$begun" 2>/dev/null) ;;
*) fresh= ;;
esac
if [ -n "$fresh" ]; then
    mail -s "$(head -n 1 "$summary")" "$1" <"$summary"
    exit
fi
{
    echo "No run was made: the night ended before its first one. The last lines of $unit:"
    echo
    journalctl --unit="$unit" ${begun:+--since="$begun"} --lines=100 --no-pager --output=cat
} | mail -s "DAQ storage bench: the night did not begin on $(hostname)" "$1"
