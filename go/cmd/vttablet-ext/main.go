package main

import (
	"vitess.io/vitess/go/cmd/vttablet/cli"
)

func main() {
	_ = cli.Main.Execute()
}
