import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import kafka.cluster.EndPoint;
import kafka.server.KafkaConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Apache Kafka's own check of the static settings of a broker, as a start makes it before anything is opened.
 *
 * Reads a JSON object of settings per line and answers a JSON value per line: null if they are taken, else the message.
 */
public final class ConfigOracle {
    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        ObjectMapper json = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Properties settings = new Properties();
            settings.putAll(json.readValue(line, Map.class));
            out.println(json.writeValueAsString(refusal(settings)));
        }
        out.flush();
        System.exit(0);
    }

    private static String refusal(Properties settings) {
        try {
            KafkaConfig config = KafkaConfig.fromProps(settings, false);
            // LogManager.apply
            LogConfig.validateBrokerLogConfigValues(config.extractLogConfigMap(), false);
            new LogConfig(config.extractLogConfigMap());
            // ChannelBuilders.channelBuilderConfigs
            for (EndPoint listener : CollectionConverters.asJava(config.listeners())) {
                config.valuesWithPrefixOverride(listener.listenerName().configPrefix());
            }
            return null;
        } catch (Exception | Error error) {
            return String.valueOf(error.getMessage());
        }
    }
}
