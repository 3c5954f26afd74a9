#!/bin/sh
# Makes a directory the root of namespaces of its own, and runs process 1 in it.
#
#   unshare --mount --pid --cgroup --uts --ipc --fork sh boot-root.sh DIRECTORY PROGRAM [ARGUMENT...]
set -e
root=$1
shift
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 none sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do
  : >"dev/$name"
  mount --bind "/dev/$name" "dev/$name"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=755 tmpfs run
mkdir -p .host
pivot_root . .host
cd /
umount -l /.host
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
