// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// classSeed is the same for all passes of a comparison, so that they share the keys out.
var classSeed = maphash.MakeSeed()

// inPass says whether the key belongs to the hash class of this pass.
func (o *Options) inPass(key []byte) bool {
	return o.Passes < 2 || maphash.Bytes(classSeed, key)%o.Passes == o.Pass
}

// waiting holds the rows of one side that have not met their partner, by the canonical form of their
// key. Several rows of one key wait in the order in which they came.
type waiting struct {
	rows map[string][]waitingRow
	n    int
}

type waitingRow struct {
	row    scan.Row
	stream int
}

// perRow is about what a waiting row takes in memory besides its bytes and key.
const perRow = 96

func (w *waiting) size(key []byte, row scan.Row) int64 {
	return int64(len(key) + row.Size() + perRow)
}

// pair pairs rows that arrive in no known order.
type pair struct {
	c       *comparer
	counter counter
	sink    Sink
	source  waiting
	target  waiting
	memory  int64
	streams []*pairStream // the sources, then the target
	keyBuf  []byte
}

type pairStream struct {
	cursor
	isSource bool
	waiting  int // rows of this stream that wait
}

func newPair(c *comparer, sources []Source, target Source, sink Sink, opts Options) *pair {
	p := &pair{c: c, counter: newCounter(opts), sink: sink}
	p.source.rows = make(map[string][]waitingRow)
	p.target.rows = make(map[string][]waitingRow)
	for _, s := range sources {
		p.streams = append(p.streams, &pairStream{cursor: cursor{source: s}, isSource: true})
	}
	p.streams = append(p.streams, &pairStream{cursor: cursor{source: target}})
	return p
}

func (p *pair) run(ctx context.Context) (Result, error) {
	defer func() {
		for _, s := range p.streams {
			s.release()
		}
	}()
	for {
		i := p.pick()
		if i < 0 {
			break
		}
		err := p.readBatch(ctx, i)
		if errors.Is(err, ErrStop) || err == nil && p.counter.full() {
			return Result{Done: p.counter.done, Stopped: true}, nil
		}
		if err != nil {
			return Result{Done: p.counter.done}, err
		}
	}
	err := p.leftovers(ctx)
	if errors.Is(err, ErrStop) {
		return Result{Done: p.counter.done, Stopped: true}, nil
	}
	return Result{Done: p.counter.done}, err
}

// pick chooses the stream to read from: of the side that has fewer rows waiting, the stream that has
// the fewest. Where the order is nearly the same on both sides this keeps nearly nothing waiting.
func (p *pair) pick() int {
	best := -1
	better := func(s, than *pairStream) bool {
		if s.isSource != than.isSource {
			sourceFirst := p.source.n <= p.target.n
			return s.isSource == sourceFirst
		}
		return s.waiting < than.waiting
	}
	for i, s := range p.streams {
		if !s.eof && (best < 0 || better(s, p.streams[best])) {
			best = i
		}
	}
	return best
}

func (p *pair) readBatch(ctx context.Context, i int) error {
	s := p.streams[i]
	for {
		if err := s.next(ctx); err != nil {
			return err
		}
		if s.eof {
			return nil
		}
		if err := p.offer(i, s.head.row); err != nil {
			return err
		}
		if p.counter.full() || s.i+1 == s.batch.Len() {
			return nil
		}
	}
}

// offer pairs a row with one that waits on the other side, or lets it wait.
func (p *pair) offer(stream int, row scan.Row) error {
	s := p.streams[stream]
	if p.counter.opts.Passes > 1 {
		// Keys that are equal for the collation must meet in one pass: leftovers pairs them.
		if p.c.table.KeyUnique {
			p.keyBuf = p.c.appendFolded(p.keyBuf[:0], row, s.isSource)
		} else {
			p.keyBuf = p.c.appendKey(p.keyBuf[:0], row, s.isSource)
		}
		if !p.counter.opts.inPass(p.keyBuf) {
			return nil
		}
	}
	p.keyBuf = p.c.appendKey(p.keyBuf[:0], row, s.isSource)
	mine, other := &p.source, &p.target
	if !s.isSource {
		mine, other = other, mine
	}
	if candidates := other.rows[string(p.keyBuf)]; len(candidates) > 0 {
		at := p.equalRow(candidates, row, s.isSource)
		partner := candidates[at]
		p.streams[partner.stream].waiting--
		other.n--
		p.memory -= other.size(p.keyBuf, partner.row)
		if len(candidates) == 1 {
			delete(other.rows, string(p.keyBuf))
		} else {
			other.rows[string(p.keyBuf)] = append(candidates[:at:at], candidates[at+1:]...)
		}
		return p.verdict(row, partner.row, s.isSource)
	}
	mine.rows[string(p.keyBuf)] = append(mine.rows[string(p.keyBuf)], waitingRow{row: row.Clone(), stream: stream})
	mine.n++
	s.waiting++
	p.memory += mine.size(p.keyBuf, row)
	if limit := p.counter.opts.MemoryLimit; limit > 0 && p.memory > limit {
		return fmt.Errorf("table %s: %d rows of the source and %d of the target: %w", p.c.table.Name, p.source.n, p.target.n, ErrMemory)
	}
	return nil
}

// equalRow returns the index of the candidate that equals row, else 0.
func (p *pair) equalRow(candidates []waitingRow, row scan.Row, isSource bool) int {
	for i := range candidates {
		if isSource && p.c.equal(row, candidates[i].row) || !isSource && p.c.equal(candidates[i].row, row) {
			return i
		}
	}
	return 0
}

func (p *pair) verdict(row, partner scan.Row, isSource bool) error {
	if !isSource {
		row, partner = partner, row
	}
	p.counter.done++
	if p.c.equal(row, partner) {
		p.sink.Match()
	} else if err := p.sink.Mismatch(row, partner); err != nil {
		return err
	}
	return p.counter.tick(scan.Row{})
}

// leftovers settles the rows that never met their partner: those whose keys are equal for the
// target's collations are mismatches, the others are extra.
func (p *pair) leftovers(ctx context.Context) error {
	if p.c.table.KeyUnique && p.source.n > 0 && p.target.n > 0 {
		if err := p.c.learn(ctx, p.counter.opts.Weigher, p.left, nil); err != nil {
			return err
		}
		if err := p.pairFolded(); err != nil {
			return err
		}
	}
	for _, side := range []struct {
		w     *waiting
		extra func(scan.Row) error
	}{{&p.source, p.sink.ExtraSource}, {&p.target, p.sink.ExtraTarget}} {
		for _, rows := range side.w.rows {
			for _, r := range rows {
				if p.counter.full() {
					return ErrStop
				}
				p.counter.done++
				if err := side.extra(r.row); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// left yields the rows that never met their partner.
func (p *pair) left(yield func(row scan.Row, fromSource bool) bool) {
	for _, side := range []*waiting{&p.source, &p.target} {
		for _, rows := range side.rows {
			for _, r := range rows {
				if !yield(r.row, side == &p.source) {
					return
				}
			}
		}
	}
}

func (p *pair) pairFolded() error {
	folded := make(map[string][]string, p.target.n)
	var buf []byte
	for key, rows := range p.target.rows {
		buf = p.c.appendFolded(buf[:0], rows[0].row, false)
		folded[string(buf)] = append(folded[string(buf)], key)
	}
	for key, rows := range p.source.rows {
		buf = p.c.appendFolded(buf[:0], rows[0].row, true)
		targets := folded[string(buf)]
		if len(targets) == 0 {
			continue
		}
		if p.counter.full() {
			return ErrStop
		}
		target := targets[0]
		folded[string(buf)] = targets[1:]
		if err := p.verdict(rows[0].row, p.target.rows[target][0].row, true); err != nil {
			return err
		}
		p.source.drop(key)
		p.target.drop(target)
	}
	return nil
}

// drop removes the first row of a key.
func (w *waiting) drop(key string) {
	w.n--
	if len(w.rows[key]) == 1 {
		delete(w.rows, key)
		return
	}
	w.rows[key] = w.rows[key][1:]
}
