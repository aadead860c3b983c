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

// firstWrite is how much of a request Go's HTTP client sends first, before it sends all the rest: the size of its
// write buffer. It makes two TLS records of an AdmissionReview.
const firstWrite = 4096

// patience is how long a worker waits for an answer: as long as the API server waits at most.
const patience = 30 * time.Second

// catchUp is how long a server may go on with requests that it had no time for when they were due.
const catchUp = 10 * time.Second

var errBehind = errors.New("not sent: the server is too slow for this rate")

// worker is one connection and what it saw.
type worker struct {
	target    *target
	request   []byte // the last one that was sent
	conn      *tls.Conn
	reader    *bufio.Reader
	latencies []time.Duration
	errors    int
	err       error // the first
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

// load runs all workers for a while; what they saw before is forgotten. A server that is behind a fixed rate gets time
// to catch up; what is still due after that counts as errors.
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

// schedule hands out the moments at which requests are due, each at its time, then closes; nil for rate 0.
func schedule(rate float64, length time.Duration) <-chan time.Time {
	if rate == 0 {
		return nil
	}
	total := int(rate * length.Seconds())
	due := make(chan time.Time, total) // holds them all: a slow server does not slow the clock
	// The clock sleeps in the kernel, since Go's own timers are up to a millisecond late. It needs a thread for that,
	// and the others one that is not kept from running meanwhile.
	runtime.GOMAXPROCS(max(4, runtime.NumCPU()))
	go func() {
		runtime.LockOSThread()
		defer close(due)
		start := time.Now()
		for i := range total {
			moment := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
			for left := time.Until(moment); left > 0; left = time.Until(moment) {
				pause := syscall.NsecToTimespec(int64(left))
				_ = syscall.Nanosleep(&pause, nil) // a signal may end it early, then the rest is slept
			}
			due <- moment
		}
	}()
	return due
}

// count sends one request and notes its latency since `due`, or its error.
func (w *worker) count(due time.Time) {
	if err := w.send(); err != nil {
		w.fail(err)
		_ = w.conn.Close()
		if w.connect() != nil {
			time.Sleep(100 * time.Millisecond) // nobody listens: the next request fails at once and comes back here
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

// send sends one request and reads its answer.
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
