"""What is on every host when it is new, as scripts for its root."""

from __future__ import annotations

from collections.abc import Mapping

# Every lab user exists on every host with these numbers; all are members of the shared group.
USERS = {"alice": 2001, "bob": 2002}
SHARED_GROUP = ("ml", 3000)


def load_modules(*more: str) -> str:
    names = " ".join(["nfsd", "nfsv3", "nfsv4", "loop", "sch_netem", "quota_v2", *more])
    return f"modprobe lockd nlm_timeout=3 nlm_grace_period=3\nmodprobe -a {names}\n"


# No kernel accepts less. Tests would otherwise wait 90 s for a restarted server.
SHORTEN_GRACE = """
mount -t nfsd nfsd /proc/fs/nfsd
echo 10 >/proc/fs/nfsd/nfsv4gracetime
echo 10 >/proc/fs/nfsd/nfsv4leasetime
umount /proc/fs/nfsd
"""

RUN_RC_LOCAL = "[[ ! -x /etc/rc.local ]] || setsid /etc/rc.local"


def add_users() -> str:
    """Adds the lab's users to /etc, over any of the outer machine with the same names."""
    group, group_id = SHARED_GROUP
    names = "|".join([*USERS, group])
    lines = [f"sed -i -E '/^({names}):/d' /etc/passwd /etc/group"]
    lines += [f"echo '{name}:x:{number}:' >>/etc/group" for name, number in USERS.items()]
    lines += [f"echo '{group}:x:{group_id}:{','.join(USERS)}' >>/etc/group"]
    lines += [
        f"echo '{name}:x:{number}:{number}:{name}:/home/{name}:/bin/bash' >>/etc/passwd"
        for name, number in USERS.items()
    ]
    return "\n".join(lines) + "\n"


def make_homes(root: str = "") -> str:
    return "".join(
        f"[[ -d {root}/home/{name} ]] || install -d -m 755 -o {number} -g {number} {root}/home/{name}\n"
        for name, number in USERS.items()
    )


def write_hosts_file(addresses: Mapping[str, str]) -> str:
    """`addresses` by the names of the hosts."""
    lines = "".join(f"{address} {name}\n" for name, address in addresses.items())
    return f"cat >/etc/hosts <<'END'\n127.0.0.1 localhost\n{lines}END\n"
