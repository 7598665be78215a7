package odradek.harness;

import java.util.HashMap;
import java.util.Map;

/** Classes of Apache's tests that their broker loads, and the same in Python. */
final class Classes {
    private static final String POLICIES = "tests.support.apache_tests.policies:";
    private static final String SECURITY = "tests.support.apache_tests.security_classes:";
    private static final Map<String, String> PYTHON = new HashMap<>();

    static {
        PYTHON.put("kafka.server.CreateTopicsRequestWithPolicyTest$Policy", POLICIES + "OfNewTopics");
        PYTHON.put("kafka.api.AdminClientWithPoliciesIntegrationTest$Policy", POLICIES + "OfConfigs");
        PYTHON.put("kafka.api.AbstractAuthorizerIntegrationTest$PrincipalBuilder", SECURITY + "ByListener");
        PYTHON.put("kafka.api.GroupAuthorizerIntegrationTest$GroupPrincipalBuilder", SECURITY + "GroupByListener");
        PYTHON.put("kafka.api.GroupEndToEndAuthorizationTest$GroupPrincipalBuilder", SECURITY + "GroupEndToEnd");
        PYTHON.put("kafka.api.PlaintextEndToEndAuthorizationTest$TestClientPrincipalBuilder", SECURITY + "Client");
        PYTHON.put("kafka.api.PlaintextEndToEndAuthorizationTest$TestServerPrincipalBuilder", SECURITY + "Server");
        PYTHON.put("kafka.api.SaslPlainSslEndToEndAuthorizationTest$TestPrincipalBuilder", SECURITY + "PlainSslEndToEnd");
        PYTHON.put("kafka.api.SaslPlainSslEndToEndAuthorizationTest$TestServerCallbackHandler", SECURITY + "PlainSslPasswords");
        PYTHON.put("kafka.api.SslEndToEndAuthorizationTest$TestPrincipalBuilder", SECURITY + "SslEndToEnd");
        PYTHON.put("kafka.api.SslAdminIntegrationTest$TestPrincipalBuilder", SECURITY + "SslAdmin");
        // What it adds is seen by tests that look into the JVM of their broker.
        PYTHON.put("kafka.api.SslAdminIntegrationTest$TestableAclAuthorizer", "kafka.security.authorizer.AclAuthorizer");
        for (String api : new String[] {"Alter", "Describe"}) {
            String test = "kafka.server." + api + "CredentialsTest$";
            PYTHON.put(test + "TestAuthorizer", SECURITY + api + "Credentials");
            PYTHON.put(test + "TestPrincipalBuilderReturningAuthorized", SECURITY + "Anonymous");
            PYTHON.put(test + "TestPrincipalBuilderReturningUnauthorized", SECURITY + "Unauthorized");
        }
    }

    private Classes() {}

    /** The import path in Python for the name of such a class; every other text stays as it is. */
    static String translated(String value) {
        return PYTHON.getOrDefault(value, value);
    }
}
