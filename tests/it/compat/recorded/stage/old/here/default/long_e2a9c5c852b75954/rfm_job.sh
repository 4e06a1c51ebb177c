#!/bin/sh
trap : TERM INT HUP
(
trap - TERM INT HUP
true
export OLD_SITE="yes"
export OLD_PARTITION="yes"
echo hello 2; echo "rate: 20.5 MB/s"; if [ 2 = 2 ]; then sleep ${NAP:-0}; fi; echo ended
)
rfm_status=$?
echo "$rfm_status" > rfm_job.exit
exit "$rfm_status"
