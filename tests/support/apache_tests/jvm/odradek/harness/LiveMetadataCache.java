package odradek.harness;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import kafka.server.BrokerFeatures;
import kafka.server.metadata.ZkMetadataCache;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.UpdateMetadataRequestData.UpdateMetadataBroker;
import org.apache.kafka.common.message.UpdateMetadataRequestData.UpdateMetadataEndpoint;
import org.apache.kafka.common.message.UpdateMetadataRequestData.UpdateMetadataPartitionState;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.requests.UpdateMetadataRequest;
import org.mockito.MockMakers;
import org.mockito.Mockito;

/** Apache's own metadata cache, filled with what the broker says of the cluster each time that it is asked. */
final class LiveMetadataCache {
    private static final int LEADER_DURING_DELETE = -2;
    private static final short VERSION = 7;

    private final LiveBroker broker;
    private final Wire wire;
    private final ZkMetadataCache filled;
    private Map<TopicPartition, UpdateMetadataPartitionState> known = new HashMap<>();

    private LiveMetadataCache(LiveBroker broker, Wire wire) {
        this.broker = broker;
        this.wire = wire;
        this.filled = new ZkMetadataCache(
            broker.id(), broker.config().interBrokerProtocolVersion(), BrokerFeatures.createEmpty(), false);
    }

    static ZkMetadataCache of(LiveBroker broker, Wire wire) {
        LiveMetadataCache cache = new LiveMetadataCache(broker, wire);
        return Mockito.mock(ZkMetadataCache.class, Mockito.withSettings().stubOnly().mockMaker(MockMakers.SUBCLASS)
            .defaultAnswer(invocation -> cache.answer(invocation.getMethod(), invocation.getArguments())));
    }

    private synchronized Object answer(Method method, Object[] arguments) throws Throwable {
        if (method.getName().toLowerCase().contains("feature")) throw new BeyondTheWire("ZkMetadataCache." + method.getName());
        fill();
        try {
            return method.invoke(filled, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private void fill() {
        MetadataResponseData metadata = wire.metadata();
        Map<TopicPartition, UpdateMetadataPartitionState> states = new LinkedHashMap<>();
        Map<String, Uuid> topicIds = new HashMap<>();
        for (MetadataResponseData.MetadataResponseTopic topic : metadata.topics()) {
            topicIds.put(topic.name(), topic.topicId());
            for (MetadataResponseData.MetadataResponsePartition partition : topic.partitions()) {
                states.put(new TopicPartition(topic.name(), partition.partitionIndex()), state(topic.name(), partition));
            }
        }
        List<UpdateMetadataPartitionState> told = new ArrayList<>(states.values());
        known.forEach((partition, state) -> {
            if (!states.containsKey(partition)) told.add(state.duplicate().setLeader(LEADER_DURING_DELETE));
        });
        known = states;
        filled.updateMetadata(0, new UpdateMetadataRequest.Builder(
            VERSION, metadata.controllerId(), 0, 0, told, brokers(), topicIds).build(VERSION));
    }

    private static UpdateMetadataPartitionState state(String topic, MetadataResponseData.MetadataResponsePartition partition) {
        return new UpdateMetadataPartitionState()
            .setTopicName(topic)
            .setPartitionIndex(partition.partitionIndex())
            .setLeader(partition.leaderId())
            .setLeaderEpoch(partition.leaderEpoch())
            .setReplicas(partition.replicaNodes())
            .setIsr(partition.isrNodes())
            .setOfflineReplicas(partition.offlineReplicas());
    }

    private List<UpdateMetadataBroker> brokers() {
        Map<Integer, UpdateMetadataBroker> found = new LinkedHashMap<>();
        broker.ports().keySet().forEach(listener -> {
            for (MetadataResponseData.MetadataResponseBroker other : wire.metadata(listener).brokers()) {
                UpdateMetadataBroker entry = found.computeIfAbsent(
                    other.nodeId(), id -> new UpdateMetadataBroker().setId(id).setRack(other.rack()));
                entry.endpoints().add(new UpdateMetadataEndpoint()
                    .setListener(new ListenerName(listener).value())
                    .setHost(other.host())
                    .setPort(other.port())
                    .setSecurityProtocol((short) 0));
            }
        });
        return new ArrayList<>(found.values());
    }
}
