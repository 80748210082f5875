// etcd's side of scripts/peers: one contender, with the lock of etcd's own Go client. contender.hpp explains the commands.
//
//	peer_etcd ADDRESS LOCK
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers: etcd failed:", err)
		os.Exit(1)
	}
}

// CLOCK_MONOTONIC, which all contenders share; time.Now() does not give its value.
func now() int64 {
	var t syscall.Timespec
	_, _, number := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&t)), 0)
	if number != 0 {
		fail(number)
	}
	return t.Nano()
}

func main() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Args[1]}, DialTimeout: 30 * time.Second})
	fail(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(30))
	fail(err)
	mutex := concurrency.NewMutex(session, os.Args[2])
	always := context.Background()
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintln(out, "ready")
	fail(out.Flush())
	for {
		var begin, end, held int64
		if count, _ := fmt.Scan(&begin, &end, &held); count != 3 {
			os.Exit(0)
		}
		time.Sleep(time.Duration(begin - now()))
		var samples []int64
		for called := now(); called < end; called = now() {
			fail(mutex.Lock(always))
			granted := now()
			released := granted
			if held > 0 {
				time.Sleep(time.Duration(held))
				released = now()
			}
			fail(mutex.Unlock(always))
			samples = append(samples, called, granted, released, now())
		}
		for i := 0; i < len(samples); i += 4 {
			fmt.Fprintln(out, samples[i], samples[i+1], samples[i+2], samples[i+3])
		}
		fmt.Fprintln(out, "done")
		fail(out.Flush())
	}
}
