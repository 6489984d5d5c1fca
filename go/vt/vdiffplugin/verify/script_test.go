// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts of testdata print into them")

// TestScripts runs the scripts of testdata. A script is made of blocks: commands, a line "----", and what they print. After
// each event the state of the table is printed, and what always holds is checked.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			var got []string
			s := &script{t: t, tables: map[int64]TableID{}}
			for _, block := range strings.Split(strings.TrimSpace(string(data)), "\n\n") {
				commands, _, found := strings.Cut(block, "\n----")
				if !found {
					got = append(got, block) // a comment
					continue
				}
				var out strings.Builder
				for _, line := range strings.Split(commands, "\n") {
					if !strings.HasPrefix(line, "#") {
						s.run(&out, strings.Fields(line))
					}
				}
				got = append(got, commands+"\n----\n"+strings.TrimSuffix(out.String(), "\n"))
			}
			text := strings.Join(got, "\n\n") + "\n"
			if *rewrite {
				require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
				return
			}
			require.Equal(t, string(data), text)
		})
	}
}

// script is a script that is being run.
type script struct {
	t      *testing.T
	m      *Machine
	now    time.Duration
	tables map[int64]TableID // by task
}

// run runs one command: a name, words, and options of the form name=value.
func (s *script) run(out *strings.Builder, fields []string) {
	command, words, options := fields[0], []string{}, map[string]string{}
	for _, field := range fields[1:] {
		if name, value, ok := strings.Cut(field, "="); ok {
			options[name] = value
		} else {
			words = append(words, field)
		}
	}
	number := func(name string) int64 {
		if options[name] == "" {
			return 0
		}
		n, err := strconv.ParseInt(options[name], 10, 64)
		require.NoError(s.t, err)
		return n
	}
	if command == "config" {
		retry, _ := time.ParseDuration(options["retry"])
		s.m = New(Config{
			Workers: int(number("workers")), FirstRows: number("first"), MinRows: number("min"), MaxRows: number("max"), Tries: int(number("tries")),
			RetryAfter: retry, MaxPending: int(number("pending")), MaxFence: int(number("fence")), LeafRows: number("leaf"),
		})
		fmt.Fprintln(out, "ok")
		return
	}
	defer s.m.check()
	if command == "next" {
		s.next(out)
		return
	}
	if command == "wake" {
		at, ok := s.m.Wake()
		fmt.Fprintln(out, at, ok)
		return
	}
	if command == "after" {
		d, err := time.ParseDuration(words[0])
		require.NoError(s.t, err)
		s.now += d
		return
	}
	id := TableID(words[0])
	task, err := strconv.ParseInt(words[0], 10, 64)
	if err == nil {
		id = s.tables[task]
	}
	took, _ := time.ParseDuration(options["took"])
	switch command {
	case "add":
		table := Table{ID: id, Rows: number("rows"), Buckets: int(number("buckets"))}
		if options["max"] != "" {
			table.Min, table.Max = &bound(options["min"])[0], &bound(options["max"])[0]
		}
		for _, word := range words[1:] { // done:100:0..5
			part := strings.Split(word, ":")
			rows, _ := strconv.ParseInt(part[1], 10, 64)
			table.Segments = append(table.Segments, Segment{Done: part[0] == "done", Rows: rows, Range: parseRange(part[2])})
		}
		if err := s.m.Add(table); err != nil {
			fmt.Fprintln(out, err)
			return
		}
	case "walked":
		s.m.Walked(task, bound(options["upto"]), number("rows"), 0, took)
	case "equal":
		s.m.Compared(task, Outcome{Equal: true, TargetRows: number("rows"), SourceRows: number("rows"), Took: took}, s.now)
	case "unequal":
		s.m.Compared(task, Outcome{
			TargetRows: number("rows"), SourceRows: number("source"), SamePosition: options["same"] != "", SourceUpTo: bound(options["upto"]),
		}, s.now)
	case "buckets":
		o := Outcome{SamePosition: options["same"] != ""}
		for _, word := range words[1:] { // =10 or x10: equal or not, and the rows
			rows, _ := strconv.ParseInt(word[1:], 10, 64)
			o.EqualBuckets, o.BucketRows = append(o.EqualBuckets, word[0] == 'e'), append(o.BucketRows, rows)
		}
		s.m.Compared(task, o, s.now)
	case "bounds":
		s.m.SetBounds(id, &bound(options["min"])[0], &bound(options["max"])[0])
	case "failed":
		s.m.Failed(task, s.now)
	case "abandon":
		s.m.Abandon(id)
	case "remove":
		s.m.Remove(id)
	case "settle":
		fmt.Fprintln(out, s.m.Settle(id, parseRange(words[1]), number("rows")))
	case "checkpoint":
		for _, segment := range s.m.Checkpoint(id, int(number("most"))) {
			fmt.Fprintln(out, show(segment.Range), map[bool]string{true: fmt.Sprint("done, ", segment.Rows, " rows"), false: "open"}[segment.Done])
		}
		return
	case "left":
		for _, r := range s.m.Left(id) {
			fmt.Fprintln(out, show(r))
		}
		if numbers := s.m.LeftBuckets(id); numbers != nil {
			fmt.Fprintln(out, "buckets", numbers)
		}
		return
	case "stats":
		fmt.Fprintf(out, "%+v finished %v, all %v\n", s.m.Stats(id), s.m.Finished(id), s.m.Done())
		return
	default:
		s.t.Fatalf("unknown command %q", command)
	}
	s.state(out, id)
}

// next prints what is to be done.
func (s *script) next(out *strings.Builder) {
	tasks := s.m.Next(s.now)
	for _, task := range tasks {
		s.tables[task.ID] = task.Table
		fmt.Fprintf(out, "task %d: %s %s", task.ID, task.Table, show(task.Range))
		switch {
		case task.Buckets > 0:
			fmt.Fprintf(out, " in %d buckets", task.Buckets)
		case task.Limit > 0:
			fmt.Fprintf(out, " walk %d rows", task.Limit)
		}
		if task.SourceLimit > 0 {
			fmt.Fprintf(out, ", sources up to %d", task.SourceLimit)
		}
		fmt.Fprintln(out)
	}
	if len(tasks) == 0 {
		fmt.Fprintln(out, "nothing")
	}
}

// state prints the segments of a table.
func (s *script) state(out *strings.Builder, id TableID) {
	t := s.m.tables[id]
	if t == nil {
		fmt.Fprintln(out, id, "is gone")
		return
	}
	fmt.Fprintf(out, "%s:", id)
	for segment := t.first; segment != nil; segment = segment.next {
		fmt.Fprintf(out, " %s %s", show(segment.r), segment.state)
		switch {
		case segment.at > 0:
			fmt.Fprintf(out, " until %v", segment.at)
		case segment.state == done:
			fmt.Fprintf(out, " %d", segment.rows)
		}
		if segment.next != nil {
			out.WriteString(" |")
		}
	}
	fmt.Fprintln(out)
}

// bound reads integers with slashes between them.
func bound(text string) (b pkrange.Bound) {
	for _, part := range strings.Split(text, "/") {
		if n, err := strconv.ParseInt(part, 10, 64); err == nil {
			b = append(b, pkrange.Value{Int: n})
		}
	}
	return b
}

// parseRange reads a range: 1..5, ..5, 1.., ..
func parseRange(text string) pkrange.Range {
	after, upTo, _ := strings.Cut(text, "..")
	return pkrange.Range{After: bound(after), UpTo: bound(upTo)}
}

// show writes a range as parseRange reads it.
func show(r pkrange.Range) string {
	text := func(b pkrange.Bound) string {
		var parts []string
		for _, v := range b {
			parts = append(parts, strconv.FormatInt(v.Int, 10))
		}
		return strings.Join(parts, "/")
	}
	return text(r.After) + ".." + text(r.UpTo)
}
