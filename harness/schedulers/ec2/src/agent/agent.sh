# Muster's agent: runs one script, keeps its log in S3, ends the instance. The variables above are its input.
# It needs sh, tar, gzip, dd, awk, sed, head, tail, find, ls, sha256sum, base64, setsid, and curl, wget or python3. It never prints a URL.
set -u
root=${RFM_ROOT:-/var/lib/muster}
imds=${RFM_IMDS:-http://169.254.169.254}
console=${RFM_CONSOLE:-/dev/console}
mkdir -p "$root" && cd "$root" || exit 1
now() { date +%s; }
# Seconds that pass, also where somebody sets the clock.
passed() {
  if read -r up _ </proc/uptime; then echo "${up%%.*}"; else now; fi
} 2>/dev/null

# The new timer replaces the old one. Where it does not, there is a moment without one.
timer() { shutdown -P "$1" || { shutdown -c && shutdown -P "$1"; }; }

# A boot forgets the timer and runs only hooks. So the hook is written first, and each start sets the timer to the time that is left.
[ "$0" = "$root/agent" ] || cp "$0" agent
hook=${RFM_HOOKS:-/var/lib/cloud/scripts/per-boot}/rfm
mkdir -p "${hook%/*}" && printf '#!/bin/sh\nexec sh %s/agent\n' "$root" >"$hook" && chmod 755 "$hook"
[ -s deadline ] || echo $(($(now) + minutes * 60)) >deadline
left=$((($(cat deadline) - $(now) + 59) / 60))
if [ "$left" -gt 0 ]; then timer "+$left"; else timer now; fi
# What has ended only waits for its end.
[ ! -e over ] || exit 0

# Cloud-init waits for its scripts, so the agent goes on as a service of its own.
if [ "${1-}" != detached ]; then
  if [ -d /run/systemd/system ] && systemd-run --quiet --unit=rfm-agent -p OOMScoreAdjust=-900 /bin/sh "$root/agent" detached; then
    exit 0
  fi
  setsid sh "$root/agent" detached </dev/null >agent.out 2>&1 &
  exit 0
fi

# Clients are called by their paths: BusyBox has a wget of its own, which cannot send.
find_program() (
  IFS=:
  for folder in $PATH; do [ -x "$folder/$1" ] && echo "$folder/$1" && exit 0; done
  exit 1
)
works() {
  client=$(find_program "$1") || return 1
  if [ "$1" = wget ]; then case $("$client" --help 2>&1) in *--method*) ;; *) return 1 ;; esac fi
}
for tool in curl wget python3 none; do works "$tool" && break; done
: >empty
patience=120

# request METHOD FILE-TO-SEND FILE-FOR-THE-ANSWER HEADER: the URL is on standard input, out of sight of ps.
request() {
  case $tool in
  curl)
    IFS= read -r url
    printf 'url = "%s"\n' "$url" | "$client" -sSf -m "$patience" -y 120 -K - -X "$1" -H "$4" -o "$3" ${2:+-T} ${2:+"$2"}
    ;;
  wget) "$client" -q -T 120 -t 1 --method="$1" --header="$4" -O "$3" -i - ${2:+--body-file="$2"} ;;
  python3)
    "$client" -c 'import shutil, sys, urllib.request as u
method, source, target, header = sys.argv[1:]
body = open(source, "rb").read() if source else None
request = u.Request(sys.stdin.readline().strip(), data=body, method=method, headers=dict([header.split(": ", 1)]))
with u.urlopen(request, timeout=120) as answer, open(target, "wb") as file: shutil.copyfileobj(answer, file)' "$@"
    ;;
  *) return 1 ;;
  esac
}

# link METHOD NAME: the URL of an object, for this rank.
link() {
  awk -v rank="$rank" -v method="$1" -v name="$2" \
    '($1 == rank || $1 == "*") && $2 == method && $3 == name { print $4; found = 1; exit } END { exit !found }' boot
}

get() { link GET "$1" | request GET '' "$1.part" 'Accept: */*' && mv "$1.part" "$1"; }
put() { link PUT "$1" | request PUT "$2" answer 'Content-Type: application/octet-stream'; }
# Instances have the metadata service alone before they know any URL. Its tokens expire.
token() {
  printf '%s/latest/api/token\n' "$imds" | request PUT empty token "X-aws-ec2-metadata-token-ttl-seconds: $ttl" &&
    token=$(cat token) renewed=$(($(passed) + ttl / 2))
}
fact() { # NAME: into a file
  [ "$(passed)" -lt "$renewed" ] || token
  printf '%s/latest/%s\n' "$imds" "$1" | request GET '' fact "X-aws-ec2-metadata-token: $token"
}
# retry TRIES COMMAND: until it succeeds. No new try begins after `most` seconds, since each may take long.
retry() {
  left=$1 by=$(($(passed) + most))
  shift
  until "$@"; do
    left=$((left - 1))
    [ "$left" -gt 0 ] && [ "$(passed)" -lt "$by" ] || return 1
    sleep "$pause"
  done
}
# Asks for what nothing begins without. Where it fails, the token may be wrong.
ask() { # COMMAND
  "$1" && return
  token
  return 1
}
launch_index() { fact meta-data/ami-launch-index && rank=$(cat fact) && [ -n "$rank" ]; }
# The rest is in one document. An address of IPv4 may not exist.
identity() {
  fact dynamic/instance-identity/document || return 1
  eval "$(awk -F '"' -v RS=, '
    BEGIN { name["instanceId"] = "instance"; name["instanceType"] = "type"; name["availabilityZone"] = "zone"; name["privateIp"] = "ip" }
    $2 in name && $4 ~ /^[a-zA-Z0-9.:-]+$/ { print name[$2] "=" $4 }' fact)"
  [ -n "$instance" ]
}
learn() {
  retry "$tries" token || return 1
  if [ "$nodes" -eq 1 ]; then
    retry "$tries" ask identity
  else
    retry "$tries" ask launch_index && retry "$tries" ask identity && [ -n "$ip" ]
  fi
}
status() { # STATE EXIT
  # While the script runs, only what was sent counts: the rest may be lost with the instance.
  case $1 in booted | ready | running) length=$sent ;; *) length=$(size) ;; esac
  printf '{"v":1,"id":"%s","rank":%s,"instance":"%s","ip":"%s","type":"%s","zone":"%s","kernel":"%s","microcode":"%s","key":"%s","state":"%s","exit":%s,"started":%s,"ended":%s,"log_bytes":%s,"outputs":"%s","t":%s}\n' \
    "$id" "$rank" "$instance" "$ip" "$type" "$zone" "$kernel" "$microcode" "$key" "$1" "$2" "$started" "$ended" "$length" "$outputs" "$(now)" >status &&
    [ -s status ] && put status status
}
bytes() { wc -c <"$1" | tr -d ' '; }
# The length of the log. If it has shrunk, more than was sent: a reader sees that something is missing.
size() { echo $(($(bytes log) + (shrank == 1 ? sent + 1 : 0))); }

# Sends what is new. An object is never torn, so the last segment is sent again until it is full. A full disk has no room for a piece.
push() {
  total=$(bytes log)
  [ "$total" -ge "$sent" ] || shrank=1
  [ "$shrank" -eq 0 ] || return 0
  while [ "$sent" -lt "$total" ]; do
    number=$(printf 'log.%03d' "$segment")
    link PUT "$number" >/dev/null || return 0
    dd if=log of=piece bs="$block" skip=$((segment * blocks)) count="$blocks" 2>/dev/null || return 1
    end=$((segment * block * blocks + $(bytes piece)))
    [ "$end" -gt "$sent" ] && put "$number" piece || return 1
    sent=$end
    if [ $((sent % (block * blocks))) -eq 0 ]; then segment=$((segment + 1)); fi
  done
}

# What S3 did not take goes to the console: numbered lines of 57 bytes, so that lines of others between them do no harm. EC2 keeps
# 64 KiB of it, and a line has 101 bytes there. Its beginning may be gone, so the first line is the last one, too.
tail_to_console() { # EXIT
  total=$(size)
  from=$((total > 32000 ? total - 32000 : 0))
  [ "$shrank" -eq 0 ] || from=$total
  head="rfm-log $id $rank exit=$1 total=$total from=$from"
  {
    echo "$head"
    tail -c +$((from + 1)) log | base64 | awk -v name="$id $rank" '{ printf "rfm-log %s %d %s\n", name, NR - 1, $0 }'
    echo "$head end"
  } >>"$console" 2>/dev/null
}

deliver() { push && status "$1" "$2"; }
finish() { # STATE EXIT
  # Sending needs room on the disk.
  rm -f reserve
  most=300
  if ! retry "$tries" deliver "$1" "$2"; then
    status "$1" "$2"
    tail_to_console "$2"
  fi
  if [ "$2" -ne 0 ] && [ "$keep" -gt 0 ]; then
    echo $(($(now) + keep * 60)) >until && [ -s until ] && mv until deadline
    : >over
    timer "+$keep"
  else
    timer now
  fi
  exit 0
}
stopped() { [ "$nodes" -gt 1 ] && get stop 2>/dev/null; }
interrupted() { [ "$spot" -eq 1 ] && fact meta-data/spot/instance-action 2>/dev/null; }
kill_script() { kill -"$1" -"$(cat pid)" 2>/dev/null; }

# Sends what `keep_files` names of the files that the script has made or changed: an archive of at most 1 GiB.
is_kept() {
  while IFS= read -r pattern; do
    # shellcheck disable=SC2254  # it is a pattern
    case $1 in $pattern) return 0 ;; esac
  done <patterns
  return 1
}
# What is there: names, and lines with numbers, sizes and times, whose columns differ from one listing to the next.
names() { (cd work && find . -type f ! -path './rfm_*' "$@") | sed 's|^\./||'; }
files() { (cd work && find . -type f ! -path './rfm_*' -exec ls -lind {} +); }
# Other names than before, other facts of a file that came with the script, and what may only have other content.
changed() {
  names | awk 'FILENAME == "known" { known[$0]; next } !($0 in known)' known -
  files >after
  awk 'FILENAME == "known" { known[$0]; next }
    at = index($0, " ./") {
      facts = substr($0, 1, at); gsub(/ +/, " ", facts); name = substr($0, at + 3)
      if (FILENAME == "before") before[name] = facts; else if (name in known && before[name] != facts) print name
    }' known before after
  names -newer ../marker
}
# gather COMMAND: puts what is kept into a folder with it, and names there what cannot be had: a file that has gone, or whose
# name has a line break.
gather() {
  rm -rf kept && mkdir kept || return 1
  while IFS= read -r file; do
    is_kept "$file" || continue
    case $file in */*) mkdir -p "kept/${file%/*}" ;; esac
    if [ ! -f "work/$file" ] || ! { "$1" "work/$file" "kept/$file" || cp "work/$file" "kept/$file"; }; then
      # Half a file must not look like a whole one.
      rm -f "kept/$file"
      printf '%s\n' "$file" >>kept/rfm_missing || return 1
    fi
  done <list
  tar -czf outputs -C kept .
}
send_outputs() {
  # Only the first has an address for them.
  [ "$keeps_files" -eq 1 ] && [ "$rank" -eq 0 ] && [ -e marker ] || return 0
  # The time of the script is over.
  push
  status sending "$code"
  outputs=lost
  awk '$2 == "KEEP" { print $3 }' boot >patterns && changed >list.all && awk '!seen[$0]++' list.all >list || return 1
  # What is still written makes no archive, and its copy does.
  gather ln || gather cp || return 1
  outputs=large
  [ "$(bytes outputs)" -le 1073741824 ] || return 1
  outputs=lost patience=3600 most=3600
  retry "$tries" put outputs outputs && outputs=sent
}

rank='' instance='' ip='' type='' zone='' key='' started=null ended=null segment=0 sent=0 shrank=0 outputs=none ttl=21600 renewed=0 token='' most=604800
kernel=$(uname -r)
microcode=$(sed -n 's/^microcode[^:]*: *//p' /proc/cpuinfo 2>/dev/null | head -n 1)
: >>log
[ "$nodes" -gt 1 ] || rank=0
learn
learned=$?
# Of several, one that does not know which it is can say nothing to the others.
if [ -z "$rank" ]; then
  echo 'the metadata service of the instance does not answer' >>log
  tail_to_console 125
  timer now
  exit 1
fi
boot() { printf '%s\n' "$url_of_boot" | request GET '' boot 'Accept: */*'; } 2>why
if ! retry "$tries" boot; then
  # A client's last line has no URL.
  { echo "no URL was read from S3, with $tool:" && tail -n 1 why; } >>log
  tail_to_console 125
  timer now
  exit 1
fi
chmod 600 boot
# A second boot has lost the script: what is there of its log is all there will be.
[ -e pid ] && finish rebooted 125
if [ "$learned" -ne 0 ]; then
  echo 'the metadata service of the instance does not answer' >>log
  finish failed 125
fi
retry 5 status booted null
if ! retry 5 get bundle || ! echo "$(link SHA bundle)  bundle" | sha256sum -c - >/dev/null 2>&1; then
  echo 'the bundle did not arrive as it was sent' >>log
  finish failed 125
fi
mkdir -p work
tar -xzf bundle -C work || finish failed 125
# The disks of the instance itself: their model tells them from volumes. They are empty whenever an instance begins.
mount_store() {
  set --
  for disk in "${RFM_SYS:-/sys}"/block/nvme*; do
    # A path to a disk is not the disk.
    case ${disk##*/} in nvme*c*n*) continue ;; esac
    case $(cat "$disk/device/model" 2>&1) in *'Instance Storage'*) set -- "$@" "/dev/${disk##*/}" ;; esac
  done
  if [ $# -eq 0 ]; then echo "the instance has no disks for $store" >>log && return 1; fi
  if [ $# -gt 1 ] && find_program mdadm >/dev/null; then
    mdadm --create /dev/md0 --run --force --level=0 --raid-devices=$# "$@" || return 1
    set -- /dev/md0
  elif [ $# -gt 1 ]; then
    echo "$store has one of the $# disks: there is no mdadm, which joins them" >>log
  fi
  if find_program mkfs.xfs >/dev/null; then mkfs.xfs -q -f "$1"; else mkfs.ext4 -q -F "$1"; fi || return 1
  # By its path, as the clients: BusyBox has one of its own.
  mount=$(find_program mount) && mkdir -p "$store" && "$mount" -o noatime "$1" "$store" && chmod 1777 "$store"
}
if [ -n "$store" ]; then
  if ! mount_store >mounted 2>&1; then
    cat mounted >>log
    finish failed 125
  fi
  RFM_INSTANCE_STORE=$store
  export RFM_INSTANCE_STORE
fi
# Data sets: each file is what was named, or the script does not begin. The most time they have is that of the instance.
is_right() { # FILE DIGEST-OR-SIZE
  case $2 in
  sha256:*) echo "${2#*:}  $1" | sha256sum -c - >/dev/null 2>&1 ;;
  md5:*) echo "${2#*:}  $1" | md5sum -c - >/dev/null 2>&1 ;;
  *) [ "$(bytes "$1")" = "${2#*:}" ] ;;
  esac
}
fetch() { printf '%s\n' "$url" | request GET '' "$path.part" 'Accept: */*' && is_right "$path.part" "$check"; }
fetch_data() {
  patience=$((limit + 86400))
  awk '$2 == "DATA" { print $3, $4, $5, $6 }' boot >data || return 1
  while read -r path check unpack url; do
    case $path in /*) ;; *) path=work/$path ;; esac
    folder=$path
    [ "$unpack" = 1 ] || folder=${path%/*}
    mkdir -p "$folder" || return 1
    [ "$unpack" = 1 ] && path=$root/archive
    retry 5 fetch || { echo "the data set for $folder did not arrive as it was named ($check)" >>log && return 1; }
    if [ "$unpack" = 1 ]; then
      tar -xf "$path.part" -C "$folder" 2>untar || tar -xzf "$path.part" -C "$folder" 2>>untar || { cat untar >>log && return 1; }
      rm -f "$path.part"
    else
      mv "$path.part" "$path"
    fi
  done <data
  patience=120
}
if ! fetch_data; then finish failed 125; fi

# Where memory runs out, the script is killed and not the agent.
unprotected() { echo 0 >/proc/self/oom_score_adj || :; } 2>/dev/null

# Several instances log in to each other with a server of their own: the image's is left alone. Each makes one pair of keys, as a
# host and as a user. The private one never leaves it; the public ones go with the status, and come to all with `go`.
serve_logins() {
  sshd=$(PATH=$PATH:/usr/local/sbin:/usr/sbin && find_program sshd) && find_program ssh >/dev/null && find_program ssh-keygen >/dev/null || return 1
  [ -e key ] || ssh-keygen -q -t ed25519 -N '' -C '' -f key || return 1
  mkdir -p /run/sshd
  cat >sshd_config <<CONFIG
Port 2222
ListenAddress $ip
HostKey $root/key
AuthorizedKeysFile $root/authorized_keys
AuthenticationMethods publickey
PermitRootLogin prohibit-password
StrictModes no
UsePAM yes
PidFile $root/sshd.pid
CONFIG
  cat >rfm-ssh <<CLIENT
#!/bin/sh
exec ssh -F /dev/null -l root -p 2222 -i $root/key -o IdentitiesOnly=yes -o BatchMode=yes -o ConnectTimeout=10 -o LogLevel=ERROR \\
  -o StrictHostKeyChecking=yes -o UserKnownHostsFile=$root/known_hosts -o GlobalKnownHostsFile=/dev/null "\$@"
CLIENT
  chmod 755 rfm-ssh
  rm -f sshd.pid
  (unprotected && exec "$sshd" -f "$root/sshd_config" -E "$root/sshd.log") || return 1
  # It goes on in the background before it knows whether it can have the port.
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ ! -s sshd.pid ] || return 0
    case $(cat sshd.log) in *'Cannot bind'*) return 1 ;; esac
    sleep 1
  done
  return 1
}
# Slots of an instance: its GPUs, or else its physical cores.
slots() {
  gpus=$(nvidia-smi -L 2>/dev/null | wc -l | tr -d ' ')
  if [ "$gpus" -gt 0 ]; then echo "$gpus" && return; fi
  awk -F: '/^physical id/ { socket = $2 } /^core id/ && !seen[socket, $2]++ { cores++ } /^processor/ { threads++ }
    END { print cores ? cores : threads ? threads : 1 }' /proc/cpuinfo
}
# All let the first in before it may begin. Whom it does not reach is named.
reach() {
  while read -r host _; do
    until ./rfm-ssh "$host" true </dev/null 2>unreached; do
      if [ "$(passed)" -ge "$deadline" ] || stopped; then
        sed "s/^/$host does not let the first instance in: /" unreached >>log
        return 1
      fi
      sleep 1
    done
  done <go
}

# All begin when all are there; rank 0 alone runs the script, and what it is told says where the others are.
if [ "$nodes" -gt 1 ]; then
  # Without a server for logins, a script that starts nothing elsewhere still runs.
  if serve_logins; then key=$(awk '{ print $1, $2 }' key.pub); else echo 'no logins between the instances: sshd did not start'; fi
  retry 5 status ready null
  deadline=$(($(passed) + 900 + fetch))
  until get go 2>/dev/null; do
    stopped && finish stopped 125
    [ "$(passed)" -lt "$deadline" ] || finish failed 125
    sleep "$flush"
  done
  awk -v slots="$(slots)" '{ print $1 " slots=" slots }' go >hostfile
  awk 'NF > 2 { print "[" $1 "]:2222 " $2 " " $3 }' go >known_hosts
  awk 'NR == 1 && NF > 2 { print $2, $3 }' go >authorized_keys
  if [ "$rank" -ne 0 ]; then
    until stopped; do
      interrupted && finish interrupted 125
      sleep "$flush"
    done
    finish 'done' 0
  fi
  RFM_HOSTFILE=$root/hostfile RFM_NODES=$nodes
  export RFM_HOSTFILE RFM_NODES
  if [ "$(awk 'END { print NR }' known_hosts)" -eq "$nodes" ]; then
    reach || finish failed 125
    RFM_SSH=$root/rfm-ssh
    export RFM_SSH OMPI_MCA_plm_rsh_agent="$RFM_SSH" PRTE_MCA_plm_ssh_agent="$RFM_SSH" HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC="$RFM_SSH"
    export OMPI_MCA_orte_default_hostfile="$RFM_HOSTFILE" PRTE_MCA_prte_default_hostfile="$RFM_HOSTFILE" HYDRA_HOST_FILE="$RFM_HOSTFILE"
    # The script runs as root, on instances that end with it.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
fi

# A script may fill the disk: there is room for the end of its log, and its status. It is reserved without writing it where that is
# possible, for the disk would be busy with it while the script runs.
if ! fallocate -l $((block * blocks * 2)) reserve 2>/dev/null && ! dd if=/dev/zero of=reserve bs="$block" count=$((blocks * 2)) 2>/dev/null; then
  rm -f reserve
  echo 'the disk of the instance is full before the script begins' >>log
  finish full 125
fi
# A second between what is there and what the script makes: not every `find` knows smaller times.
if [ "$keeps_files" -eq 1 ]; then names >known && files >before && touch marker && sleep 1; fi
started=$(now) began=$(passed)
# Where the clock was set, the time at which the script began moves with it.
set_begin() {
  begin=$(($(now) - $(passed) + began))
  if [ $((begin - started)) -gt 5 ] || [ $((started - begin)) -gt 5 ]; then started=$begin; fi
}
# The log is a pipe for the script: opened again by it, as /dev/stderr, it is not emptied. `whole` and
# `draining` are removed to say what has happened: a full disk takes no new files. The signal ends the pause of the loop below at once.
trap : USR1
touch whole draining looping
{
  {
    # shellcheck disable=SC2016  # it is for the inner shell
    (cd work && unprotected && exec setsid sh -c 'echo $$ >"$1/pid" && . ./rfm_env.sh && exec sh ./rfm_job.sh' sh "$root") 2>&1 </dev/null
    code=$? full=''
    dd if=/dev/zero of=probe bs="$block" count=1 2>/dev/null || full=full
    rm -f probe
    until echo "$code $full" >exit.part && [ -s exit.part ]; do rm -f reserve && sleep 1; done 2>/dev/null
    mv exit.part exit
  } | { cat >>log 2>/dev/null || { rm -f whole && cat >/dev/null; }; }
  rm -f draining
  [ ! -e looping ] || kill -USR1 "$$"
} &
retry 5 status running null
state='done' code='' full='' again=0 drain=$grace
while [ ! -e exit ]; do
  sleep 1 &
  wait "$!"
  time=$(passed)
  if [ $((time - began)) -ge "$limit" ]; then
    state=timeout code=124
  elif [ "$time" -lt "$again" ]; then
    continue
  elif stopped; then
    state=stopped code=125
  elif interrupted; then
    state=interrupted code=125
  fi
  if [ -n "$code" ]; then
    kill_script TERM
    [ "$state" = interrupted ] && push
    while [ "$grace" -gt 0 ] && [ ! -e exit ]; do
      sleep 1
      grace=$((grace - 1))
    done
    kill_script KILL
    break
  fi
  push
  set_begin
  # The pause grows with the time that sending takes.
  took=$(($(passed) - time))
  again=$((time + took + (took * 5 > flush ? took * 5 : flush)))
  status running null
done
rm -f looping
[ -n "$code" ] || read -r code full <./exit
set_begin
ended=$(now)
# What it has left behind may hold the pipe for ever.
while [ "$drain" -gt 0 ] && [ -e draining ]; do
  sleep 1
  drain=$((drain - 1))
done
if [ "$state" != interrupted ]; then
  if [ ! -e whole ] || { [ -n "$full" ] && [ "$code" -ne 0 ]; }; then state=full; fi
  rm -f reserve
  send_outputs
fi
finish "$state" "$code"
