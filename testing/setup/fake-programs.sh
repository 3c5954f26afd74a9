#!/bin/sh
# Stands for the programs of a machine that is set up, by the name that it is called with. A call
# that changes the machine is a line of @WORK@/changes; its effect is a file in @WORK@/flags or
# below @WORK@/root. `fail-NAME` among the flags makes the program NAME fail, and `idle-NAME` lets
# it succeed without an effect.
root=@WORK@/root
flags=@WORK@/flags
name=${0##*/}

changes() { echo "$name $*" >>@WORK@/changes; }
flag() { /bin/mkdir -p "$flags" && echo "${2:-}" >"$flags/$1"; }
has() { [ -e "$flags/$1" ]; }
file() { /bin/mkdir -p "$root/${1%/*}" && echo "$2" >"$root$1"; }
program() { /bin/ln -sf "$0" "@WORK@/bin/$1"; }
for last; do :; done

if has "fail-$name"; then
  echo "$name: the disk is on fire" >&2
  exit 3
fi

if has "idle-$name"; then exit 0; fi

case "$name" in
  env)
    while :; do case "$1" in *=*) shift ;; *) break ;; esac; done
    case "$1" in /*) program=$root$1; shift; set -- "$program" "$@" ;; esac
    exec "$@"
    ;;
  runuser)
    has "user-$2" || [ "$2" = postgres ] || exit 1
    shift 3
    exec "$@"
    ;;
  sudo)
    # Only root, and the users that exist, get a process.
    while :; do case "$1" in -u) user=$2; shift 2 ;; --) shift; break ;; *) shift ;; esac; done
    has "user-$user" || [ "$user" = alice ] || exit 1
    case "$1" in /*) program=$root$1; shift; set -- "$program" "$@" ;; esac
    exec "$@"
    ;;
  id)
    if [ "$1" = -un ]; then echo alice; exit; fi
    has "user-$2" || exit 1
    /usr/bin/id "$1"
    ;;
  pg_lsclusters) [ ! -e "$flags/clusters" ] || /bin/cat "$flags/clusters" ;;
  psql)
    case "$last" in
      *server_version_num*) if has running-postgresql; then echo t; else exit 2; fi ;;
      *pg_roles*) if has role; then echo t; fi ;;
      *pg_get_userbyid*) if has database; then /bin/cat "$flags/database"; fi ;;
      *has_database_privilege*) if has closed; then echo t; fi ;;
      *'create role'*) changes "$last"; flag role ;;
      *'create database'*) changes "$last"; flag database svc ;;
      *revoke*) changes "$last"; flag closed ;;
      *) exit 1 ;;
    esac
    ;;
  apt-get)
    changes "$@"
    case "$last" in
      postgresql | postgresql-*[0-9])
        flag clusters '17  main    5432 down   postgres /var/lib/postgresql/17/main /log'
        program psql
        ;;
    esac
    ;;
  apt.postgresql.org.sh) changes "$@"; file /etc/apt/sources.list.d/pgdg.sources x ;;
  dnf) changes "$@"; program psql; program postgresql-setup ;;
  postgresql-setup) changes "$@"; file /var/lib/pgsql/data/PG_VERSION 18 ;;
  apk)
    changes "$@"
    case "$last" in runuser) program runuser ;; *) program psql ;; esac
    ;;
  brew)
    changes "$@"
    case "$1" in
      install)
        file "/opt/homebrew/opt/$last/bin/postgres" x
        /bin/ln -s "@WORK@/fake" "$root/opt/homebrew/opt/$last/bin/psql"
        file "/opt/homebrew/var/$last/PG_VERSION" "${last#*@}"
        ;;
      services)
        flag running-postgresql
        file "/Library/LaunchDaemons/homebrew.mxcl.$last.plist" x
        file "/opt/homebrew/var/$last/postmaster.pid" "$(printf '1\nx\n1\n5432\n/tmp')"
        ;;
    esac
    ;;
  dscl)
    case "$2" in
      -list) printf '_www        70\nroot         0\ntaken      499\n' ;;
      -read) if has "group-${3##*/}"; then echo "PrimaryGroupID: $(/bin/cat "$flags/group-${3##*/}")"; else exit 56; fi ;;
      *)
        changes "$@"
        case "$3 $4" in
          /Groups/*PrimaryGroupID) flag "group-svc" "$5" ;;
          /Users/*UniqueID) flag "user-${3##*/}" ;;
        esac
        ;;
    esac
    ;;
  launchctl)
    case "$1" in
      print) if has loaded; then echo "	state = $(/bin/cat "$flags/loaded")"; else exit 113; fi ;;
      enable) changes "$@" ;;
      bootstrap | kickstart)
        changes "$@"
        if has crashes; then flag loaded 'spawn scheduled'; else flag loaded running; fi
        flag running-svc-server
        ;;
      bootout) changes "$@"; /bin/rm -f "$flags/loaded" "$flags/running-svc-server"; exit 36 ;;
    esac
    ;;
  postgresql | pg_ctlcluster) changes "$@"; flag running-postgresql ;;
  useradd | adduser) changes "$@"; flag "user-$last" ;;
  addgroup)
    changes "$@"
    if [ -e "$root/etc/group" ] && grep -q "^$last:" "$root/etc/group"; then exit 1; fi
    file /etc/group "$last:x:101:"
    ;;
  install)
    changes "$@"
    case "$1" in
      -d) /bin/mkdir -p "$root$last"; /bin/chmod "$3" "$root$last" ;;
      *) file "$last" ''; /bin/chmod "$2" "$root$last" ;;
    esac
    ;;
  chmod) changes "$@"; /bin/chmod "$1" "$root$last" ;;
  mkdir) changes "$@"; /bin/mkdir -p -m "$3" "$root$last" ;;
  ln) changes "$@"; /bin/ln "$root$1" "$root$2" ;;
  rm) changes "$@"; /bin/rm -f "$root$last" ;;
  svc)
    changes "$@"
    file /var/lib/svc/product/service.json '{"environmentId": "env_01M8DT6YP1NSE8A5E3HFY974DX"}'
    ;;
  systemctl)
    case "$1" in
      is-enabled) if has "enabled-$2"; then echo enabled; else exit 1; fi ;;
      is-active) if has "running-$2"; then echo active; else exit 3; fi ;;
      show) if has stale; then echo yes; else echo no; fi ;;
      daemon-reload) changes "$@"; /bin/rm -f "$flags/stale" ;;
      enable) changes "$@"; flag "enabled-$last"; [ "$2" != --now ] || flag "running-$last" ;;
      disable) changes "$@"; /bin/rm -f "$flags/enabled-$last" "$flags/running-$last" ;;
      *) exit 1 ;;
    esac
    ;;
  rc-update)
    changes "$@"
    if [ "$1" = add ]; then file "/etc/runlevels/$3/$2" x; else /bin/rm -f "$root/etc/runlevels/$3/$2"; fi
    ;;
  rc-service)
    case "$*" in
      *status) has "running-$1" ;;
      *start) changes "$@"; flag "running-$1"; file /var/lib/postgresql/18/data/PG_VERSION 18 ;;
      *stop) changes "$@"; /bin/rm -f "$flags/running-$2" ;;
    esac
    ;;
  *) exit 127 ;;
esac
