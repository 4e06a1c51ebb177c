# shellcheck shell=bash
# Kueue and JobSet, for `run --with`: definitions, controllers, webhooks, queues. Sourced, never run.
#
# The controllers run beside the API server, as its admin, and serve their webhooks with its certificate.

# start_extra NAME PORT: expects cmd/NAME to be written, and the controller to tell its health at PORT.
start_extra() {
  admin create -f "$CLUSTER_BUILT/$1.yaml"
  until_ready definitions
  start_component "$1"
  until_ready "http://127.0.0.1:$2/readyz"
  sed "s|CA_BUNDLE|$(base64 -w0 "$DIR/pki/ca.crt")|" "$CLUSTER_BUILT/$1-webhooks.yaml" >"$DIR/$1-webhooks.yaml"
  admin create -f "$DIR/$1-webhooks.yaml"
}

serving_certificate() {
  mkdir -p "$DIR/serving"
  ln -sf ../pki/api.crt "$DIR/serving/tls.crt"
  ln -sf ../pki/api.key "$DIR/serving/tls.key"
}

start_jobset() {
  serving_certificate
  cat >"$DIR/jobset.yaml" <<END
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
webhook: {port: 9444, certDir: $DIR/serving}
health: {healthProbeBindAddress: 127.0.0.1:8082}
metrics: {bindAddress: "0"}
END
  command_of jobset env KUBECONFIG="$DIR/pki/admin.conf" "$CLUSTER_BUILT/jobset" --config="$DIR/jobset.yaml"
  start_extra jobset 8082
}

start_kueue() {
  serving_certificate
  cat >"$DIR/kueue.yaml" <<END
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
webhook: {port: 9443, certDir: $DIR/serving}
health: {healthProbeBindAddress: 127.0.0.1:8081}
metrics: {bindAddress: "0"}
managedJobsNamespaceSelector:
  matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kueue-system]}]
integrations: {frameworks: [batch/job, pod, jobset.x-k8s.io/jobset]}
END
  # Kueue reads one certificate from a path that cannot be set: it alone sees an /etc that has it.
  cat >"$DIR/cmd/kueue" <<END
#!/bin/sh
exec unshare --mount sh -c '
  mkdir -p $DIR/etc/work $DIR/etc/files/kueue/metrics
  mount -t overlay -o lowerdir=/etc,upperdir=$DIR/etc/files,workdir=$DIR/etc/work overlay /etc
  ln -sfn $DIR/serving /etc/kueue/metrics/certs
  exec env KUBECONFIG=$DIR/pki/admin.conf POD_NAMESPACE=kueue-system \\
    $CLUSTER_BUILT/kueue --config=$DIR/kueue.yaml --feature-gates=VisibilityOnDemand=false'
END
  chmod +x "$DIR/cmd/kueue"
  admin create namespace kueue-system
  admin create namespace eidf095ns
  start_extra kueue 8081
  write_queues >"$DIR/queues.yaml"
  admin create -f "$DIR/queues.yaml"
}

write_queues() {
  local namespace
  cat <<'END'
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: muster}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: muster-cq}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: muster
      resources:
      - {name: cpu, nominalQuota: 8}
      - {name: memory, nominalQuota: 16Gi}
      - {name: nvidia.com/gpu, nominalQuota: 4}
END
  for namespace in default eidf095ns; do
    cat <<END
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: eidf095ns-user-queue, namespace: $namespace}
spec: {clusterQueue: muster-cq}
END
  done
}
