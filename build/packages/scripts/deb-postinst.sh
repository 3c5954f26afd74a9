case "$1" in
  configure)
    if [ -z "${2:-}" ]; then
      set_up first
      advise
    else
      set_up
      restart_upgraded
    fi
    ;;
esac
