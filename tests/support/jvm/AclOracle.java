import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import kafka.security.authorizer.AclAuthorizer;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Decisions of Apache Kafka's AclAuthorizer, without a ZooKeeper. Fields of a line are separated by tabs:
 *
 * "set type pattern name" and then "principal host operation permission" for each entry: replaces the entries of a pattern;
 * "ask superUsers everyone principal host" and then "operation type name" for each action: answered by a 0 or 1 for each
 * action of one call of "authorize", and one for "authorizeByResourceType" with the first operation and type.
 */
public final class AclOracle {
    private static final class Client implements AuthorizableRequestContext {
        private final KafkaPrincipal principal;
        private final InetAddress host;

        Client(String principal, String host) throws Exception {
            this.principal = SecurityUtils.parseKafkaPrincipal(principal);
            this.host = InetAddress.getByName(host);
        }

        public String listenerName() { return "PLAINTEXT"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public KafkaPrincipal principal() { return principal; }
        public InetAddress clientAddress() { return host; }
        public int requestType() { return 0; }
        public int requestVersion() { return 9; }
        public String clientId() { return ""; }
        public int correlationId() { return 0; }
    }

    public static void main(String[] args) throws Exception {
        AclAuthorizer authorizer = new AclAuthorizer();
        Field everyone = AclAuthorizer.class.getDeclaredField("shouldAllowEveryoneIfNoAclIsFound");
        everyone.setAccessible(true);
        Field superUsers = AclAuthorizer.class.getDeclaredField("superUsers");
        superUsers.setAccessible(true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t", -1);
            if (words[0].equals("set")) {
                set(authorizer, words);
                continue;
            }
            superUsers.set(authorizer, principals(words[1]));
            everyone.setBoolean(authorizer, words[2].equals("1"));
            Client client = new Client(words[3], words[4]);
            List<Action> actions = new ArrayList<>();
            for (int i = 5; i < words.length; i += 3)
                actions.add(new Action(AclOperation.valueOf(words[i]), new ResourcePattern(
                    ResourceType.valueOf(words[i + 1]), words[i + 2], PatternType.LITERAL), 1, true, true));
            StringBuilder answer = new StringBuilder();
            for (AuthorizationResult result : authorizer.authorize(client, actions))
                answer.append(bit(result)).append(' ');
            out.println(answer.append(bit(authorizer.authorizeByResourceType(
                client, AclOperation.valueOf(words[5]), ResourceType.valueOf(words[6])))));
        }
        out.flush();
    }

    private static void set(AclAuthorizer authorizer, String[] words) {
        Set<AclEntry> entries = new HashSet<>();
        for (int i = 4; i < words.length; i += 4)
            entries.add(new AclEntry(new AccessControlEntry(words[i], words[i + 1], AclOperation.valueOf(words[i + 2]),
                AclPermissionType.valueOf(words[i + 3]))));
        ResourcePattern pattern =
            new ResourcePattern(ResourceType.valueOf(words[1]), words[3], PatternType.valueOf(words[2]));
        scala.collection.immutable.Set<AclEntry> stored = CollectionConverters.asScala(entries).toSet();
        authorizer.updateCache(pattern, new AclAuthorizer.VersionedAcls(stored, 0));
    }

    private static scala.collection.immutable.Set<KafkaPrincipal> principals(String names) {
        Set<KafkaPrincipal> found = new HashSet<>();
        for (String name : names.split(";"))
            if (!name.isEmpty())
                found.add(SecurityUtils.parseKafkaPrincipal(name));
        return CollectionConverters.asScala(found).toSet();
    }

    private static int bit(AuthorizationResult result) {
        return result == AuthorizationResult.ALLOWED ? 1 : 0;
    }
}
