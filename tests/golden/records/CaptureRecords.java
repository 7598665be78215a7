import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.Time;

/**
 * Writes batches with Apache Kafka's own classes, one "name hex" per line:
 *   java -cp "$KAFKA_LIBS/*" CaptureRecords.java > kafka-3.9.1.txt
 */
public class CaptureRecords {
    static final long T = 1700000000000L;
    static final Header[] NO_HEADERS = new Header[0];

    static void print(String name, ByteBuffer buffer) {
        StringBuilder hex = new StringBuilder();
        ByteBuffer b = buffer.duplicate();
        while (b.hasRemaining()) hex.append(String.format("%02x", b.get()));
        System.out.println(name + " " + hex);
    }

    static ByteBuffer bytes(String s) {
        return s == null ? null : ByteBuffer.wrap(s.getBytes(StandardCharsets.UTF_8));
    }

    static MemoryRecordsBuilder builder(int magic, CompressionType type, TimestampType timestampType, long base, long producerId,
                                        boolean transactional, boolean control, long horizon) {
        return new MemoryRecordsBuilder(new ByteBufferOutputStream(64), (byte) magic, Compression.of(type).build(), timestampType, base,
            timestampType == TimestampType.LOG_APPEND_TIME ? T + 1000 : RecordBatch.NO_TIMESTAMP, producerId,
            (short) (producerId < 0 ? -1 : 0), producerId < 0 || control ? -1 : 7, transactional, control, magic == 2 ? 3 : -1, 1 << 20, horizon);
    }

    static MemoryRecords three(int magic, CompressionType type, TimestampType timestampType) {
        MemoryRecordsBuilder b = builder(magic, type, timestampType, 10, -1, false, false, -1);
        Header[] headers = magic == 2 ? new Header[] {new RecordHeader("h", new byte[] {1, 2}), new RecordHeader("ü", null)} : NO_HEADERS;
        b.appendWithOffset(10, T, bytes("key1"), bytes("value1"), headers);
        b.appendWithOffset(11, T + 7, null, bytes(""), NO_HEADERS);
        b.appendWithOffset(12, T - 3, bytes("k"), null, NO_HEADERS);
        return b.build();
    }

    public static void main(String[] args) throws Exception {
        for (int magic = 0; magic <= 2; magic++)
            for (CompressionType type : CompressionType.values())
                for (TimestampType timestampType : new TimestampType[] {TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME}) {
                    if (magic < 2 && type == CompressionType.ZSTD || magic == 0 && timestampType == TimestampType.LOG_APPEND_TIME) continue;
                    print("three/v" + magic + "/" + type.name + "/" + timestampType.name, three(magic, type, timestampType).buffer());
                }
        char[] repeated = new char[200_000];
        Arrays.fill(repeated, 'x');
        for (CompressionType type : CompressionType.values()) {
            if (type == CompressionType.NONE) continue;
            MemoryRecordsBuilder b = builder(2, type, TimestampType.CREATE_TIME, 0, -1, false, false, -1);
            b.append(T, null, bytes(new String(repeated)));
            print("200000x/v2/" + type.name, b.build().buffer());
        }
        MemoryRecordsBuilder idempotent = builder(2, CompressionType.NONE, TimestampType.CREATE_TIME, 100, 1000, true, false, -1);
        idempotent.append(T, bytes("a"), bytes("b"));
        idempotent.appendWithOffset(105, T + 5, bytes("a"), bytes("c"));
        idempotent.overrideLastOffset(110);
        print("transactional-gaps", idempotent.build().buffer());
        MemoryRecordsBuilder horizon = builder(2, CompressionType.NONE, TimestampType.CREATE_TIME, 20, -1, false, false, T + 86400000L);
        horizon.append(T, bytes("a"), null);
        horizon.append(T + 1, bytes("b"), bytes("x"));
        print("delete-horizon", horizon.build().buffer());
        print("commit", MemoryRecords.withEndTransactionMarker(9, T, 3, 1000, (short) 0, new EndTransactionMarker(ControlRecordType.COMMIT, 4)).buffer());
        print("abort", MemoryRecords.withEndTransactionMarker(9, T, 3, 1000, (short) 0, new EndTransactionMarker(ControlRecordType.ABORT, 4)).buffer());
        LeaderChangeMessage change = new LeaderChangeMessage().setLeaderId(1)
            .setVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(1), new LeaderChangeMessage.Voter().setVoterId(2)))
            .setGrantingVoters(List.of(new LeaderChangeMessage.Voter().setVoterId(2)));
        print("leader-change", MemoryRecords.withLeaderChangeMessage(5, T, 3, ByteBuffer.allocate(256), change).buffer());
        ByteBuffer empty = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(empty, (byte) 2, 1000, (short) 2, 40, 500, 509, 6, TimestampType.CREATE_TIME, T, true, false);
        empty.flip();
        print("empty", empty);
        for (CompressionType type : new CompressionType[] {CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4})
            for (TimestampType timestampType : new TimestampType[] {TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME})
                for (byte magic = 0; magic <= 1; magic++) {
                    MemoryRecords v2 = three(2, type, timestampType);
                    print("down/" + type.name + "/" + timestampType.name + "/v" + magic + "/from-11",
                        ((MemoryRecords) v2.downConvert(magic, 11, Time.SYSTEM).records()).buffer());
                }
    }
}
