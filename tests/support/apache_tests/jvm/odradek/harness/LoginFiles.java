package odradek.harness;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/** Writes the sections of a login file of Java as properties of the broker, which reads no such file. */
final class LoginFiles {
    private static final Map<String, String> MODULES = Map.of(
        "PLAIN", "org.apache.kafka.common.security.plain.PlainLoginModule",
        "SCRAM-SHA-256", "org.apache.kafka.common.security.scram.ScramLoginModule",
        "SCRAM-SHA-512", "org.apache.kafka.common.security.scram.ScramLoginModule",
        "GSSAPI", "com.sun.security.auth.module.Krb5LoginModule",
        "OAUTHBEARER", "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule");
    /** Passwords that a test's class has for the broker's own login. */
    private static final Map<String, String> PASSWORDS = Map.of(
        "kafka.api.SaslPlainSslEndToEndAuthorizationTest$TestClientCallbackHandler", "broker-password");
    private static final String ZOOKEEPER = "org.apache.zookeeper.server.auth.DigestLoginModule";

    private LoginFiles() {}

    /** Adds the entry of each mechanism of each listener, unless it has one already, and the user for ZooKeeper. */
    static void addTo(Properties properties, KafkaConfig config) {
        if (System.getProperty("java.security.auth.login.config") == null) return;
        String password = PASSWORDS.get(properties.getProperty("sasl.client.callback.handler.class", ""));
        if (password != null) properties.remove("sasl.client.callback.handler.class");
        config.effectiveListenerSecurityProtocolMap().foreachEntry((listener, protocol) -> {
            if (protocol == SecurityProtocol.SASL_PLAINTEXT || protocol == SecurityProtocol.SASL_SSL) {
                addListener(properties, listener, mechanisms(config, listener), password);
            }
            return null;
        });
        AppConfigurationEntry zooKeeper = module("Client", ZOOKEEPER);
        if (zooKeeper == null) return;
        properties.put("odradek.zookeeper.sasl.username", zooKeeper.getOptions().get("username"));
        properties.put("odradek.zookeeper.sasl.password", zooKeeper.getOptions().get("password"));
    }

    private static List<String> mechanisms(KafkaConfig config, ListenerName listener) {
        Object own = config.originals().get(listener.configPrefix() + "sasl.enabled.mechanisms");
        return own == null
            ? config.getList("sasl.enabled.mechanisms")
            : List.of(own.toString().split(","));
    }

    private static void addListener(Properties properties, ListenerName listener, List<String> mechanisms, String password) {
        for (String mechanism : mechanisms) {
            String key = listener.saslMechanismConfigPrefix(mechanism) + "sasl.jaas.config";
            AppConfigurationEntry own = module(listener.value().toLowerCase(Locale.ROOT) + ".KafkaServer", MODULES.get(mechanism));
            AppConfigurationEntry entry = own == null ? module("KafkaServer", MODULES.get(mechanism)) : own;
            if (entry != null) properties.putIfAbsent(key, text(entry, password));
            if (entry != null && mechanism.equals("OAUTHBEARER")) acceptUnsecured(properties, listener.saslMechanismConfigPrefix(mechanism));
        }
    }

    /** Apache's broker accepts tokens without signatures by default. */
    private static void acceptUnsecured(Properties properties, String prefix) {
        String classes = "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecured";
        properties.putIfAbsent(prefix + "sasl.server.callback.handler.class", classes + "ValidatorCallbackHandler");
        properties.putIfAbsent(prefix + "sasl.login.callback.handler.class", classes + "LoginCallbackHandler");
    }

    private static AppConfigurationEntry module(String section, String name) {
        AppConfigurationEntry[] entries = Configuration.getConfiguration().getAppConfigurationEntry(section);
        if (entries == null) return null;
        for (AppConfigurationEntry entry : entries) {
            if (entry.getLoginModuleName().equals(name)) return entry;
        }
        return null;
    }

    private static String text(AppConfigurationEntry entry, String password) {
        StringBuilder text = new StringBuilder(entry.getLoginModuleName()).append(" required");
        Map<String, Object> options = new LinkedHashMap<>(entry.getOptions());
        if (password != null) options.put("password", password);
        options.forEach((key, value) -> text.append(' ').append(key).append("=\"").append(value).append('"'));
        return text.append(';').toString();
    }
}
