import java.io.File;
import java.lang.reflect.Field;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Arrays;
import java.util.Collection;

/**
 * Which versions of the APIs the brokers of older releases advertised, from the clients' jars of these releases.
 * Arguments: the jar of SLF4J, then jars of kafka-clients. A line for each API of each: jar, key, lowest, highest.
 */
public class ApiRanges {
    public static void main(String[] arguments) throws Exception {
        for (String jar : Arrays.copyOfRange(arguments, 1, arguments.length)) {
            URL[] urls = {new File(jar).toURI().toURL(), new File(arguments[0]).toURI().toURL()};
            try (URLClassLoader classes = new URLClassLoader(urls, ClassLoader.getPlatformClassLoader())) {
                Class<?> keys = classes.loadClass("org.apache.kafka.common.protocol.ApiKeys");
                for (Object key : advertised(keys)) {
                    int lowest = number(keys.getMethod("oldestVersion").invoke(key));
                    int highest = highest(keys, key);
                    if (lowest <= highest) {  // else all versions are unstable
                        Field id = keys.getField("id");
                        System.out.println(jar + " " + number(id.get(key)) + " " + lowest + " " + highest);
                    }
                }
            }
        }
    }

    /** The APIs of a broker in ZooKeeper mode: since 2.8 some are for KRaft only. */
    private static Collection<?> advertised(Class<?> keys) throws Exception {
        try {
            return (Collection<?>) keys.getMethod("zkBrokerApis").invoke(null);
        } catch (NoSuchMethodException e) {
            return Arrays.asList(keys.getEnumConstants());
        }
    }

    /** Since 3.5 a version can be unstable; it is not advertised by default. */
    private static int highest(Class<?> keys, Object key) throws Exception {
        try {
            return number(keys.getMethod("latestVersion", boolean.class).invoke(key, false));
        } catch (NoSuchMethodException e) {
            return number(keys.getMethod("latestVersion").invoke(key));
        }
    }

    private static int number(Object value) {
        return ((Number) value).intValue();
    }
}
