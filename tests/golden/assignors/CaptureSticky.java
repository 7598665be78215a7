import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
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
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor;
import org.apache.kafka.common.TopicPartition;

/**
 * Runs Java's assignors sticky and cooperative-sticky on groups whose members come and go. Prints a line for each
 * assignment: topics with their counts, then each member with its topics, its claim and what it gets. With sticky,
 * members also come back with what they had then, and the claim is the user data in hexadecimal digits. With
 * cooperative-sticky there are two generations for each change, because the first withholds what moves, and the claim is
 * the generation and what the member owns. Arguments: assignor, seed, number of groups.
 */
public class CaptureSticky {
    private final Random random;
    private final boolean equal;
    private final Map<String, Integer> counts = new TreeMap<>();
    private final Map<String, Set<String>> topics = new TreeMap<>();
    private int generation = 0;

    public static void main(String[] args) {
        Random random = new Random(Long.parseLong(args[1]));
        for (int group = Integer.parseInt(args[2]); group > 0; group--) {
            CaptureSticky made = new CaptureSticky(random);
            if (args[0].equals("sticky"))
                made.runSticky();
            else
                made.runCooperativeSticky();
        }
    }

    private CaptureSticky(Random random) {
        this.random = random;
        equal = random.nextInt(3) > 0;
        for (int topic = 1 + random.nextInt(3); topic > 0; topic--)
            counts.put("t" + topic, 1 + random.nextInt(7));
    }

    private void runSticky() {
        Map<String, Set<String>> away = new TreeMap<>();
        Map<String, StickyAssignor> assignors = new HashMap<>();
        for (; generation < 5; generation++) {
            if (!away.isEmpty() && random.nextInt(2) == 0) {
                String back = away.keySet().iterator().next();
                topics.put(back, away.remove(back));
            } else if (oneLeaves()) {
                String gone = anyone();
                away.put(gone, topics.remove(gone));
            } else {
                join();
            }
            Map<String, Subscription> members = new LinkedHashMap<>();
            Map<String, String> claims = new HashMap<>();
            for (String member : topics.keySet()) {
                StickyAssignor assignor = assignors.computeIfAbsent(member, name -> new StickyAssignor());
                ByteBuffer userData = assignor.subscriptionUserData(topics.get(member));
                claims.put(member, userData == null ? "-" : digits(userData.duplicate()));
                members.put(member, new Subscription(new ArrayList<>(topics.get(member)), userData));
            }
            Map<String, List<TopicPartition>> found = assign(new StickyAssignor(), members, claims);
            for (String member : topics.keySet())
                assignors.get(member).onAssignment(new Assignment(found.get(member)),
                    new ConsumerGroupMetadata("g", generation, member, Optional.empty()));
        }
    }

    private void runCooperativeSticky() {
        Map<String, List<TopicPartition>> owned = new HashMap<>();
        for (int change = 0; change < 4; change++) {
            if (oneLeaves()) {
                String gone = anyone();
                topics.remove(gone);
                owned.remove(gone);
            } else {
                join();
            }
            for (int round = 0; round < 2; round++) {
                Map<String, Subscription> members = new LinkedHashMap<>();
                Map<String, String> claims = new HashMap<>();
                for (String member : topics.keySet()) {
                    List<TopicPartition> claimed = owned.getOrDefault(member, Collections.emptyList());
                    int since = owned.containsKey(member) ? generation : -1;
                    claims.put(member, since + " " + names(claimed));
                    members.put(member, new Subscription(new ArrayList<>(topics.get(member)), null, claimed, since,
                        Optional.empty()));
                }
                Map<String, List<TopicPartition>> found = assign(new CooperativeStickyAssignor(), members, claims);
                generation++;
                for (String member : topics.keySet())
                    owned.put(member, new ArrayList<>(found.get(member)));
            }
        }
    }

    private boolean oneLeaves() {
        return topics.size() > 1 && random.nextInt(3) == 0;
    }

    private String anyone() {
        return new ArrayList<>(topics.keySet()).get(random.nextInt(topics.size()));
    }

    private void join() {
        Set<String> wanted = new TreeSet<>(counts.keySet());
        if (!equal)
            wanted.removeIf(topic -> random.nextInt(3) == 0);
        if (wanted.isEmpty())
            wanted.add("t1");
        topics.put("m" + generation + random.nextInt(10), wanted);
    }

    /** Assigns the topics that somebody wants, and prints the line. */
    private Map<String, List<TopicPartition>> assign(AbstractStickyAssignor assignor, Map<String, Subscription> members,
                                                     Map<String, String> claims) {
        Map<String, Integer> known = new TreeMap<>(counts);
        known.keySet().removeIf(topic -> topics.values().stream().noneMatch(wanted -> wanted.contains(topic)));
        Map<String, List<TopicPartition>> found = assignor.assign(known, members);
        StringBuilder line = new StringBuilder();
        known.forEach((topic, count) -> line.append(topic).append(':').append(count).append(' '));
        members.forEach((member, subscription) -> line.append("| ").append(member).append(' ')
            .append(String.join(",", subscription.topics())).append(' ')
            .append(claims.get(member)).append(' ')
            .append(names(found.get(member))).append(' '));
        System.out.println(line.toString().trim());
        return found;
    }

    private static String digits(ByteBuffer bytes) {
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
