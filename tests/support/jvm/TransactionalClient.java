import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Apache Kafka's own transactional clients, driven by lines of tab-separated words; each is answered by one line. */
public class TransactionalClient {
    private static final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    private static final Map<String, List<Future<RecordMetadata>>> underWay = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = "OK\t" + execute(line.split("\t"));
            } catch (Exception e) {
                answer = "ERROR\t" + e.getClass().getSimpleName() + ": " + String.valueOf(e.getMessage()).replace('\n', ' ');
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    private static String execute(String[] words) throws Exception {
        switch (words[0]) {
            case "open":
                producers.put(words[1], producer(words[2], words[3], words[4]));
                producers.get(words[1]).initTransactions();
                return "";
            case "open idempotent":
                producers.put(words[1], idempotentProducer(words[2], words[3]));
                underWay.put(words[1], new ArrayList<>());
                return "";
            case "hand over":
                for (int i = 3; i < words.length; i++) {
                    underWay.get(words[1]).add(producers.get(words[1]).send(new ProducerRecord<>(words[2], 0, null, words[i])));
                }
                return "";
            case "offsets":
                StringBuilder offsets = new StringBuilder();
                for (Future<RecordMetadata> answer : underWay.put(words[1], new ArrayList<>())) {
                    offsets.append(answer.get().offset()).append(' ');
                }
                return offsets.toString();
            case "begin":
                producers.get(words[1]).beginTransaction();
                return "";
            case "send":
                return "" + producers.get(words[1]).send(new ProducerRecord<>(words[2], 0, null, words[3])).get().offset();
            case "commit":
                producers.get(words[1]).commitTransaction();
                return "";
            case "abort":
                producers.get(words[1]).abortTransaction();
                return "";
            case "close":
                producers.remove(words[1]).close(Duration.ZERO);
                return "";
            case "read":
                return read(words[1], words[2], words[3]);
            case "transform":
                transform(words[1], words[2], words[3], words[4], words[5], Integer.parseInt(words[6]), words[7]);
                return "";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String id, String timeoutMs) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("transactional.id", id);
        properties.put("transaction.timeout.ms", timeoutMs);
        properties.put("max.block.ms", "20000");
        return new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
    }

    /** Many small batches, so that there are as many requests under way as may be. */
    private static KafkaProducer<String, String> idempotentProducer(String bootstrap, String inFlight) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("enable.idempotence", "true");
        properties.put("max.in.flight.requests.per.connection", inFlight);
        properties.put("batch.size", "100");
        properties.put("delivery.timeout.ms", "60000");
        properties.put("reconnect.backoff.max.ms", "100");
        return new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, String group, String isolation) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", group);
        properties.put("isolation.level", isolation);
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        properties.put("max.poll.records", "7");
        return new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }

    private static String read(String bootstrap, String topic, String isolation) {
        StringBuilder found = new StringBuilder();
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<String, String> consumer = consumer(bootstrap, "not-used", isolation)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    found.append(record.offset()).append(':').append(record.value()).append(' ');
                }
            }
        }
        return found.toString();
    }

    /**
     * Every other transaction is aborted once and done again from the offsets that are committed. The offsets are
     * committed for a member of the group or, as brokers before 2.5 demand, for the group alone.
     */
    private static void transform(
            String bootstrap, String source, String sink, String group, String id, int count, String committedFor)
            throws Exception {
        try (KafkaConsumer<String, String> consumer = consumer(bootstrap, group, "read_committed");
                KafkaProducer<String, String> producer = producer(bootstrap, id, "20000")) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            TopicPartition partition = new TopicPartition(source, 0);
            int transactions = 0;
            for (int done = 0; done < count; ) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                long next = 0;
                for (ConsumerRecord<String, String> record : records) {
                    producer.send(new ProducerRecord<>(sink, 0, null, record.value() + "'"));
                    next = record.offset() + 1;
                }
                producer.sendOffsetsToTransaction(
                        Map.of(partition, new OffsetAndMetadata(next)),
                        committedFor.equals("group") ? new ConsumerGroupMetadata(group) : consumer.groupMetadata());
                if (transactions++ % 2 == 0) {
                    producer.abortTransaction();
                    OffsetAndMetadata committed = consumer.committed(java.util.Set.of(partition)).get(partition);
                    consumer.seek(partition, committed == null ? 0 : committed.offset());
                } else {
                    producer.commitTransaction();
                    done += records.count();
                }
            }
        }
    }
}
