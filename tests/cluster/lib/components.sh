# shellcheck shell=bash
# What the components are told, and how they are started. Sourced, never run.
#
# The folder of a cluster ($MUSTER_CLUSTER_DIR, DIR here):
#   pki/     keys, certificates, kubeconfigs        bin/  kubectl          audit.log   every request, a JSON line each
#   cmd/X    the command of the component X         log/X.log              pid/X       its process id
#   n1/      the first node: containerd's and the kubelet's folders
# Components: etcd kube-apiserver kube-controller-manager kube-scheduler containerd-nN kubelet-nN [kueue] [jobset]

DIR=$MUSTER_CLUSTER_DIR

nodes() { seq -f 'n%g' 1 "$CLUSTER_NODES"; }

# start_component NAME: the log is kept over restarts. A session of its own keeps the terminal's Ctrl-C away.
start_component() {
  setsid "$DIR/cmd/$1" >>"$DIR/log/$1.log" 2>&1 </dev/null &
  echo $! >"$DIR/pid/$1"
  started+=("$1")
}

# command_of NAME PROGRAM ARGUMENT...
command_of() {
  local name=$1
  shift
  {
    echo '#!/bin/sh'
    printf 'exec'
    printf ' %q' "$@"
    echo
  } >"$DIR/cmd/$name"
  chmod +x "$DIR/cmd/$name"
}

write_settings() {
  local node
  mkdir "$DIR"/{bin,cmd,log,pid}
  ln -s "$CLUSTER_BUILT/cluster" "$DIR/bin/kubectl"
  "$CLUSTER_BUILT/setup" pki "$DIR/pki" "$CLUSTER_ADDRESS" $(nodes)
  "$CLUSTER_BUILT/setup" image rfm.test/busybox:1 "$DIR/busybox.tar" "$(command -v busybox)" sh
  "$CLUSTER_BUILT/setup" image rfm.test/pause:1 "$DIR/pause.tar" "$(command -v busybox)" sleep 2147483647
  write_control_plane
  for node in $(nodes); do
    write_containerd "$node"
    write_kubelet "$node"
  done
}

write_control_plane() {
  local program=$CLUSTER_BUILT/cluster pki=$DIR/pki
  cat >"$DIR/audit.yaml" <<'END'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
END
  command_of etcd "$program" etcd --data-dir="$DIR/etcd" --unsafe-no-fsync --log-level=warn \
    --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
    --listen-peer-urls=http://127.0.0.1:2380 --initial-advertise-peer-urls=http://127.0.0.1:2380 \
    --initial-cluster=default=http://127.0.0.1:2380
  # Tests inject containers as a mesh does, without a webhook to serve.
  command_of kube-apiserver "$program" kube-apiserver --etcd-servers=http://127.0.0.1:2379 \
    --secure-port=443 --bind-address=0.0.0.0 --advertise-address="$CLUSTER_ADDRESS" \
    --endpoint-reconciler-type=none --service-cluster-ip-range=10.96.0.0/24 --allow-privileged=true \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --client-ca-file="$pki/ca.crt" \
    --tls-cert-file="$pki/api.crt" --tls-private-key-file="$pki/api.key" \
    --kubelet-client-certificate="$pki/admin.crt" --kubelet-client-key="$pki/admin.key" \
    --kubelet-preferred-address-types=InternalIP --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file="$pki/sa.pub" --service-account-signing-key-file="$pki/sa.key" \
    --audit-policy-file="$DIR/audit.yaml" --audit-log-path="$DIR/audit.log" --profiling=false \
    --feature-gates=MutatingAdmissionPolicy=true --runtime-config=admissionregistration.k8s.io/v1beta1=true
  # A lost node shows after seven seconds instead of fifty.
  command_of kube-controller-manager "$program" kube-controller-manager --kubeconfig="$pki/kube-controller-manager.conf" \
    --service-account-private-key-file="$pki/sa.key" --root-ca-file="$pki/ca.crt" --use-service-account-credentials=true \
    --leader-elect=false --bind-address=127.0.0.1 --node-monitor-period=1s --node-monitor-grace-period=6s
  command_of kube-scheduler "$program" kube-scheduler --kubeconfig="$pki/kube-scheduler.conf" --leader-elect=false \
    --bind-address=127.0.0.1
}

# write_containerd NODE: the pods of every node can reach each other, for all bridges are in one network namespace.
write_containerd() {
  local at=$DIR/$1 number=${1#n}
  mkdir -p "$at/cni"
  cat >"$at/containerd.toml" <<END
version = 2
root = "$at/root"
state = "$at/state"
[grpc]
  address = "$at/c.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$at/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "rfm.test/pause:1"
  # Not every root may lower the score that the kernel picks its victims by.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$(cni_folder)"
    conf_dir = "$at/cni"
END
  cat >"$at/cni/10-bridge.conflist" <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods$number", "isDefaultGateway": true, "ipMasq": false,
   "ipam": {"type": "host-local", "subnet": "10.244.$number.0/24", "dataDir": "$at/addresses"}}]}
END
  command_of "containerd-$1" containerd --config "$at/containerd.toml"
}

# write_kubelet NODE. Two settings keep what cannot be had again: images are never collected, and a full disk evicts nobody.
write_kubelet() {
  local at=$DIR/$1 number=${1#n} port
  port=$((10240 + 10 * number))
  cat >"$at/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 0.0.0.0
port: $port
healthzPort: $((port + 1))
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP/${DIR##*/}/$1
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix://$at/c.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $DIR/pki/ca.crt}}
authorization: {mode: AlwaysAllow}
resolvConf: ""
serializeImagePulls: false
maxPods: 120
podLogsDir: $at/pods
# Above the longest log that a test wants whole, below the one that is to be rotated.
containerLogMaxSize: 2Mi
containerLogMonitorInterval: 3s
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 1Mi, nodefs.available: 0%, imagefs.available: 0%, nodefs.inodesFree: 0%}
# A sign of life each second, for the controller manager gives up after six.
nodeLeaseDurationSeconds: 4
nodeStatusUpdateFrequency: 1s
nodeStatusReportFrequency: 1m
END
  command_of "kubelet-$1" "$CLUSTER_BUILT/cluster" kubelet --config="$at/kubelet.yaml" --kubeconfig="$DIR/pki/$1.conf" \
    --hostname-override="$1" --node-ip="$CLUSTER_ADDRESS" --root-dir="$at/kubelet" --cert-dir="$at/kubelet-pki"
}

import_images() {
  local image
  for image in busybox pause; do
    ctr --address "$DIR/$1/c.sock" --namespace k8s.io images import "$DIR/$image.tar" >>"$DIR/log/images.log" 2>&1 ||
      give_up "the images could not be imported" "containerd-$1" images
  done
}

# dress_nodes: devices that are not there, and the label that manifests for real ones select.
dress_nodes() {
  local node resource path patch=""
  [ "$CLUSTER_GPUS" -gt 0 ] || return 0
  for resource in nvidia.com~1gpu graphcore.ai~1ipu; do
    for path in capacity allocatable; do
      patch+="${patch:+,}{\"op\": \"add\", \"path\": \"/status/$path/$resource\", \"value\": \"$CLUSTER_GPUS\"}"
    done
  done
  for node in $(nodes); do
    admin patch node "$node" --subresource=status --type=json --patch="[$patch]"
    admin label node "$node" nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB
  done
}

# admin ARGUMENT...: kubectl with all rights, in silence.
admin() {
  "$DIR/bin/kubectl" --kubeconfig="$DIR/pki/admin.conf" "$@" >>"$DIR/log/admin.log" 2>&1 || give_up "kubectl $1 $2 failed" admin
}
