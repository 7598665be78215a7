package odradek.harness;

import static net.bytebuddy.matcher.ElementMatchers.isDeclaredBy;
import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import java.lang.instrument.Instrumentation;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.MethodDelegation;

/**
 * Rewrites classes as they are loaded: the public face of kafka.server.KafkaServer speaks of a process of Odradek, a sleep
 * of the tests' clock lets real time pass, and key stores and certificates are made as OpenSSL takes them.
 */
public final class Agent {
    private Agent() {}

    /** What of KafkaServer is answered by {@link Face}; all that tests can get hold of has to be here. */
    static final String[] FACE = {
        "startup", "shutdown", "awaitShutdown", "boundPort", "brokerState", "clusterId", "config",
        "adminManager", "alterPartitionManager", "authorizer", "autoTopicCreationManager", "brokerEpochManager",
        "brokerEpochSupplier", "brokerFeatures", "brokerTopicStats", "clientToControllerChannelManager", "createBrokerInfo",
        "credentialProvider", "dataPlaneRequestHandlerPool", "dataPlaneRequestProcessor", "dynamicConfigHandlers",
        "featureChangeListener", "forwardingManager", "getLogManager", "groupCoordinator", "kafkaController",
        "kafkaScheduler", "kafkaYammerMetrics", "lifecycleManager", "logDirFailureChannel", "logManager", "metadataCache",
        "metrics", "quotaManagers", "remoteLogManagerOpt", "replicaManager", "socketServer", "tokenCache", "tokenManager",
        "transactionCoordinator", "zkClient",
    };

    public static void premain(String argument, Instrumentation instrumentation) {
        ProcessHandle.current().parent().ifPresent(runner -> runner.onExit().thenRun(() -> System.exit(1)));
        new AgentBuilder.Default()
            .with(AgentBuilder.TypeStrategy.Default.REDEFINE)
            .with(AgentBuilder.Listener.StreamWriting.toSystemError().withErrorsOnly())
            .type(named("kafka.server.KafkaServer"))
            .transform((builder, type, loader, module, domain) -> builder
                .method(isDeclaredBy(type).and(namedOneOf(FACE)))
                .intercept(MethodDelegation.to(Face.class)))
            .type(named("org.apache.kafka.common.utils.MockTime"))
            .transform((builder, type, loader, module, domain) -> builder
                .visit(Advice.to(TimePasses.class).on(isDeclaredBy(type).and(named("sleep")))))
            .type(named("org.apache.kafka.test.TestSslUtils"))
            .transform((builder, type, loader, module, domain) -> builder
                .visit(Advice.to(NewStores.class).on(isDeclaredBy(type).and(named("createEmptyKeyStore")))))
            .type(named("org.apache.kafka.test.TestSslUtils$CertificateBuilder"))
            .transform((builder, type, loader, module, domain) -> builder
                .visit(Advice.to(NewCertificates.class).on(isConstructor().and(takesArguments(int.class, String.class)))))
            .installOn(instrumentation);
    }
}
