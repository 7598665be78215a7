import java.io.FileInputStream;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Writes a value to a topic, reads from the beginning of it that many records, and prints the version of the client and
 * the different values. Arguments: the file of properties, the topic, the value, the number of records.
 */
class ReadAndWrite {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            settings.load(file);
        }
        String topic = arguments[1];
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(topic, arguments[2])).get();
        }
        settings.put("group.id", topic + "-java");
        settings.put("auto.offset.reset", "earliest");
        Set<String> values = new TreeSet<>();
        int left = Integer.parseInt(arguments[3]);
        long ends = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (left > 0 && System.nanoTime() < ends) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    values.add(record.value());
                    left--;
                }
            }
        }
        System.out.println(AppInfoParser.getVersion());
        values.forEach(System.out::println);
    }
}
