import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;

/**
 * Apache Kafka's resolving of variables in configs: a line "key value key value ...", each in base64 and separated by
 * spaces, is answered with "= value" for the resolved value of the key "key", or with "! message", in base64 too.
 */
public class ConfigProviderOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            Map<String, String> settings = new HashMap<>();
            for (int i = 0; i < words.length; i += 2)
                settings.put(decoded(words[i]), decoded(words[i + 1]));
            String answer;
            try {
                answer = "= " + new AbstractConfig(new ConfigDef(), settings, false).originals().get("key");
            } catch (ConfigException refused) {
                answer = "! " + refused.getMessage();
            }
            out.println(Base64.getEncoder().encodeToString(answer.getBytes(StandardCharsets.UTF_8)));
        }
    }

    private static String decoded(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }
}
