if [ "$1" = 1 ]; then
  set_up first
  advise
else
  set_up
  restart_upgraded
fi
