# Runs a program as an ordinary user in namespaces of its own: the system read-only, /home, /srv and
# /tmp empty and in memory, only loopback as network. Usage: container.sh ROOT BIND... -- PROGRAM...
set -eu
root=$1
shift
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$root"
bind() {
    [ -e "$1" ] || return 0
    if [ -L "$1" ]; then ln -s "$(readlink "$1")" "$root$1"; return 0; fi
    mkdir -p "$root$1"
    mount --rbind "$1" "$root$1"
    flags=$(findmnt -n -o OPTIONS -T "$1" | tr ',' '\n' | grep -xE 'nosuid|nodev|noexec|relatime|noatime' | paste -sd,) || true
    mount -o "remount,bind,ro${flags:+,$flags}" "$root$1"
}
for folder in /usr /bin /sbin /lib /lib64 /etc /opt; do bind "$folder"; done
mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root/home" "$root/srv" "$root/run"
for folder in tmp home srv; do mount -t tmpfs -o mode=1777 tmpfs "$root/$folder"; done
while [ "$1" != -- ]; do bind "$1"; shift; done
shift
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom; do
    : > "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
for stream in stdin:0 stdout:1 stderr:2; do ln -s "/proc/self/fd/${stream#*:}" "$root/dev/${stream%:*}"; done
mkdir -m 1777 "$root/dev/shm"
mkdir "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
echo 'dev:x:1000:1000::/home/dev:/bin/bash' > "$root/run/passwd"
echo 'dev:x:1000:' > "$root/run/group"
for file in passwd group; do mount --bind "$root/run/$file" "$root/etc/$file"; done
python3 - <<'PY' || ip link set lo up
import fcntl, socket, struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x40))
PY
echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start 2> /dev/null || true
here=$PWD
# A process in a chroot may not make a user namespace, after pivot_root it may.
mkdir "$root/old"
cd "$root"
pivot_root . old
cd "$here"
umount -l /old
rmdir /old
mount -o remount,ro /
# Not exec: this shell reaps what others leave.
unshare --user --map-user=1000 --map-group=1000 -- "$@"
