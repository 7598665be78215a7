import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.errors.InvalidMetadataException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * What Apache Kafka's own classes say about the wire.
 *
 * With the argument `errors` it lists the error codes: code, name, whether retriable, whether the client refreshes its
 * metadata, and the default message. Without, it encodes messages with the generated classes.
 *
 * Each line of the input is `Name <tab> version <tab> JSON`, in the JSON form of Kafka's message converters; the answer
 * is one line of hex, or `ERROR` and the reason. After decoding what it has just encoded, the program checks that Kafka
 * reads back an equal message, so that an answer is never the product of a broken converter.
 */
public final class WireOracle {
    private static final String[] CLASSES = {
        "org.apache.kafka.common.message.%sData",
        "org.apache.kafka.common.message.%s",
        "org.apache.kafka.coordinator.group.generated.%s",
        "org.apache.kafka.coordinator.transaction.generated.%s",
    };

    private static final Map<String, Class<?>> MESSAGES = new HashMap<>();
    private static final Map<String, Method> READERS = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 1 && arguments[0].equals("errors")) {
            listErrors();
            return;
        }
        ObjectMapper json = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] columns = line.split("\t", 3);
            out.write(encode(columns[0], Short.parseShort(columns[1]), json.readTree(columns[2])));
            out.newLine();
        }
        out.flush();
    }

    private static void listErrors() {
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof RetriableException;
            boolean refreshes = error.exception() instanceof InvalidMetadataException;
            String message = error.exception() == null ? "" : error.exception().getMessage();
            System.out.println(
                error.code() + "\t" + error.name() + "\t" + retriable + "\t" + refreshes + "\t" + message);
        }
    }

    private static String encode(String name, short version, JsonNode value) {
        try {
            Message message = (Message) reader(name).invoke(null, value, version);
            ByteBuffer buffer = MessageUtil.toByteBuffer(message, version);
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            Message again = (Message) message(name).getConstructor().newInstance();
            again.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), version);
            if (!again.equals(message)) {
                return "ERROR Kafka reads back " + again + " for " + message;
            }
            return HexFormat.of().formatHex(bytes);
        } catch (ReflectiveOperationException error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return "ERROR " + cause.toString().replace('\n', ' ');
        } catch (RuntimeException error) {
            return "ERROR " + error.toString().replace('\n', ' ');
        }
    }

    private static Class<?> message(String name) throws ClassNotFoundException {
        Class<?> found = MESSAGES.get(name);
        for (int i = 0; found == null && i < CLASSES.length; i++) {
            try {
                found = Class.forName(String.format(CLASSES[i], name));
                MESSAGES.put(name, found);
            } catch (ClassNotFoundException absent) {
                // the next pattern may have it
            }
        }
        if (found == null) {
            throw new ClassNotFoundException(name);
        }
        return found;
    }

    private static Method reader(String name) throws ReflectiveOperationException {
        Method reader = READERS.get(name);
        if (reader == null) {
            Class<?> converter = Class.forName(message(name).getName() + "JsonConverter");
            reader = converter.getMethod("read", JsonNode.class, short.class);
            READERS.put(name, reader);
        }
        return reader;
    }
}
