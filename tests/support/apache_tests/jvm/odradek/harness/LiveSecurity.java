package odradek.harness;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import kafka.network.SocketServer;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.security.authenticator.CredentialCache;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.scram.internals.ScramCredentialUtils;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.security.CredentialProvider;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.metrics.KafkaMetricsGroup;

/** A broker's ACLs, credentials, tokens and counts of logins as its process has them. */
final class LiveSecurity {
    /** The names of Apache's metrics, in the group socket-server-metrics, by the broker's counts. */
    private static final Map<String, String> AUTHENTICATIONS = Map.of(
        "successful_authentication", "successful-authentication-total",
        "successful_reauthentication", "successful-reauthentication-total",
        "successful_authentication_no_reauth", "successful-authentication-no-reauth-total",
        "failed_authentication", "failed-authentication-total",
        "failed_reauthentication", "failed-reauthentication-total",
        "expired_connections_killed", "expired-connections-killed-count");

    private final LiveBroker broker;
    private final Wire wire;

    LiveSecurity(LiveBroker broker, Wire wire) {
        this.broker = broker;
        this.wire = wire;
    }

    /** Tests look for one metric in the registry of the JVM that they expect their brokers in, and clear it before. */
    static void register() {
        new KafkaMetricsGroup(SocketServer.class).newGauge("ExpiredConnectionsKilledCount", LiveSecurity::expired);
    }

    private static double expired() {
        return LiveBroker.running().stream()
            .flatMap(broker -> SideDoor.ask(broker.sideDoor(), "authentications").lines())
            .filter(line -> line.contains(" expired_connections_killed "))
            .mapToDouble(line -> Double.parseDouble(line.split(" ")[2])).sum();
    }

    Authorizer authorizer() {
        return Stand.in(Authorizer.class)
            .with("acls", arguments -> wire.acls((AclBindingFilter) arguments[0]))
            .with("createAcls", arguments -> stages((List<?>) arguments[1], acl -> created((AclBinding) acl)))
            .with("deleteAcls", arguments -> stages((List<?>) arguments[1], filter -> deleted((AclBindingFilter) filter)))
            .with("aclCount", arguments -> wire.acls(AclBindingFilter.ANY).size())
            .make();
    }

    private static <R> List<CompletionStage<R>> stages(List<?> asked, Function<Object, R> answer) {
        return asked.stream().map(one -> CompletableFuture.completedFuture(answer.apply(one))).collect(Collectors.toList());
    }

    private AclCreateResult created(AclBinding acl) {
        Errors error = wire.createAcl(acl);
        return error == Errors.NONE ? AclCreateResult.SUCCESS : new AclCreateResult(error.exception());
    }

    private AclDeleteResult deleted(AclBindingFilter filter) {
        List<AclDeleteResult.AclBindingDeleteResult> results = new ArrayList<>();
        wire.deleteAcls(filter).forEach(acl -> results.add(new AclDeleteResult.AclBindingDeleteResult(acl)));
        return new AclDeleteResult(results);
    }

    DelegationTokenCache tokenCache() {
        return Stand.in(DelegationTokenCache.class).with("tokens", arguments -> wire.tokens()).make();
    }

    CredentialProvider credentialProvider() {
        CredentialProvider provider = new CredentialProvider(List.of(), tokenCache());
        try {
            Field caches = CredentialCache.class.getDeclaredField("cacheMap");
            caches.setAccessible(true);
            Map<String, Object> live = new ConcurrentHashMap<>();
            for (ScramMechanism mechanism : ScramMechanism.values()) {
                live.put(mechanism.mechanismName(), new Credentials(mechanism.mechanismName()));
            }
            caches.set(provider.credentialCache, live);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
        return provider;
    }

    private final class Credentials extends CredentialCache.Cache<ScramCredential> {
        private final String mechanism;

        Credentials(String mechanism) {
            super(ScramCredential.class);
            this.mechanism = mechanism;
        }

        @Override
        public ScramCredential get(String user) {
            String text = SideDoor.ask(broker.sideDoor(), "scram " + mechanism + " " + user);
            return text.isEmpty() ? null : ScramCredentialUtils.credentialFromString(text);
        }
    }

    Metrics metrics() {
        return Stand.in(Metrics.class).with("metrics", arguments -> authentications()).make();
    }

    private Map<MetricName, KafkaMetric> authentications() {
        Map<MetricName, KafkaMetric> found = new HashMap<>();
        for (String line : SideDoor.ask(broker.sideDoor(), "authentications").lines().collect(Collectors.toList())) {
            String[] words = line.split(" ");
            MetricName name = new MetricName(
                AUTHENTICATIONS.get(words[1]), "socket-server-metrics", "", Map.of("listener", words[0]));
            Gauge<Double> value = (config, now) -> Double.valueOf(words[2]);
            found.put(name, new KafkaMetric(new Object(), name, value, new MetricConfig(), Time.SYSTEM));
        }
        return found;
    }
}
