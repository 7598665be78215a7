import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

import org.apache.kafka.server.common.MetadataVersion;

/** Writes kafka-3.9.1.txt: which texts name a version, and what each version means. `\` stands for an empty text. */
public class CaptureMetadataVersions {
    public static void main(String[] args) {
        Set<String> texts = new LinkedHashSet<>();
        for (MetadataVersion version : MetadataVersion.VERSIONS) {
            for (String text : List.of(version.version(), version.shortVersion())) {
                for (String end : List.of("", ".", ".1", ".0.2", "..", "-IV9", "-IV", "_IV0", " ", ".1-IV0", "-SNAPSHOT"))
                    texts.add(text + end);
                texts.add(text.toLowerCase());
                texts.add(" " + text);
                texts.add("0" + text);
            }
        }
        texts.addAll(List.of("", ".", "..", "0", "0.", "0.1", "0.10", "0.11", "0.11-IV0", "1", "2", "2.", "3", "3.10", "4", "4.1",
            "4.0-IV2", "latest", "3.9-IV00", "1.0.0.0.0", "IBP_3_9_IV0"));
        for (String text : texts)
            System.out.println("text\t" + (text.isEmpty() ? "\\" : text) + "\t" + named(text));
        for (MetadataVersion v : MetadataVersion.VERSIONS) {
            List<Object> row = new ArrayList<>(List.of(v.version(), v.shortVersion(), v.highestSupportedRecordVersion().value,
                v.isFeatureVersioningSupported(), v.isTopicIdsSupported(), v.isLeaderRecoverySupported(),
                v.groupMetadataValueVersion(), v.offsetCommitValueVersion(false), v.offsetCommitValueVersion(true),
                v.fetchRequestVersion(), v.listOffsetRequestVersion(), v.writeTxnMarkersRequestVersion()));
            System.out.println("version\t" + String.join("\t", row.stream().map(String::valueOf).toList()));
        }
    }

    private static String named(String text) {
        try {
            return MetadataVersion.fromVersionString(text).version();
        } catch (RuntimeException e) {
            return "refused";
        }
    }
}
