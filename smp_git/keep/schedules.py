"""Schedules of maintenance: a systemd timer, a launchd agent, a line for cron."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

_SCHEDULES: Final = """\
# systemd: ~/.config/systemd/user/smp-maintain.service
[Unit]
Description=Maintenance of smp sessions

[Service]
Type=oneshot
Nice=10
ExecStart={command}

# systemd: ~/.config/systemd/user/smp-maintain.timer
# then: systemctl --user enable --now smp-maintain.timer
[Unit]
Description=Maintenance of smp sessions, every day

[Timer]
OnCalendar=*-*-* 04:00:00
RandomizedDelaySec=30min
Persistent=true

[Install]
WantedBy=timers.target

# launchd: ~/Library/LaunchAgents/smp.maintain.plist
# then: launchctl load ~/Library/LaunchAgents/smp.maintain.plist
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
<key>Label</key><string>smp.maintain</string>
<key>ProgramArguments</key><array>{arguments}</array>
<key>StartCalendarInterval</key><dict><key>Hour</key><integer>4</integer><key>Minute</key><integer>0</integer></dict>
</dict></plist>

# cron: crontab -e
0 4 * * * {command}
"""


def schedule(command: Sequence[str]) -> str:
    """Return a systemd timer, a launchd agent and a line for cron that run a command every day."""
    arguments = "".join(f"<string>{escape(each)}</string>" for each in command)
    return _SCHEDULES.format(command=shlex.join(command), arguments=arguments)
