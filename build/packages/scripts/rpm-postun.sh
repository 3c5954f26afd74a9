if has_systemd; then systemctl daemon-reload || true; fi
if [ "$1" = 0 ]; then
  say 'Kept /etc/svc, the data in /var/lib/svc, and the user svc, which owns it.'
fi
