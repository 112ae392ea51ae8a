// Command controlplane is the Kubernetes that the cluster tests run against:
// etcd, kube-apiserver and kube-controller-manager, unchanged, in one program.
//
//	controlplane etcd -dir DIR -client URL -peer URL
//	controlplane kube-apiserver FLAGS...
//	controlplane kube-controller-manager FLAGS...
//
// The last two take exactly the flags of the programs they are named after.
package main

import (
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	name, args := os.Args[1], os.Args[2:]
	if os.Getenv("CONTROLPLANE_END_WITH_STDIN") != "" {
		go endWithStdin()
	}
	switch name {
	case "etcd":
		if err := runEtcd(args); err != nil {
			fmt.Fprintln(os.Stderr, "etcd:", err)
			os.Exit(1)
		}
	case "kube-apiserver":
		os.Exit(runCommand(apiserver.NewAPIServerCommand(), args))
	case "kube-controller-manager":
		os.Exit(runCommand(controllers.NewControllerManagerCommand(), args))
	default:
		usage()
	}
}

// endWithStdin ends the program when whoever started it is gone, however that
// came about.
func endWithStdin() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: controlplane etcd|kube-apiserver|kube-controller-manager FLAGS...")
	os.Exit(2)
}

// runCommand gives the command our arguments instead of the program's own,
// which begin with the sub-command.
func runCommand(command *cobra.Command, args []string) int {
	command.SetArgs(args)
	return cli.Run(command)
}

// runEtcd serves one member without fsync until a signal arrives: its data
// never outlives a test.
func runEtcd(args []string) error {
	flags := flag.NewFlagSet("etcd", flag.ExitOnError)
	dir := flags.String("dir", "", "data directory")
	client := flags.String("client", "", "URL for clients")
	peer := flags.String("peer", "", "URL for peers")
	_ = flags.Parse(args)

	clientURL, err := url.Parse(*client)
	if err != nil {
		return err
	}
	peerURL, err := url.Parse(*peer)
	if err != nil {
		return err
	}
	config := embed.NewConfig()
	config.Dir = *dir
	config.UnsafeNoFsync = true
	config.LogLevel = "warn"
	config.ListenClientUrls = []url.URL{*clientURL}
	config.AdvertiseClientUrls = config.ListenClientUrls
	config.ListenPeerUrls = []url.URL{*peerURL}
	config.AdvertisePeerUrls = config.ListenPeerUrls
	config.InitialCluster = config.InitialClusterFromName(config.Name)

	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer etcd.Close()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-signals:
		return nil
	case err := <-etcd.Err():
		return err
	}
}
