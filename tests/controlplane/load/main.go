// Command load is the load generator of the benchmarks. It imitates an API server that sends AdmissionReviews over
// persistent HTTPS connections, and prints a line of JSON with the results.
//
// Closed loop (-rate 0): every connection sends its next request as soon as it has the response to the last.
// Open loop: requests are due at a fixed rate, independent of the responses. A latency starts when its request was due,
// so that a server that stalls gets high latencies for all delayed requests.
//
// Every request is different: the digits of -mark in the bodies are replaced by a number that starts at -first.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// Result is the printed result. Latencies are in milliseconds. Seconds is the time from the first request to the last
// response, and CPUSeconds the processor time of this program: if it is close to Seconds, this program was the
// bottleneck. Requests is the number of correct responses, Errors the number of other responses, and Sent both together
// with the requests of the warm-up.
type Result struct {
	Sent       int     `json:"sent"`
	Requests   int     `json:"requests"`
	Errors     int     `json:"errors"`
	Error      string  `json:"error,omitempty"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	RPS        float64 `json:"rps"`
	P50        float64 `json:"p50"`
	P90        float64 `json:"p90"`
	P99        float64 `json:"p99"`
	P999       float64 `json:"p999"`
	Max        float64 `json:"max"`
	Go         string  `json:"go"`
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("load: ")
	address := flag.String("address", "", "loopback `IP:PORT` of the server")
	path := flag.String("path", "/", "path of the request, with its query")
	ca := flag.String("ca", "", "PEM `file` with the CA of the server's certificate")
	bodies := flag.String("bodies", "", "`file` with AdmissionReviews as JSON, one per line, that are sent in turns")
	mark := flag.String("mark", "", "`digits` in the bodies that a running number replaces; none if empty")
	first := flag.Int64("first", 0, "the `number` before that of the first request")
	expect := flag.String("expect", `"allowed":true`, "`text` that every answer must hold, beside the request's uid")
	connections := flag.Int("connections", 50, "how many connections")
	rate := flag.Float64("rate", 0, "requests per second, 0 for as many as are answered")
	seconds := flag.Float64("seconds", 5, "how long to measure")
	warmup := flag.Float64("warmup", 1, "seconds of the same load before, which do not count")
	flag.Parse()
	if err := run(*address, *path, *ca, *bodies, *mark, *first, *expect, *connections, *rate, *seconds, *warmup); err != nil {
		log.Fatal(err)
	}
}

func run(address, path, ca, bodies, mark string, first int64, expect string, connections int, rate, seconds, warmup float64) error {
	if host, _, err := net.SplitHostPort(address); err != nil || !net.ParseIP(host).IsLoopback() {
		return fmt.Errorf("-address %q is not the IP:PORT of a loopback address: load is for this machine alone", address)
	}
	if connections < 1 || rate < 0 || seconds <= 0 || warmup < 0 {
		return errors.New("-connections and -seconds must be more than 0, -rate and -warmup not less")
	}
	if rate > 0 && rate*min(seconds, warmup) < 1 {
		return errors.New("-rate gives no request in -seconds or -warmup")
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("-ca %s holds no certificate", ca)
	}
	exchanges, err := read(bodies, address, path, []byte(mark))
	if err != nil {
		return fmt.Errorf("-bodies %s: %w", bodies, err)
	}
	target := &target{
		address:   address,
		tls:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}},
		exchanges: exchanges,
		mark:      []byte(mark),
		expect:    []byte(expect),
	}
	target.number.Store(first)
	workers := make([]*worker, connections)
	for i := range workers {
		workers[i] = &worker{target: target}
		if err := workers[i].connect(); err != nil {
			return err
		}
	}
	load(workers, rate, duration(warmup))
	warm := summary(workers, duration(warmup))
	before := cpu()
	started := time.Now()
	load(workers, rate, duration(seconds))
	result := summary(workers, time.Since(started))
	result.CPUSeconds = cpu() - before
	result.Sent = warm.Requests + warm.Errors + result.Requests + result.Errors
	return json.NewEncoder(os.Stdout).Encode(result)
}

// read returns an exchange for each line of a file.
func read(file, address, path string, mark []byte) ([]exchange, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []exchange
	for line := range bytes.Lines(content) {
		body := bytes.TrimSpace(line)
		review := struct{ Request struct{ UID string } }{}
		if err := json.Unmarshal(body, &review); err != nil {
			return nil, err
		}
		if review.Request.UID == "" {
			return nil, errors.New("no request.uid")
		}
		now := exchange{request: request(address, path, body), uid: []byte(review.Request.UID)}
		now.places = places(now.request, mark)
		all = append(all, now)
	}
	if len(all) == 0 {
		return nil, errors.New("it is empty")
	}
	return all, nil
}

// places returns the offsets of the mark in a text.
func places(text, mark []byte) []int {
	var found []int
	for at := 0; len(mark) > 0; at += len(mark) {
		next := bytes.Index(text[at:], mark)
		if next < 0 {
			break
		}
		at += next
		found = append(found, at)
	}
	return found
}

// request returns the whole HTTP request, with the headers of an API server.
func request(address, path string, body []byte) []byte {
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: kube-apiserver-admission\r\nContent-Length: %d\r\n"+
		"Accept: application/json, */*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n",
		path, address, len(body))
	return append([]byte(head), body...)
}

func summary(workers []*worker, took time.Duration) Result {
	result := Result{Seconds: took.Seconds(), Go: runtime.Version()}
	var all []time.Duration
	for _, w := range workers {
		all = append(all, w.latencies...)
		result.Errors += w.errors
		if w.err != nil && result.Error == "" {
			result.Error = w.err.Error()
		}
	}
	slices.Sort(all)
	result.Requests = len(all)
	if len(all) > 0 {
		result.RPS = float64(len(all)) / result.Seconds
		result.P50, result.P90, result.P99 = percentile(all, 500), percentile(all, 900), percentile(all, 990)
		result.P999, result.Max = percentile(all, 999), percentile(all, 1000)
	}
	return result
}

// percentile returns the latency in ms that `perMille` of 1000 sorted latencies do not exceed (nearest rank).
func percentile(sorted []time.Duration, perMille int) float64 {
	rank := (len(sorted)*perMille + 999) / 1000
	return float64(sorted[max(rank, 1)-1]) / float64(time.Millisecond)
}

func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second))
}

// cpu returns the processor time of this program in seconds.
func cpu() float64 {
	usage := syscall.Rusage{}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// exchange is a request with the offsets of the mark in it, and the uid that its response must repeat.
type exchange struct {
	request []byte
	places  []int
	uid     []byte
}

// target is the server and the requests for it.
type target struct {
	address   string
	tls       *tls.Config
	exchanges []exchange
	mark      []byte
	number    atomic.Int64 // the number of the last request of all workers
	expect    []byte
}

// next writes the next request of all workers into a buffer. It returns the request and the uid of its response.
func (t *target) next(buffer []byte) ([]byte, []byte) {
	number := t.number.Add(1)
	now := t.exchanges[number%int64(len(t.exchanges))]
	buffer = append(buffer[:0], now.request...)
	if len(t.mark) == 0 {
		return buffer, now.uid
	}
	digits := fmt.Appendf(nil, "%0*d", len(t.mark), number)
	for _, at := range now.places {
		copy(buffer[at:], digits)
	}
	return buffer, bytes.ReplaceAll(now.uid, t.mark, digits)
}

// check returns the error in a response, or nil.
func (t *target) check(status int, body, uid []byte) error {
	for _, text := range [][]byte{uid, t.expect} {
		if status != 200 || !bytes.Contains(body, text) {
			return fmt.Errorf("status %d, or no %s in the answer: %.300s", status, text, body)
		}
	}
	return nil
}
