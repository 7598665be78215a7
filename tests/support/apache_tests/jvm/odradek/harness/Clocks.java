package odradek.harness;

import java.lang.reflect.Field;
import kafka.server.KafkaServer;
import org.apache.kafka.common.utils.Time;

/** The clock that a test has given to its KafkaServer. */
final class Clocks {
    private Clocks() {}

    static Time of(KafkaServer server) {
        try {
            Field field = KafkaServer.class.getDeclaredField("time");
            field.setAccessible(true);
            return (Time) field.get(server);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}
