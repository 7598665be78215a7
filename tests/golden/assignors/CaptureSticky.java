import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.TopicPartition;

/**
 * Runs Java's assignor sticky on groups whose members come, go and come back with what they had then. Prints a line for
 * each assignment: topics with their counts, then each member with its topics, its user data in hexadecimal digits and
 * what it gets. Arguments: seed, number of groups.
 */
public class CaptureSticky {
    public static void main(String[] args) {
        Random random = new Random(Long.parseLong(args[0]));
        for (int group = Integer.parseInt(args[1]); group > 0; group--) {
            boolean equal = random.nextInt(3) > 0;
            Map<String, Integer> counts = new TreeMap<>();
            for (int topic = 1 + random.nextInt(3); topic > 0; topic--)
                counts.put("t" + topic, 1 + random.nextInt(7));
            Map<String, Set<String>> topics = new TreeMap<>();
            Map<String, Set<String>> away = new TreeMap<>();
            Map<String, StickyAssignor> assignors = new HashMap<>();
            for (int generation = 0; generation < 5; generation++) {
                if (!away.isEmpty() && random.nextInt(2) == 0) {
                    String back = away.keySet().iterator().next();
                    topics.put(back, away.remove(back));
                } else if (topics.size() > 1 && random.nextInt(3) == 0) {
                    String gone = new ArrayList<>(topics.keySet()).get(random.nextInt(topics.size()));
                    away.put(gone, topics.remove(gone));
                } else {
                    Set<String> wanted = new TreeSet<>(counts.keySet());
                    if (!equal)
                        wanted.removeIf(topic -> random.nextInt(3) == 0);
                    if (wanted.isEmpty())
                        wanted.add("t1");
                    topics.put("m" + generation + random.nextInt(10), wanted);
                }
                Map<String, Subscription> members = new LinkedHashMap<>();
                Map<String, ByteBuffer> data = new HashMap<>();
                for (String member : topics.keySet()) {
                    StickyAssignor assignor = assignors.computeIfAbsent(member, name -> new StickyAssignor());
                    ByteBuffer userData = assignor.subscriptionUserData(topics.get(member));
                    data.put(member, userData == null ? null : userData.duplicate());
                    members.put(member, new Subscription(new ArrayList<>(topics.get(member)), userData));
                }
                Map<String, Integer> known = new TreeMap<>(counts);
                known.keySet().removeIf(topic -> topics.values().stream().noneMatch(wanted -> wanted.contains(topic)));
                Map<String, List<TopicPartition>> found = new StickyAssignor().assign(known, members);
                print(known, members, data, found);
                for (String member : topics.keySet())
                    assignors.get(member).onAssignment(new Assignment(found.get(member)),
                        new ConsumerGroupMetadata("g", generation, member, Optional.empty()));
            }
        }
    }

    private static void print(Map<String, Integer> counts, Map<String, Subscription> members, Map<String, ByteBuffer> data,
                              Map<String, List<TopicPartition>> found) {
        StringBuilder line = new StringBuilder();
        counts.forEach((topic, count) -> line.append(topic).append(':').append(count).append(' '));
        members.forEach((member, subscription) -> line.append("| ").append(member).append(' ')
            .append(String.join(",", subscription.topics())).append(' ')
            .append(digits(data.get(member))).append(' ')
            .append(names(found.get(member))).append(' '));
        System.out.println(line.toString().trim());
    }

    private static String digits(ByteBuffer bytes) {
        if (bytes == null)
            return "-";
        StringBuilder text = new StringBuilder();
        while (bytes.hasRemaining())
            text.append(String.format("%02x", bytes.get()));
        return text.toString();
    }

    private static String names(List<TopicPartition> partitions) {
        Set<String> names = new TreeSet<>();
        partitions.forEach(partition -> names.add(partition.toString()));
        return names.isEmpty() ? "-" : String.join(",", names);
    }
}
