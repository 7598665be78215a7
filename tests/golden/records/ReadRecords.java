import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.RecordBatch;

/**
 * Reads batches with Apache Kafka's own classes: "name hex" lines on standard input, and for each record of them
 * "name offset timestamp sequence key value {header key=value}" in hex ("-" is null) on standard output, or
 * "name refused: <exception>" where Kafka refuses.
 */
public class ReadRecords {
    static String hex(ByteBuffer buffer) {
        if (buffer == null) return "-";
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ");
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HexFormat.of().parseHex(parts[1])));
            try {
                print(parts[0], records);
            } catch (Exception | Error e) {
                System.out.println(parts[0] + " refused: " + e.getClass().getSimpleName());
            }
        }
    }

    static void print(String name, MemoryRecords records) throws Exception {
        for (RecordBatch batch : records.batches()) {
            batch.ensureValid();
            for (org.apache.kafka.common.record.Record record : batch) {
                record.ensureValid();
                StringBuilder out = new StringBuilder(name);
                out.append(' ').append(record.offset()).append(' ').append(record.timestamp()).append(' ').append(record.sequence());
                out.append(' ').append(hex(record.key())).append(' ').append(hex(record.value()));
                for (Header header : record.headers())
                    out.append(' ').append(hex(ByteBuffer.wrap(header.key().getBytes("UTF-8")))).append('=')
                        .append(hex(header.value() == null ? null : ByteBuffer.wrap(header.value())));
                System.out.println(out);
            }
        }
    }
}
