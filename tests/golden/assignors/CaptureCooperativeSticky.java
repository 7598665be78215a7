import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.common.TopicPartition;

/**
 * Runs Java's cooperative-sticky assignor on groups whose members come and go, two generations for each change: the first
 * withholds what moves. Prints a line for each assignment: topics with their counts, then each member with its topics, its
 * generation, what it owns and what it gets. Arguments: seed, number of groups.
 */
public class CaptureCooperativeSticky {
    public static void main(String[] args) {
        Random random = new Random(Long.parseLong(args[0]));
        for (int group = Integer.parseInt(args[1]); group > 0; group--) {
            boolean equal = random.nextInt(3) > 0;
            Map<String, Integer> counts = new TreeMap<>();
            for (int topic = 1 + random.nextInt(3); topic > 0; topic--)
                counts.put("t" + topic, 1 + random.nextInt(7));
            Map<String, Set<String>> topics = new TreeMap<>();
            Map<String, List<TopicPartition>> owned = new HashMap<>();
            int generation = 0;
            for (int change = 0; change < 4; change++) {
                if (topics.size() > 1 && random.nextInt(3) == 0) {
                    String gone = new ArrayList<>(topics.keySet()).get(random.nextInt(topics.size()));
                    topics.remove(gone);
                    owned.remove(gone);
                } else {
                    Set<String> wanted = new TreeSet<>(counts.keySet());
                    if (!equal)
                        wanted.removeIf(topic -> random.nextInt(3) == 0);
                    if (wanted.isEmpty())
                        wanted.add("t1");
                    topics.put("m" + generation + random.nextInt(10), wanted);
                }
                for (int round = 0; round < 2; round++) {
                    Map<String, Subscription> members = new LinkedHashMap<>();
                    for (String member : topics.keySet())
                        members.put(member, new Subscription(new ArrayList<>(topics.get(member)), null,
                            owned.getOrDefault(member, Collections.emptyList()),
                            owned.containsKey(member) ? generation : -1, Optional.empty()));
                    Map<String, Integer> known = new TreeMap<>(counts);
                    known.keySet().removeIf(topic -> topics.values().stream().noneMatch(wanted -> wanted.contains(topic)));
                    Map<String, List<TopicPartition>> found = new CooperativeStickyAssignor().assign(known, members);
                    print(known, members, found);
                    generation++;
                    for (String member : topics.keySet())
                        owned.put(member, new ArrayList<>(found.get(member)));
                }
            }
        }
    }

    private static void print(Map<String, Integer> counts, Map<String, Subscription> members, Map<String, List<TopicPartition>> found) {
        StringBuilder line = new StringBuilder();
        counts.forEach((topic, count) -> line.append(topic).append(':').append(count).append(' '));
        members.forEach((member, subscription) -> line.append("| ").append(member).append(' ')
            .append(String.join(",", subscription.topics())).append(' ')
            .append(subscription.generationId().orElse(-1)).append(' ')
            .append(names(subscription.ownedPartitions())).append(' ')
            .append(names(found.get(member))).append(' '));
        System.out.println(line.toString().trim());
    }

    private static String names(List<TopicPartition> partitions) {
        Set<String> names = new TreeSet<>();
        partitions.forEach(partition -> names.add(partition.toString()));
        return names.isEmpty() ? "-" : String.join(",", names);
    }
}
