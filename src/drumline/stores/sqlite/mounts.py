"""Is a file on a network file system? There, SQLite's locks and shared memory do not hold."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

__all__ = ["find_network_mount", "read_mounts"]

_NETWORK = frozenset(
    (
        *("9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "davfs", "drvfs", "glusterfs", "gpfs", "lustre", "macfuse"),
        *("ncpfs", "nfs", "nfs4", "osxfuse", "prl_fs", "smb2", "smb3", "smbfs", "vboxsf", "webdav", "fuse.ceph"),
        *("fuse.davfs2", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.smbnetfs", "fuse.sshfs"),
    )
)
_MOUNTINFO = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\(\d{3})")
# As macOS prints it: //me@server/share on /Volumes/share (smbfs, nodev, nosuid)
_PRINTED = re.compile(r"^.+? on (/.*) \((\w+)[,)]", re.MULTILINE)

# A mount point, and the type of its file system.
Mount = tuple[str, str]


def find_network_mount(path: Path, mounts: str) -> Mount | None:
    """The network file system on which the path lies, by the text of `/proc/self/mountinfo` or of `mount`."""
    target = PurePosixPath(path)
    under = [mount for mount in _parse(mounts) if target.is_relative_to(mount[0])]
    # Of two mounts on one point, the later one is on top.
    nearest = max(enumerate(under), key=lambda item: (len(item[1][0]), item[0]), default=(0, ("", "")))[1]
    return nearest if nearest[1] in _NETWORK else None


def read_mounts() -> str:
    """What is mounted, as this system tells it; nothing where it does not."""
    try:
        if sys.platform == "darwin":
            return subprocess.run(["/sbin/mount"], capture_output=True, text=True, timeout=2, check=True).stdout
        return _MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape")
    except (OSError, subprocess.SubprocessError):
        return ""


def _parse(mounts: str) -> list[Mount]:
    lines = [line.split() for line in mounts.splitlines()]
    numbered = [fields for fields in lines if len(fields) > 6 and fields[0].isdecimal() and "-" in fields]
    if numbered:
        return [(_unescape(fields[4]), fields[fields.index("-", 6) + 1]) for fields in numbered]
    return _PRINTED.findall(mounts)


def _unescape(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
