import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * One piece of work for each line of tab-separated words: work, bootstrap, topic, time-out of a request in milliseconds.
 * The answer is one line.
 */
public class FaultedClient {
    private static final Duration LIMIT = Duration.ofSeconds(60);

    private static String requestTimeoutMs;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                String[] words = line.split("\t");
                requestTimeoutMs = words[3];
                answer = execute(words[0], words[1], words[2]);
            } catch (ExecutionException e) {
                answer = e.getCause().getClass().getSimpleName();
            } catch (Exception e) {
                answer = e.getClass().getSimpleName();
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    private static String execute(String work, String bootstrap, String topic) throws Exception {
        switch (work) {
            case "produce":
                try (KafkaProducer<String, String> producer = producer(bootstrap, null)) {
                    return "offset " + producer.send(new ProducerRecord<>(topic, 0, null, "value")).get().offset();
                }
            case "produce_two":
                try (KafkaProducer<String, String> producer = producer(bootstrap, null)) {
                    producer.send(new ProducerRecord<>(topic, 0, null, "value")).get();
                    return "offset " + producer.send(new ProducerRecord<>(topic, 0, null, "value")).get().offset();
                }
            case "fetch":
                try (KafkaConsumer<String, String> consumer = consumer(bootstrap)) {
                    consumer.assign(List.of(new TopicPartition(topic, 0)));
                    consumer.seek(new TopicPartition(topic, 0), 0);
                    return "value " + read(consumer);
                }
            case "commit":
                try (KafkaConsumer<String, String> consumer = consumer(bootstrap)) {
                    consumer.subscribe(List.of(topic));
                    read(consumer);
                    consumer.commitSync(LIMIT);
                    return "committed";
                }
            case "transact":
                try (KafkaProducer<String, String> producer = producer(bootstrap, "transaction")) {
                    producer.initTransactions();
                    producer.beginTransaction();
                    producer.send(new ProducerRecord<>(topic, 0, null, "value"));
                    producer.commitTransaction();
                    return "committed";
                }
            case "create":
                try (Admin admin = Admin.create(common(bootstrap))) {
                    admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
                    return "created";
                }
            default:
                throw new IllegalArgumentException(work);
        }
    }

    private static String read(KafkaConsumer<String, String> consumer) {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (System.nanoTime() < end) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                return record.value();
            }
        }
        throw new IllegalStateException("no record");
    }

    private static String limitMs() {
        return String.valueOf(LIMIT.toMillis());
    }

    private static Properties common(String bootstrap) {
        Properties properties = new Properties();
        properties.putAll(Map.of(
            "bootstrap.servers", bootstrap, "client.id", "c", "request.timeout.ms", requestTimeoutMs, "retry.backoff.ms", "20",
            "retry.backoff.max.ms", "50", "reconnect.backoff.ms", "20", "reconnect.backoff.max.ms", "50",
            "enable.metrics.push", "false"));
        return properties;
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String transactionalId) {
        Properties properties = common(bootstrap);
        properties.putAll(Map.of(
            "delivery.timeout.ms", limitMs(), "max.block.ms", limitMs(), "linger.ms", "0"));
        if (transactionalId == null) {
            properties.put("enable.idempotence", "false");
        } else {
            properties.put("transactional.id", transactionalId);
        }
        return new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap) {
        Properties properties = common(bootstrap);
        properties.putAll(Map.of(
            "group.id", "group", "auto.offset.reset", "earliest", "enable.auto.commit", "false",
            "fetch.max.wait.ms", "100", "default.api.timeout.ms", limitMs()));
        return new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }
}
