// An S3 server for the tests: versitygw over a directory, which can be slow and can fail.
//
// It prints its address when it answers, and ends when its standard input does, so that it never
// outlives who started it.
//
//	s3server -root DIR -bucket NAME [-address 127.0.0.1:0]
//	         [-first-byte 40ms] [-rate 85e6] [-object 300e6] [-total 1200e6]
//	         [-errors 0.1] [-cuts 0.1] [-resets 0.1] [-stalls 0.1] [-stall 1s] [-seed 1]
//
// Every request waits for -first-byte and then has -rate bytes a second, all of one object together
// -object, and all of them -total: that is how a store in a cloud looks from one machine.
//
// Of the requests that move objects the share -errors is answered with 500 or 503. Of those that get
// objects the share -cuts ends in the middle, of -resets the connection is reset, and the share
// -stalls has nothing for -stall in the middle of the answer. Which, the seed decides.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
)

// The keys that it lets in.
const (
	access = "tester"
	secret = "a secret for tests"
)

// What is moved between two looks at the clock.
const stepBytes = 64 << 10

// Who sleeps wakes up late: the delay may be caught up with, but no longer one than this.
const catchUp = 100 * time.Millisecond

// Less is not slept for.
const shortest = time.Millisecond

// pace lets so many bytes a second pass; a rate of 0 bounds nothing.
type pace struct {
	sync.Mutex
	rate float64
	next time.Time
}

// wait returns when so many bytes may pass, and counts them.
func (p *pace) wait(bytes int) {
	if p.rate <= 0 {
		return
	}
	p.Lock()
	if least := time.Now().Add(-catchUp); p.next.Before(least) {
		p.next = least
	}
	p.next = p.next.Add(time.Duration(float64(bytes) / p.rate * 1e9))
	wait := time.Until(p.next)
	p.Unlock()
	if wait >= shortest {
		time.Sleep(wait)
	}
}

// slow is a body that is read at several paces, which others may share.
type slow struct {
	io.Reader
	paces []*pace
}

func (s *slow) Read(memory []byte) (int, error) {
	if len(memory) > stepBytes {
		memory = memory[:stepBytes]
	}
	moved, err := s.Reader.Read(memory)
	for _, pace := range s.paces {
		pace.wait(moved)
	}
	return moved, err
}

// pause waits once, before it says that there is nothing.
type pause time.Duration

func (p pause) Read([]byte) (int, error) {
	time.Sleep(time.Duration(p))
	return 0, io.EOF
}

// body is what an answer is read from: the reader's bytes, the closer's end.
type body struct {
	io.Reader
	io.Closer
}

// store is a store with a network before it.
type store struct {
	backend.Backend
	firstByte time.Duration
	rate      float64
	object    float64
	all       pace
	errors    float64
	cuts      float64
	resets    float64
	stalls    float64
	stall     time.Duration
	lock      sync.Mutex
	random    *rand.Rand
	objects   map[string]*pace
}

// draw is true for the share of its calls.
func (s *store) draw(share float64) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return share > 0 && s.random.Float64() < share
}

// begin waits, and may fail; a body is read by then, so that the answer is.
func (s *store) begin(sent io.Reader) error {
	time.Sleep(s.firstByte)
	if !s.draw(s.errors) {
		return nil
	}
	if sent != nil {
		io.Copy(io.Discard, sent)
	}
	if s.draw(0.5) {
		return s3err.GetAPIError(s3err.ErrInternalError)
	}
	return s3err.GetAPIError(s3err.ErrSlowDown)
}

// paceOf is the object's, which all its requests share.
func (s *store) paceOf(bucket, key *string) *pace {
	s.lock.Lock()
	defer s.lock.Unlock()
	name := *bucket + "/" + *key
	if s.objects[name] == nil {
		s.objects[name] = &pace{rate: s.object}
	}
	return s.objects[name]
}

func (s *store) slow(reader io.Reader, bucket, key *string) io.Reader {
	if reader == nil || (s.rate <= 0 && s.object <= 0 && s.all.rate <= 0) {
		return reader
	}
	own := &pace{rate: s.rate, next: time.Now()}
	return &slow{reader, []*pace{own, s.paceOf(bucket, key), &s.all}}
}

// reset ends the connection of a request without a word.
func reset(ctx context.Context) {
	request, ours := ctx.(interface{ Conn() net.Conn })
	if !ours {
		log.Fatal("s3server: a request without a connection")
	}
	connection := request.Conn()
	if tcp, ok := connection.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	connection.Close()
}

func (s *store) GetObject(
	ctx context.Context, in *s3.GetObjectInput,
) (*s3.GetObjectOutput, error) {
	if err := s.begin(nil); err != nil {
		return nil, err
	}
	out, err := s.Backend.GetObject(ctx, in)
	if err != nil || out.Body == nil {
		return out, err
	}
	reader := s.slow(out.Body, in.Bucket, in.Key)
	if out.ContentLength != nil && s.draw(s.cuts) {
		reader = io.LimitReader(reader, *out.ContentLength/2)
	}
	if out.ContentLength != nil && s.draw(s.stalls) {
		first := io.LimitReader(reader, *out.ContentLength/2)
		reader = io.MultiReader(first, pause(s.stall), reader)
	}
	if s.draw(s.resets) {
		reset(ctx)
	}
	out.Body = body{reader, out.Body}
	return out, nil
}

func (s *store) PutObject(
	ctx context.Context, in s3response.PutObjectInput,
) (s3response.PutObjectOutput, error) {
	if err := s.begin(in.Body); err != nil {
		return s3response.PutObjectOutput{}, err
	}
	in.Body = s.slow(in.Body, in.Bucket, in.Key)
	return s.Backend.PutObject(ctx, in)
}

func (s *store) UploadPart(
	ctx context.Context, in *s3.UploadPartInput,
) (*s3.UploadPartOutput, error) {
	if err := s.begin(in.Body); err != nil {
		return nil, err
	}
	in.Body = s.slow(in.Body, in.Bucket, in.Key)
	return s.Backend.UploadPart(ctx, in)
}

func main() {
	root := flag.String("root", "", "directory that holds the objects")
	bucket := flag.String("bucket", "", "a bucket to make")
	firstByte := flag.Duration("first-byte", 0, "what each request waits for")
	rate := flag.Float64("rate", 0, "bytes a second of each request")
	object := flag.Float64("object", 0, "bytes a second of all requests of an object together")
	total := flag.Float64("total", 0, "bytes a second of all requests together")
	at := flag.String("address", "127.0.0.1:0", "where it listens; port 0 is any that is free")
	errors := flag.Float64("errors", 0, "share of requests that fail")
	cuts := flag.Float64("cuts", 0, "share of answers that end in the middle")
	resets := flag.Float64("resets", 0, "share of connections that are reset instead of an answer")
	stalls := flag.Float64("stalls", 0, "share of answers that stall in the middle")
	stall := flag.Duration("stall", time.Second, "for how long")
	seed := flag.Int64("seed", 1, "decides which")
	flag.Parse()
	log.SetFlags(0)
	if *root == "" {
		log.Fatal("s3server: give -root DIR")
	}
	if *bucket != "" {
		if err := os.MkdirAll(filepath.Join(*root, *bucket), 0o755); err != nil {
			log.Fatal(err)
		}
	}
	files, err := posix.New(*root, meta.XattrMeta{}, posix.PosixOpts{NewDirPerm: 0o755})
	if err != nil {
		log.Fatal(err)
	}
	served := &store{
		Backend:   files,
		firstByte: *firstByte,
		rate:      *rate,
		object:    *object,
		all:       pace{rate: *total},
		errors:    *errors,
		cuts:      *cuts,
		resets:    *resets,
		stalls:    *stalls,
		stall:     *stall,
		objects:   map[string]*pace{},
		random:    rand.New(rand.NewSource(*seed)),
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	address := freeAddress(*at)
	go announce(address)
	config := embedgw.Config{
		RootUserAccess:    access,
		RootUserSecret:    secret,
		Ports:             []string{address},
		MaxConnections:    4096,
		MaxRequests:       4096,
		MultipartMaxParts: 10000,
		KeepAlive:         true,
		Quiet:             true,
	}
	if err := embedgw.RunVersityGW(ctx, served, &config); err != nil {
		log.Fatal(err)
	}
}

// freeAddress is an address on which nobody listens: this one, if it names a port.
func freeAddress(at string) string {
	listener, err := net.Listen("tcp", at)
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// announce prints the address once it answers.
func announce(address string) {
	for {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			connection.Close()
			fmt.Printf("http://%s\n", address)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
