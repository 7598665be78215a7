package odradek.harness;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import kafka.zookeeper.ZooKeeperClientTimeoutException;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigException;
import org.apache.zookeeper.KeeperException;

/** The exception of Apache's broker for the line with which Odradek refuses to start. */
final class Refusals {
    private static final Pattern OTHER_ID = Pattern.compile("Configured broker.id (\\d+) doesn't match stored broker.id (\\d+)");

    private Refusals() {}

    static RuntimeException exception(int status, String output) {
        String line = output.strip().substring(output.strip().lastIndexOf('\n') + 1);
        String message = "Odradek ended with status " + status + ": " + line;
        Matcher otherId = OTHER_ID.matcher(line);
        if (otherId.find()) {
            return new RuntimeException("Stored node id " + otherId.group(2) + " doesn't match previous node id " + otherId.group(1));
        }
        if (line.contains("advertised listeners are already registered")) return new IllegalArgumentException(message);
        if (line.contains("already registered on the path")) throw unchecked(new KeeperException.NodeExistsException(message));
        if (line.contains("no ZooKeeper server at")) return new ZooKeeperClientTimeoutException(message);
        if (line.contains("onfiguration") || line.contains("nvalid value")) return new ConfigException(message);
        return new KafkaException(message + "\n" + output);
    }

    /** Whether Apache's broker would have left its JVM without a word to those who started it. */
    static boolean halts(String output) {
        return output.contains("None of the log directories can be used") || output.contains(" cannot be loaded: ");
    }

    /** Scala declares no exceptions, and throws them all the same. */
    @SuppressWarnings("unchecked")
    private static <E extends Exception> E unchecked(Exception exception) throws E {
        throw (E) exception;
    }
}
