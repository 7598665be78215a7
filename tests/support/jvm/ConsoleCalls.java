import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.DescribeLogDirsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The calls that kafbat UI and AKHQ make, with Apache Kafka's own clients, in the order of somebody who looks around.
 *
 * Arguments: host:port. Prints one JSON array [call, answer] per line; an answer that failed is the error's class and message.
 */
public final class ConsoleCalls {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TOPIC = "console-orders";
    private static final String GROUP = "console-billing";
    private static final TopicPartition FIRST = new TopicPartition(TOPIC, 0);
    private static final long TIMESTAMP = 1_600_000_000_000L;

    private static PrintStream out;
    private static Admin admin;
    private static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        bootstrap = arguments[0];
        Properties properties = clientProperties();
        try (Admin opened = Admin.create(properties)) {
            admin = opened;
            cluster();
            topics();
            messages();
            configs();
            groups();
            moves();
            quotas();
            end();
        }
        out.flush();
        System.exit(0);
    }

    // A console connects: the version that it takes the cluster for, and what it may do

    private static void cluster() throws Exception {
        call("describeCluster", () -> cluster(admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(false))));
        call("describeCluster with operations", () -> cluster(admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true))));
        call("describeFeatures", () -> String.valueOf(admin.describeFeatures().featureMetadata().get()));
        call("describeAcls", () -> String.valueOf(admin.describeAcls(AclBindingFilter.ANY).values().get()));
        call("describeMetadataQuorum", () -> String.valueOf(admin.describeMetadataQuorum().quorumInfo().get()));
        call("describeConfigs of a broker", () -> configs(describe(ConfigResource.Type.BROKER, "0", new DescribeConfigsOptions())));
        call("describeLogDirs", () -> logDirs(admin.describeLogDirs(List.of(0)).allDescriptions().get()));
        call("describeLogDirs of a broker that is not there", () -> admin.describeLogDirs(List.of(9), new DescribeLogDirsOptions().timeoutMs(1000)).allDescriptions().get().size());
    }

    private static Object cluster(DescribeClusterResult result) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        found.put("controller", result.controller().get().id());
        found.put("has a cluster id", !result.clusterId().get().isEmpty());
        found.put("nodes", result.nodes().get().stream().map(node -> node.id() + " " + node.rack()).sorted().toList());
        found.put("operations", String.valueOf(result.authorizedOperations().get() == null ? null : new TreeSet<>(result.authorizedOperations().get())));
        return found;
    }

    private static Object logDirs(Map<Integer, Map<String, LogDirDescription>> found) {
        Map<String, Object> sizes = new TreeMap<>();
        found.forEach((broker, dirs) -> dirs.values().forEach(dir -> dir.replicaInfos().forEach((partition, info) -> {
            if (partition.topic().startsWith("console-")) {
                sizes.put(broker + " " + partition, info.size() + " " + info.offsetLag() + " " + info.isFuture() + " " + dir.error() + " " + dir.totalBytes().isPresent());
            }
        })));
        return sizes;
    }

    // Topics: created, listed, described, made larger

    private static void topics() throws Exception {
        Map<String, String> configs = new TreeMap<>(Map.of("retention.ms", "-1", "cleanup.policy", "delete"));
        call("createTopics", () -> admin.createTopics(List.of(new NewTopic(TOPIC, Optional.of(2), Optional.of((short) 1)).configs(configs))).all().get());
        call("createTopics without a replication factor", () -> admin.createTopics(List.of(new NewTopic("console-default", Optional.of(1), Optional.empty()))).all().get());
        call("createTopics of one that is there", () -> admin.createTopics(List.of(new NewTopic(TOPIC, 1, (short) 1))).all().get());
        call("createTopics with too many replicas", () -> admin.createTopics(List.of(new NewTopic("console-wide", 1, (short) 7))).all().get());
        call("createTopics with a bad name", () -> admin.createTopics(List.of(new NewTopic("console orders", 1, (short) 1))).all().get());
        call("createTopics with a bad config", () -> admin.createTopics(List.of(new NewTopic("console-bad", 1, (short) 1).configs(Map.of("retention.ms", "soon")))).all().get());
        call("listTopics", () -> new TreeSet<>(admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get().stream().filter(name -> name.startsWith("console-")).toList()));
        call("createPartitions", () -> admin.createPartitions(Map.of(TOPIC, NewPartitions.increaseTo(3))).all().get());
        call("createPartitions to fewer", () -> admin.createPartitions(Map.of(TOPIC, NewPartitions.increaseTo(1))).all().get());
        call("describeTopics", () -> topic(admin.describeTopics(List.of(TOPIC)).allTopicNames().get().get(TOPIC)));
        call("describeTopics of an unknown one", () -> admin.describeTopics(List.of("console-unknown")).topicNameValues().get("console-unknown").get());
    }

    private static Object topic(TopicDescription found) {
        List<String> partitions = new ArrayList<>();
        for (TopicPartitionInfo info : found.partitions()) {
            partitions.add(info.partition() + " " + info.leader().id() + " " + info.replicas().size() + " " + info.isr().size());
        }
        return List.of(found.name(), found.isInternal(), partitions, String.valueOf(found.authorizedOperations()));
    }

    // Messages: produced, browsed from the beginning, from the end and from a time, deleted

    private static void messages() throws Exception {
        Properties properties = clientProperties();
        properties.put("key.serializer", StringSerializer.class.getName());
        properties.put("value.serializer", StringSerializer.class.getName());
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties)) {
            for (int i = 0; i < 6; i++) {
                ProducerRecord<String, String> record = new ProducerRecord<>(TOPIC, i % 2, TIMESTAMP + i, i == 5 ? null : "k" + i, "v" + i);
                record.headers().add("source", "console".getBytes(StandardCharsets.UTF_8));
                producer.send(record).get();
            }
            call("send to a partition that is not there", () -> {
                properties.put("max.block.ms", "1000");
                try (KafkaProducer<String, String> impatient = new KafkaProducer<>(properties)) {
                    return impatient.send(new ProducerRecord<>(TOPIC, 9, null, "v")).get().offset();
                }
            });
        }
        List<TopicPartition> partitions = List.of(FIRST, new TopicPartition(TOPIC, 1), new TopicPartition(TOPIC, 2));
        call("listOffsets earliest", () -> offsets(partitions, OffsetSpec.earliest()));
        call("listOffsets latest", () -> offsets(partitions, OffsetSpec.latest()));
        call("listOffsets at a time", () -> offsets(partitions, OffsetSpec.forTimestamp(TIMESTAMP + 3)));
        call("listOffsets at the largest time", () -> offsets(partitions, OffsetSpec.maxTimestamp()));
        try (KafkaConsumer<String, String> consumer = consumer(null)) {
            call("partitionsFor", () -> consumer.partitionsFor(TOPIC).stream().map(info -> info.partition() + " " + info.leader().id()).sorted().toList());
            call("beginningOffsets", () -> named(consumer.beginningOffsets(partitions)));
            call("endOffsets", () -> named(consumer.endOffsets(partitions)));
            call("offsetsForTimes from 0", () -> times(consumer.offsetsForTimes(Map.of(FIRST, 0L, partitions.get(2), 0L))));
            call("offsetsForTimes", () -> times(consumer.offsetsForTimes(Map.of(FIRST, TIMESTAMP + 1, partitions.get(1), TIMESTAMP + 100))));
            consumer.assign(partitions);
            call("poll from the beginning", () -> {
                consumer.seekToBeginning(partitions);
                return poll(consumer, 6);
            });
            call("poll the last", () -> {
                consumer.seek(FIRST, 2);
                return poll(consumer, 1);
            });
            call("position", () -> consumer.position(FIRST));
        }
        call("deleteRecords", () -> admin.deleteRecords(Map.of(FIRST, RecordsToDelete.beforeOffset(2))).lowWatermarks().get(FIRST).get().lowWatermark());
        call("deleteRecords beyond the end", () -> admin.deleteRecords(Map.of(FIRST, RecordsToDelete.beforeOffset(99))).lowWatermarks().get(FIRST).get().lowWatermark());
        call("deleteRecords of everything", () -> admin.deleteRecords(Map.of(partitions.get(1), RecordsToDelete.beforeOffset(-1))).lowWatermarks().get(partitions.get(1)).get().lowWatermark());
        call("describeProducers", () -> admin.describeProducers(List.of(FIRST)).all().get().get(FIRST).activeProducers().stream().map(state -> state.producerEpoch() + " " + state.lastSequence() + " " + state.currentTransactionStartOffset()).toList());
        call("describeLogDirs with messages", () -> logDirs(admin.describeLogDirs(List.of(0)).allDescriptions().get()));
    }

    private static Object offsets(Collection<TopicPartition> partitions, OffsetSpec spec) throws Exception {
        Map<TopicPartition, OffsetSpec> asked = new LinkedHashMap<>();
        partitions.forEach(partition -> asked.put(partition, spec));
        Map<String, Object> found = new TreeMap<>();
        for (Map.Entry<TopicPartition, ListOffsetsResult.ListOffsetsResultInfo> one : admin.listOffsets(asked).all().get().entrySet()) {
            found.put(one.getKey().toString(), one.getValue().offset() + " " + one.getValue().timestamp() + " " + one.getValue().leaderEpoch());
        }
        return found;
    }

    private static Object times(Map<TopicPartition, OffsetAndTimestamp> found) {
        Map<String, Object> answer = new TreeMap<>();
        found.forEach((partition, time) -> answer.put(partition.toString(), time == null ? null : time.offset() + " " + time.timestamp()));
        return answer;
    }

    private static Object poll(KafkaConsumer<String, String> consumer, int count) {
        Set<String> found = new TreeSet<>();
        long deadline = System.nanoTime() + 20_000_000_000L;
        while (found.size() < count && System.nanoTime() < deadline) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                found.add(record.partition() + "@" + record.offset() + " " + record.timestampType() + " " + record.timestamp() + " " + record.key() + "=" + record.value()
                    + " " + new String(record.headers().lastHeader("source").value(), StandardCharsets.UTF_8) + " " + record.serializedKeySize() + " " + record.serializedValueSize());
            }
        }
        return found;
    }

    // Configs: of topics with synonyms and documentation, changed in both ways; of the broker

    private static void configs() throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
        DescribeConfigsOptions withSynonyms = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        call("describeConfigs", () -> configs(describe(topic.type(), TOPIC, withSynonyms)));
        call("incrementalAlterConfigs", () -> alter(topic, new AlterConfigOp(new ConfigEntry("retention.ms", "777"), AlterConfigOp.OpType.SET), new AlterConfigOp(new ConfigEntry("cleanup.policy", ""), AlterConfigOp.OpType.DELETE)));
        call("describeConfigs after it", () -> changed(describe(topic.type(), TOPIC, withSynonyms)));
        call("incrementalAlterConfigs with a bad value", () -> alter(topic, new AlterConfigOp(new ConfigEntry("retention.ms", "soon"), AlterConfigOp.OpType.SET)));
        call("incrementalAlterConfigs of an unknown topic", () -> alter(new ConfigResource(ConfigResource.Type.TOPIC, "console-unknown"), new AlterConfigOp(new ConfigEntry("retention.ms", "1"), AlterConfigOp.OpType.SET)));
        call("alterConfigs", () -> admin.alterConfigs(Map.of(topic, new Config(List.of(new ConfigEntry("max.message.bytes", "5000"))))).all().get());
        call("describeConfigs after that", () -> changed(describe(topic.type(), TOPIC, withSynonyms)));
        call("describeConfigs of an unknown topic", () -> configs(describe(topic.type(), "console-unknown", withSynonyms)));
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "0");
        call("incrementalAlterConfigs of a broker", () -> alter(broker, new AlterConfigOp(new ConfigEntry("log.retention.ms", "123456789"), AlterConfigOp.OpType.SET)));
        awaitValue(broker, "log.retention.ms", "123456789"); // a broker applies it after it has answered
        call("describeConfigs of the changed broker", () -> changed(describe(broker.type(), "0", withSynonyms)));
        call("incrementalAlterConfigs back", () -> alter(broker, new AlterConfigOp(new ConfigEntry("log.retention.ms", ""), AlterConfigOp.OpType.DELETE)));
        call("incrementalAlterConfigs of a static key", () -> alter(broker, new AlterConfigOp(new ConfigEntry("broker.id", "7"), AlterConfigOp.OpType.SET)));
    }

    private static Object alter(ConfigResource resource, AlterConfigOp... operations) throws Exception {
        return admin.incrementalAlterConfigs(Map.of(resource, List.of(operations))).all().get();
    }

    private static Config describe(ConfigResource.Type type, String name, DescribeConfigsOptions options) throws Exception {
        ConfigResource resource = new ConfigResource(type, name);
        return admin.describeConfigs(List.of(resource), options).values().get(resource).get();
    }

    private static void awaitValue(ConfigResource resource, String name, String value) throws Exception {
        long deadline = System.nanoTime() + 20_000_000_000L;
        while (!value.equals(describe(resource.type(), resource.name(), new DescribeConfigsOptions()).get(name).value()) && System.nanoTime() < deadline) {
            Thread.sleep(20);
        }
    }

    private static Object configs(Config config) {
        Map<String, Object> found = new TreeMap<>();
        for (ConfigEntry entry : config.entries()) {
            found.put(entry.name(), entry(entry));
        }
        return found;
    }

    private static Object changed(Config config) {
        Map<String, Object> found = new TreeMap<>();
        for (ConfigEntry entry : config.entries()) {
            if (entry.source().name().startsWith("DYNAMIC")) {
                found.put(entry.name(), entry(entry));
            }
        }
        return found;
    }

    private static Object entry(ConfigEntry entry) {
        List<String> synonyms = entry.synonyms().stream().map(synonym -> synonym.name() + "=" + synonym.value() + " " + synonym.source()).toList();
        return List.of(String.valueOf(entry.value()), entry.source().name(), entry.type().name(), entry.isReadOnly(), entry.isSensitive(), synonyms, String.valueOf(entry.documentation()).isBlank());
    }

    // Groups: with a member, without, offsets set and deleted

    private static void groups() throws Exception {
        try (KafkaConsumer<String, String> consumer = consumer(GROUP)) {
            consumer.subscribe(List.of(TOPIC));
            long deadline = System.nanoTime() + 30_000_000_000L;
            while (consumer.assignment().isEmpty() && System.nanoTime() < deadline) {
                consumer.poll(Duration.ofMillis(100));
            }
            consumer.commitSync(Map.of(FIRST, new OffsetAndMetadata(3, "by hand")));
            call("listConsumerGroups", ConsoleCalls::listed);
            call("describeConsumerGroups", () -> group(admin.describeConsumerGroups(List.of(GROUP)).all().get().get(GROUP)));
            call("listConsumerGroupOffsets", ConsoleCalls::committed);
            call("listConsumerGroupOffsets of one group", () -> named(admin.listConsumerGroupOffsets(GROUP).partitionsToOffsetAndMetadata().get()));
            call("deleteConsumerGroups with a member", () -> admin.deleteConsumerGroups(List.of(GROUP)).all().get());
            call("deleteConsumerGroupOffsets with a member", () -> admin.deleteConsumerGroupOffsets(GROUP, Set.of(FIRST)).all().get());
            call("alterConsumerGroupOffsets with a member", () -> admin.alterConsumerGroupOffsets(GROUP, Map.of(FIRST, new OffsetAndMetadata(0))).all().get());
        }
        call("describeConsumerGroups without a member", () -> group(admin.describeConsumerGroups(List.of(GROUP)).all().get().get(GROUP)));
        call("describeConsumerGroups of an unknown one", () -> group(admin.describeConsumerGroups(List.of("console-nobody")).all().get().get("console-nobody")));
        call("alterConsumerGroupOffsets", () -> admin.alterConsumerGroupOffsets(GROUP, Map.of(FIRST, new OffsetAndMetadata(2), new TopicPartition(TOPIC, 2), new OffsetAndMetadata(0))).all().get());
        call("listConsumerGroupOffsets after it", ConsoleCalls::committed);
        call("deleteConsumerGroupOffsets", () -> admin.deleteConsumerGroupOffsets(GROUP, Set.of(FIRST)).all().get());
        call("listConsumerGroupOffsets after that", ConsoleCalls::committed);
        call("deleteConsumerGroups", () -> admin.deleteConsumerGroups(List.of(GROUP)).all().get());
        call("deleteConsumerGroups again", () -> admin.deleteConsumerGroups(List.of(GROUP)).all().get());
    }

    private static Object listed() throws Exception {
        List<String> found = new ArrayList<>();
        for (ConsumerGroupListing listing : admin.listConsumerGroups().all().get()) {
            if (listing.groupId().startsWith("console-")) {
                found.add(listing.groupId() + " " + listing.isSimpleConsumerGroup() + " " + listing.state() + " " + listing.type());
            }
        }
        return found;
    }

    private static Object committed() throws Exception {
        Map<String, ListConsumerGroupOffsetsSpec> spec = Map.of(GROUP, new ListConsumerGroupOffsetsSpec().topicPartitions(null));
        return named(admin.listConsumerGroupOffsets(spec).all().get().get(GROUP));
    }

    private static Object group(ConsumerGroupDescription found) {
        List<String> members = new ArrayList<>();
        for (MemberDescription member : found.members()) {
            members.add(member.clientId() + " " + member.host() + " " + member.groupInstanceId() + " " + new TreeSet<>(member.assignment().topicPartitions().stream().map(TopicPartition::toString).toList()));
        }
        return List.of(found.groupId(), found.isSimpleConsumerGroup(), members, found.partitionAssignor(), found.state().name(), found.type().name(), found.coordinator().id(), String.valueOf(found.authorizedOperations()));
    }

    // Replicas: to another place, which is the same on one broker

    private static void moves() throws Exception {
        call("alterPartitionReassignments", () -> admin.alterPartitionReassignments(Map.of(FIRST, Optional.of(new NewPartitionReassignment(List.of(0))))).all().get());
        call("alterPartitionReassignments twice to one", () -> admin.alterPartitionReassignments(Map.of(FIRST, Optional.of(new NewPartitionReassignment(List.of(0, 0))))).all().get());
        call("alterPartitionReassignments to nobody", () -> admin.alterPartitionReassignments(Map.of(FIRST, Optional.of(new NewPartitionReassignment(List.of(-1))))).all().get());
        call("alterPartitionReassignments to nowhere", () -> admin.alterPartitionReassignments(Map.of(FIRST, Optional.of(new NewPartitionReassignment(List.of(0, 9))))).all().get());
        call("alterReplicaLogDirs to nowhere", () -> admin.alterReplicaLogDirs(Map.of(new TopicPartitionReplica(TOPIC, 0, 0), "/nowhere")).all().get());
    }

    private static void quotas() throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, "console-client"));
        call("alterClientQuotas", () -> quota(entity, new ClientQuotaAlteration.Op("producer_byte_rate", 1000.0), new ClientQuotaAlteration.Op("request_percentage", 50.0)));
        call("describeClientQuotas", ConsoleCalls::quotas0);
        call("alterClientQuotas to clear one", () -> quota(entity, new ClientQuotaAlteration.Op("producer_byte_rate", null)));
        call("describeClientQuotas after it", ConsoleCalls::quotas0);
        call("alterClientQuotas of an address", () -> quota(new ClientQuotaEntity(Map.of(ClientQuotaEntity.IP, "127.0.0.9")), new ClientQuotaAlteration.Op("connection_creation_rate", 10.0)));
        call("alterClientQuotas with an unknown key", () -> quota(entity, new ClientQuotaAlteration.Op("colour", 1.0)));
        call("alterClientQuotas with a bad value", () -> quota(entity, new ClientQuotaAlteration.Op("producer_byte_rate", -1.0)));
        quota(entity, new ClientQuotaAlteration.Op("request_percentage", null));
        quota(new ClientQuotaEntity(Map.of(ClientQuotaEntity.IP, "127.0.0.9")), new ClientQuotaAlteration.Op("connection_creation_rate", null));
        call("describeClientQuotas of nobody", ConsoleCalls::quotas0);
    }

    private static Object quota(ClientQuotaEntity entity, ClientQuotaAlteration.Op... operations) throws Exception {
        return admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(operations)))).all().get();
    }

    private static Object quotas0() throws Exception {
        Map<String, Object> found = new TreeMap<>();
        admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().forEach((entity, values) -> found.put(new TreeMap<>(entity.entries()).toString(), new TreeMap<>(values).toString()));
        return found;
    }

    private static void end() throws Exception {
        call("deleteTopics", () -> admin.deleteTopics(List.of(TOPIC)).all().get());
        call("deleteTopics of an unknown one", () -> admin.deleteTopics(List.of("console-unknown")).all().get());
        admin.deleteTopics(List.of("console-default")).all().get();
    }

    // Underneath

    private static void call(String name, Callable<Object> work) throws Exception {
        Object answer;
        try {
            answer = work.call();
        } catch (ExecutionException | RuntimeException error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            answer = cause.getClass().getSimpleName() + ": " + cause.getMessage();
        }
        out.println(JSON.writeValueAsString(List.of(name, answer == null ? "" : answer)));
    }

    private static <V> Object named(Map<TopicPartition, V> values) {
        Map<String, Object> found = new TreeMap<>();
        values.forEach((partition, value) -> found.put(partition.toString(), String.valueOf(value)));
        return found;
    }

    private static Properties clientProperties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("client.id", "console");
        return properties;
    }

    private static KafkaConsumer<String, String> consumer(String group) {
        Properties properties = clientProperties();
        properties.put("key.deserializer", StringDeserializer.class.getName());
        properties.put("value.deserializer", StringDeserializer.class.getName());
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        if (group != null) {
            properties.put("group.id", group);
        }
        return new KafkaConsumer<>(properties);
    }
}
