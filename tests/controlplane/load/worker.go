package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// firstWrite is the size of the write buffer in Go's HTTP client. The client sends this part of a request first, so an
// AdmissionReview is two TLS records.
const firstWrite = 4096

// patience is the time for which a worker waits for a response: the maximum of the API server.
const patience = 30 * time.Second

// catchUp is the time that a server has for delayed requests after the end of the schedule.
const catchUp = 10 * time.Second

var errBehind = errors.New("not sent: the server is too slow for this rate")

// worker is a connection and its results.
type worker struct {
	target    *target
	request   []byte // the last request that was sent
	conn      *tls.Conn
	reader    *bufio.Reader
	latencies []time.Duration
	errors    int
	err       error // the first error
}

func (w *worker) connect() error {
	dialer := &net.Dialer{Timeout: patience}
	conn, err := tls.DialWithDialer(dialer, "tcp", w.target.address, w.target.tls)
	if err != nil {
		return err
	}
	w.conn, w.reader = conn, bufio.NewReader(conn)
	return nil
}

// load runs all workers for a while, and discards earlier results. A server that is behind a fixed rate gets time to
// catch up. Requests that are still due after this time are errors.
func load(workers []*worker, rate float64, length time.Duration) {
	var wait sync.WaitGroup
	ends := time.Now().Add(length)
	givenUp := ends.Add(catchUp)
	due := schedule(rate, length)
	for _, w := range workers {
		w.latencies, w.errors, w.err = w.latencies[:0], 0, nil
		wait.Go(func() {
			if due != nil {
				for moment := range due {
					if time.Now().Before(givenUp) {
						w.count(moment)
					} else {
						w.fail(errBehind)
					}
				}
				return
			}
			for now := time.Now(); now.Before(ends); now = time.Now() {
				w.count(now)
			}
		})
	}
	wait.Wait()
}

// schedule sends each due time when it is reached, then closes the channel. It is nil for rate 0.
func schedule(rate float64, length time.Duration) <-chan time.Time {
	if rate == 0 {
		return nil
	}
	total := int(rate * length.Seconds())
	due := make(chan time.Time, total) // has room for all, so that a slow server does not delay the clock
	// The clock sleeps in the kernel, because Go's timers are up to a millisecond late. It blocks a thread, so the other
	// goroutines need a second one.
	runtime.GOMAXPROCS(max(4, runtime.NumCPU()))
	go func() {
		runtime.LockOSThread()
		defer close(due)
		start := time.Now()
		for i := range total {
			moment := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
			for left := time.Until(moment); left > 0; left = time.Until(moment) {
				pause := syscall.NsecToTimespec(int64(left))
				_ = syscall.Nanosleep(&pause, nil) // if a signal interrupts it, the loop sleeps again
			}
			due <- moment
		}
	}()
	return due
}

// count sends a request, and records its latency since `due` or its error.
func (w *worker) count(due time.Time) {
	if err := w.send(); err != nil {
		w.fail(err)
		_ = w.conn.Close()
		if w.connect() != nil {
			time.Sleep(100 * time.Millisecond) // the server does not listen, so the next request would fail at once
		}
		return
	}
	w.latencies = append(w.latencies, time.Since(due))
}

func (w *worker) fail(err error) {
	w.errors++
	if w.err == nil {
		w.err = err
	}
}

// send sends a request and reads its response.
func (w *worker) send() error {
	if err := w.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	request, uid := w.target.next(w.request)
	w.request = request
	for first, rest := firstWrite, request; len(rest) > 0; first = len(rest) {
		written, err := w.conn.Write(rest[:min(first, len(rest))])
		if err != nil {
			return err
		}
		rest = rest[written:]
	}
	response, err := http.ReadResponse(w.reader, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if err := w.target.check(response.StatusCode, body, uid); err != nil {
		return err
	}
	if response.Close {
		_ = w.conn.Close()
		return w.connect()
	}
	return nil
}
