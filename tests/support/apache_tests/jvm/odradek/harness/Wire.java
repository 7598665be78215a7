package odradek.harness;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.message.CreateAclsRequestData;
import org.apache.kafka.common.message.DeleteAclsRequestData;
import org.apache.kafka.common.message.DescribeConfigsRequestData;
import org.apache.kafka.common.message.DescribeConfigsResponseData;
import org.apache.kafka.common.message.DescribeLogDirsRequestData;
import org.apache.kafka.common.message.DescribeLogDirsResponseData;
import org.apache.kafka.common.message.DescribeProducersRequestData;
import org.apache.kafka.common.message.DescribeProducersResponseData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsTopic;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.CreateAclsRequest;
import org.apache.kafka.common.requests.CreateAclsResponse;
import org.apache.kafka.common.requests.DeleteAclsRequest;
import org.apache.kafka.common.requests.DeleteAclsResponse;
import org.apache.kafka.common.requests.DescribeAclsRequest;
import org.apache.kafka.common.requests.DescribeAclsResponse;
import org.apache.kafka.common.requests.DescribeConfigsRequest;
import org.apache.kafka.common.requests.DescribeConfigsResponse;
import org.apache.kafka.common.requests.DescribeDelegationTokenRequest;
import org.apache.kafka.common.requests.DescribeDelegationTokenResponse;
import org.apache.kafka.common.requests.DescribeLogDirsRequest;
import org.apache.kafka.common.requests.DescribeLogDirsResponse;
import org.apache.kafka.common.requests.DescribeProducersRequest;
import org.apache.kafka.common.requests.DescribeProducersResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.security.token.delegation.TokenInformation;

/** What a broker says of itself, asked in Kafka's protocol at its side door, on connections that live for one request. */
final class Wire {
    private static final int DEBUGGING_CONSUMER = -2;
    private static final int CONSUMER = -1;
    private static final Pattern SOCKET = Pattern.compile("^ *\\d+: \\p{XDigit}+:(\\p{XDigit}{4}) \\p{XDigit}+:\\p{XDigit}{4} 01 ");

    private final LiveBroker broker;

    Wire(LiveBroker broker) {
        this.broker = broker;
    }

    /** The cluster as the broker describes it to the clients of one of its listeners. */
    MetadataResponseData metadata(String listener) {
        MetadataRequest request = new MetadataRequest.Builder(null, false, (short) 12, (short) 12).build((short) 12);
        return ((MetadataResponse) ask(request, listener)).data();
    }

    /** The cluster as the broker describes it to other brokers. */
    MetadataResponseData metadata() {
        return metadata(broker.config().interBrokerListenerName().value());
    }

    /** The ACLs in the broker's cache. */
    List<AclBinding> acls(AclBindingFilter filter) {
        DescribeAclsResponse response = (DescribeAclsResponse) ask(new DescribeAclsRequest.Builder(filter).build((short) 3));
        if (response.error().isFailure()) throw response.error().exception();
        return DescribeAclsResponse.aclBindings(response.acls());
    }

    /** Adds an ACL. */
    Errors createAcl(AclBinding acl) {
        CreateAclsRequestData data = new CreateAclsRequestData().setCreations(List.of(CreateAclsRequest.aclCreation(acl)));
        CreateAclsResponse response = (CreateAclsResponse) ask(new CreateAclsRequest.Builder(data).build((short) 3));
        return Errors.forCode(response.results().get(0).errorCode());
    }

    /** Removes the ACLs that match, and returns them. */
    List<AclBinding> deleteAcls(AclBindingFilter filter) {
        DeleteAclsRequestData data = new DeleteAclsRequestData().setFilters(List.of(DeleteAclsRequest.deleteAclsFilter(filter)));
        DeleteAclsResponse response = (DeleteAclsResponse) ask(new DeleteAclsRequest.Builder(data).build((short) 3));
        Errors.forCode(response.filterResults().get(0).errorCode()).maybeThrow();
        return response.filterResults().get(0).matchingAcls().stream().map(DeleteAclsResponse::aclBinding)
            .collect(Collectors.toList());
    }

    /** The delegation tokens in the broker's cache. */
    List<TokenInformation> tokens() {
        DescribeDelegationTokenResponse response = (DescribeDelegationTokenResponse) ask(
            new DescribeDelegationTokenRequest.Builder(null).build((short) 3));
        response.error().maybeThrow();
        return response.tokens().stream().map(DelegationToken::tokenInfo).collect(Collectors.toList());
    }

    /** The configuration of a topic as it holds at this broker. */
    List<DescribeConfigsResponseData.DescribeConfigsResourceResult> topicConfig(String topic) {
        DescribeConfigsRequestData data = new DescribeConfigsRequestData().setResources(Collections.singletonList(
            new DescribeConfigsRequestData.DescribeConfigsResource().setResourceType((byte) 2).setResourceName(topic)));
        DescribeConfigsResponse response = (DescribeConfigsResponse) ask(new DescribeConfigsRequest.Builder(data).build((short) 4));
        return response.data().results().get(0).configs();
    }

    /** The directories of this broker's replicas, without its future ones or those alone. */
    Map<TopicPartition, DescribeLogDirsResponseData.DescribeLogDirsPartition> replicas(boolean future) {
        Map<TopicPartition, DescribeLogDirsResponseData.DescribeLogDirsPartition> found = new LinkedHashMap<>();
        directories().forEach((directory, replicas) -> replicas.forEach((partition, replica) -> {
            if (replica.isFutureKey() == future) found.put(partition, replica);
        }));
        return found;
    }

    /** The directory in which a replica is. */
    Optional<String> directory(TopicPartition partition, boolean future) {
        return directories().entrySet().stream()
            .filter(entry -> entry.getValue().containsKey(partition) && entry.getValue().get(partition).isFutureKey() == future)
            .map(Map.Entry::getKey).findFirst();
    }

    /** Directories that are online, with their replicas. */
    Map<String, Map<TopicPartition, DescribeLogDirsResponseData.DescribeLogDirsPartition>> directories() {
        DescribeLogDirsRequest request = new DescribeLogDirsRequest(new DescribeLogDirsRequestData().setTopics(null), (short) 4);
        Map<String, Map<TopicPartition, DescribeLogDirsResponseData.DescribeLogDirsPartition>> found = new LinkedHashMap<>();
        for (DescribeLogDirsResponseData.DescribeLogDirsResult result : ((DescribeLogDirsResponse) ask(request)).data().results()) {
            if (result.errorCode() != 0) continue;
            Map<TopicPartition, DescribeLogDirsResponseData.DescribeLogDirsPartition> replicas = new LinkedHashMap<>();
            result.topics().forEach(topic -> topic.partitions().forEach(partition ->
                replicas.put(new TopicPartition(topic.name(), partition.partitionIndex()), partition)));
            found.put(result.logDir(), replicas);
        }
        return found;
    }

    /** The broker's answer to a ListOffsets from its leader's side: an error unless it leads the partition. */
    ListOffsetsPartitionResponse offsetAsConsumer(TopicPartition partition, long timestamp) {
        return offset(partition, timestamp, CONSUMER);
    }

    /** The offset in this broker's own log, which need not be the leader's. */
    ListOffsetsPartitionResponse offset(TopicPartition partition, long timestamp) {
        return offset(partition, timestamp, DEBUGGING_CONSUMER);
    }

    private ListOffsetsPartitionResponse offset(TopicPartition partition, long timestamp, int replica) {
        ListOffsetsTopic topic = new ListOffsetsTopic().setName(partition.topic()).setPartitions(Collections.singletonList(
            new ListOffsetsPartition().setPartitionIndex(partition.partition()).setTimestamp(timestamp)));
        ListOffsetsRequest request = ListOffsetsRequest.Builder.forReplica((short) 5, replica)
            .setTargetTimes(Collections.singletonList(topic)).build((short) 5);
        return ((ListOffsetsResponse) ask(request)).data().topics().get(0).partitions().get(0);
    }

    /** What a Fetch says beside the records: high watermark, last stable offset, log start offset. */
    FetchResponseData.PartitionData fetched(TopicPartition partition) {
        FetchRequest.PartitionData wanted = new FetchRequest.PartitionData(Uuid.ZERO_UUID, 0, -1, 1, Optional.empty());
        FetchRequest request = FetchRequest.Builder.forConsumer((short) 11, 0, 0, Map.of(partition, wanted)).build((short) 11);
        FetchResponse response = (FetchResponse) ask(request);
        return response.responseData(Map.of(), (short) 11).get(partition);
    }

    /** The idempotent producers of a partition that this broker leads. */
    List<DescribeProducersResponseData.ProducerState> producers(TopicPartition partition) {
        DescribeProducersRequestData data = new DescribeProducersRequestData();
        data.topics().add(new DescribeProducersRequestData.TopicRequest()
            .setName(partition.topic()).setPartitionIndexes(Collections.singletonList(partition.partition())));
        DescribeProducersResponse response = (DescribeProducersResponse) ask(new DescribeProducersRequest.Builder(data).build((short) 0));
        return response.data().topics().get(0).partitions().get(0).activeProducers();
    }

    /** How many connections to these ports the broker has not closed: what the kernel lists as established. */
    static int connections(Collection<Integer> ports) throws IOException {
        int count = 0;
        for (String file : List.of("/proc/net/tcp", "/proc/net/tcp6")) {
            for (String line : Files.readAllLines(Path.of(file))) {
                Matcher socket = SOCKET.matcher(line);
                if (socket.find() && ports.contains(Integer.parseInt(socket.group(1), 16))) count++;
            }
        }
        return count;
    }

    private AbstractResponse ask(AbstractRequest request) {
        return ask(request, broker.config().interBrokerListenerName().value());
    }

    private AbstractResponse ask(AbstractRequest request, String listener) {
        RequestHeader header = new RequestHeader(request.apiKey(), request.version(), "harness", 1);
        ByteBuffer bytes = request.serializeWithHeader(header);
        try (Socket socket = SideDoor.connect(broker.sideDoor(), listener)) {
            DataOutputStream out = new DataOutputStream(socket.getOutputStream());
            byte[] frame = new byte[4 + bytes.remaining()];
            ByteBuffer.wrap(frame).putInt(bytes.remaining()).put(bytes);
            out.write(frame);
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] answer = new byte[in.readInt()];
            in.readFully(answer);
            return AbstractResponse.parseResponse(ByteBuffer.wrap(answer), header);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
