#!/bin/sh
# Installs svc and svc-server, which are one executable under two names.
#
#   sh install.sh [--dry-run] [--with-postgres [--yes]] [--service] [--no-completions]
#                 [--allow-downgrade] [--uninstall] [--help]
#
# Nothing runs unless the whole file has arrived: a shell reads a group of commands to its closing
# brace, which is the last character, before it runs the first of them. The digests of the artefacts
# are part of this file, so what is downloaded must be exactly what this version was released with.
# Nothing is unpacked before it is verified. Only `svc-server setup`, which --with-postgres runs at
# the end, asks a question, on the terminal.

{
set -eu
# Every user may run what is installed, and none but its owner may change it.
umask 022

VERSION='@VERSION@'
BASE_URL_DEFAULT='@BASE_URL@'
# The address of the newest release, which svc upgrade knows; empty where none is named.
UPGRADE_URL='@UPGRADE_URL@'
# One line an artefact: <target> <sha256 of svc-<version>-<target>.tar.gz>
DIGESTS='@DIGESTS@'
# The PEM public key that signs SHA256SUMS; empty where the release is unsigned.
PUBLIC_KEY='@PUBLIC_KEY@'
# The public key of minisign that signs SHA256SUMS too; empty where there is none.
MINISIGN_KEY='@MINISIGN_KEY@'

usage() {
  cat <<'TEXT'
Installs svc and svc-server.

Options:
  --dry-run     say what would be done, change nothing
  --with-postgres  also run svc-server setup (Linux or macOS, as root): it asks, then installs
                PostgreSQL, creates a database, and starts the service
  --yes         with --with-postgres: do not ask
  --service     also set up a systemd service (Linux, as root); it is not started
  --no-completions  install neither shell completions nor manual pages
  --allow-downgrade  replace an installed version that is newer than this one
  --uninstall   remove what this script installed; never data, settings or secrets
  --help        this text

Environment:
  SVC_INSTALL_DIR        where the executables go (root: /usr/local/bin, else ~/.local/bin)
  SVC_BASE_URL           where the artefacts are: an https URL, a mirror's, or file:///directory
  SVC_TARGET             install this target instead of the one of this machine
  SVC_REQUIRE_SIGNATURE  1 refuses an artefact list whose signature cannot be verified
  SVC_PUBLIC_KEY_FILE    your own copy of the public key, in place of those in this file: PEM or
                         that of minisign; the signature is then required
  DESTDIR                prefix of the service's files, for packagers
TEXT
}

main() {
  dry_run=0
  with_postgres=0
  yes=0
  service=0
  completions=1
  downgrade=0
  uninstall=0
  for argument in "$@"; do
    case "$argument" in
      --dry-run) dry_run=1 ;;
      --with-postgres) with_postgres=1 ;;
      --yes) yes=1 ;;
      --service) service=1 ;;
      --no-completions) completions=0 ;;
      --allow-downgrade) downgrade=1 ;;
      --uninstall) uninstall=1 ;;
      --help | -h) usage; exit 0 ;;
      *) usage >&2; exit 2 ;;
    esac
  done
  locations
  if [ "$uninstall" = 1 ]; then
    remove
    exit 0
  fi
  case "$VERSION" in
    @*) die 'This is the source of the installer. Use the install.sh of a release.' ;;
  esac
  if [ "$service" = 1 ]; then check_service; fi
  if [ "$with_postgres" = 1 ]; then check_setup; fi
  need uname mktemp tar gzip mv cp rm mkdir chmod ln grep cut
  target=${SVC_TARGET:-$(detect_target)}
  digest=$(printf '%s\n' "$DIGESTS" | grep "^$target " | cut -d ' ' -f 2)
  [ -n "$digest" ] || die "There is no build for $target. There are: $(targets)"
  base=${SVC_BASE_URL:-$BASE_URL_DEFAULT}
  [ -n "$base" ] || die 'Set SVC_BASE_URL to the address that the artefacts are at.'
  artefact="svc-$VERSION-$target.tar.gz"
  if is_installed; then
    say "svc $VERSION is already installed in $directory."
  else
    check_downgrade
    say "Installing svc $VERSION for $target into $directory."
    if [ "$dry_run" = 1 ]; then
      say "Would fetch ${base%/}/$artefact (sha256 $digest)."
    else
      install_artefact
    fi
  fi
  install_shared
  if [ "$service" = 1 ]; then set_up_service; fi
  if [ "$dry_run" = 0 ]; then advise; fi
  if [ "$with_postgres" = 1 ]; then run_setup; fi
}

say() { printf '%s\n' "$*"; }

die() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}

need() {
  for tool in "$@"; do
    command -v "$tool" >/dev/null 2>&1 || die "$tool is needed and not installed."
  done
}

locations() {
  if [ "$(id -u)" = 0 ]; then
    directory=${SVC_INSTALL_DIR:-/usr/local/bin}
    share=/usr/local/share/svc
  else
    [ -n "${SVC_INSTALL_DIR:-}${HOME:-}" ] || die 'Neither SVC_INSTALL_DIR nor HOME is set.'
    directory=${SVC_INSTALL_DIR:-$HOME/.local/bin}
    share=${XDG_DATA_HOME:-${HOME:-$directory}/.local/share}/svc
  fi
  # With a directory of the caller's own, everything stays inside it.
  shared=${share%/svc}
  if [ -n "${SVC_INSTALL_DIR:-}" ]; then
    share=$directory/.svc-install
    shared=
  fi
  # A service is of the whole machine.
  if [ "$service" = 1 ]; then shared=${DESTDIR:-}/usr/local/share; fi
  receipt=$share/receipt
}

targets() { printf '%s\n' "$DIGESTS" | cut -d ' ' -f 1 | tr '\n' ' '; }

detect_target() {
  system=$(uname -s)
  machine=$(uname -m)
  case "$system" in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) die "$system is not supported. There are builds for: $(targets)" ;;
  esac
  case "$machine" in
    x86_64 | amd64) machine=x64 ;;
    aarch64 | arm64) machine=arm64 ;;
    *) die "$machine is not supported. There are builds for: $(targets)" ;;
  esac
  if [ "$system" = darwin ] && [ "$machine" = x64 ]; then
    # A shell under Rosetta says x86_64 on an arm64 machine.
    if [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || echo 0)" = 1 ]; then machine=arm64; fi
  fi
  if [ "$system" = linux ] && [ "$(getconf LONG_BIT 2>/dev/null || echo 64)" != 64 ]; then
    die 'A 64-bit system is needed; this one runs 32-bit programs.'
  fi
  libc=
  if [ "$system" = linux ] && is_musl; then libc=-musl; fi
  printf '%s\n' "$system-$machine$libc"
}

is_musl() {
  case "$(ldd --version 2>&1 || true)" in
    *musl*) return 0 ;;
    *GLIBC* | *GNU*) return 1 ;;
  esac
  for loader in /lib/ld-musl-*.so.1; do
    if [ -e "$loader" ]; then return 0; fi
  done
  return 1
}

sha256() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  elif command -v openssl >/dev/null 2>&1; then
    openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
  else
    die 'sha256sum, shasum or openssl is needed: nothing is installed unverified.'
  fi
}

# Whether the URL is http of a literal loopback address, with nothing but digits as its port.
is_loopback() {
  case "$1" in
    http://*) ;;
    *) return 1 ;;
  esac
  authority=${1#http://}
  authority=${authority%%/*}
  case "$authority" in
    127.0.0.1 | '[::1]') return 0 ;;
  esac
  case "${authority%:*}" in
    127.0.0.1 | '[::1]') ;;
    *) return 1 ;;
  esac
  case "${authority##*:}" in
    '' | *[!0-9]*) return 1 ;;
  esac
}

# fetch <name> <file>
fetch() {
  url=${base%/}/$1
  case "$url" in
    file://*)
      cp "${url#file://}" "$2" || die "$url cannot be read. Nothing was installed."
      return
      ;;
    https://*) protocol='=https' ;;
    *)
      is_loopback "$url" || die "$url: only https, file and loopback http are used."
      protocol='=http'
      ;;
  esac
  if command -v curl >/dev/null 2>&1; then
    curl --proto "$protocol" --tlsv1.2 -fsSL --retry 3 --output "$2" "$url" ||
      die "$url failed. Nothing was installed."
  elif command -v wget >/dev/null 2>&1; then
    wget -q -O "$2" "$url" || die "$url failed. Nothing was installed."
  else
    die 'curl or wget is needed.'
  fi
}

is_installed() {
  [ -f "$receipt" ] && [ -x "$directory/svc-server" ] && [ -x "$directory/svc" ] || return 1
  grep -q "^artefact $digest\$" "$receipt" || return 1
  [ "$(sha256 "$directory/svc-server")" = "$(grep '^executable ' "$receipt" | cut -d ' ' -f 2)" ]
}

# Prints the version of the executable that is installed; nothing if there is none.
installed_version() {
  said=
  if [ -x "$directory/svc" ]; then
    said=$("$directory/svc" --version 2>/dev/null </dev/null) || said=
  fi
  case "$said" in
    svc*' '[0-9]*.[0-9]*.[0-9]*) said=${said#* } ;;
    # What does not run may still be known: the receipt is from the installation.
    *) said=$(grep '^version ' "$receipt" 2>/dev/null | cut -d ' ' -f 2) || said= ;;
  esac
  said=${said%%[!0-9.]*}
  case "$said" in
    [0-9]*.[0-9]*.[0-9]*) printf '%s\n' "$said" ;;
  esac
}

# is_older <version> <version>: whether the first is older than the second.
is_older() {
  first=$1.
  second=$2.
  while [ -n "$first" ] && [ -n "$second" ]; do
    if [ "${first%%.*}" -lt "${second%%.*}" ]; then return 0; fi
    if [ "${first%%.*}" -gt "${second%%.*}" ]; then return 1; fi
    first=${first#*.}
    second=${second#*.}
  done
  return 1
}

check_downgrade() {
  present=$(installed_version)
  if [ -z "$present" ] || ! is_older "$VERSION" "$present"; then return 0; fi
  if [ "$downgrade" = 1 ]; then
    say "Replacing svc $present by the older $VERSION."
    return 0
  fi
  die "svc $present in $directory is newer than $VERSION. Nothing was replaced." \
    'Read how to go back a version in svc docs upgrade, then use --allow-downgrade.'
}

# Chooses the key and the program that verify the signature. Fails if there is none.
choose_key() {
  key=${SVC_PUBLIC_KEY_FILE:-}
  verifier=minisign
  if [ -n "$key" ]; then
    [ -r "$key" ] || die "SVC_PUBLIC_KEY_FILE: $key cannot be read."
    if grep -q 'BEGIN PUBLIC KEY' "$key"; then verifier=openssl; fi
    command -v "$verifier" >/dev/null 2>&1 ||
      die "$verifier is needed for the key in SVC_PUBLIC_KEY_FILE. Nothing was installed."
  elif [ -n "$MINISIGN_KEY" ] && command -v minisign >/dev/null 2>&1; then
    key=$work/minisign.pub
    printf 'untrusted comment: svc\n%s\n' "$MINISIGN_KEY" >"$key"
  elif [ -n "$PUBLIC_KEY" ] && command -v openssl >/dev/null 2>&1; then
    verifier=openssl
    key=$work/key.pem
    printf '%s\n' "$PUBLIC_KEY" >"$key"
  else
    return 1
  fi
}

verify_signature() {
  if ! choose_key; then
    if [ "${SVC_REQUIRE_SIGNATURE:-0}" = 1 ]; then
      die 'No signature can be verified: a public key, and minisign or openssl, are needed.' \
        'Nothing was installed.'
    fi
    return 0
  fi
  fetch SHA256SUMS "$work/SHA256SUMS"
  if [ "$verifier" = minisign ]; then
    fetch SHA256SUMS.minisig "$work/SHA256SUMS.minisig"
    minisign -V -q -p "$key" -m "$work/SHA256SUMS" -x "$work/SHA256SUMS.minisig" \
      >/dev/null 2>&1 || die 'The signature of SHA256SUMS is wrong. Nothing was installed.'
  else
    fetch SHA256SUMS.sig "$work/SHA256SUMS.sig"
    openssl dgst -sha256 -verify "$key" -signature "$work/SHA256SUMS.sig" "$work/SHA256SUMS" \
      >/dev/null 2>&1 || die 'The signature of SHA256SUMS is wrong. Nothing was installed.'
  fi
  grep -q "^$digest  $artefact\$" "$work/SHA256SUMS" ||
    die "SHA256SUMS does not list this $artefact. Nothing was installed."
  say "Verified the signature of SHA256SUMS with $verifier."
}

install_artefact() {
  work=$(mktemp -d)
  fresh=
  trap 'rm -rf "$work" ${fresh:+"$fresh"}' EXIT
  trap 'exit 130' INT TERM HUP
  fetch "$artefact" "$work/$artefact"
  found=$(sha256 "$work/$artefact")
  [ "$found" = "$digest" ] || die "$artefact has sha256 $found, not $digest. Nothing was installed."
  verify_signature
  mkdir "$work/unpacked"
  tar -xzf "$work/$artefact" -C "$work/unpacked"
  executable=$work/unpacked/svc-server
  said=$("$executable" version 2>"$work/stderr") || cannot_run "$work/stderr"
  case "$said" in
    *"$VERSION"*) ;;
    *) die "The executable says it is version $said, not $VERSION." ;;
  esac
  mkdir -p "$directory" "$share"
  # Renaming inside one directory replaces a running executable without a moment between.
  fresh=$(mktemp "$directory/.svc-server.XXXXXX")
  cp "$executable" "$fresh"
  chmod 755 "$fresh"
  mv -f "$fresh" "$directory/svc-server"
  fresh=$directory/.svc.$$
  ln "$directory/svc-server" "$fresh" 2>/dev/null || cp "$directory/svc-server" "$fresh"
  mv -f "$fresh" "$directory/svc"
  fresh=
  rm -rf "$share/files"
  mv "$work/unpacked" "$share/files"
  rm -f "$share/files/svc-server"
  {
    say "version $VERSION"
    say "target $target"
    say "artefact $digest"
    say "executable $(sha256 "$directory/svc-server")"
    # `svc upgrade` asks the same mirror for the next version.
    case "${SVC_BASE_URL:-}" in https://*) say "base $SVC_BASE_URL" ;; esac
  } >"$receipt"
  say "Installed $directory/svc and $directory/svc-server."
}

# Puts manual pages and completions where shells look for them. A file that someone else put there
# stays, and so does a directory of another user: the rest of the installation does not depend on it.
install_shared() {
  if [ "$completions" = 0 ] || [ -z "$shared" ]; then return 0; fi
  if [ "$dry_run" = 1 ]; then
    say "Would put manual pages and shell completions below $shared."
    return 0
  fi
  [ -d "$share/files/share" ] || return 0
  remove_shared
  mkdir -p "$shared" 2>/dev/null || true
  if [ ! -O "$shared" ] || [ ! -w "$shared" ]; then
    say "$shared belongs to another user: manual pages and completions stay in $share/files/share."
    return 0
  fi
  for source in "$share"/files/share/*/*/*; do
    target_file=$shared/${source#"$share/files/share/"}
    if [ -e "$target_file" ] || [ -L "$target_file" ]; then
      say "Left $target_file as it is: this script did not put it there."
    elif mkdir -p "${target_file%/*}" 2>/dev/null && [ -O "${target_file%/*}" ] &&
      cp "$source" "$target_file" 2>/dev/null; then
      say "$(sha256 "$target_file") $target_file" >>"$share/shared"
    else
      say "Could not write $target_file."
    fi
  done
  say "Put manual pages and shell completions below $shared."
}

# Removes what install_shared put somewhere and nobody changed since.
remove_shared() {
  [ -f "$share/shared" ] || return 0
  while read -r sum path; do
    if [ -f "$path" ] && [ ! -L "$path" ] && [ "$(sha256 "$path")" = "$sum" ]; then
      if [ "$dry_run" = 1 ]; then say "Would remove $path."; else rm -f "$path"; fi
    fi
  done <"$share/shared"
  if [ "$dry_run" = 0 ]; then rm -f "$share/shared"; fi
}

# cannot_run <file with what the executable printed to standard error>
cannot_run() {
  # Systems with musl, such as Alpine, have no C++ library unless a package brings it.
  if grep -q 'libstdc++' "$1"; then
    die 'The executable needs libstdc++. Install it (Alpine: apk add libstdc++) and run this again.'
  fi
  head -n 3 "$1" >&2
  die 'The executable does not run on this machine.'
}

remove() {
  if [ ! -f "$receipt" ]; then die "Nothing of this installer is in $directory."; fi
  for unit in /etc/systemd/system/svc-server.service /etc/init.d/svc-server \
    /Library/LaunchDaemons/svc-server.plist; do
    if grep -F -q "$directory/svc-server" "${DESTDIR:-}$unit" 2>/dev/null; then
      die "A service runs it. Remove the service first: $directory/svc-server setup --uninstall"
    fi
  done
  remove_shared
  for path in "$directory/svc" "$directory/svc-server" "$directory/svc-server.previous" "$share"; do
    if [ "$dry_run" = 1 ]; then say "Would remove $path."; else rm -rf "$path"; fi
  done
  if [ "$dry_run" = 0 ]; then say 'Removed. Data, settings and secrets are where they were.'; fi
}

# Before anything is installed: who cannot have the service may not want the rest.
check_service() {
  root=${DESTDIR:-}
  [ "$(uname -s)" = Linux ] || die '--service is for Linux with systemd.'
  if [ -z "$root" ]; then
    [ "$(id -u)" = 0 ] || die '--service needs root.'
    command -v systemctl >/dev/null 2>&1 || die '--service needs systemd.'
  fi
}

# Before anything is installed, as check_service.
check_setup() {
  if [ "$service" = 1 ]; then die 'Give --with-postgres or --service, not both.'; fi
  case "$(uname -s)" in
    Linux | Darwin) ;;
    *) die '--with-postgres is for Linux and macOS.' ;;
  esac
  [ "$(id -u)" = 0 ] || die '--with-postgres needs root.'
  if [ "$yes" = 0 ] && [ "$dry_run" = 0 ] && ! (: </dev/tty) 2>/dev/null; then
    die 'There is no terminal to ask on. Add --yes, or see the steps with --dry-run.'
  fi
}

# The executable asks on the terminal, since standard input may be this script.
run_setup() {
  if [ "$dry_run" = 1 ] && [ ! -x "$directory/svc-server" ]; then
    say "Would run $directory/svc-server setup, whose steps --dry-run prints once it is installed."
    return 0
  fi
  set -- setup --with-postgres
  if [ "$dry_run" = 1 ]; then set -- "$@" --dry-run; fi
  if [ "$yes" = 1 ]; then set -- "$@" --yes; fi
  "$directory/svc-server" "$@" </dev/null || exit
}

set_up_service() {
  if [ "$dry_run" = 1 ]; then
    say 'Would create the user svc, /etc/svc and svc-server.service.'
    return
  fi
  if [ -z "$root" ] && ! id svc >/dev/null 2>&1; then
    useradd --system --home-dir /var/lib/svc --shell /usr/sbin/nologin svc
  fi
  mkdir -p "$root/etc/svc" "$root/etc/systemd/system"
  if [ ! -e "$root/etc/svc/environment" ]; then
    (umask 077 && cp "$share/files/dist-config/environment.template" "$root/etc/svc/environment")
    say 'Wrote /etc/svc/environment: put the database URL into its file and read the rest.'
  fi
  # Whoever makes a second pepper loses every credential that the first one protects.
  if [ ! -e "$root/etc/svc/platform-identity-pepper" ]; then
    (umask 077 && head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n' \
      >"$root/etc/svc/platform-identity-pepper")
    say 'Wrote /etc/svc/platform-identity-pepper: back it up together with the database.'
  fi
  if [ -z "$root" ]; then
    chown -R root:svc /etc/svc
    chmod 750 /etc/svc
    chmod 640 /etc/svc/*
  fi
  unit=$root/etc/systemd/system/svc-server.service
  sed "s|^\\(Exec[A-Za-z]*=\\).*/svc-server|\\1$directory/svc-server|" \
    "$share/files/dist-config/svc-server.service" >"$unit"
  if [ -z "$root" ]; then systemctl daemon-reload; fi
  say 'Wrote svc-server.service. Start it with: systemctl enable --now svc-server'
}

advise() {
  case ":${PATH:-}:" in
    *":$directory:"*) ;;
    *) say "Add it to your PATH: export PATH=\"$directory:\$PATH\"" ;;
  esac
  if [ -f "$share/shared" ] && [ "$(id -u)" != 0 ]; then
    say "For zsh add this before compinit: fpath=($shared/zsh/site-functions \$fpath)"
  fi
  if [ -n "$UPGRADE_URL" ]; then say 'svc upgrade replaces it by a newer release.'; fi
}

main "$@"
exit
}
