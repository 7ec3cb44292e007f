// franz-go: BOOTSTRAP GROUP TOPIC SINK. Guesses the broker's version, creates topics, writes a
// hundred numbers, and moves their doubles in transactions of a group's session, one of them
// aborted. Prints JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

const count = 100

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	bootstrap, group, topic, sink := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.DefaultProduceTopic(topic))
	check(err)
	defer client.Close()

	// As monitors do that name a cluster's version.
	asked := kmsg.NewPtrApiVersionsRequest()
	asked.ClientSoftwareName, asked.ClientSoftwareVersion = "trip", "v1"
	told, err := asked.RequestWith(ctx, client)
	check(err)
	guess := kversion.FromApiVersionsResponse(told).VersionGuess()

	admin := kadm.NewClient(client)
	_, err = admin.CreateTopics(ctx, 3, 1, nil, topic, sink)
	check(err)
	for n := 0; n < count; n++ {
		text := []byte(strconv.Itoa(n))
		record := &kgo.Record{Key: text, Value: text, Headers: []kgo.RecordHeader{{Key: "n", Value: text}}}
		check(client.ProduceSync(ctx, record).FirstErr())
	}
	seen := moveDoubles(ctx, bootstrap, group, topic, sink)
	lags, err := admin.Lag(ctx, group)
	check(err)
	lag := lags[group].Lag.Total()
	out, err := json.Marshal(map[string]any{"guess": guess, "seen": seen, "lag": lag})
	check(err)
	fmt.Println(string(out))
}

func moveDoubles(ctx context.Context, bootstrap, group, topic, sink string) int {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(bootstrap),
		kgo.DefaultProduceTopic(sink),
		kgo.TransactionalID(group+"-t"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RequireStableFetchOffsets(),
	)
	check(err)
	defer session.Close()
	check(session.Begin())
	check(session.ProduceSync(ctx, kgo.StringRecord("-1")).FirstErr())
	_, err = session.End(ctx, kgo.TryAbort)
	check(err)
	seen := 0
	for seen < count {
		fetches := session.PollFetches(ctx)
		check(fetches.Err())
		check(session.Begin())
		batch := 0
		fetches.EachRecord(func(r *kgo.Record) {
			n, err := strconv.Atoi(string(r.Value))
			check(err)
			session.Produce(ctx, &kgo.Record{Key: r.Key, Value: []byte(strconv.Itoa(2 * n))}, nil)
			batch++
		})
		committed, err := session.End(ctx, kgo.TryCommit)
		check(err)
		if committed {
			seen += batch
		}
	}
	return seen
}
