"""Namespaces in which a program can change nothing outside of one directory, and reach no network.

All mounts are read-only there but a scratch directory, which is in memory, as `/tmp`, `/var/tmp`, `/run` and `/dev/shm` are. `/dev` has
harmless devices alone. All processes end with the first one. This needs root, or the right to make user namespaces.
"""
import os, subprocess, time

# Makes all mounts read-only but the scratch directory $1, and runs the other arguments.
SETUP = """set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$1"
for dir in $(awk '{print $5}' /proc/self/mountinfo); do
    case $dir in "$1" | /proc | /dev | /dev/*) ;; *) mount -o remount,bind,ro "$dir" 2>/dev/null || : ;; esac
done
mkdir -p "$1/dev/pts" "$1/dev/shm"
for file in null zero full random urandom tty; do : >"$1/dev/$file"; mount --bind "/dev/$file" "$1/dev/$file"; done
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
ln -s pts/ptmx "$1/dev/ptmx"
for link in fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do ln -s "/proc/self/${link#*:}" "$1/dev/${link%:*}"; done
mount --rbind "$1/dev" /dev
for dir in /tmp /var/tmp /run /dev/shm; do mount -t tmpfs -o mode=1777 tmpfs "$dir"; done
shift
exec "$@"
"""

# Runs a program without capabilities. `chmod 000` stops it as it stops any user, and it cannot change the mounts.
PLAIN = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]

# Runs a program as the first process of a container within the namespaces.
CONTAINER = ["unshare", "--mount", "--pid", "--fork", "--mount-proc"]


def run(scratch, words, timeout):
    """Runs a program with all capabilities in namespaces of its own. Returns its output and its messages."""
    unshare = [*CONTAINER, "--kill-child", "--net"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    os.makedirs(scratch)
    try:
        done = subprocess.run([*unshare, "sh", "-c", SETUP, "sh", scratch, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", timeout=timeout,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"})
        return done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return "", "it takes too long"
    finally:
        os.rmdir(scratch)


def processes():
    """Returns the processes that run, but for piton's own."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                is_over = file.read().rsplit(")", 1)[1].split()[0] == "Z"
            if not is_over and not os.readlink(f"/proc/{name}/exe").split(" ")[0].endswith("/piton"):
                found.add(name)
        except OSError:
            continue
    return found


def settle(before):
    """Waits until no processes run but those from before, at most 6 seconds."""
    end = time.monotonic() + 6
    while processes() - before and time.monotonic() < end:
        time.sleep(0.05)
