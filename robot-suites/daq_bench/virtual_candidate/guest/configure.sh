#!/usr/bin/env bash
# Makes of a fresh Debian or Ubuntu tree the guest's root image, kernel and initramfs. Called by mmdebstrap as its last hook.
#
# usage: configure.sh ROOT OUTPUT KERNEL     ROOT: the tree; OUTPUT: folder for root.img, vmlinuz, initramfs.img;
#                                            KERNEL: the distribution's kernel package
# Promises: writes only into OUTPUT, ROOT and a temporary folder that it removes. APT_CONFIG must be mmdebstrap's.
set -euo pipefail
shopt -s inherit_errexit

readonly ROOT="$1" OUTPUT="$2" KERNEL="$3"
HERE="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)"
readonly HERE
SCRATCH="$(mktemp -d)"
readonly SCRATCH
readonly ROOT_IMAGE_SIZE=3000M # sparse; what is over the tree's 350 MB is for the bench's programs, results and a scratch file of a rehearsal

plain_root=""
clean() {
  if [[ -n "${plain_root}" ]]; then umount -- "${plain_root}"; fi
  rm -rf -- "${SCRATCH}"
}
trap clean EXIT

die() {
  printf 'configure.sh: error: %s\n' "$1" >&2
  exit 1
}

# Unpacks the kernel package and what it is made of (Ubuntu has the modules apart) into SCRATCH/kernel; nothing of it is run.
unpack_kernel() {
  local names package
  names="$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
    --no-enhances "${KERNEL}" | grep -E '^linux-(image|modules)-[^ ]*[0-9]\.[0-9]' | grep -v -- '-unsigned' | sort -u)"
  mkdir -- "${SCRATCH}/packages" "${SCRATCH}/kernel"
  for package in ${names}; do (cd -- "${SCRATCH}/packages" && apt-get download --quiet "${package}"); done
  for package in "${SCRATCH}"/packages/*.deb; do dpkg-deb --extract "${package}" "${SCRATCH}/kernel"; done
  # Where /lib is not a link to /usr/lib, modprobe and depmod look in /lib only.
  if [[ ! -d "${SCRATCH}/kernel/lib/modules" ]]; then
    mkdir -p -- "${SCRATCH}/kernel/lib"
    mv -- "${SCRATCH}/kernel/usr/lib/modules" "${SCRATCH}/kernel/lib/modules"
  fi
}

# module_files NAME: the files to load for a module, its dependencies first; nothing for what is built into the kernel.
module_files() {
  modprobe --dirname "${SCRATCH}/kernel" --set-version "${version}" --show-depends "$1" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
}

# Copies a module uncompressed: busybox's insmod takes no other, and loading is faster.
place_module() {
  mkdir -p -- "$(dirname -- "$2")"
  case "$1" in
    *.xz) xz --decompress --stdout -- "$1" >"$2" ;;
    *.zst) zstd --quiet --decompress --stdout -- "$1" >"$2" ;;
    *) cp -- "$1" "$2" ;;
  esac
}

uncompressed_name() {
  local name="${1%.xz}"
  printf '%s\n' "${name%.zst}"
}

install_modules() {
  local where name files file relative
  mkdir -p -- "${SCRATCH}/initramfs/modules" "${ROOT}/lib/modules/${version}"
  : >"${SCRATCH}/initramfs/modules/order"
  while read -r where name; do
    if [[ "${where}" != initramfs ]]; then
      name="${where}"
      where=root
    fi
    if ! files="$(module_files "${name#\?}" 2>"${SCRATCH}/modprobe.log")"; then
      [[ "${name}" == \?* ]] || die "the kernel ${version} has no module ${name}: $(<"${SCRATCH}/modprobe.log")"
      continue
    fi
    for file in ${files}; do
      relative="$(uncompressed_name "${file#"${SCRATCH}/kernel/lib/modules/${version}/"}")"
      place_module "${file}" "${ROOT}/lib/modules/${version}/${relative}"
      if [[ "${where}" == initramfs ]] && ! grep -qxF -- "${relative##*/}" "${SCRATCH}/initramfs/modules/order"; then
        cp -- "${ROOT}/lib/modules/${version}/${relative}" "${SCRATCH}/initramfs/modules/"
        printf '%s\n' "${relative##*/}" >>"${SCRATCH}/initramfs/modules/order"
      fi
    done
  done < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' -- "${HERE}/modules.txt")
  cp -- "${SCRATCH}/kernel/lib/modules/${version}"/modules.{order,builtin,builtin.modinfo} "${ROOT}/lib/modules/${version}/"
  depmod --basedir "${ROOT}" "${version}"
}

configure_root() {
  local unit
  cp -r -- "${HERE}/root/." "${ROOT}/"
  # Not empty: systemd would take every start of an instance for the first one, and enable its presets again.
  md5sum <<<"virtual candidate" | cut -d' ' -f1 >"${ROOT}/etc/machine-id"
  rm -f -- "${ROOT}"/etc/ssh/ssh_host_*
  # Without PAM a login starts no session of systemd's, which costs seconds under emulation.
  sed -i 's/^UsePAM yes/UsePAM no/' "${ROOT}/etc/ssh/sshd_config"
  chroot "${ROOT}" systemctl --quiet enable ssh.service
  chroot "${ROOT}" systemctl --quiet disable ssh.socket
  while read -r unit; do
    chroot "${ROOT}" systemctl --quiet mask "${unit}"
  done < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' -- "${HERE}/masked-units.txt")
  rm -rf -- "${ROOT}"/var/lib/apt/lists/* "${ROOT}"/var/cache/apt/*
}

pack_initramfs() {
  mkdir -p -- "${SCRATCH}/initramfs"/{bin,dev,proc,sys,root}
  install -m 755 -- "$(type -P busybox)" "${SCRATCH}/initramfs/bin/busybox"
  install -m 755 -- "${HERE}/init" "${SCRATCH}/initramfs/init"
  (cd -- "${SCRATCH}/initramfs" && find . | cpio --quiet --create --format=newc --owner=0:0) >"${OUTPUT}/initramfs.img"
}

# mmdebstrap has /proc, /sys and /dev mounted below ROOT; a bind mount that does not descend shows the tree without them.
pack_root() {
  mkdir -- "${SCRATCH}/root"
  mount --bind -- "${ROOT}" "${SCRATCH}/root"
  plain_root="${SCRATCH}/root"
  mke2fs -q -t ext4 -m 0 -L root -J size=16 -E lazy_itable_init=1,root_owner=0:0 -d "${SCRATCH}/root" \
    "${OUTPUT}/root.img" "${ROOT_IMAGE_SIZE}"
}

unpack_kernel
version="$(basename -- "${SCRATCH}"/kernel/lib/modules/*)"
depmod --basedir "${SCRATCH}/kernel" "${version}"
install_modules
configure_root
pack_initramfs
cp -- "${SCRATCH}/kernel/boot/vmlinuz-${version}" "${OUTPUT}/vmlinuz"
pack_root
