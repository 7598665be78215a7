import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.security.PasswordEncoder;

/**
 * Apache Kafka's encoder of passwords: a line "encode|decode secret keyFactory cipher keyLength iterations text", each
 * of them in base64 and separated by spaces, is answered with the outcome in base64.
 */
public class PasswordOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            for (int i = 1; i < words.length; i++)
                words[i] = new String(Base64.getDecoder().decode(words[i]), StandardCharsets.UTF_8);
            PasswordEncoder encoder = PasswordEncoder.encrypting(new Password(words[1]),
                words[2].isEmpty() ? null : words[2], words[3], Integer.parseInt(words[4]), Integer.parseInt(words[5]));
            String answer = words[0].equals("encode")
                ? encoder.encode(new Password(words[6]))
                : encoder.decode(words[6]).value();
            out.println(Base64.getEncoder().encodeToString(answer.getBytes(StandardCharsets.UTF_8)));
        }
    }
}
