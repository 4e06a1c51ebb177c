// The control plane, the node agent and the client of one Kubernetes version in a single binary: `cluster kubelet ...`.
//
// It only dispatches; what the programs are told stands in lib/components.sh.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	etcd "go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

func main() {
	// A link named kubectl is kubectl.
	if _, linked := commands[filepath.Base(os.Args[0])]; !linked {
		os.Args = os.Args[1:]
	}
	if len(os.Args) == 0 {
		fmt.Fprintln(os.Stderr, "cluster: which program? etcd, kubectl, kubelet, kube-apiserver, kube-controller-manager or kube-scheduler")
		os.Exit(2)
	}
	name := filepath.Base(os.Args[0])
	if name == "etcd" {
		etcd.Main(os.Args)
		return
	}
	command, known := commands[name]
	if !known {
		fmt.Fprintf(os.Stderr, "cluster: unknown program %s\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
