if [ "$1" = 0 ] && has_systemd; then systemctl --no-reload disable --now "$unit" || true; fi
