import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/** Writes old-formats-3.9.1.txt: what a leader stores of what it is sent, for every target format. */
public class CaptureOldFormats {
    static final long T = 1_700_000_000_000L;
    static final long NOW = T + 60_000;
    static final long NEXT_OFFSET = 1000;
    static final int EPOCH = 7;

    public static void main(String[] args) {
        Map<String, byte[]> sent = new LinkedHashMap<>();
        for (byte magic = 0; magic <= 2; magic++) {
            sent.put("plain-" + magic, built(magic, Compression.NONE, TimestampType.CREATE_TIME, 0, 1));
            sent.put("gzip-" + magic, built(magic, Compression.gzip().build(), TimestampType.CREATE_TIME, 0, 1));
            sent.put("gzip-gaps-" + magic, built(magic, Compression.gzip().build(), TimestampType.CREATE_TIME, 0, 2));
            sent.put("one-" + magic, bytes(MemoryRecords.withRecords(magic, 0, Compression.NONE, record(0))));
        }
        sent.put("plain-appended-1", built((byte) 1, Compression.NONE, TimestampType.LOG_APPEND_TIME, 0, 1));
        sent.put("gzip-appended-1", built((byte) 1, Compression.gzip().build(), TimestampType.LOG_APPEND_TIME, 0, 1));
        sent.put("offset-5-1", built((byte) 1, Compression.NONE, TimestampType.CREATE_TIME, 5, 3));
        sent.put("no-time-1", bytes(MemoryRecords.withRecords((byte) 1, 0, Compression.NONE, new SimpleRecord(-1L, (byte[]) null, null))));
        sent.put("headers-2", bytes(MemoryRecords.withRecords((byte) 2, 0, Compression.NONE,
            new SimpleRecord(T, "k".getBytes(), "v".getBytes(), new Header[] {new RecordHeader("h", "x".getBytes())}))));
        sent.put("idempotent-2", bytes(MemoryRecords.withIdempotentRecords((byte) 2, 0, Compression.NONE, 9L, (short) 0, 0, 0, record(0))));
        sent.put("transactional-2", bytes(MemoryRecords.withTransactionalRecords((byte) 2, 0, Compression.NONE, 9L, (short) 0, 0, 0, record(0))));
        sent.put("zstd-2", bytes(MemoryRecords.withRecords((byte) 2, 0, Compression.zstd().build(), record(0))));
        sent.forEach((name, records) -> System.out.println("sent\t" + name + "\t" + HexFormat.of().formatHex(records)));
        for (String name : sent.keySet())
            for (byte target = 0; target <= 2; target++)
                for (String codec : List.of("producer", "uncompressed", "gzip"))
                    for (TimestampType type : List.of(TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME))
                        System.out.println(String.join("\t", "stored", name, "" + target, codec, type.name,
                            stored(sent.get(name), target, codec, type, MetadataVersion.IBP_2_8_IV1)));
        System.out.println(String.join("\t", "zstd-before-2.1", stored(sent.get("zstd-2"), (byte) 2, "producer",
            TimestampType.CREATE_TIME, MetadataVersion.IBP_2_0_IV1)));
    }

    private static SimpleRecord record(int index) {
        byte[] key = index == 1 ? null : ("key" + index).getBytes(StandardCharsets.UTF_8);
        byte[] value = index == 2 ? null : ("value" + index).repeat(3).getBytes(StandardCharsets.UTF_8);
        return new SimpleRecord(T + 100 * (index == 1 ? 5 : index), key, value);
    }

    private static byte[] built(byte magic, Compression codec, TimestampType type, long first, int step) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(4096), magic, codec, type, first,
            type == TimestampType.LOG_APPEND_TIME ? T + 7 : RecordBatch.NO_TIMESTAMP, RecordBatch.NO_PARTITION_LEADER_EPOCH);
        for (int index = 0; index < 4; index++)
            builder.appendWithOffset(first + (long) index * step, record(index));
        return bytes(builder.build());
    }

    private static byte[] bytes(MemoryRecords records) {
        ByteBuffer buffer = records.buffer();
        byte[] all = new byte[buffer.remaining()];
        buffer.get(all);
        return all;
    }

    private static String stored(byte[] sent, byte target, String codec, TimestampType type, MetadataVersion version) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(sent.clone()));
        CompressionType source = CompressionType.NONE;
        for (RecordBatch batch : records.batches())
            if (batch.compressionType() != CompressionType.NONE)
                source = batch.compressionType();
        Compression to = switch (codec) {
            case "producer" -> Compression.of(source).build();
            case "uncompressed" -> Compression.NONE;
            default -> Compression.gzip().build();
        };
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, arguments) -> method.getName().equals("milliseconds") ? NOW : method.invoke(Time.SYSTEM, arguments));
        LogValidator.MetricsRecorder recorder = (LogValidator.MetricsRecorder) Proxy.newProxyInstance(
            Time.class.getClassLoader(), new Class<?>[] {LogValidator.MetricsRecorder.class}, (proxy, method, arguments) -> null);
        try {
            LogValidator.ValidationResult result = new LogValidator(records, new TopicPartition("t", 0), time, source, to, false,
                target, type, Long.MAX_VALUE, Long.MAX_VALUE, EPOCH, AppendOrigin.CLIENT, version)
                .validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(NEXT_OFFSET), recorder, BufferSupplier.NO_CACHING);
            return HexFormat.of().formatHex(bytes(result.validatedRecords));
        } catch (RecordValidationException e) {
            return Errors.forException(e.invalidException()) + " " + e.invalidException().getMessage();
        } catch (Exception e) {
            return Errors.forException(e) + " " + e.getMessage();
        }
    }
}
