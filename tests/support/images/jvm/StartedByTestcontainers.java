import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.utility.DockerImageName;

/**
 * Starts an image with a Kafka module of testcontainers, writes a record, reads it, prints its value. Arguments: the
 * class of the module, the image, the image for which it stands, then methods without arguments that are called before
 * the start (withKraft). A class that two versions of testcontainers have is found by its name.
 */
class StartedByTestcontainers {
    public static void main(String[] arguments) throws Exception {
        var image = DockerImageName.parse(arguments[1]).asCompatibleSubstituteFor(arguments[2]);
        Class<?> module = Class.forName(arguments[0]);
        try (var kafka = (GenericContainer<?>) module.getConstructor(DockerImageName.class).newInstance(image)) {
            for (String method : List.of(arguments).subList(3, arguments.length)) {
                module.getMethod(method).invoke(kafka);
            }
            kafka.start();
            writeAndRead((String) module.getMethod("getBootstrapServers").invoke(kafka));
        }
    }

    private static void writeAndRead(String bootstrapServers) throws Exception {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", bootstrapServers, "group.id", "readers", "auto.offset.reset", "earliest");
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("greetings", "hello from Java")).get();
        }
        long ends = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("greetings"));
            while (System.nanoTime() < ends) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println("read: " + record.value());
                    return;
                }
            }
        }
    }
}
