case "$1" in
  remove | deconfigure)
    if has_systemd; then service stop || true; fi
    ;;
esac
