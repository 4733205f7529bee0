// The leader of the Go client franz-go: GROUP ANSWER STRATEGY UNTIL BUDGET COUNT. Reads, writes and prints what
// python_leaders.py does; a run is what the client's balanceGroup does with the members' bytes. CPU is that of
// the whole process, the collector's with it; memory is how much the first run enlarged it at its peak.
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	long   = 30.0
	enough = 500
)

// run holds seconds of decode, assign, encode, and CPU of all three.
type run [4]float64

func (r run) all() float64 { return r[0] + r[1] + r[2] }

type leader struct {
	balancer kgo.GroupBalancer
	sizes    map[string]int32
	racks    map[string][]string // of the leader of each partition; nil without racks
	members  []kmsg.JoinGroupResponseMember
	answer   []kmsg.SyncGroupRequestGroupAssignment
}

func (l *leader) run() run {
	l.answer = nil
	members := slices.Clone(l.members)
	cpu, start := cpuSeconds(), time.Now()
	sortMembers(members)
	balancer, topics, err := l.balancer.MemberBalancer(members)
	check(err)
	if l.racks != nil {
		// What the client does that is made with kgo.BalanceRacks; there is no other door to it.
		set(balancer, "partitionRacks", l.racks)
		set(balancer, "balanceRacks", true)
	}
	sizes := make(map[string]int32, len(topics))
	for topic := range topics {
		sizes[topic] = l.sizes[topic]
	}
	read := time.Now()
	plan, err := balancer.(kgo.GroupMemberBalancerOrError).BalanceOrError(sizes)
	check(err)
	planned := time.Now()
	l.answer = plan.IntoSyncAssignment()
	end := time.Now()
	cpu = cpuSeconds() - cpu
	return run{read.Sub(start).Seconds(), planned.Sub(read).Seconds(), end.Sub(planned).Seconds(), cpu}
}

func set(balancer kgo.GroupMemberBalancer, field string, value any) {
	hidden := reflect.ValueOf(balancer).Elem().FieldByName(field)
	reflect.NewAt(hidden.Type(), hidden.Addr().UnsafePointer()).Elem().Set(reflect.ValueOf(value))
}

// sortMembers is the client's sortJoinMembers: static members first, then by id.
func sortMembers(members []kmsg.JoinGroupResponseMember) {
	sort.Slice(members, func(i, j int) bool {
		l, r := &members[i], &members[j]
		if l.InstanceID != nil {
			if r.InstanceID == nil {
				return true
			}
			if *l.InstanceID != *r.InstanceID {
				return *l.InstanceID < *r.InstanceID
			}
			return l.MemberID < r.MemberID
		}
		return r.InstanceID == nil && l.MemberID < r.MemberID
	})
}

func balancerOf(strategy string) kgo.GroupBalancer {
	switch strategy {
	case "range":
		return kgo.RangeBalancer()
	case "roundrobin":
		return kgo.RoundRobinBalancer()
	case "sticky":
		return kgo.StickyBalancer()
	case "cooperative-sticky":
		return kgo.CooperativeStickyBalancer()
	}
	panic(strategy)
}

func another(runs []run, since, until, budget float64, count int) bool {
	longest, warm := 0.0, -runs[0].all()
	for _, each := range runs {
		longest = max(longest, each.all())
		warm += each.all()
	}
	if since+1.2*longest > until {
		return false
	}
	if longest > long {
		return len(runs) < 2
	}
	return len(runs)-1 < count || warm < budget && len(runs)-1 < enough
}

// reader reads a group file from the front.
type reader struct{ data []byte }

func (r *reader) take(size int) []byte {
	taken := r.data[:size:size]
	r.data = r.data[size:]
	return taken
}
func (r *reader) int32() int     { return int(int32(binary.BigEndian.Uint32(r.take(4)))) }
func (r *reader) string() string { return string(r.take(int(binary.BigEndian.Uint16(r.take(2))))) }

func readGroup(path, strategy string) *leader {
	data, err := os.ReadFile(path)
	check(err)
	r := reader{data}
	l := leader{balancer: balancerOf(strategy), sizes: map[string]int32{}}
	for left := r.int32(); left > 0; left-- {
		topic, size, racks := r.string(), r.int32(), r.int32()
		l.sizes[topic] = int32(size)
		if racks > 0 && l.racks == nil {
			l.racks = map[string][]string{}
		}
		for number := range size * racks {
			if rack := r.string(); number%racks == 0 {
				l.racks[topic] = append(l.racks[topic], rack)
			}
		}
	}
	for left := r.int32(); left > 0; left-- {
		member := kmsg.NewJoinGroupResponseMember()
		member.MemberID = r.string()
		if instance := r.string(); instance != "" {
			member.InstanceID = &instance
		}
		member.ProtocolMetadata = slices.Clone(r.take(r.int32()))
		l.members = append(l.members, member)
	}
	return &l
}

func (l *leader) write(path string) {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(l.answer)))
	for _, each := range l.answer {
		out = binary.BigEndian.AppendUint16(out, uint16(len(each.MemberID)))
		out = append(out, each.MemberID...)
		out = binary.BigEndian.AppendUint32(out, uint32(len(each.MemberAssignment)))
		out = append(out, each.MemberAssignment...)
	}
	check(os.WriteFile(path, out, 0o644))
}

func cpuSeconds() float64 {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// memory gives MiB of a field of /proc/self/status, nil where there is none.
func memory(field string) *float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if strings.HasPrefix(line, field+":") {
			kib, err := strconv.ParseFloat(strings.Fields(line)[1], 64)
			check(err)
			mib := kib / 1024
			return &mib
		}
	}
	return nil
}

func versions() map[string]string {
	found := map[string]string{"go": strings.TrimPrefix(runtime.Version(), "go")}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/twmb/franz-go" {
				found["franz-go"] = module.Version
			}
		}
	}
	return found
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	until, err := strconv.ParseFloat(os.Args[4], 64)
	check(err)
	budget, err := strconv.ParseFloat(os.Args[5], 64)
	check(err)
	count, err := strconv.Atoi(os.Args[6])
	check(err)

	l := readGroup(os.Args[1], os.Args[3])
	began := time.Now()
	runtime.GC()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak begins anew, where that can be had
	before := memory("VmRSS")
	runs := []run{l.run()}
	peak := memory("VmHWM")
	for another(runs, time.Since(began).Seconds(), until, budget, count) {
		runs = append(runs, l.run())
	}
	l.write(os.Args[2])
	told := map[string]any{"runs": runs, "memory": nil, "versions": versions()}
	if before != nil && peak != nil {
		told["memory"] = *peak - *before
	}
	check(json.NewEncoder(os.Stdout).Encode(told))
}
