import java.util.Properties;

import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Sums per account, exactly once: for each order "ACCOUNT AMOUNT" one row "ACCOUNT COUNT SUM" with how
 * many orders the account has had and their sum. Orders come by way of a repartition topic; the sums
 * are a store in memory with a changelog.
 *
 * Arguments: a broker, the application's id, the topics of orders and of rows, a folder of its own.
 * Ends in order on SIGTERM.
 */
public final class Sums {
    public static void main(String[] words) {
        KafkaStreams streams = new KafkaStreams(topology(words[2], words[3]), settings(words));
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    private static Topology topology(String orders, String rows) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(orders, Consumed.with(Serdes.String(), Serdes.String()))
            .groupBy((key, order) -> order.split(" ")[0],
                Grouped.with("by-account", Serdes.String(), Serdes.String()))
            .aggregate(() -> "", (account, order, last) -> next(account, order, last),
                Materialized.<String, String>as(Stores.inMemoryKeyValueStore("sums"))
                    .withKeySerde(Serdes.String()).withValueSerde(Serdes.String()))
            .toStream()
            .to(rows, Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }

    private static String next(String account, String order, String last) {
        String[] before = (last.isEmpty() ? account + " 0 0" : last).split(" ");
        long count = Long.parseLong(before[1]) + 1;
        long sum = Long.parseLong(before[2]) + Long.parseLong(order.split(" ")[1]);
        return account + " " + count + " " + sum;
    }

    private static Properties settings(String[] words) {
        Properties all = new Properties();
        all.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, words[0]);
        all.put(StreamsConfig.APPLICATION_ID_CONFIG, words[1]);
        all.put(StreamsConfig.STATE_DIR_CONFIG, words[4]);
        all.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        all.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        // A row for each order, not only the last one before a commit.
        all.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        // Who is killed leaves an open transaction that nobody takes over, and a member of the group.
        all.put(StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG), 3000);
        all.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 3000);
        all.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 500);
        all.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        all.put(CommonClientConfigs.RECONNECT_BACKOFF_MAX_MS_CONFIG, 200);
        return all;
    }
}
