import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.function.Supplier;
import kafka.network.ConnectionQuotas;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;
import org.apache.kafka.network.ConnectionThrottledException;
import scala.Option;

/**
 * Writes the delays of Apache Kafka's own ConnectionQuotas for random connections and changes of limits:
 *   java -cp "$KAFKA_LIBS/*" CaptureConnectionRates.java > connection_rates.txt
 */
public class CaptureConnectionRates {
    static final String[] LISTENERS = {"CLIENTS", "BROKERS"};
    static final int[][] WINDOWS = {{11, 1}, {11, 1}, {3, 2}, {1, 1}};
    static final int[] RATES = {0, 1, 3, 10, 50, Integer.MAX_VALUE};

    public static void main(String[] arguments) throws Exception {
        Random random = new Random(612);
        for (int[] window : WINDOWS) {
            StoppedTime time = new StoppedTime();
            ConnectionQuotas quotas = new ConnectionQuotas(config(window), time, new Metrics(time));
            KafkaConfig config = config(window);
            for (String listener : LISTENERS) {
                quotas.addListener(config, new ListenerName(listener));
            }
            System.out.println("new " + window[0] + " " + window[1]);
            for (int i = 0; i < 400; i++) {
                change(random, quotas);
                int step = random.nextInt(8) == 0 ? random.nextInt(4000) : random.nextInt(100);
                time.ms += step;
                String listener = LISTENERS[random.nextInt(2)];
                String ip = "192.0.2." + random.nextInt(3);
                System.out.println("at " + step + " " + listener + " " + ip + " " + delay(quotas, listener, time.ms)
                    + " " + delayOfAddress(quotas, listener, ip));
            }
        }
    }

    static KafkaConfig config(int[] window) {
        Properties texts = new Properties();
        texts.put("zookeeper.connect", "localhost:2181");
        texts.put("listeners", "CLIENTS://:9092,BROKERS://:9093");
        texts.put("listener.security.protocol.map", "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT");
        texts.put("inter.broker.listener.name", "BROKERS");
        texts.put("quota.window.num", "" + window[0]);
        texts.put("quota.window.size.seconds", "" + window[1]);
        return KafkaConfig.fromProps(texts);
    }

    static void change(Random random, ConnectionQuotas quotas) throws Exception {
        int rate = RATES[random.nextInt(RATES.length)];
        switch (random.nextInt(40)) {
            case 0:
                quotas.updateBrokerMaxConnectionRate(rate);
                System.out.println("broker " + rate);
                break;
            case 1:
                String listener = LISTENERS[random.nextInt(2)];
                quotas.maxConnectionsPerListener().apply(new ListenerName(listener))
                    .reconfigure(Map.of("max.connection.creation.rate", rate));
                System.out.println("listener " + listener + " " + rate);
                break;
            case 2:
                String ip = "192.0.2." + random.nextInt(3);
                boolean isRemoved = random.nextInt(3) == 0;
                Option<Object> given = isRemoved ? Option.empty() : Option.apply((Object) rate);
                quotas.updateIpConnectionRateQuota(Option.apply(InetAddress.getByName(ip)), given);
                System.out.println("ip " + ip + " " + (isRemoved ? "none" : rate));
                break;
            case 3:
                quotas.updateIpConnectionRateQuota(Option.empty(), Option.apply((Object) rate));
                System.out.println("ips " + rate);
                break;
            default:
        }
    }

    static Object delay(ConnectionQuotas quotas, String listener, long now) throws Exception {
        return method("recordConnectionAndGetThrottleTimeMs", ListenerName.class, long.class)
            .invoke(quotas, new ListenerName(listener), now);
    }

    static long delayOfAddress(ConnectionQuotas quotas, String listener, String ip) throws Exception {
        try {
            method("recordIpConnectionMaybeThrottle", ListenerName.class, InetAddress.class)
                .invoke(quotas, new ListenerName(listener), InetAddress.getByName(ip));
            return 0;
        } catch (InvocationTargetException error) {
            return ((ConnectionThrottledException) error.getCause()).throttleTimeMs;
        }
    }

    static Method method(String name, Class<?>... types) throws Exception {
        Method found = ConnectionQuotas.class.getDeclaredMethod(name, types);
        found.setAccessible(true);
        return found;
    }

    static class StoppedTime implements Time {
        long ms = 1700000000000L;

        public long milliseconds() {
            return ms;
        }

        public long nanoseconds() {
            return ms * 1000000;
        }

        public void sleep(long ms) { }

        public void waitObject(Object obj, Supplier<Boolean> condition, long deadlineMs) { }
    }
}
