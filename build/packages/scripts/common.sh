# Functions of the scripts that package managers run. Each script begins with this file.
unit=svc-server.service

say() { printf '%s\n' "svc: $*"; }

has_systemd() { [ -d /run/systemd/system ] && command -v systemctl >/dev/null 2>&1; }

# service start|stop|restart: for the unit, by the policy of the machine where it has one.
service() {
  if command -v deb-systemd-invoke >/dev/null 2>&1; then
    deb-systemd-invoke "$1" "$unit"
  else
    systemctl "$1" "$unit"
  fi
}

make_user() {
  if getent passwd svc >/dev/null; then return 0; fi
  if command -v systemd-sysusers >/dev/null 2>&1; then
    echo 'u svc - "svc application backend" /var/lib/svc' |
      systemd-sysusers --replace=/usr/lib/sysusers.d/svc.conf -
  else
    useradd --system --user-group --home-dir /var/lib/svc --no-create-home \
      --shell /usr/sbin/nologin --comment 'svc application backend' svc
  fi
}

make_directories() {
  if command -v systemd-tmpfiles >/dev/null 2>&1; then
    systemd-tmpfiles --create svc.conf
  else
    install -d -o svc -g svc -m 0700 /var/lib/svc /var/lib/svc/state
  fi
}

# A second pepper would make every credential useless that the first one protects.
make_pepper() {
  if [ -e /etc/svc/platform-identity-pepper ]; then return 0; fi
  (umask 077 && head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n' \
    >/etc/svc/platform-identity-pepper)
  chmod 0640 /etc/svc/platform-identity-pepper
  say 'Made /etc/svc/platform-identity-pepper: back it up together with the database.'
}

# Lets the server read its settings and secrets, and no other user.
own_settings() {
  chgrp svc /etc/svc
  chmod 0750 /etc/svc
  for file in /etc/svc/environment /etc/svc/platform-identity-pepper "$@"; do
    if [ -f "$file" ] && [ ! -L "$file" ]; then chgrp svc "$file"; fi
  done
}

# set_up [first]
set_up() {
  make_user
  make_directories
  if [ "${1:-}" = first ]; then
    make_pepper
    own_settings /etc/svc/*
  else
    own_settings
  fi
  if has_systemd; then systemctl daemon-reload || true; fi
}

advise() {
  say 'The service is neither enabled nor started. Next:'
  say '  1. Write the URL of a PostgreSQL database into /etc/svc/identity-database-url,'
  say '     with the owner root:svc and the mode 0640.'
  say '  2. Read /etc/svc/environment.'
  say '  3. systemctl enable --now svc-server'
  if [ -e "/etc/systemd/system/$unit" ]; then
    say "/etc/systemd/system/$unit hides the unit of this package: remove it."
  fi
}

# Restarts a server that runs, unless the previous version could not start again afterwards: such an
# upgrade is the decision of a person.
restart_upgraded() {
  if ! has_systemd || ! systemctl is-active --quiet "$unit"; then return 0; fi
  status=0
  systemd-run --quiet --wait --pipe --collect \
    --property=User=svc --property=Group=svc --property=EnvironmentFile=/etc/svc/environment \
    /usr/bin/svc-server upgrade --check </dev/null || status=$?
  case "$status" in
    0)
      service restart ||
        say 'The server did not restart: see journalctl -u svc-server.'
      ;;
    4)
      say 'The previous version still runs: there is no way back from this upgrade but a backup.'
      say 'Read svc docs upgrade, then: systemctl restart svc-server'
      ;;
    *)
      say "The previous version still runs: svc-server upgrade --check ended with $status."
      say 'Correct what it reports, then: systemctl restart svc-server'
      ;;
  esac
}
