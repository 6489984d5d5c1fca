// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import "errors"

// Class says what to do about the error of a vdiff. It is stored with the error, so that a retry
// never has to guess from the text.
type Class string

const (
	// Transient errors pass by themselves: the vdiff is tried again, with backoff.
	Transient Class = "transient"
	// Permanent errors come back every time: the vdiff waits for a person.
	Permanent Class = "permanent"
)

type classError struct {
	class Class
	err   error
}

func (e *classError) Error() string { return e.err.Error() }
func (e *classError) Unwrap() error { return e.err }

// AsPermanent marks err, and whatever wraps it, as permanent. A nil err stays nil.
func AsPermanent(err error) error {
	if err == nil {
		return nil
	}
	return &classError{class: Permanent, err: err}
}

// AsTransient marks err, and whatever wraps it, as transient. A nil err stays nil.
func AsTransient(err error) error {
	if err == nil {
		return nil
	}
	return &classError{class: Transient, err: err}
}

// ClassOf returns the class that err, or an error that it wraps, was marked with. ok is false when
// none was ever marked.
func ClassOf(err error) (class Class, ok bool) {
	for err != nil {
		var marked *classError
		if errors.As(err, &marked) {
			return marked.class, true
		}
		// What vterrors.Wrap wraps is hidden from errors.As.
		var wrapping interface{ Cause() error }
		if !errors.As(err, &wrapping) {
			break
		}
		err = wrapping.Cause()
	}
	return "", false
}

// tablesError is the error of some tables of a vdiff.
type tablesError struct {
	tables []string
	err    error
}

func (e *tablesError) Error() string { return e.err.Error() }
func (e *tablesError) Unwrap() error { return e.err }

// OfTables marks err as that of some tables of a vdiff: they are recorded as errored with it. A nil err stays nil.
func OfTables(err error, tables []string) error {
	if err == nil {
		return nil
	}
	return &tablesError{tables: tables, err: err}
}

// TablesOf returns the tables that err was marked with.
func TablesOf(err error) []string {
	var marked *tablesError
	if errors.As(err, &marked) {
		return marked.tables
	}
	return nil
}
