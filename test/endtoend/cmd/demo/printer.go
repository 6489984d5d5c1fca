// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// printer writes what the demo does. On a terminal progress is one line that changes, and there is colour; elsewhere it is
// plain lines, a progress line every few seconds at most. It may be used from any goroutine.
type printer struct {
	out      *os.File
	terminal bool
	colour   bool

	mu      sync.Mutex
	open    bool // the cursor is behind a progress line
	steps   []stepTime
	started time.Time // of the step
	last    time.Time // when the last progress was written
}

// stepTime is a step that is done.
type stepTime struct {
	what string
	took time.Duration
}

const (
	progressOnTerminal = 100 * time.Millisecond
	progressInFile     = 3 * time.Second
)

func newPrinter(out *os.File) *printer {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &printer{out: out, terminal: terminal, colour: terminal && os.Getenv("NO_COLOR") == ""}
}

// step begins a step.
func (p *printer) step(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started, p.last = time.Now(), time.Now()
	p.steps = append(p.steps, stepTime{what: what})
	p.write("\n%s\n", p.paint("1", fmt.Sprintf("[%d] %s", len(p.steps), what)))
}

// stepDone ends it.
func (p *printer) stepDone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps[len(p.steps)-1].took = time.Since(p.started)
}

// say writes a line that stays.
func (p *printer) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write("    "+format+"\n", args...)
}

// command shows a command as a person would type it.
func (p *printer) command(args ...string) {
	p.say("%s", p.paint("36", "$ "+strings.Join(args, " ")))
}

// good writes a line about something that is as it must be.
func (p *printer) good(format string, args ...any) {
	p.say("%s %s", p.paint("32", "ok"), fmt.Sprintf(format, args...))
}

// fail writes the last line of a demo that failed.
func (p *printer) fail(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write("\n%s %s\n", p.paint("1;31", "FAILED"), fmt.Sprintf(format, args...))
}

// progress says how far something is: done of all, and what that is.
func (p *printer) progress(done, all int64, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	every := progressInFile
	if p.terminal {
		every = progressOnTerminal
	}
	if time.Since(p.last) < every {
		return
	}
	p.last = time.Now()
	percent := 100.0
	if all > 0 {
		percent = min(100, 100*float64(done)/float64(all))
	}
	line := fmt.Sprintf("    %5.1f %%  %s of %s %s", percent, count(done), count(all), what)
	if !p.terminal {
		fmt.Fprintln(p.out, line)
		return
	}
	fmt.Fprint(p.out, "\r\x1b[K"+line)
	p.open = true
}

// summary writes how long each step took, and what was found.
func (p *printer) summary(findings []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write("\n%s\n", p.paint("1", "Summary"))
	var all time.Duration
	for i, s := range p.steps {
		p.write("    %8v  [%d] %s\n", round(s.took), i+1, s.what)
		all += s.took
	}
	p.write("    %8v  in all\n", round(all))
	for _, finding := range findings {
		p.write("    %s\n", finding)
	}
	p.write("\n%s every verdict was exactly as it must be\n", p.paint("1;32", "DONE"))
}

// write removes the progress line, if there is one, and writes text that stays. The caller holds the mutex.
func (p *printer) write(format string, args ...any) {
	if p.open {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.open = false
	}
	fmt.Fprintf(p.out, format, args...)
}

func (p *printer) paint(code, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// count writes a number with commas.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// round makes a time readable.
func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
