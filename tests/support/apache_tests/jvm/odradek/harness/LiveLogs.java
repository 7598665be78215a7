package odradek.harness;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import kafka.cluster.Partition;
import kafka.log.UnifiedLog;
import kafka.server.HostedPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.DescribeProducersResponseData;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.DescribeConfigsResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** The partitions and logs of one broker, as it describes them itself and as its directories show them. */
final class LiveLogs {
    /** A checkpoint of epochs is written behind the appends. */
    private static final long CHECKPOINT_DELAY_MS = 1000;

    private final LiveBroker broker;
    private final Wire wire;

    LiveLogs(LiveBroker broker, Wire wire) {
        this.broker = broker;
        this.wire = wire;
    }

    Option<UnifiedLog> log(TopicPartition partition, boolean future) {
        return parent(partition, future).isPresent() ? Option.apply(standIn(partition, future)) : Option.empty();
    }

    /** The log directory of a replica; of a broker that is stopped, what its files say. */
    private Optional<String> parent(TopicPartition partition, boolean future) {
        if (broker.isRunning()) return wire.directory(partition, future);
        return CollectionConverters.asJava(broker.config().logDirs()).stream()
            .filter(directory -> !future && new File(directory, partition.toString()).isDirectory())
            .findFirst();
    }

    scala.collection.Seq<UnifiedLog> ofTopic(String topic) {
        List<UnifiedLog> found = new ArrayList<>();
        wire.replicas(false).keySet().forEach(partition -> {
            if (partition.topic().equals(topic)) found.add(standIn(partition, false));
        });
        return CollectionConverters.asScala(found).toSeq();
    }

    Option<Partition> partition(TopicPartition partition) {
        if (!broker.isRunning() || !wire.directory(partition, false).isPresent()) return Option.empty();
        return Option.apply(Stand.in(Partition.class)
            .with("log", arguments -> log(partition, false))
            .with("futureLog", arguments -> log(partition, true))
            .with("localLogOrException", arguments -> log(partition, false).get())
            .with("isLeader", arguments -> leads(partition))
            .with("leaderLogIfLocal", arguments -> leads(partition) ? log(partition, false) : Option.empty())
            .with("leaderReplicaIdOpt", arguments -> {
                int leader = metadata(partition).leaderId();
                return leader < 0 ? Option.empty() : Option.apply(leader);
            })
            .with("getLeaderEpoch", arguments -> leaderEpoch(partition))
            .with("inSyncReplicaIds", arguments -> {
                Set<Object> ids = new HashSet<>(metadata(partition).isrNodes());
                return CollectionConverters.asScala(ids).toSet();
            })
            .make());
    }

    HostedPartition hosted(TopicPartition partition) {
        Option<Partition> found = partition(partition);
        return found.isDefined() ? new HostedPartition.Online(found.get()) : HostedPartition.None$.MODULE$;
    }

    private boolean leads(TopicPartition partition) {
        short error = wire.offsetAsConsumer(partition, ListOffsetsRequest.LATEST_TIMESTAMP).errorCode();
        return error == Errors.NONE.code() || error == Errors.OFFSET_NOT_AVAILABLE.code();
    }

    /** The replica's own: the metadata of the cluster come to the broker behind its LeaderAndIsr. */
    private int leaderEpoch(TopicPartition partition) {
        ListOffsetsPartitionResponse answer = wire.offset(partition, ListOffsetsRequest.LATEST_TIMESTAMP);
        Errors.forCode(answer.errorCode()).maybeThrow();
        return answer.leaderEpoch();
    }

    private MetadataResponseData.MetadataResponsePartition metadata(TopicPartition partition) {
        return wire.metadata().topics().find(partition.topic()).partitions().stream()
            .filter(entry -> entry.partitionIndex() == partition.partition()).findFirst().get();
    }

    private UnifiedLog standIn(TopicPartition partition, boolean future) {
        return Stand.in(UnifiedLog.class)
            .with("topicPartition", arguments -> partition)
            .with("logEndOffset", arguments -> endOffset(partition))
            .with("logStartOffset", arguments -> {
                ListOffsetsPartitionResponse answer = wire.offset(partition, ListOffsetsRequest.EARLIEST_TIMESTAMP);
                Errors.forCode(answer.errorCode()).maybeThrow();
                return answer.offset();
            })
            .with("highWatermark", arguments -> wire.fetched(partition).highWatermark())
            .with("lastStableOffset", arguments -> wire.fetched(partition).lastStableOffset())
            .with("size", arguments -> wire.replicas(future).get(partition).partitionSize())
            .with("dir", arguments -> directory(partition, future))
            .with("parentDir", arguments -> directory(partition, future).getParent())
            .with("parentDirFile", arguments -> directory(partition, future).getParentFile())
            .with("numberOfSegments", arguments -> directory(partition, future).list((dir, name) -> name.endsWith(".log")).length)
            .with("config", arguments -> config(partition.topic()))
            .with("logSegments", arguments -> segments(partition, future))
            .with("activeSegment", arguments -> {
                List<LogSegment> segments = segments(partition, future);
                return segments.get(segments.size() - 1);
            })
            .with("flush", arguments -> null)  // what is written is seen by all who open the file
            .with("leaderEpochCache", arguments -> Option.apply(epochs(partition)))
            .with("producerStateManager", arguments -> producers(partition))
            .make();
    }

    private File directory(TopicPartition partition, boolean future) {
        Optional<String> directory = parent(partition, future);
        if (!future) return new File(directory.get(), partition.toString());
        File[] found = new File(directory.get()).listFiles((dir, name) -> name.startsWith(partition + ".") && name.endsWith("-future"));
        return found[0];
    }

    /** As the broker tells it; of one that is stopped, or does not know its part in the partition yet, as its files do. */
    private long endOffset(TopicPartition partition) throws IOException {
        if (broker.isRunning()) {
            ListOffsetsPartitionResponse answer = wire.offset(partition, ListOffsetsRequest.LATEST_TIMESTAMP);
            if (answer.errorCode() == Errors.NONE.code()) return answer.offset();
        }
        List<LogSegment> segments = segments(partition, false);
        return segments.get(segments.size() - 1).readNextOffset();
    }

    /** Segments of a copy: nothing of a running broker is opened. */
    private List<LogSegment> segments(TopicPartition partition, boolean future) throws IOException {
        File original = directory(partition, future);
        Path copy = Files.createTempDirectory(broker.directory(), "log-");
        String[] names = original.list((dir, name) -> name.endsWith(".log"));
        Arrays.sort(names);
        List<LogSegment> found = new ArrayList<>();
        for (String name : names) {
            Files.copy(original.toPath().resolve(name), copy.resolve(name));
            long base = Long.parseLong(name.substring(0, name.indexOf('.')));
            found.add(LogSegment.open(copy.toFile(), base, config(partition.topic()), Time.SYSTEM, true, 0, false, ""));
        }
        return found;
    }

    private LeaderEpochFileCache epochs(TopicPartition partition) {
        Path file = directory(partition, false).toPath().resolve("leader-epoch-checkpoint");
        return Stand.in(LeaderEpochFileCache.class)
            .with("epochEntries", arguments -> {
                Thread.sleep(CHECKPOINT_DELAY_MS);
                Path copy = Files.createTempDirectory(broker.directory(), "epochs-").resolve(file.getFileName());
                Files.copy(file, copy);
                return new LeaderEpochCheckpointFile(copy.toFile(), null).read();
            })
            .make();
    }

    private ProducerStateManager producers(TopicPartition partition) {
        return Stand.in(ProducerStateManager.class).with("activeProducers", arguments -> {
            Map<Long, ProducerStateEntry> found = new HashMap<>();
            for (DescribeProducersResponseData.ProducerState state : wire.producers(partition)) {
                found.put(state.producerId(), new ProducerStateEntry(state.producerId(), (short) state.producerEpoch(),
                    state.coordinatorEpoch(), state.lastTimestamp(), OptionalLong.empty(), Optional.empty()));
            }
            return found;
        }).make();
    }

    private LogConfig config(String topic) {
        Map<String, String> values = new HashMap<>();
        Set<String> overridden = new HashSet<>();
        wire.topicConfig(topic).forEach(config -> {
            if (config.value() == null || !LogConfig.configNames().contains(config.name())) return;
            values.put(config.name(), config.value());
            if (config.configSource() == DescribeConfigsResponse.ConfigSource.TOPIC_CONFIG.id()) overridden.add(config.name());
        });
        return new LogConfig(values, overridden);
    }
}
