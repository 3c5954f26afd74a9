# Keeps what a database cannot be read without, and the user whose number owns files.
purge() {
  rm -f "/etc/systemd/system/multi-user.target.wants/$unit"
  rmdir /var/lib/svc/state /var/lib/svc 2>/dev/null || true
  rmdir /etc/svc 2>/dev/null || true
  if [ -d /etc/svc ]; then
    chown -R root:root /etc/svc
    say 'Kept the secrets in /etc/svc: the database is useless without its pepper.'
  fi
  if [ -d /var/lib/svc ]; then
    say 'Kept the data in /var/lib/svc, and the user svc, which owns it.'
  elif getent passwd svc >/dev/null; then
    userdel svc || true
  fi
}

case "$1" in
  remove)
    if has_systemd; then systemctl daemon-reload || true; fi
    ;;
  purge)
    purge
    if has_systemd; then systemctl daemon-reload || true; fi
    ;;
esac
