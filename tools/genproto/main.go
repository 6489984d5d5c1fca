// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Command genproto writes the Go code of .proto files. It compiles them itself, so that no protoc is
// needed, and hands them to protoc-gen-go and protoc-gen-go-grpc in the versions that tools/go.mod fixes:
// the result is the same, byte for byte, on every machine.
//
//	go run ./genproto [-check] ROOT FILE...
//
// It runs in the tools module. Files are named relative to ROOT. With -check nothing is written: it fails if
// something would change.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// module is what the go_package of every file begins with; the rest is the folder below ROOT.
const module = "github.com/vttablet-ext/vttablet-ext"

func main() {
	check := flag.Bool("check", false, "fail if a generated file is not current, and write nothing")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: genproto [-check] ROOT FILE...")
		os.Exit(2)
	}
	if err := run(context.Background(), *check, flag.Arg(0), flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "genproto:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool, root string, names []string) error {
	files, err := compile(ctx, root, names)
	if err != nil {
		return err
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		generated, err := generate(ctx, plugin, names, files)
		if err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
		for _, f := range generated {
			if err := put(check, filepath.Join(root, f.GetName()), []byte(f.GetContent())); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile returns the descriptors of the files and of all they import, imported ones first.
func compile(ctx context.Context, root string, names []string) ([]*descriptorpb.FileDescriptorProto, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard, // comments
	}
	compiled, err := compiler.Compile(ctx, names...)
	if err != nil {
		return nil, err
	}
	var all []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	for _, f := range compiled {
		for i := range f.Imports().Len() {
			return nil, fmt.Errorf("%s imports %s: imports are not supported", f.Path(), f.Imports().Get(i).Path())
		}
		if !seen[f.Path()] {
			seen[f.Path()] = true
			all = append(all, protoutil.ProtoFromFileDescriptor(f))
		}
	}
	return all, nil
}

// generate runs one plug-in.
func generate(ctx context.Context, plugin string, names []string, files []*descriptorpb.FileDescriptorProto) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	request, err := proto.MarshalOptions{Deterministic: true}.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: names,
		Parameter:      proto.String("module=" + module),
		ProtoFile:      files,
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, fmt.Errorf("%s", response.GetError())
	}
	return response.File, nil
}

func put(check bool, path string, content []byte) error {
	old, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(old, content):
		return nil
	case check:
		return fmt.Errorf("%s is not current: run make proto", path)
	case err != nil && !os.IsNotExist(err):
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
