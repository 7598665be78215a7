package odradek.harness;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import kafka.server.KafkaConfig;
import kafka.server.KafkaServer;
import kafka.zk.KafkaZkClient;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.BrokerState;

/** One Odradek broker, a process that is started with the configuration of a KafkaServer. */
final class LiveBroker {
    private static final Map<Object, LiveBroker> ALL = new ConcurrentHashMap<>();
    private static final Duration START_TIMEOUT = Duration.ofSeconds(60);
    private static final Duration ANOTHER_TIME = Duration.ofDays(1);
    private static final Duration STOP_TIMEOUT = Duration.ofMinutes(1);
    private static final String KERBEROS = "krb5.conf";
    private static final Pattern STARTED = Pattern.compile("\\[KafkaServer id=(\\d+)\\] started");
    private static final Pattern LISTENING = Pattern.compile("^  listening on +(.*)$", Pattern.MULTILINE);
    private static final Pattern LISTENER = Pattern.compile("(\\w+)://[^,]*:(\\d+)");
    private static final Pattern SIDE_DOOR = Pattern.compile("^  side door +(\\d+)$", Pattern.MULTILINE);
    private static final Pattern CLUSTER = Pattern.compile("^  cluster id +(\\S+)$", Pattern.MULTILINE);

    private final KafkaServer server;
    private final LiveObjects objects = new LiveObjects(this);
    private final Map<String, Integer> ports = new ConcurrentHashMap<>();
    private final Path directory;
    private final LiveConfig config;
    private volatile Process process;
    private volatile BrokerState state = BrokerState.NOT_RUNNING;
    private volatile String clusterId;
    private volatile int sideDoor;
    private KafkaZkClient zkClient;
    private int starts;

    private LiveBroker(KafkaServer server) {
        this.server = server;
        this.directory = newDirectory();
        this.config = new LiveConfig(server, directory.resolve("settings"));
    }

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> ALL.values().forEach(LiveBroker::kill)));
    }

    /** The broker of a KafkaServer. */
    static LiveBroker of(Object server) {
        return ALL.computeIfAbsent(server, key -> new LiveBroker((KafkaServer) key));
    }

    /** The brokers that are running. */
    static List<LiveBroker> running() {
        return ALL.values().stream().filter(LiveBroker::isRunning).collect(Collectors.toList());
    }

    /** What KafkaServer's method of that name does, or tells. */
    Object call(String method, Object[] arguments) {
        linkKerberos();
        switch (method) {
            case "startup": start(); return null;
            case "shutdown": stop(arguments.length == 0 ? STOP_TIMEOUT : (Duration) arguments[0]); return null;
            case "awaitShutdown": awaitEnd(); return null;
            case "boundPort": return port((ListenerName) arguments[0]);
            case "brokerState": return state();
            case "clusterId": return clusterId;
            case "config": return config.current();
            case "zkClient": return zkClient();
            default: return objects.named(method);
        }
    }

    /** The configuration that the test has given. */
    KafkaConfig config() {
        return config.initial();
    }

    /** The configuration as the broker has it now. */
    KafkaConfig currentConfig() {
        return config.current();
    }

    int id() {
        return config().brokerId();
    }

    String clusterId() {
        return clusterId;
    }

    boolean isRunning() {
        return state() == BrokerState.RUNNING;
    }

    private BrokerState state() {
        Process current = process;
        return current == null || current.isAlive() ? state : BrokerState.NOT_RUNNING;
    }

    /** The port of a listener. KafkaException: the broker has none of that name. */
    int port(ListenerName listener) {
        if (!ports.containsKey(listener.value()) && isRunning()) {
            SideDoor.ask(sideDoor, "listeners").lines().map(line -> line.split(" ")).forEach(
                words -> ports.put(words[0], Integer.parseInt(words[1])));
        }
        Integer port = ports.get(listener.value());
        if (port == null) throw new KafkaException("Tried to check for port of non-existing protocol");
        return port;
    }

    /** Where the broker's configuration and output are, and what else belongs to it. */
    Path directory() {
        return directory;
    }

    /** The ports by the names of their listeners. */
    Map<String, Integer> ports() {
        return ports;
    }

    /** The port on which the harness itself asks. */
    int sideDoor() {
        return sideDoor;
    }

    synchronized KafkaZkClient zkClient() {
        if (zkClient == null) {
            zkClient = KafkaZkClient.createZkClient("Kafka server", Time.SYSTEM, config(), server.zkClientConfig());
        }
        return zkClient;
    }

    private synchronized void start() {
        if (process != null && process.isAlive()) return;
        state = BrokerState.STARTING;
        Path log = directory.resolve("broker-" + ++starts + ".log");
        try {
            Path properties = directory.resolve("server.properties");
            Properties given = configuration();
            try (OutputStream out = Files.newOutputStream(properties)) {
                given.store(out, null);
            }
            config.starts(given);
            ProcessBuilder builder = new ProcessBuilder(command(properties));
            builder.redirectErrorStream(true).redirectOutput(log.toFile());
            builder.environment().put("PYTHONUNBUFFERED", "1");
            linkKerberos();
            builder.environment().put("KRB5_CONFIG", directory.resolve(KERBEROS).toString());
            process = builder.start();
            awaitStart(log);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Some tests start their KDC after their brokers: these find its configuration where they were told to look. */
    private void linkKerberos() {
        String kerberos = System.getProperty("java.security.krb5.conf");
        Path link = directory.resolve(KERBEROS);
        if (kerberos == null || Files.isSymbolicLink(link)) return;
        try {
            Files.createSymbolicLink(link, Path.of(kerberos));
        } catch (FileAlreadyExistsException e) {
            // another thread of the test was faster
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** A test's clock that is nowhere near the present is the broker's as well. */
    private List<String> command(Path properties) {
        List<String> command = new ArrayList<>(List.of(
            System.getProperty("odradek.python"), "-m", "tests.support.apache_tests.daemon",
            "--settings", directory.resolve("settings").toString()));
        long clockMs = Clocks.of(server).milliseconds();
        if (Math.abs(clockMs - System.currentTimeMillis()) >= ANOTHER_TIME.toMillis()) {
            command.addAll(List.of("--clock", Long.toString(clockMs)));
        }
        command.addAll(List.of("serve", properties.toString()));
        return command;
    }

    private Properties configuration() {
        Properties properties = new Properties();
        config().originals().forEach((key, value) -> {
            if (value != null) properties.setProperty(key, Classes.translated(text(value)));
        });
        LoginFiles.addTo(properties, config());
        if (properties.containsKey("authorizer.class.name")) properties.merge("super.users", SideDoor.PRINCIPAL,
            (users, harness) -> users + ";" + harness);
        return properties;
    }

    private static String text(Object value) {
        if (value instanceof Password) return ((Password) value).value();
        if (value instanceof Class) return ((Class<?>) value).getName();
        if (value instanceof List) return ((List<?>) value).stream().map(LiveBroker::text).collect(Collectors.joining(","));
        return value.toString();
    }

    private void awaitStart(Path log) throws IOException {
        long deadline = System.nanoTime() + START_TIMEOUT.toNanos();
        while (true) {
            boolean ended = !process.isAlive();
            String output = Files.readString(log);
            Matcher started = STARTED.matcher(output);
            Matcher cluster = CLUSTER.matcher(output);
            Matcher listening = LISTENING.matcher(output);
            Matcher door = SIDE_DOOR.matcher(output);
            if (started.find() && cluster.find() && listening.find() && door.find()) {
                clusterId = cluster.group(1);
                sideDoor = Integer.parseInt(door.group(1));
                ports.clear();
                Matcher listener = LISTENER.matcher(listening.group(1));
                while (listener.find()) ports.put(listener.group(1), Integer.parseInt(listener.group(2)));
                config()._brokerId_$eq(Integer.parseInt(started.group(1)));
                config()._nodeId_$eq(config().brokerId());
                state = BrokerState.RUNNING;
                LiveSecurity.register();
                return;
            }
            if (ended && Refusals.halts(output)) {
                int status = process.exitValue();
                new Thread(() -> Exit.halt(status), "LogDirFailureHandler").start();
                return;
            }
            if (ended) throw Refusals.exception(process.exitValue(), output);
            if (System.nanoTime() > deadline) {
                process.destroyForcibly();
                throw new KafkaException("Odradek did not start in " + START_TIMEOUT + ":\n" + output);
            }
            pause();
        }
    }

    /** SIGTERM, and wait for the end; what does not end in time is killed, and fails the test. */
    private void stop(Duration timeout) {
        Process current = process;
        try {
            if (current != null && current.isAlive()) {
                state = BrokerState.PENDING_CONTROLLED_SHUTDOWN;
                current.destroy();
                Duration patience = timeout.compareTo(Duration.ofMinutes(1)) > 0 ? Duration.ofMinutes(1) : timeout;
                if (!current.waitFor(Math.max(patience.toMillis(), 10_000), TimeUnit.MILLISECONDS)) {
                    current.destroyForcibly().waitFor();
                    throw new KafkaException("Odradek did not stop in " + patience + " after SIGTERM");
                }
            }
        } catch (InterruptedException e) {
            current.destroyForcibly();
            Thread.currentThread().interrupt();
            throw new org.apache.kafka.common.errors.InterruptException(e);
        } finally {
            state = BrokerState.NOT_RUNNING;
            closeZkClient();
        }
    }

    private void kill() {
        if (process != null) process.destroyForcibly();
    }

    private void awaitEnd() {
        try {
            if (process != null) process.waitFor();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new org.apache.kafka.common.errors.InterruptException(e);
        }
    }

    private synchronized void closeZkClient() {
        if (zkClient != null) zkClient.close();
        zkClient = null;
    }

    private static Path newDirectory() {
        try {
            return Files.createTempDirectory(new File(System.getProperty("odradek.directory")).toPath(), "broker-");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void pause() {
        try {
            Thread.sleep(10);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new org.apache.kafka.common.errors.InterruptException(e);
        }
    }
}
