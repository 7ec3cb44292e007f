import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;

/** Flink's connector: BOOTSTRAP GROUP SOURCE SINK. Doubles the numbers between what the group has
 *  committed and the end, exactly once: by Kafka's transactions, which checkpoints commit. */
public class FlinkDoubles {
    public static void main(String[] words) throws Exception {
        String bootstrap = words[0], group = words[1], source = words[2], sink = words[3];
        StreamExecutionEnvironment flink =
            StreamExecutionEnvironment.createLocalEnvironment(2, new Configuration());
        flink.enableCheckpointing(500);
        KafkaSource<String> numbers = KafkaSource.<String>builder()
            .setBootstrapServers(bootstrap)
            .setGroupId(group)
            .setTopics(source)
            .setStartingOffsets(OffsetsInitializer.committedOffsets(OffsetResetStrategy.EARLIEST))
            .setBounded(OffsetsInitializer.latest())
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .build();
        KafkaSink<String> doubles = KafkaSink.<String>builder()
            .setBootstrapServers(bootstrap)
            .setRecordSerializer(KafkaRecordSerializationSchema.builder()
                .setTopic(sink)
                .setValueSerializationSchema(new SimpleStringSchema())
                .build())
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix(group)
            .setProperty("transaction.timeout.ms", "60000")
            .build();
        flink.fromSource(numbers, WatermarkStrategy.noWatermarks(), "numbers")
            .map(text -> Long.toString(2 * Long.parseLong(text)))
            .returns(String.class)
            .sinkTo(doubles);
        flink.execute("doubles");
    }
}
