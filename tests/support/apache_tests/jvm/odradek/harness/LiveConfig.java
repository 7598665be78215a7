package odradek.harness;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Map;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaServer;

/** The KafkaConfig of a KafkaServer, to which the changes are added that the broker makes to its own settings. */
final class LiveConfig {
    private final KafkaConfig config;
    private final Path settings;
    private Properties given = new Properties();
    private FileTime read;

    /** `settings` is the file to which the broker writes its settings. */
    LiveConfig(KafkaServer server, Path settings) {
        try {
            Field field = KafkaServer.class.getDeclaredField("config");
            field.setAccessible(true);
            this.config = (KafkaConfig) field.get(server);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
        this.settings = settings;
    }

    /** The configuration that the test has given. */
    KafkaConfig initial() {
        return config;
    }

    /** The broker starts with these settings. */
    synchronized void starts(Properties given) throws IOException {
        this.given = given;
        this.read = null;
        Files.deleteIfExists(settings);
    }

    /** The configuration as the broker has it now. */
    synchronized KafkaConfig current() {
        try {
            if (!Files.exists(settings) || Files.getLastModifiedTime(settings).equals(read)) return config;
            read = Files.getLastModifiedTime(settings);
            Map<String, String> now = new ObjectMapper().readValue(settings.toFile(), new TypeReference<>() {});
            Properties changed = new Properties();
            config.originalsFromThisConfig().forEach((key, value) -> {
                if (value != null && (now.containsKey(key) || !given.containsKey(key))) changed.put(key, value);
            });
            now.forEach((key, value) -> {
                if (!value.equals(given.getProperty(key))) changed.put(key, value);
            });
            config.updateCurrentConfig(changed.equals(config.originalsFromThisConfig()) ? config : new KafkaConfig(changed, false));
            return config;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
