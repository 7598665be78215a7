import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import kafka.log.Cleaner;
import kafka.log.CleanerStats;
import kafka.log.LogToClean;
import kafka.log.UnifiedLog;
import kafka.server.BrokerTopicStats;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.utils.Throttler;
import scala.Option;
import scala.Tuple2;
import scala.runtime.BoxedUnit;

/**
 * Apache Kafka's own Cleaner, run on the directories of logs with the time and the buffers it is told.
 *
 * Arguments: `key=value` pairs of topic configs, then groups of `clean <directory> <first dirty> <first uncleanable>
 * <now ms> <map bytes> <load factor> <io buffer bytes>`. For each it prints one line: next dirty offset, messages read,
 * messages written, keyless messages, milliseconds of the first pass and of both, the largest memory so far in KB.
 */
public final class CleanerOracle {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        int at = 0;
        for (; at < arguments.length && !arguments[at].equals("clean"); at++) {
            String[] pair = arguments[at].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        for (; at < arguments.length; at += 8) {
            clean(new LogConfig(properties), scheduler, arguments, at + 1);
        }
        scheduler.shutdown();
        System.exit(0);
    }

    private static void clean(LogConfig config, KafkaScheduler scheduler, String[] arguments, int at) throws Exception {
        File directory = new File(arguments[at]);
        long firstDirty = Long.parseLong(arguments[at + 1]);
        long firstUncleanable = Long.parseLong(arguments[at + 2]);
        long nowMs = Long.parseLong(arguments[at + 3]);
        TopicPartition partition = UnifiedLog.parseTopicPartitionName(directory);
        // Not a clean stop, for then producers would only be known from snapshots; nothing is left to recover.
        UnifiedLog log = UnifiedLog.apply(
            directory, config, 0L, Long.MAX_VALUE, scheduler, new BrokerTopicStats(false), Time.SYSTEM,
            900_000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600_000, new LogDirFailureChannel(1),
            false, Option.empty(), false, new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        Throttler throttler = new Throttler(Double.MAX_VALUE, 300, "bytes", "bytes", Time.SYSTEM);
        int ioBufferBytes = Integer.parseInt(arguments[at + 6]);
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap(Integer.parseInt(arguments[at + 4])), ioBufferBytes, 64 << 20,
            Double.parseDouble(arguments[at + 5]), throttler, Time.SYSTEM, ignored -> BoxedUnit.UNIT);
        Tuple2<Object, CleanerStats> done =
            cleaner.doClean(new LogToClean(partition, log, firstDirty, firstUncleanable, false), nowMs);
        CleanerStats stats = done._2();
        System.out.println(String.join(" ",
            done._1().toString(), "" + stats.messagesRead(), "" + stats.messagesWritten(),
            "" + stats.invalidMessagesRead(), "" + (stats.mapCompleteTime() - stats.startTime()),
            "" + (stats.endTime() - stats.startTime()), peakResidentKb()));
        log.close();
    }

    private static String peakResidentKb() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                return line.split("\\s+")[1];
            }
        }
        throw new IllegalStateException("no VmHWM in /proc/self/status");
    }
}
