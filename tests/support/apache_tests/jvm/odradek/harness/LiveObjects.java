package odradek.harness;

import java.io.File;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.Map;
import kafka.controller.ControllerContext;
import kafka.controller.KafkaController;
import kafka.log.LogManager;
import kafka.network.ConnectionQuotas;
import kafka.network.SocketServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.storage.internals.log.LogConfig;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** A broker's objects as tests reach for them, as far as the running broker can answer for them. */
final class LiveObjects {
    private final LiveBroker broker;
    private final Wire wire;
    private final LiveLogs logs;
    private final LiveSecurity security;
    private final Map<String, Object> made = new ConcurrentHashMap<>();

    LiveObjects(LiveBroker broker) {
        this.broker = broker;
        this.wire = new Wire(broker);
        this.logs = new LiveLogs(broker, wire);
        this.security = new LiveSecurity(broker, wire);
    }

    /** The value of KafkaServer's method of that name. */
    Object named(String name) {
        switch (name) {
            case "getLogManager": return named("logManager");
            case "authorizer": return authorizer();
            case "credentialProvider": return made.computeIfAbsent(name, key -> security.credentialProvider());
            case "tokenCache": return made.computeIfAbsent(name, key -> security.tokenCache());
            case "metrics": return made.computeIfAbsent(name, key -> security.metrics());
            case "remoteLogManagerOpt": return Option.empty();
            case "metadataCache": return made.computeIfAbsent(name, key -> LiveMetadataCache.of(broker, wire));
            case "dataPlaneRequestProcessor": return made.computeIfAbsent(name, key -> requestProcessor());
            case "replicaManager": return made.computeIfAbsent(name, key -> replicaManager());
            case "logManager": return made.computeIfAbsent(name, key -> logManager());
            case "socketServer": return made.computeIfAbsent(name, key -> socketServer());
            case "kafkaController": return made.computeIfAbsent(name, key -> controller());
            case "groupCoordinator": return made.computeIfAbsent(name, key -> groupCoordinator());
            default: throw new BeyondTheWire("KafkaServer." + name);
        }
    }

    private Option<Object> authorizer() {
        if (broker.config().getString("authorizer.class.name").isEmpty()) return Option.empty();
        return Option.apply(made.computeIfAbsent("authorizer", key -> security.authorizer()));
    }

    private KafkaApis requestProcessor() {
        return Stand.in(KafkaApis.class)
            .with("clusterId", arguments -> broker.clusterId())
            .with("brokerId", arguments -> broker.id())
            .with("metadataCache", arguments -> named("metadataCache"))
            .with("authorizer", arguments -> authorizer())
            .make();
    }

    private SocketServer socketServer() {
        return Stand.in(SocketServer.class)
            .with("boundPort", arguments -> broker.port((ListenerName) arguments[0]))
            .with("config", arguments -> broker.config())
            .with("connectionCount", arguments -> Wire.connections(broker.ports().values()))
            .with("connectionQuotas", arguments -> connectionQuotas())
            .with("metrics", arguments -> named("metrics"))
            .make();
    }

    private ConnectionQuotas connectionQuotas() {
        return Stand.in(ConnectionQuotas.class)
            .with("connectionRateForIp", arguments -> connectionRate(((InetAddress) arguments[0]).getHostAddress()))
            .make();
    }

    /** The quota of an address as the metadata has it. */
    private int connectionRate(String ip) {
        for (String entity : List.of(ip, "<default>")) {
            String rate = broker.zkClient().getEntityConfigs("ips", entity).getProperty("connection_creation_rate");
            if (rate != null) return Integer.parseInt(rate);
        }
        return Integer.MAX_VALUE;
    }

    private ReplicaManager replicaManager() {
        return Stand.in(ReplicaManager.class)
            .with("onlinePartition", arguments -> logs.partition((TopicPartition) arguments[0]))
            .with("getPartition", arguments -> logs.hosted((TopicPartition) arguments[0]))
            .with("localLog", arguments -> logs.log((TopicPartition) arguments[0], false))
            .with("getLog", arguments -> logs.log((TopicPartition) arguments[0], false))
            .with("localLogOrException", arguments -> logs.log((TopicPartition) arguments[0], false).get())
            .with("getLogEndOffsetLag", arguments -> wire.replicas((boolean) arguments[2]).get(arguments[0]).offsetLag())
            .with("checkpointHighWatermarks", arguments -> checkpointed())
            .with("logManager", arguments -> named("logManager"))
            .make();
    }

    /** The broker writes its high watermarks by the clock; after two of its intervals it has. */
    private Object checkpointed() throws InterruptedException {
        Thread.sleep(2 * broker.config().replicaHighWatermarkCheckpointIntervalMs());
        return null;
    }

    private LogManager logManager() {
        return Stand.in(LogManager.class)
            .with("getLog", arguments -> logs.log((TopicPartition) arguments[0], (boolean) arguments[1]))
            .with("currentDefaultConfig", arguments -> new LogConfig(broker.currentConfig().extractLogConfigMap()))
            .with("logsByTopic", arguments -> logs.ofTopic((String) arguments[0]))
            .with("isLogDirOnline", arguments -> wire.directories().containsKey(arguments[0]))
            .with("liveLogDirs", arguments -> {
                List<File> directories = new ArrayList<>();
                wire.directories().keySet().forEach(name -> directories.add(new File(name)));
                return CollectionConverters.asScala(directories).toSeq();
            })
            .make();
    }

    private KafkaController controller() {
        return Stand.in(KafkaController.class)
            .with("isActive", arguments -> activeController() == broker.id())
            .with("activeControllerId", arguments -> activeController())
            .with("brokerEpoch", arguments -> broker.zkClient().getAllBrokerAndEpochsInCluster().find(
                entry -> entry._1().id() == broker.id()).get()._2())
            .with("controllerContext", arguments -> controllerContext())
            .make();
    }

    private int activeController() {
        Option<Object> id = broker.zkClient().getControllerId();
        return id.isDefined() ? (Integer) id.get() : -1;
    }

    private ControllerContext controllerContext() {
        return Stand.in(ControllerContext.class)
            .with("topicIds", arguments -> topicIds())
            .with("topicNames", arguments -> {
                scala.collection.mutable.Map<Uuid, String> names = new scala.collection.mutable.HashMap<>();
                topicIds().foreachEntry((name, id) -> names.put(id, name));
                return names;
            })
            .make();
    }

    private scala.collection.mutable.Map<String, Uuid> topicIds() {
        scala.collection.mutable.Map<String, Uuid> ids = new scala.collection.mutable.HashMap<>();
        scala.collection.immutable.Set<String> topics = broker.zkClient().getAllTopicsInCluster(false);
        broker.zkClient().getTopicIdsForTopics(topics).foreachEntry((name, id) -> ids.put(name, id));
        return ids;
    }

    private GroupCoordinator groupCoordinator() {
        KafkaConfig config = broker.config();
        Properties properties = new Properties();
        properties.setProperty("cleanup.policy", "compact");
        properties.setProperty("compression.type", "producer");
        properties.setProperty("segment.bytes", Integer.toString(config.groupCoordinatorConfig().offsetsTopicSegmentBytes()));
        return Stand.in(GroupCoordinator.class).with("groupMetadataTopicConfigs", arguments -> properties).make();
    }
}
