// What a cluster needs before its first process, and the waiting for it: keys, images, readiness. Standard library only,
// so that it builds in seconds and starts in milliseconds.
package main

import (
	"fmt"
	"os"
	"strings"
)

const usage = `usage: setup pki DIR ADDRESS NODE...              keys, certificates and kubeconfigs
       setup image NAME FILE BUSYBOX COMMAND...   an OCI archive with busybox in it
       setup image-of FOLDER NAME FILE BUSYBOX COMMAND...   and with what is in a folder
       setup await DIR SECONDS WHAT...            WHAT is api, account, definitions, node/NAME, a socket, an http:// address`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "setup:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) >= 4 && args[0] == "pki":
		return writeKeys(args[1], args[2], args[3:])
	case len(args) >= 5 && args[0] == "image":
		return writeImage(args[1], args[2], args[3], "", args[4:])
	case len(args) >= 6 && args[0] == "image-of":
		return writeImage(args[2], args[3], args[4], args[1], args[5:])
	case len(args) >= 4 && args[0] == "await":
		return await(args[1], args[2], args[3:])
	}
	return fmt.Errorf("cannot make sense of `%s`\n%s", strings.Join(args, " "), usage)
}
